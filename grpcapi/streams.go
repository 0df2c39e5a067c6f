package grpcapi

import (
	"context"
	"errors"
	"io"
	"sync"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
)

// errStopping is the end of a stream whose server stops.
var errStopping = queue.Errorf(queue.ServiceUnavailable, "the server is stopping; try again elsewhere or later")

// conversation is what both streams are made of: one goroutine receives, the
// handler's sends, and what they share is under one mutex with one condition
// for every change. The core, too, takes the mutex, when it tells what became
// of a request; so nobody holds it for longer than a few assignments.
//
// The stream ends when nothing more is to be received (end) and all that is
// owed has been sent; or at once when its client is gone (lost).
//
// gRPC has no way to wake a Recv but the return of the handler. So the
// receiving goroutine may stand in Recv when the handler returns, and ends then;
// until it does it touches nothing but the stream and the mutex, see enter.
type conversation struct {
	ctx    context.Context // of all that is started for the stream
	giveUp context.CancelFunc

	mu      sync.Mutex
	changed sync.Cond // something below, or in the struct around it
	busy    bool      // the receiver is at work on what it has received
	ended   bool      // nothing more is received
	lost    bool      // nothing more can be sent
	err     error     // what the stream ends with once it has ended; nil is OK
}

// open begins the conversation of a stream with that context. What it returns
// must be called before the handler returns: it waits until the receiver does
// nothing for the stream any more.
func (c *conversation) open(ctx, stopping context.Context) (closed func()) {
	c.changed.L = &c.mu
	c.ctx, c.giveUp = context.WithCancel(ctx)
	gone := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.lost = true
		c.mu.Unlock()
		c.end(Status(ctx.Err()))
	})
	stops := func() bool { return true }
	if stopping != nil {
		stops = context.AfterFunc(stopping, func() { c.end(Status(errStopping)) })
	}
	return func() {
		gone()
		stops()
		c.end(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		for c.busy {
			c.changed.Wait()
		}
	}
}

// end lets nothing more be received, and has the stream end with err, a gRPC
// status or nil. What waits for a message, or for a rate, is given up. The
// first end counts.
func (c *conversation) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended, c.err = true, err
		c.giveUp()
		c.changed.Broadcast()
	}
}

// received ends the conversation after a failed Recv: the client has closed its
// side, or is gone, or has sent what cannot be read.
func (c *conversation) received(err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	c.end(err)
}

// enter is false when the stream ended while the receiver stood in Recv: then it
// must return. Otherwise leave ends what it does with what it received.
func (c *conversation) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.ended
	return c.busy
}

func (c *conversation) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	c.changed.Broadcast()
}

// result is what the stream ends with.
func (c *conversation) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// streamError is err for one batch or one settlement; nil stays nil. What was
// given up while it waited its turn is the server's stop: when the stream was
// lost nobody reads this.
func streamError(err error) *queuev1.StreamError {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		err = errStopping
	}
	return &queuev1.StreamError{Code: string(queue.CodeOf(err)), Message: queue.MessageOf(err)}
}
