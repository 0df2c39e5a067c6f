package broker

import (
	"context"
	"testing/synctest"
)

// shut closes what a test has left open, also when it failed: a bubble does
// not bear goroutines that are left over.
func (x *bench) shut() {
	if p := recover(); p != nil {
		panic(p) // the core may be in disorder
	}
	x.b.in.mu.Lock()
	closed := x.b.in.closed
	x.b.in.mu.Unlock()
	if !closed {
		x.close()
	}
}

// together has the requests of the calls decided in one group, in their order.
// It works in a bubble only.
func (x *bench) together(calls ...func()) {
	gate := make(chan struct{})
	admin := make(chan error)
	go func() {
		admin <- x.b.Admin(context.Background(), func(*Tx) error { <-gate; return nil })
	}()
	synctest.Wait()
	done := make(chan struct{})
	for _, call := range calls {
		go func() { call(); done <- struct{}{} }()
		synctest.Wait()
	}
	close(gate)
	if err := <-admin; err != nil {
		x.t.Error(err)
	}
	for range calls {
		<-done
	}
}
