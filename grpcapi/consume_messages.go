package grpcapi

import (
	"context"
	"errors"
	"sync"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// What a stream that consumes may have under way: one take that is not sent,
// and no other before it is, and settlements. However slow its client, that is
// all the memory it has here.
const (
	mostCredit      = 10_000
	mostTaken       = 100       // messages of one take, and so of one answer
	mostTakenOctets = 256 << 10 // of one take, unless one message is larger
	mostSettlements = 100       // of one request
	mostOwed        = 1_024     // settlements whose result is not sent; beyond it nothing is read
)

// lookEvery is how often a stream looks whether its queue is still there. A
// take under way is told at once.
const lookEvery = time.Second

// ConsumeMessages delivers messages on credit and settles them.
func (d *data) ConsumeMessages(stream queuev1.QueueService_ConsumeMessagesServer) error {
	c := &consumer{service: d.service, stream: stream}
	closed := c.open(stream.Context(), d.stopping)
	var taker sync.WaitGroup
	defer func() {
		closed() // which gives up a take under way
		taker.Wait()
		if c.looking != nil {
			c.looking.Stop()
		}
		c.service.Undeliver(c.due.messages)
	}()
	go c.receive()
	taker.Go(c.take)
	for {
		a, ok := c.next()
		if !ok {
			return c.result()
		}
		if err := c.send(&a); err != nil {
			return err
		}
	}
}

// consumer is one stream that consumes. Beside the two goroutines of every
// conversation it has one that takes messages, see take.
type consumer struct {
	conversation
	service *service.Service
	stream  queuev1.QueueService_ConsumeMessagesServer

	// Under the mutex of the conversation; subscription and queue do not change
	// any more once they are set.

	subscription *service.Subscription // nil until the first request
	queue        string                // its OCID
	looking      *time.Timer           // for the end of the queue

	credit   int                // granted, and neither used nor taken back
	later    int                // granted behind a drain that is not done
	drains   int                // asked for and not done
	giveBack context.CancelFunc // ends the take under way; nil: there is none
	left     bool               // no more is taken

	owed int    // settlements whose result is not sent
	due  answer // what is to be sent
}

// answer is what gathers until the sender takes it, in the order in which it is
// sent.
type answer struct {
	subscribed string // the queue_id to tell
	messages   []queue.Delivery
	settled    []outcome
	drained    int // how many drains are done behind the messages
}

func (a *answer) empty() bool {
	return a.subscribed == "" && len(a.messages) == 0 && len(a.settled) == 0 && a.drained == 0
}

// take takes messages while there is credit. A drain ends a take under way:
// the broker takes back what it had, unless it is done already, and then its
// messages go out before the drain is answered.
func (c *consumer) take() {
	for {
		ctx, most := c.mayTake()
		if most == 0 {
			return
		}
		messages, err := c.subscription.Next(ctx, most, mostTakenOctets)
		c.took(messages, err)
	}
}

// mayTake waits until there is credit and the sender has what was taken before.
// It does the drains: no take is under way here. 0 means that the stream ends.
func (c *consumer) mayTake() (ctx context.Context, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.drains > 0 {
			c.due.drained += c.drains
			c.drains, c.credit, c.later = 0, c.later, 0
			c.changed.Broadcast()
		}
		switch {
		case c.ended:
			c.left = true
			c.changed.Broadcast()
			return nil, 0
		case c.credit > 0 && len(c.due.messages) == 0 && c.due.drained == 0:
			ctx, c.giveBack = context.WithCancel(c.ctx)
			return ctx, min(c.credit, mostTaken)
		}
		c.changed.Wait()
	}
}

func (c *consumer) took(messages []queue.Delivery, err error) {
	c.mu.Lock()
	c.giveBack()
	c.giveBack = nil
	c.credit -= len(messages)
	c.due.messages = messages
	c.changed.Broadcast()
	c.mu.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) { // the queue is deleted, the server stops
		c.end(Status(err))
	}
}

// look ends the stream when its queue is deleted, also if there is no credit.
func (c *consumer) look() {
	if err := c.subscription.Alive(c.ctx); err != nil {
		c.end(Status(err))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.looking.Reset(lookEvery)
	}
}

// next waits for something to send; false means that there will be nothing. No
// message is sent once the stream has ended: what was taken is given back.
func (c *consumer) next() (a answer, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		a, c.due = c.due, answer{}
		if c.ended {
			c.due.messages, a.messages = a.messages, nil
		}
		switch {
		case c.lost:
			c.due.messages = append(c.due.messages, a.messages...)
			return answer{}, false
		case !a.empty():
			c.changed.Broadcast() // there is room for the next take
			return a, true
		case c.ended && c.left && c.owed == 0 && !c.busy:
			return answer{}, false
		}
		c.changed.Wait()
	}
}

// send sends a. One take and the results that have gathered go out in one
// response, which stays far below the 4 MiB that a client receives by default
// unless limits.message-bytes is raised to about that.
//
// What became of messages when Send fails is known: gRPC's server says no to a
// message only before it has given any of it to the transport (the stream is
// over, or the connection). So they are taken back, uncounted. Once it says yes
// the message is out of our hands, even if the connection breaks before it is
// written: then they stay hidden until their visibility ends.
func (c *consumer) send(a *answer) error {
	resp := &queuev1.ConsumeMessagesResponse{
		Messages: deliveries(a.messages),
		Settled:  results(a.settled),
		Drained:  a.drained > 0,
	}
	if a.subscribed != "" {
		resp.Subscribed = &queuev1.ConsumeSubscribed{QueueId: a.subscribed}
	}
	if err := c.stream.Send(resp); err != nil {
		c.service.Undeliver(a.messages)
		return err
	}
	if n := len(resp.Settled); n > 0 {
		c.mu.Lock()
		c.owed -= n
		c.changed.Broadcast()
		c.mu.Unlock()
	}
	for range a.drained - 1 { // one for each
		if err := c.stream.Send(&queuev1.ConsumeMessagesResponse{Drained: true}); err != nil {
			return err
		}
	}
	return nil
}
