package stomp

import (
	"context"
	"math"
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// ackMode is how messages of a subscription are settled.
type ackMode uint8

const (
	auto       ackMode = iota // by being written
	cumulative                // "client": an ACK settles all that was sent before it too
	individual                // "client-individual"
)

const never = queue.Instant(math.MaxInt64)

// How messages are taken.
const (
	defaultPrefetch = 20
	maxPrefetch     = 10_000
	takeMost        = 100       // messages at once
	takeBytes       = 256 << 10 // octets at once, but never less than one message
)

// subscription is one SUBSCRIBE and what was sent on it.
type subscription struct {
	conn         *conn
	id           string
	at           string // the destination as the client wrote it, without a pattern
	everyChannel bool   // at names no single channel: that of each message is added
	get          *service.Subscription
	mode         ackMode
	prefetch     int
	release      bool   // what is not settled goes back when the subscription ends
	prefix       []byte // of each MESSAGE frame
	destination  []byte // the header line, for a message without a channel to add

	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // for the pump, room for one

	// Under conn.mu.
	ended bool
	pause context.CancelFunc // of the take under way; nil: none is
	owed  int                // messages sent and not settled
	order []*delivery        // of them, in the order of sending; not in mode auto

	written  []queue.Receipt // to be deleted; in mode auto
	deleting bool            // somebody does so

	lapses queue.Instant // no visibility ends before it
	lapsed int           // in order, though their visibility has ended; about
}

// delivery is a message that was sent and can be settled.
type delivery struct {
	sub          *subscription
	receipt      queue.Receipt
	id           queue.MessageID
	count        int // of deliveries
	visibleAfter queue.Instant
	over         bool // settled, given back, or its visibility has ended
	lapsed       bool // its visibility has ended, but a cumulative ACK is still about it
}

// subscribe begins a subscription.
func (c *conn) subscribe(f *frame.Frame) error {
	u, r, err := c.readSubscribe(f)
	if err != nil {
		return err
	}
	if r.ConsumerGroupID == nil || *r.ConsumerGroupID == "" { // a new queue has no groups
		if err := c.autoCreate(r.QueueRef); err != nil {
			return err
		}
	}
	if u.get, err = c.server.service.Subscribe(c.ctx, r); err != nil {
		return err
	}
	u.ctx, u.cancel = context.WithCancel(c.ctx)
	u.wake = make(chan struct{}, 1)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs[u.id] != nil {
		u.cancel()
		return invalid("a subscription with the id %.64q is open already", strings.TrimPrefix(u.id, "\x00"))
	}
	if len(c.subs) >= subscriptions {
		u.cancel()
		return queue.Errorf(queue.LimitExceeded, "the session has %d subscriptions; it may have no more", subscriptions)
	}
	if c.subs == nil {
		c.subs = make(map[string]*subscription)
		c.sent = make(map[queue.Receipt]*delivery)
	}
	c.subs[u.id] = u
	c.line.add(f, 0)
	c.advance()
	c.pumps.Go(func() {
		defer c.server.survive(c)
		u.pump()
	})
	return nil
}

// readSubscribe reads the headers of a SUBSCRIBE.
func (c *conn) readSubscribe(f *frame.Frame) (*subscription, service.SubscribeRequest, error) {
	var r service.SubscribeRequest
	d, err := readDestination(f)
	if err != nil {
		return nil, r, err
	}
	u := &subscription{conn: c, at: d.text, everyChannel: d.channel == "", prefetch: defaultPrefetch}
	if strings.Contains(d.channel, "*") {
		u.at, u.everyChannel = strings.TrimSuffix(d.text, "/"+d.channel), true
	}
	r.QueueRef, r.ChannelFilter = d.ref, optional(d.channel)

	id, named := f.Get("id")
	switch {
	case named && !c.sayable(id):
		return nil, r, invalid("id has a CR in it, which STOMP %s cannot send back", c.version)
	case named:
		u.id = id
	case c.version != frame.V10:
		return nil, r, invalid("SUBSCRIBE needs the header id")
	default:
		u.id = unnamed(d.text)
	}
	strict := c.server.o.Strict
	switch mode, named := f.Get("ack"); {
	case mode == "client-individual":
		u.mode = individual
	case strict:
		return nil, r, queue.Errorf(queue.InvalidParameter, "SUBSCRIBE must have the header ack:client-individual (stomp.strict)")
	case !named || mode == "auto":
		u.mode = auto
	case mode == "client":
		u.mode = cumulative
	default:
		return nil, r, invalid("ack is %.32q; it must be auto, client or client-individual", mode)
	}
	if text, found := f.Get("visibility"); found {
		if r.VisibilityInSeconds, err = seconds("visibility", text); err != nil {
			return nil, r, err
		}
	}
	if text, found := f.Get("prefetch-count"); found {
		n, ok := number(text)
		if !ok || n < 1 || n > maxPrefetch {
			return nil, r, queue.Errorf(queue.InvalidParameter, "prefetch-count is %.32q; it must be 1 to %d", text, maxPrefetch)
		}
		u.prefetch = int(n)
	}
	if group, found := f.Get("consumer-group-id"); found {
		r.ConsumerGroupID = &group
	}
	switch text, _ := f.Get("release-on-close"); text {
	case "true":
		u.release = true
	case "", "false":
	default:
		return nil, r, queue.Errorf(queue.InvalidParameter, "release-on-close is %.32q; it must be true or false", text)
	}
	if text, found := f.Get("selector"); found && text != "" {
		return nil, r, queue.Errorf(queue.InvalidParameter, "selector is not served: name a channel in the destination instead")
	}
	u.prefix = frame.AppendCommand(nil, frame.Message)
	if named {
		u.prefix, _ = frame.AppendHeader(u.prefix, c.version, "subscription", u.id)
	}
	u.destination, _ = frame.AppendHeader(nil, c.version, "destination", u.at)
	return u, r, nil
}

// unnamed is the id of a subscription that has none, which is one for each
// destination. No header can spell it.
func unnamed(destination string) string { return "\x00" + destination }

// unsubscribe ends a subscription. Messages that were sent on it can be settled
// all the same.
func (c *conn) unsubscribe(f *frame.Frame) error {
	id, named := f.Get("id")
	if !named {
		text, found := f.Get("destination")
		if c.version != frame.V10 || !found {
			return invalid("UNSUBSCRIBE needs the header id")
		}
		id = unnamed(text)
	}
	c.mu.Lock()
	u := c.subs[id]
	if u == nil {
		c.mu.Unlock()
		return invalid("no subscription with this id is open")
	}
	delete(c.subs, id)
	c.mu.Unlock()
	u.end()
	if u.release {
		c.server.service.Release(c.forget(u))
	}
	c.answerNow(f)
	return nil
}

// endSubscriptions ends all, for the session ends.
func (c *conn) endSubscriptions() {
	c.mu.Lock()
	var all []*subscription
	for _, u := range c.subs {
		all = append(all, u)
	}
	c.mu.Unlock()
	for _, u := range all {
		u.end()
	}
}

// end lets nothing more be sent; what waits to be written goes back.
func (u *subscription) end() {
	u.cancel()
	u.conn.mu.Lock()
	u.ended = true
	dropped := u.conn.out.drop(u)
	if len(dropped) > 0 {
		u.conn.pokeAll() // there is more room for the others
	}
	u.conn.mu.Unlock()
	for _, k := range dropped {
		u.conn.takeBack(u, k.messages)
		k.recycle()
	}
}

// forget takes all that was sent on u and not settled out of the books; what is
// settled in a transaction only when that ends.
func (c *conn) forget(u *subscription) (receipts []queue.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range u.order {
		if !d.over && c.taken[d.receipt] == nil {
			receipts = append(receipts, d.receipt)
			c.close(d)
		}
	}
	u.order = nil
	return receipts
}
