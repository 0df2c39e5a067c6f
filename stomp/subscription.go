package stomp

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

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
	if err := c.autoCreate(r.QueueRef); err != nil {
		return err
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

// forget takes all that was sent on u and not settled out of the books.
func (c *conn) forget(u *subscription) (receipts []queue.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range u.order {
		if !d.over {
			receipts = append(receipts, d.receipt)
			c.close(d)
		}
	}
	u.order = nil
	return receipts
}

// takeBack gives back messages of which no octet has been written.
func (c *conn) takeBack(u *subscription, messages []queue.Delivery) {
	c.mu.Lock()
	for i := range messages {
		if u.mode == auto {
			u.owed--
		} else if d := c.sent[messages[i].Receipt]; d != nil {
			c.close(d)
		}
	}
	c.mu.Unlock()
	c.server.service.Undeliver(messages)
}

// close ends the wait for a settlement; mu is held.
func (c *conn) close(d *delivery) {
	d.over = true
	delete(c.sent, d.receipt)
	if !d.lapsed {
		d.sub.owed--
	}
}

// poke wakes the pump.
func (u *subscription) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// pokeAll wakes all pumps; mu is held.
func (c *conn) pokeAll() {
	for _, u := range c.subs {
		u.poke()
	}
}

// pump takes messages while there is credit and room, until the subscription
// ends.
func (u *subscription) pump() {
	c := u.conn
	for {
		ctx, most := u.credit()
		if ctx == nil {
			return
		}
		messages, err := u.get.Next(ctx, most, takeBytes)
		paused := u.resume()
		switch {
		case err == nil:
			u.deliver(messages)
		case u.ctx.Err() != nil:
			return
		case paused && errors.Is(err, context.Canceled):
		default:
			c.interrupt(err)
			return
		}
	}
}

// credit waits until something may be taken, and says how much. The context is
// that of the take; nil: the subscription has ended.
func (u *subscription) credit() (ctx context.Context, most int) {
	c := u.conn
	for {
		c.mu.Lock()
		if u.ended || c.out.ended {
			c.mu.Unlock()
			return nil, 0
		}
		u.lapse()
		most = min(u.prefetch-u.owed, takeMost)
		if most > 0 && c.out.unsent < unsentBytes {
			ctx, u.pause = context.WithCancel(u.ctx)
			c.mu.Unlock()
			return ctx, most
		}
		look := time.Second // whether the queue is still there
		if most <= 0 && len(u.order) > 0 {
			look = max(min(look, u.lapses.Sub(c.server.service.Now())+time.Millisecond), time.Millisecond)
		}
		c.mu.Unlock()
		t := time.NewTimer(look)
		select {
		case <-u.wake:
		case <-t.C:
			if err := u.get.Alive(u.ctx); err != nil {
				c.interrupt(err)
				return nil, 0
			}
		case <-u.ctx.Done():
		}
		t.Stop()
	}
}

// lapse takes those out of the window whose visibility has ended: they are
// nobody's any more, and others may have them. Where an ACK is cumulative it is
// still about them, as long as they have not come again; mu is held.
func (u *subscription) lapse() {
	now := u.conn.server.service.Now()
	if now < u.lapses {
		return
	}
	u.lapses, u.lapsed = never, 0
	for _, d := range u.order {
		switch {
		case d.over:
		case d.visibleAfter > now:
			u.lapses = min(u.lapses, d.visibleAfter)
		case u.mode == cumulative:
			if !d.lapsed {
				d.lapsed = true
				u.owed--
			}
			u.lapsed++
		default:
			u.conn.close(d)
		}
	}
	for _, d := range u.order { // a client that settles nothing at all
		if u.lapsed <= recentMost {
			break
		}
		if d.lapsed && !d.over {
			u.conn.close(d)
			u.lapsed--
		}
	}
	u.order = slices.DeleteFunc(u.order, func(d *delivery) bool { return d.over })
}

// supersede takes earlier deliveries of messages that come again out of the
// books; mu is held.
func (u *subscription) supersede(messages []queue.Delivery) {
	u.lapse()
	if u.lapsed == 0 {
		return
	}
	again := make(map[queue.MessageID]bool, len(messages))
	for i := range messages {
		again[messages[i].ID] = true
	}
	for _, d := range u.order {
		if d.lapsed && !d.over && again[d.id] {
			u.conn.close(d)
		}
	}
}

// resume ends a take, and reports whether it was paused.
func (u *subscription) resume() (paused bool) {
	u.conn.mu.Lock()
	defer u.conn.mu.Unlock()
	if u.pause == nil {
		return true
	}
	u.pause()
	u.pause = nil
	return false
}

// deliver puts messages into the output.
func (u *subscription) deliver(messages []queue.Delivery) {
	c := u.conn
	k := newChunk()
	k.sub = u
	for i := range messages {
		k.data = u.appendMessage(k.data, &messages[i])
		k.ends = append(k.ends, len(k.data))
	}
	k.messages = append(k.messages, messages...)

	var sent []delivery
	if u.mode != auto {
		sent = make([]delivery, len(messages))
		for i := range messages {
			m := &messages[i]
			sent[i] = delivery{sub: u, receipt: m.Receipt, id: m.ID, count: m.DeliveryCount, visibleAfter: m.VisibleAfter}
		}
	}
	c.mu.Lock()
	if u.ended || c.out.ended {
		c.mu.Unlock()
		c.server.service.Undeliver(messages)
		k.recycle()
		return
	}
	if u.mode == cumulative {
		u.supersede(messages)
	}
	u.owed += len(messages)
	if len(u.order) > 2*(u.owed+u.lapsed)+takeMost { // settled ones behind one that is not
		u.order = slices.DeleteFunc(u.order, func(d *delivery) bool { return d.over })
	}
	for i := range sent {
		c.sent[sent[i].receipt] = &sent[i]
		u.lapses = min(u.lapses, sent[i].visibleAfter)
		u.order = append(u.order, &sent[i])
	}
	c.out.add(k)
	if c.out.unsent >= unsentBytes { // the peer does not read: nobody takes more for it
		for _, other := range c.subs {
			if other.pause != nil {
				other.pause()
				other.pause = nil
			}
		}
	}
	c.mu.Unlock()
}

// consume notes the messages of mode auto of which all octets are among the
// first n: they are to be deleted.
func (u *subscription) consume(k *chunk, n int) {
	c := u.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, end := range k.ends {
		if end > n {
			break
		}
		u.written = append(u.written, k.messages[i].Receipt)
	}
	if len(u.written) == 0 || u.deleting {
		return
	}
	u.deleting = true
	c.pumps.Go(func() {
		defer c.server.survive(c)
		u.deleteWritten()
	})
}

// deleteWritten deletes what has been written as long as there is something. It
// may wait for a rate of the queue, which is why the writer does not do it. The
// end of the session does not keep it from coming to its own.
func (u *subscription) deleteWritten() {
	c := u.conn
	for {
		c.mu.Lock()
		receipts := u.written
		u.written = nil
		if u.deleting = len(receipts) > 0; !u.deleting {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for some := range slices.Chunk(receipts, settleMost) {
			c.server.service.StartDeleteMessages(c.rest, string(u.get.QueueID()), some, func([]error, error) {
				// A failure is counted by the service; the message comes again.
				c.mu.Lock()
				defer c.mu.Unlock()
				u.owed -= len(some)
				u.poke()
			})
		}
	}
}
