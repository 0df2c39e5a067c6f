package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

const (
	// mostCredit is what a server grants one stream.
	mostCredit = 10000
	// mostUnsettled is how many messages may be handled and not yet settled,
	// beside those that are being handled. Beyond it nothing is begun.
	mostUnsettled = 1000
	// settleTimeout is how long the end of Consume waits for settlements once
	// the last handler has returned.
	settleTimeout = 10 * time.Second
)

// ConsumerOptions are what Consume may be told. The zero value works.
type ConsumerOptions struct {
	// Channel is the channel to consume, or a pattern in which * stands for any
	// run of characters; "" is all.
	Channel string
	// Group is the consumer group, by display name or OCID; "" is the primary.
	Group string
	// Concurrency is how many handlers run at once; 1 by default.
	Concurrency int
	// Prefetch is how many messages the consumer holds, those with a running
	// handler included; twice Concurrency by default, 10000 at most. More is
	// quicker if handlers are short; what is held, others do not get.
	Prefetch int
	// Visibility is how long a message stays hidden when this consumer dies: it
	// is extended again and again while it is held. 30 seconds by default; a
	// second to 12 hours, rounded up to whole seconds.
	Visibility time.Duration
	// NoExtend leaves messages hidden for Visibility and no longer, or, if that
	// is 0, for as long as the message or the queue says.
	NoExtend bool
	// ReturnDelay is how long a message stays hidden after its handler failed
	// with err, up to 12 hours; m.Count says how often it was tried. nil gives
	// it back at once.
	ReturnDelay func(m *Delivery, err error) time.Duration
	// StopTimeout is how long running handlers have to finish at the end of
	// Consume before their context ends; 30 seconds by default.
	StopTimeout time.Duration
	// OnError is told what Consume does not return, instead of
	// Options.OnError: *DeliveryError for what concerns one message, others for
	// a stream that broke and is tried again.
	OnError func(error)
}

// Handler does the work of one message. nil acknowledges it, an error or a
// panic gives it back. A handler that calls runtime.Goexit, as t.FailNow does,
// gives it back too, and takes one of Concurrency with it. ctx ends when the lease of the message is lost
// (context.Cause is ErrLeaseLost), or when a stop takes too long; a handler
// should then return.
type Handler func(ctx context.Context, m *Delivery) error

// DeliveryError is what went wrong with one message.
type DeliveryError struct {
	Message *Delivery
	Op      string // "handle", "acknowledge", "return" or "extend"
	Err     error  // what the handler returned, *PanicError, or *Error
}

func (e *DeliveryError) Error() string {
	return fmt.Sprintf("%s message %d: %v", e.Op, e.Message.ID, e.Err)
}

func (e *DeliveryError) Unwrap() error { return e.Err }

// PanicError is a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// delivery is a message that the consumer holds: from when it comes until its
// handler has returned.
type delivery struct {
	Delivery

	// Under consumer.mu.
	leased time.Time               // when its lease began, at the latest known
	extend *settlement             // on its way or to be sent; nil if none
	lost   bool                    // its lease
	done   bool                    // no longer held
	cancel context.CancelCauseFunc // of its handler; nil before it runs
}

// consumer is one Consume. It outlives its streams: what it holds and what is
// to be settled goes from one to the next.
type consumer struct {
	client     *Client
	queue      string
	o          ConsumerOptions
	handler    Handler
	visibility time.Duration // how long a lease lasts; 0 is unknown

	ready    chan *delivery // not begun; has room for all that may be held
	slots    chan struct{}  // one in it for each message begun and not settled
	stopping chan struct{}  // closed: begin nothing more
	base     context.Context
	cut      context.CancelCauseFunc // ends base, the context of all handlers
	stream   context.Context         // of all streams
	wake     chan struct{}           // holds one: there may be something to send
	busy     chan struct{}           // holds one: there may be something to watch over

	mu      sync.Mutex
	held    map[*delivery]struct{}
	outbox  []*settlement          // to be sent
	sent    map[uint64]*settlement // on the present stream, by number
	later   []*settlement          // to be sent at the next tick
	number  uint64                 // of the last settlement
	grant   int                    // credit to be granted
	live    bool                   // there is a stream
	drain   drain
	settled bool // handlers are over: what is to be settled, is all there will be
}

// drain is how far the taking back of credit has come.
type drain int

const (
	drainNot  drain = iota
	drainDue        // to be asked for
	drainSent       // asked for
	drainDone       // nothing will be delivered any more
)

// Consume hands the messages of the queue, which is named by display name or
// OCID, with _dlq behind it for its dead letter queue, to handler until ctx
// ends. Each message ends by what handler returns: nil acknowledges it, which
// is durable before Consume returns; an error or a panic gives it back and is
// reported to OnError. A message may be delivered again although its handler
// returned nil, namely when the lease ended before the acknowledgement arrived:
// delivery is at least once.
//
// When ctx ends, no more is begun and what was not begun is given back at once;
// running handlers finish, and Consume returns nil when all they did is
// settled. Handlers do not see the end of ctx, only that of StopTimeout;
// Consume waits for them even then. An error says that settlements are
// unanswered: those messages may come again.
//
// A stream that breaks is replaced, with a pause that grows up to a few seconds,
// while handlers go on. What a new stream cannot mend ends Consume: running
// handlers are told by their context, with the same error as its cause, and
// Consume returns it. That is an *Error, NotAuthorizedOrNotFound if there is no
// such queue or it was deleted. After Client.Close, which ends Consume as ctx
// does, it returns ErrClosed.
func (c *Client) Consume(ctx context.Context, queue string, handler Handler, o ConsumerOptions) error {
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.Prefetch = cmp.Or(o.Prefetch, min(2*o.Concurrency, mostCredit))
	o.StopTimeout = cmp.Or(o.StopTimeout, 30*time.Second)
	if o.Visibility == 0 && !o.NoExtend {
		o.Visibility = 30 * time.Second
	}
	if o.OnError == nil {
		o.OnError = c.onError
	}
	switch {
	case o.Concurrency < 0:
		return refusal(InvalidParameter, "Concurrency is %d, which is below 1", o.Concurrency)
	case o.Prefetch < 0 || o.Prefetch > mostCredit:
		return refusal(InvalidParameter, "Prefetch is %d, which is not in the range 1 to %d", o.Prefetch, mostCredit)
	case o.Visibility < 0:
		return refusal(InvalidParameter, "Visibility is %v, which is below 1s", o.Visibility)
	}
	k := &consumer{
		client:     c,
		queue:      queue,
		o:          o,
		handler:    handler,
		visibility: time.Duration(wholeSeconds(o.Visibility)) * time.Second,
		ready:      make(chan *delivery, o.Prefetch),
		slots:      make(chan struct{}, o.Concurrency+mostUnsettled),
		stopping:   make(chan struct{}),
		wake:       make(chan struct{}, 1),
		busy:       make(chan struct{}, 1),
		held:       map[*delivery]struct{}{},
		sent:       map[uint64]*settlement{},
	}
	values := context.WithoutCancel(ctx)
	k.base, k.cut = context.WithCancelCause(values)
	defer k.cut(context.Canceled)
	ctx, end := context.WithCancelCause(ctx)
	defer end(context.Canceled)
	if err := c.use(k, func() { end(ErrClosed) }); err != nil {
		return err
	}
	defer c.left(k)

	err := k.run(ctx, values)
	if err == nil && context.Cause(ctx) == ErrClosed {
		return ErrClosed
	}
	return err
}

// run consumes until ctx ends or a stream ends for good.
func (k *consumer) run(ctx, values context.Context) (err error) {
	var streams context.CancelFunc
	k.stream, streams = context.WithCancel(values)
	defer streams()
	failed, fail := context.WithCancel(ctx) // also ends when a stream has ended for good
	defer fail()

	workers, rest := sync.WaitGroup{}, sync.WaitGroup{}
	for range min(k.o.Concurrency, k.o.Prefetch) {
		workers.Go(k.work)
	}
	stopped, over := make(chan struct{}), make(chan struct{})
	rest.Go(func() { k.watch(over) })
	rest.Go(func() {
		<-failed.Done()
		k.stop(&workers)
		close(stopped)
		// Settlements go on for a while, unless there is nothing to wait for.
		timer := time.NewTimer(settleTimeout)
		defer timer.Stop()
		if k.finished() {
			streams()
		}
		select {
		case <-timer.C:
			streams()
		case <-over:
		}
	})
	if err = k.streams(); permanent(err) {
		k.cut(err)
		fail()
		<-stopped
	}
	close(over)
	rest.Wait()
	return k.account(err)
}

// streams opens one stream after the other until all is done, there is no time
// left, or one ends for good. The error is that of the last stream.
func (k *consumer) streams() (last error) {
	var pause backoff
	for {
		if k.finished() {
			return nil
		}
		if k.stream.Err() != nil {
			return last
		}
		worked, err := k.once()
		if err == nil || k.finished() {
			return nil
		}
		if k.stream.Err() != nil {
			return last
		}
		if last = err; permanent(err) {
			return err
		}
		if worked {
			pause.reset()
		}
		k.o.OnError(fmt.Errorf("consume %s: %w", k.queue, err))
		timer := time.NewTimer(pause.next())
		select {
		case <-timer.C:
		case <-k.stream.Done():
			timer.Stop()
		}
	}
}

// work runs handlers, one after the other.
func (k *consumer) work() {
	for {
		select {
		case <-k.stopping:
			return
		case k.slots <- struct{}{}:
		}
		select {
		case <-k.stopping:
			<-k.slots
			return
		case d := <-k.ready:
			select {
			case <-k.stopping:
				<-k.slots
				k.giveBack(d)
				return
			default:
				k.handle(d)
			}
		}
	}
}

// handle runs the handler on d and says what becomes of it. The slot goes with
// the settlement.
func (k *consumer) handle(d *delivery) {
	ctx, cancel := context.WithCancelCause(k.base)
	defer cancel(context.Canceled)
	k.mu.Lock()
	if d.lost { // while it waited
		k.release(d)
		k.mu.Unlock()
		<-k.slots
		return
	}
	d.cancel = cancel
	k.mu.Unlock()

	err := errors.New("the handler has ended its goroutine") // unless it returns
	defer func() { k.handled(d, err) }()
	err = guard(func() error { return k.handler(ctx, &d.Delivery) })
}

// handled settles d, whose handler has ended with err.
func (k *consumer) handled(d *delivery, err error) {
	var delay time.Duration
	if err != nil {
		k.report(d, "handle", err)
		if k.o.ReturnDelay != nil {
			if err := guard(func() error { delay = k.o.ReturnDelay(&d.Delivery, err); return nil }); err != nil {
				k.report(d, "handle", err)
			}
		}
	}
	k.mu.Lock()
	k.release(d)
	switch {
	case err == nil:
		k.settle(&settlement{d: d, action: queuev1.Settlement_ACKNOWLEDGE, slot: true})
	case d.lost: // it is no longer ours to give back
		<-k.slots
	default:
		k.settle(&settlement{d: d, action: queuev1.Settlement_RETURN, delay: max(delay, 0), slot: true})
	}
	k.mu.Unlock()
	k.poke()
}

// guard calls f and makes an error of its panic.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// stop begins nothing more, gives back what was not begun and waits for the
// handlers that run.
func (k *consumer) stop(workers *sync.WaitGroup) {
	k.mu.Lock()
	close(k.stopping)
	if k.drain == drainNot {
		k.drain = drainDue
	}
	k.grant = 0
	k.mu.Unlock()
	k.poke()
	for more := true; more; {
		select {
		case d := <-k.ready:
			k.giveBack(d)
		default:
			more = false
		}
	}
	timer := time.AfterFunc(k.o.StopTimeout, func() { k.cut(context.Canceled) })
	workers.Wait()
	timer.Stop()
	k.mu.Lock()
	k.settled = true
	k.outbox = slices.DeleteFunc(k.outbox, func(s *settlement) bool { return s.action == queuev1.Settlement_EXTEND })
	k.mu.Unlock()
	k.poke()
}

// giveBack returns d, which was not begun, at once.
func (k *consumer) giveBack(d *delivery) {
	k.mu.Lock()
	k.release(d)
	if !d.lost {
		k.settle(&settlement{d: d, action: queuev1.Settlement_RETURN})
	}
	k.mu.Unlock()
	k.poke()
}

// release no longer holds d, so that another message may be delivered. The
// caller holds k.mu.
func (k *consumer) release(d *delivery) {
	d.done = true
	delete(k.held, d)
	select {
	case <-k.stopping:
	default:
		k.grant++
	}
}

// finished says that nothing is left to do: the handlers are over, all is
// settled, and no stream can deliver any more.
func (k *consumer) finished() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settled && len(k.held)+k.unsettled() == 0 && (!k.live || k.drain == drainDone)
}

// unsettled is how many settlements have no answer. The caller holds k.mu.
func (k *consumer) unsettled() int { return len(k.outbox) + len(k.sent) + len(k.later) }

// account reports what is left unsettled, and is the error of Consume.
func (k *consumer) account(err error) error {
	k.mu.Lock()
	left := append(k.outbox, k.later...)
	for _, s := range k.sent {
		left = append(left, s)
	}
	k.mu.Unlock()
	n := 0
	for _, s := range left {
		if s.action == queuev1.Settlement_EXTEND {
			continue
		}
		n++
		k.report(s.d, s.op(), ErrUnsettled)
	}
	switch {
	case permanent(err):
		return err
	case n > 0:
		return errors.Join(fmt.Errorf("consume %s: %w: %d messages", k.queue, ErrUnsettled, n), err)
	}
	return nil
}

func (k *consumer) report(d *delivery, op string, err error) {
	k.o.OnError(&DeliveryError{Message: &d.Delivery, Op: op, Err: err})
}

func (k *consumer) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}
