package bench

import (
	"context"
	"sync"
	"time"
)

// inbox holds what a session was sent until receive takes it. What may come is
// bounded by the window.
type inbox struct {
	mu      sync.Mutex
	waiting []delivery
	failed  error

	wake chan struct{} // holds one: there may be something
	gone chan struct{} // closed at failed
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (b *inbox) put(d ...delivery) {
	b.mu.Lock()
	b.waiting = append(b.waiting, d...)
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default: // it rings already
	}
}

// fail ends the waiting, now and later. The first error counts.
func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
		close(b.gone)
	}
}

// take waits for messages and takes up to max.
func (b *inbox) take(ctx context.Context, max int) ([]delivery, error) {
	timer := time.NewTimer(pollFor)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if n := min(max, len(b.waiting)); n > 0 {
			got := append([]delivery(nil), b.waiting[:n]...)
			b.waiting = append(b.waiting[:0], b.waiting[n:]...)
			more := len(b.waiting) > 0
			b.mu.Unlock()
			if more { // for another who waits
				b.ring()
			}
			return got, nil
		}
		err := b.failed
		b.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-b.wake:
		case <-b.gone:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
