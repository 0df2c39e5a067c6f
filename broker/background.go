package broker

import (
	"context"
	"sync"
)

// worker is a list of things to do outside the core and the one goroutine that
// does them. The list is as long as what is known to be waiting in the core,
// which is bounded itself.
type worker[T any] struct {
	mu   sync.Mutex
	list []T

	kick chan struct{}
}

func newWorker[T any]() *worker[T] { return &worker[T]{kick: make(chan struct{}, 1)} }

// add never blocks.
func (w *worker[T]) add(items ...T) {
	w.mu.Lock()
	w.list = append(w.list, items...)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// run gives the items to do, at most max at a time, until ctx is done.
func (w *worker[T]) run(ctx context.Context, max int, do func(context.Context, []T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		for ctx.Err() == nil {
			w.mu.Lock()
			n := min(max, len(w.list))
			items := append([]T(nil), w.list[:n]...)
			w.list = w.list[n:]
			if len(w.list) == 0 {
				w.list = nil
			}
			w.mu.Unlock()
			if n == 0 {
				break
			}
			do(ctx, items)
		}
	}
}
