package service

import (
	"context"
	"errors"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// A stream is slowed down where a single call would be refused: its face stops
// reading, which its client notices by itself and without an error.
const (
	firstPatience = time.Millisecond
	mostPatience  = 100 * time.Millisecond
)

// patiently does f until it gives no reason to wait: a rate is exceeded, or
// there is no room for one more request. It gives up when ctx ends, with its
// error.
func patiently(ctx context.Context, f func() error) error {
	err := f()
	for pause := firstPatience; passing(err); pause = min(2*pause, mostPatience) {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		err = f()
	}
	return err
}

// passing reports whether err is about this moment alone.
func passing(err error) bool {
	switch queue.CodeOf(err) {
	case queue.TooManyRequests:
		return true
	case queue.ServiceUnavailable:
		return !errors.Is(err, broker.ErrClosing)
	}
	return false
}
