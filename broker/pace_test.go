package broker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// paced is a pace in fake time, behind, with so many requests of consumers in
// the period that is just over.
func paced(t *testing.T, requests int, f func(t *testing.T, p *pace)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{}
		p.behind.Store(true)
		p.consumed() // begins a period
		time.Sleep(paceMost)
		for range requests {
			p.consumed()
		}
		time.Sleep(paceMost)
		p.credit = 0
		f(t, p)
	})
}

// held starts a publish and reports when it goes on, and after which wait.
func held(ctx context.Context, p *pace) chan time.Duration {
	began, done := time.Now(), make(chan time.Duration, 1)
	go func() {
		p.wait(ctx)
		done <- time.Since(began)
	}()
	synctest.Wait()
	return done
}

// passed is the wait of a publish that has gone on, or -1.
func passed(done chan time.Duration) time.Duration {
	synctest.Wait()
	select {
	case d := <-done:
		return d
	default:
		return -1
	}
}

func TestPaceWaitsForTwoRequests(t *testing.T) {
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		first, second := held(t.Context(), p), held(t.Context(), p)
		p.consumed()
		if d := passed(first); d >= 0 {
			t.Fatalf("a publish went on after one request, and %v", d)
		}
		time.Sleep(time.Millisecond)
		p.consumed()
		if d := passed(first); d != time.Millisecond {
			t.Errorf("the first publish was held %v", d)
		}
		if d := passed(second); d >= 0 {
			t.Errorf("the second went on with the first, after %v", d)
		}
		p.consumed()
		p.consumed()
		if d := passed(second); d != time.Millisecond {
			t.Errorf("the second publish was held %v", d)
		}
		if n := p.held.Load(); n != 2 {
			t.Errorf("%d publishes are counted as held", n)
		}
	})
}

func TestPaceIsBounded(t *testing.T) {
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		first := held(t.Context(), p)
		ctx, cancel := context.WithCancel(t.Context())
		second := held(ctx, p)
		cancel()
		if d := passed(second); d != 0 {
			t.Errorf("a publish whose client is gone was held %v", d)
		}
		time.Sleep(paceMost)
		if d := passed(first); d != paceMost {
			t.Errorf("the publish was held %v", d)
		}
		if len(p.waiting) != 0 {
			t.Errorf("%d wait", len(p.waiting))
		}
	})
}

// Nobody is held for a queue that has nothing waiting, few consumers, or
// consumers that have stopped; nor when many are held already.
func TestPaceHoldsNobody(t *testing.T) {
	goesOn := func(t *testing.T, why string, p *pace) {
		if d := passed(held(t.Context(), p)); d != 0 {
			t.Errorf("%s: a publish is held %v", why, d)
		}
	}
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		p.behind.Store(false)
		goesOn(t, "nothing waits", p)
	})
	paced(t, paceSeveral-1, func(t *testing.T, p *pace) { goesOn(t, "few consumers", p) })
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		time.Sleep(paceMost)
		goesOn(t, "the consumers have stopped", p)
	})
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		p.consumed()
		p.consumed()
		goesOn(t, "two requests came before", p)
		if first := held(t.Context(), p); passed(first) >= 0 {
			t.Error("they stand for two publishes")
		}
	})
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		for range paceWaiting {
			if d := passed(held(t.Context(), p)); d >= 0 {
				t.Fatalf("a publish is held %v", d)
			}
		}
		goesOn(t, "many are held", p)
		time.Sleep(paceMost)
	})
}

// When nothing waits any more all go on.
func TestPaceEndsWithTheBacklog(t *testing.T) {
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		first, second := held(t.Context(), p), held(t.Context(), p)
		time.Sleep(time.Millisecond)
		p.set(true)
		if d := passed(first); d >= 0 {
			t.Errorf("a publish went on after %v", d)
		}
		p.set(false)
		for _, done := range []chan time.Duration{first, second} {
			if d := passed(done); d != time.Millisecond {
				t.Errorf("a publish was held %v", d)
			}
		}
	})
}
