package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

const (
	// earlyBatches is how many batches may be on their way for one more to go
	// before it is full. A lone message thus never waits, and under load
	// messages gather while earlier ones are being stored.
	earlyBatches = 4
	// triedFor is how long a batch may be sent again: the server remembers a
	// retry token for 24 hours from when it stored the batch.
	triedFor = 23 * time.Hour
	// mostFaults is how often one batch may meet InternalServerError.
	mostFaults = 5
)

// PublisherOptions are what a Publisher may be told. The zero value works.
type PublisherOptions struct {
	// BatchMessages and BatchBytes are how much may go in one batch: 20
	// messages and 512 KiB, which is what a server takes unless its limits are
	// set otherwise. A message over BatchBytes is refused with PayloadTooLarge.
	BatchMessages, BatchBytes int
	// Window and WindowBytes are how much may be handed over and not yet
	// answered, 2000 messages and 8 MiB by default. Publish and Send wait while
	// it is full.
	Window, WindowBytes int
	// CloseTimeout is how long Close waits for answers; 10 seconds by default.
	CloseTimeout time.Duration
	// OnError is told of broken streams instead of Options.OnError.
	OnError func(error)
}

// Publisher publishes to one queue over one stream. It may be used by many
// goroutines; one Publisher is better than several. Messages go in the order in
// which they were handed over, in batches that nobody sees: if one message of a
// batch is refused, the others are sent without it.
//
// When the stream or the server is lost, what is unanswered is sent again until
// it is answered, and is stored once. A message fails with an *Error if the
// server refuses it, or the stream with no hope of a better one (such as
// NotAuthenticated); then the Publisher serves the messages that come later.
type Publisher struct {
	client *Client
	queue  string
	o      PublisherOptions
	window *window
	wake   chan struct{} // holds one: there may be something to send
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{} // closed when run is over

	mu      sync.Mutex
	number  uint64     // of the last batch
	waiting []*Pending // in no batch yet
	octets  int        // of waiting
	again   []*batch   // refused together, to be sent one by one
	batches []*batch   // on their way, in order
	sent    int        // how many of batches have been sent on this stream
	closing bool
	failed  error // the first failure that Flush has not told
}

// batch is what is sent at once. It is never changed, so that it can be sent
// again.
type batch struct {
	messages []*Pending
	request  *queuev1.PublishMessagesRequest
	made     time.Time

	faults int // under Publisher.mu
}

// Pending is a message that was handed over by Send.
type Pending struct {
	publisher *Publisher
	entry     *queuev1.PutMessagesDetailsEntry
	octets    int
	watched   bool // by Publish: a failure need not be told by Flush

	done chan struct{} // closed when the fields below are final
	id   int64
	err  error
}

// Publisher publishes to the queue, which is named by display name or OCID.
// Close it after use; Client.Close does so too. Whether there is such a queue
// turns out with the first message.
func (c *Client) Publisher(queue string, o PublisherOptions) *Publisher {
	o.BatchMessages = cmp.Or(max(o.BatchMessages, 0), 20)
	o.BatchBytes = cmp.Or(max(o.BatchBytes, 0), 512<<10)
	o.Window = cmp.Or(max(o.Window, 0), 2000)
	o.WindowBytes = cmp.Or(max(o.WindowBytes, 0), 8<<20)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 10*time.Second)
	if o.OnError == nil {
		o.OnError = c.onError
	}
	p := &Publisher{client: c, queue: queue, o: o, window: newWindow(o.Window, o.WindowBytes), wake: make(chan struct{}, 1), over: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if c.use(p, func() { _ = p.Close() }) != nil { // the client is closed
		p.closing = true
		close(p.window.closed)
		p.cancel()
		close(p.over)
		return p
	}
	go func() { // Close waits for it, and the client for Close
		defer c.left(p)
		defer close(p.over)
		defer p.cancel()
		p.run()
	}()
	return p
}

// Publish publishes m and is its id once it is durable. If ctx ends first, the
// message is withdrawn unless it is on its way already: then it may be
// published or not.
func (p *Publisher) Publish(ctx context.Context, m Message) (id int64, err error) {
	d := p.hand(ctx, m, true)
	id, err = d.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		p.withdraw(d, err)
	}
	return id, err
}

// Send hands m over and waits only for room in the window. It is never nil: if
// ctx ends before there is room, or m is refused at once, Pending has failed.
// What becomes of the message is told by Pending, and a failure by Flush too.
func (p *Publisher) Send(ctx context.Context, m Message) *Pending {
	return p.hand(ctx, m, false)
}

// Done is closed when it is known what became of the message.
func (d *Pending) Done() <-chan struct{} { return d.done }

// Wait waits until the message is durable and is its id. The end of ctx ends
// the waiting only, not the message.
func (d *Pending) Wait(ctx context.Context) (id int64, err error) {
	select {
	case <-d.done:
		return d.id, d.err
	default:
	}
	select {
	case <-d.done:
		return d.id, d.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Flush waits until all that was handed over before is answered. It is the
// first failure of a message given to Send since the last Flush, nil if there
// was none, or the error of ctx.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	var open []*Pending
	for _, b := range p.batches {
		open = append(open, b.messages...)
	}
	for _, b := range p.again {
		open = append(open, b.messages...)
	}
	open = append(open, p.waiting...)
	p.mu.Unlock()
	for _, d := range open {
		select {
		case <-d.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.failed
	p.failed = nil
	return err
}

// Close takes no more messages, waits for the answers to those it has, up to
// CloseTimeout, and ends the stream. What is unanswered then fails with
// ErrClosed. The error is that of Flush.
func (p *Publisher) Close() error {
	p.mu.Lock()
	if !p.closing {
		p.closing = true
		close(p.window.closed)
	}
	p.mu.Unlock()
	p.poke()
	timeout := time.NewTimer(p.o.CloseTimeout)
	defer timeout.Stop()
	select {
	case <-p.over:
	case <-timeout.C:
		p.cancel()
		<-p.over
	}
	return p.Flush(context.Background())
}

// hand puts m behind those that wait.
func (p *Publisher) hand(ctx context.Context, m Message, watched bool) *Pending {
	d := &Pending{publisher: p, watched: watched, done: make(chan struct{})}
	entry, octets, err := m.entry()
	if err == nil && octets > p.o.BatchBytes {
		err = refusal(PayloadTooLarge, "the message has %d octets, %d are allowed", octets, p.o.BatchBytes)
	}
	if err == nil {
		err = p.window.enter(ctx, octets)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.end(d, 0, err)
		return d
	}
	d.entry, d.octets = entry, octets
	if p.closing {
		p.end(d, 0, ErrClosed)
		p.window.leave(octets)
		return d
	}
	p.waiting = append(p.waiting, d)
	p.octets += octets
	p.poke()
	return d
}

// withdraw ends d with err if it is in no batch yet.
func (p *Publisher) withdraw(d *Pending, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w == d {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			p.octets -= d.octets
			p.end(d, 0, err)
			p.window.leave(d.octets)
			return
		}
	}
}

// end makes the outcome of d known. The caller holds p.mu.
func (p *Publisher) end(d *Pending, id int64, err error) {
	d.id, d.err, d.entry = id, err, nil
	if err != nil && !d.watched && p.failed == nil {
		p.failed = err
	}
	close(d.done)
}

func (p *Publisher) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run keeps a stream while there is something to publish, and ends when the
// publisher is closed and nothing is left, or cut.
func (p *Publisher) run() {
	var pause backoff
	for p.awaitWork() {
		worked, err := p.stream()
		if err == nil {
			break // closed, and all is answered
		}
		if worked {
			pause.reset()
		}
		if p.ctx.Err() != nil {
			break
		}
		if permanent(err) {
			p.fail(err, 0)
		} else {
			p.fail(err, triedFor)
		}
		if p.idle() {
			continue // nobody misses the stream
		}
		p.o.OnError(fmt.Errorf("publish to %s: %w", p.queue, err))
		timer := time.NewTimer(pause.next())
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			timer.Stop()
		}
	}
	p.fail(ErrClosed, 0)
}

// awaitWork waits for a message. It is false when none will come.
func (p *Publisher) awaitWork() bool {
	for p.ctx.Err() == nil {
		if !p.idle() {
			return true
		}
		p.mu.Lock()
		closing := p.closing
		p.mu.Unlock()
		if closing {
			return false
		}
		select {
		case <-p.wake:
		case <-p.ctx.Done():
		}
	}
	return false
}

func (p *Publisher) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)+len(p.again)+len(p.batches) == 0
}

// fail ends all batches of that age. With age 0, that is all, it ends what is
// in no batch as well: messages that would be refused like the others must not
// wait their turn to learn it.
func (p *Publisher) fail(err error, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := func(batches []*batch) (kept []*batch) {
		for _, b := range batches {
			if time.Since(b.made) < age {
				kept = append(kept, b)
				continue
			}
			for _, d := range b.messages {
				p.end(d, 0, err)
				p.window.leave(d.octets)
			}
		}
		return kept
	}
	p.batches, p.again, p.sent = keep(p.batches), keep(p.again), 0
	if age == 0 {
		for _, d := range p.waiting {
			p.end(d, 0, err)
			p.window.leave(d.octets)
		}
		p.waiting, p.octets = nil, 0
	}
}

// stream publishes over one stream until it ends; nil says that the publisher
// is closed and all is answered. worked says whether anything was answered.
func (p *Publisher) stream() (worked bool, err error) {
	ctx, cancel := context.WithCancel(p.ctx)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	s, err := p.client.messages.PublishMessages(ctx)
	if err != nil {
		return false, wrap(err)
	}
	p.mu.Lock()
	p.sent = 0
	p.mu.Unlock()
	sender.Go(func() { p.send(ctx, s) })
	for {
		resp, err := s.Recv()
		if errors.Is(err, io.EOF) {
			if p.finished() {
				return worked, nil
			}
			return worked, &Error{Code: ServiceUnavailable, Message: "the server has ended the stream"}
		}
		if err != nil {
			return worked, wrap(err)
		}
		if err := p.answered(resp); err != nil {
			return worked, err
		}
		worked = true
		p.poke()
	}
}

// send sends the batches of one stream. When sending fails, the receiver gets
// to know why.
func (p *Publisher) send(ctx context.Context, s queuev1.QueueService_PublishMessagesClient) {
	for {
		if request := p.next(); request != nil {
			if s.Send(request) != nil {
				return
			}
			continue
		}
		if p.finished() {
			_ = s.CloseSend()
			return
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
	}
}

// finished says that the publisher is closed and all is answered.
func (p *Publisher) finished() bool {
	p.mu.Lock()
	closing := p.closing
	p.mu.Unlock()
	return closing && p.idle() // nothing comes once it is closing
}

// next is the batch to send now, nil if there is none: one that was sent on an
// earlier stream, one that was refused together with others, or a new one.
func (p *Publisher) next() *queuev1.PublishMessagesRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == len(p.batches) {
		switch full := len(p.waiting) >= p.o.BatchMessages || p.octets >= p.o.BatchBytes; {
		case len(p.again) > 0:
			p.batches = append(p.batches, p.again[0])
			p.again = p.again[1:]
		case full || len(p.waiting) > 0 && len(p.batches) < earlyBatches:
			n, octets := 0, 0
			for n < min(len(p.waiting), p.o.BatchMessages) && octets+p.waiting[n].octets <= p.o.BatchBytes {
				octets += p.waiting[n].octets
				n++
			}
			p.batches = append(p.batches, p.batch(p.waiting[:n]))
			clear(p.waiting[:n])
			p.waiting = p.waiting[n:]
			p.octets -= octets
		default:
			return nil
		}
	}
	p.sent++
	return p.batches[p.sent-1].request
}

// batch is a batch of its own copy of messages.
func (p *Publisher) batch(messages []*Pending) *batch {
	p.number++
	b := &batch{messages: append([]*Pending(nil), messages...), made: time.Now()}
	entries := make([]*queuev1.PutMessagesDetailsEntry, len(messages))
	for i, d := range messages {
		entries[i] = d.entry
	}
	token := rand.Text()
	b.request = &queuev1.PublishMessagesRequest{Number: p.number, QueueId: p.queue, Messages: entries, RetryToken: &token}
	return b
}

// answered settles the first batch that is on its way. An error ends the
// stream: the batch and all behind it are sent again, in their order.
func (p *Publisher) answered(resp *queuev1.PublishMessagesResponse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == 0 || p.batches[0].request.Number != resp.Number {
		return outOfStep("an answer to batch %d, which is not the one that is due", resp.Number)
	}
	b := p.batches[0]
	refused := answer(resp.Error)
	switch {
	case refused == nil && len(resp.Messages) != len(b.messages):
		return outOfStep("an answer of %d messages to a batch of %d", len(resp.Messages), len(b.messages))
	case refused != nil && (refused.Code == ServiceUnavailable || refused.Code == TooManyRequests):
		return refused
	case refused != nil && refused.Code == InternalServerError && b.faults < mostFaults:
		b.faults++
		return refused
	}
	p.batches[0] = nil
	p.batches = p.batches[1:]
	p.sent--
	if refused != nil && len(b.messages) > 1 && ofOne(refused.Code) {
		for i := range b.messages {
			p.again = append(p.again, p.batch(b.messages[i:i+1]))
		}
		return nil
	}
	for i, d := range b.messages {
		if refused != nil {
			p.end(d, 0, refused)
		} else {
			p.end(d, resp.Messages[i].Id, nil)
		}
		p.window.leave(d.octets)
	}
	return nil
}

// ofOne says whether a batch may have been refused for one of its messages.
func ofOne(code Code) bool {
	switch code {
	case InvalidParameter, MissingParameter, PayloadTooLarge, LimitExceeded:
		return true
	}
	return false
}
