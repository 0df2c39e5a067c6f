package client

import (
	"context"
	"slices"
	"sync"
)

// window bounds how many messages and octets are handed over and not answered.
// Who comes when it is full waits, in the order of coming.
type window struct {
	closed chan struct{} // nobody gets in any more

	mu       sync.Mutex
	messages int // room left
	octets   int // room left; below zero while one large message is alone
	most     int // messages of an empty window
	queue    []*turn
}

// turn is one who waits.
type turn struct {
	octets int
	come   chan struct{} // closed under window.mu
}

func newWindow(messages, octets int) *window {
	return &window{closed: make(chan struct{}), messages: messages, most: messages, octets: octets}
}

// enter waits for room for one message. ErrClosed after close, or the error of
// ctx.
func (w *window) enter(ctx context.Context, octets int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-w.closed:
		return ErrClosed
	default:
	}
	w.mu.Lock()
	if len(w.queue) == 0 && w.fits(octets) {
		w.take(octets)
		w.mu.Unlock()
		return nil
	}
	t := &turn{octets, make(chan struct{})}
	w.queue = append(w.queue, t)
	w.mu.Unlock()

	var err error
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-w.closed:
		err = ErrClosed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queue, t); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	} else { // the turn came at the same moment
		w.messages++
		w.octets += octets
	}
	w.admit() // those behind may be smaller
	return err
}

// leave gives back the room of one message.
func (w *window) leave(octets int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages++
	w.octets += octets
	w.admit()
}

func (w *window) admit() {
	for len(w.queue) > 0 && w.fits(w.queue[0].octets) {
		w.take(w.queue[0].octets)
		close(w.queue[0].come)
		w.queue = w.queue[1:]
	}
}

// fits says whether there is room; an empty window has room for anything.
func (w *window) fits(octets int) bool {
	return w.messages > 0 && (octets <= w.octets || w.messages == w.most)
}

func (w *window) take(octets int) {
	w.messages--
	w.octets -= octets
}
