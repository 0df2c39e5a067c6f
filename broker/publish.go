package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// PublishRequest is 1 or more messages for one queue.
type PublishRequest struct {
	Queue      queue.ID
	Messages   []queue.NewMessage
	RetryToken string // the same token on the same queue within 24 h gives the first answer; "": none
}

// Publish stores the messages of one request, all or nothing, and answers when
// they are durable. Form and sizes are the caller's to check; the broker
// checks what needs state: the queue lives, its storage, its channels, the
// disk. The messages must not be changed afterwards.
//
// Errors: NotAuthorizedOrNotFound, LimitExceeded, InsufficientStorage,
// ServiceUnavailable, InvalidParameter (a retry token that was used for other
// messages). When ctx ends first, the messages may or may not be stored; the
// answer is still waited for, since it is near.
func (b *Broker) Publish(ctx context.Context, r PublishRequest) ([]queue.Published, error) {
	p, err := b.newPublish(r)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.q.pace.wait(ctx)
	if err := b.submit(p.q, &p.request); err != nil {
		return nil, err
	}
	return p.out, nil
}

// StartPublish is Publish for who does not wait: then is called once, with the
// answer of Publish, when the group is durable. The core calls it, so it must
// be quick and must not block or wait for the broker. After an error of
// StartPublish itself it is not called. What one goroutine starts for one queue
// is decided in that order.
func (b *Broker) StartPublish(r PublishRequest, then func([]queue.Published, error)) error {
	p, err := b.newPublish(r)
	if err != nil {
		return err
	}
	p.then = then
	return b.begin(p.q, &p.request, p)
}

// StartPublishEach is StartPublish for messages that are requests of their own:
// they are stored one by one, and the first that is refused ends it. then is
// given how many are stored, and what refused the next one, nil if there is
// none.
func (b *Broker) StartPublishEach(r PublishRequest, then func(stored int, err error)) error {
	p, err := b.newPublish(r)
	if err != nil {
		return err
	}
	p.thenEach = then
	return b.begin(p.q, &p.request, p)
}

func (b *Broker) newPublish(r PublishRequest) (*publish, error) {
	q, err := b.find(r.Queue)
	if err != nil {
		return nil, err
	}
	p := &publish{q: q, r: r}
	for i := range r.Messages {
		p.size += r.Messages[i].Size()
	}
	if r.RetryToken != "" {
		p.print = fingerprint(r.Messages)
	}
	p.request = request{what: p, publishes: true, bytes: p.size}
	return p, nil
}

func (p *publish) answered(err error) {
	switch {
	case p.thenEach != nil:
		p.thenEach(p.stored, cmp.Or(err, p.refused))
	case err != nil:
		p.then(nil, err)
	default:
		p.then(p.out, nil)
	}
}

type publish struct {
	request
	then  func([]queue.Published, error) // of StartPublish
	q     *queueState
	r     PublishRequest
	size  int64
	print [sha256.Size]byte
	out   []queue.Published

	thenEach func(stored int, err error) // of StartPublishEach
	stored   int
	refused  error
}

func (p *publish) decide(g *group) error {
	b, q := g.b, p.q
	if !q.q.Live() {
		return errNoQueue
	}
	scope := ""
	if p.r.RetryToken != "" {
		scope = tokenScope(q.number)
		done, err := p.again(g, scope)
		if done || err != nil {
			return err
		}
		if q.tokens >= b.limits.RetryTokensPerQueue {
			return queue.Errorf(queue.LimitExceeded, "the queue has %d retry tokens of the last 24 h; publish without one, or raise limits.retry-tokens-per-queue", q.tokens)
		}
	}
	if err := b.disk.publish(); err != nil {
		return err
	}
	if p.thenEach != nil {
		p.each(g)
		return nil
	}
	if err := p.check(g, p.r.Messages, p.size); err != nil {
		return err
	}
	p.out = make([]queue.Published, len(p.r.Messages))
	for i := range p.r.Messages {
		p.out[i] = g.put(q, &p.r.Messages[i])
	}
	q.events[evPublished] += int64(len(p.out))
	if p.r.RetryToken != "" {
		q.tokens++
		g.cs.Tokens = append(g.cs.Tokens, store.RetryToken{
			Scope: scope, Token: p.r.RetryToken, At: g.now, Value: encodeAnswer(p.print, p.out),
		})
	}
	return nil
}

// each stores the messages one by one, until one is refused.
func (p *publish) each(g *group) {
	for i := range p.r.Messages {
		one := p.r.Messages[i : i+1]
		if p.refused = p.check(g, one, one[0].Size()); p.refused != nil {
			return
		}
		g.put(p.q, &one[0])
		p.q.events[evPublished]++
		p.stored++
	}
}

// check looks at storage and channels for messages of that size together; it
// changes nothing.
func (p *publish) check(g *group, messages []queue.NewMessage, size int64) error {
	b, q := g.b, p.q
	if err := b.limits.CheckQueueBytes(q.stored, size); err != nil {
		return err
	}
	if err := b.limits.CheckTenancyBytes(b.bytes, size); err != nil {
		return err
	}
	// Nearly every request names one channel; only others need the map.
	first := messages[0].Channel
	adds := map[string]int64(nil)
	for i := range messages {
		if m := &messages[i]; adds != nil || m.Channel != first {
			if adds == nil {
				adds = map[string]int64{first: 0}
				for j := range messages[:i] {
					adds[first] += messages[j].Size()
				}
			}
			adds[m.Channel] += m.Size()
		}
	}
	if adds == nil {
		created := 0
		return p.checkChannel(g, first, size, &created)
	}
	created := 0
	for channel, add := range adds {
		if err := p.checkChannel(g, channel, add, &created); err != nil {
			return err
		}
	}
	return nil
}

func (p *publish) checkChannel(g *group, channel string, add int64, created *int) error {
	if channel == "" {
		return nil // the limits of channels are not those of the queue
	}
	q := p.q
	if q.channels[channel] == 0 {
		if err := g.b.limits.CheckChannels(len(q.channels) + *created); err != nil {
			return err
		}
		*created++
	}
	have := g.sharedIn(q, channel)
	for _, c := range q.groups {
		if l := c.lanes[c.key(false, channel)]; l != nil {
			have += l.row.Bytes - l.row.Shared
		}
		if l := g.known(c, true, channel); l != nil {
			have += l.row.Bytes - l.row.Shared
		}
	}
	return g.b.limits.CheckChannelBytes(have, add, q.q.ChannelConsumptionLimit)
}

// again answers a request whose token was used before.
func (p *publish) again(g *group, scope string) (done bool, err error) {
	t, found := g.token(scope, p.r.RetryToken)
	if !found {
		return false, nil
	}
	print, out, ok := decodeAnswer(t.Value)
	if !ok {
		return false, fmt.Errorf("publish: the stored answer of a retry token is damaged")
	}
	if print != p.print {
		return false, queue.Errorf(queue.InvalidParameter, "the retry token was used for other messages in the last 24 h; a new request needs a new token")
	}
	p.out = out
	return true, nil
}

// put adds one message to the queue: to every group that accepts it.
func (g *group) put(q *queueState, n *queue.NewMessage) queue.Published {
	b := g.b
	to := g.route(q, n) // before there is a new id: a new lane begins behind the last
	b.state.Message++
	id := b.state.Message
	retention := n.Retention
	if retention == 0 {
		retention = q.q.Retention
	}
	m := store.Message{
		Message:     n.Message,
		CreatedAt:   g.now,
		ExpireAfter: g.now.Add(retention),
		Visibility:  uint16(n.Visibility / time.Second),
	}
	if n.Delay > 0 {
		m.DueAt = g.now.Add(n.Delay)
	}
	size := uint32(min(n.Size(), math.MaxUint32))
	if m.Shared = len(to) > 1; m.Shared {
		g.share(q, n.Channel, id, &n.Message, int64(size), len(to))
	}
	for _, l := range to {
		g.enter(l, id, m, size)
	}
	return queue.Published{ID: id, ExpireAfter: m.ExpireAfter}
}

// route is the lanes that get a message: those of the groups that accept it, or
// that of what none does, if the server keeps it; else there is none, and the
// message is gone. It is valid until the next call.
func (g *group) route(q *queueState, n *queue.NewMessage) []*lane {
	g.into = g.into[:0]
	if len(q.groups) == 1 { // no consumer groups
		g.into = append(g.into, g.lane(q.primary(), false, n.Channel))
		return g.into
	}
	for _, c := range q.groups {
		if c.accepts(n) {
			g.into = append(g.into, g.lane(c, false, n.Channel))
		}
	}
	if len(g.into) > 0 {
		return g.into
	}
	g.touchQueue(q)
	q.events[evUnrouted]++
	if g.b.keepUnrouted {
		g.into = append(g.into, g.lane(q.numbered(unrouted), false, n.Channel))
	}
	return g.into
}

// enter puts a message into one lane.
func (g *group) enter(l *lane, id queue.MessageID, n store.Message, size uint32) {
	b, m := g.b, &n
	g.touch(l)
	l.of.events[evPublished]++
	// In the order of the ids, a look at the oldest finds what expires; what
	// breaks that order has a row of its own.
	if m.ExpireAfter >= l.row.LastAfter {
		l.row.LastAfter = m.ExpireAfter
		if !l.expiry.Scheduled() {
			b.expiries.Schedule(&l.expiry, m.ExpireAfter)
			b.keeper.wants(m.ExpireAfter)
		}
	} else {
		m.Indexed = true
		b.keeper.wants(m.ExpireAfter)
	}
	e := store.Entry{
		ID: id, ExpireAfter: m.ExpireAfter, Visibility: m.Visibility, Indexed: m.Indexed, Shared: m.Shared, Size: size,
	}
	g.effect(store.Effect{Kind: store.Put, Lane: l.row.ID, Entry: e, Message: m})
	g.size(l, &e, 1)
	if m.DueAt != 0 {
		b.bodies.add(id, m)
		g.count(l, store.Delayed, 1)
		b.keeper.wants(m.DueAt)
		return
	}
	// Behind a window that is full its body would only take the place of
	// others: it is read with its entry.
	left, isLeft := l.fresh.add(e)
	if refilling := l.refill != nil && l.refill.window == &l.fresh; isLeft && refilling {
		l.refill.note(left)
		b.bodies.add(id, m)
	} else if !isLeft {
		b.bodies.add(id, m)
	}
	g.count(l, store.Fresh, 1)
	g.serve(l.of.queue)
}

// fingerprint is what two requests under one retry token are compared by.
func fingerprint(messages []queue.NewMessage) (print [sha256.Size]byte) {
	h := sha256.New()
	var buf [binary.MaxVarintLen64]byte
	number := func(n uint64) { h.Write(binary.AppendUvarint(buf[:0], n)) }
	text := func(s string) { number(uint64(len(s))); h.Write([]byte(s)) }
	for i := range messages {
		m := &messages[i]
		number(uint64(len(m.Body)))
		h.Write(m.Body)
		text(m.ContentType)
		text(m.Channel)
		number(uint64(m.Retention))
		number(uint64(m.Delay))
		number(uint64(m.Visibility))
		number(uint64(len(m.Properties)))
		for _, p := range m.Properties {
			text(p.Name)
			text(p.Value)
		}
	}
	h.Sum(print[:0])
	return print
}

// encodeAnswer is the value kept under a retry token.
func encodeAnswer(print [sha256.Size]byte, out []queue.Published) []byte {
	b := append([]byte(nil), print[:]...)
	for _, p := range out {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.ID)), uint64(p.ExpireAfter))
	}
	return b
}

func decodeAnswer(b []byte) (print [sha256.Size]byte, out []queue.Published, ok bool) {
	if len(b) < len(print) {
		return print, nil, false
	}
	b = b[copy(print[:], b):]
	for len(b) > 0 {
		id, n := binary.Uvarint(b)
		if n <= 0 {
			return print, nil, false
		}
		at, k := binary.Uvarint(b[n:])
		if k <= 0 {
			return print, nil, false
		}
		b = b[n+k:]
		out = append(out, queue.Published{ID: queue.MessageID(id), ExpireAfter: queue.Instant(at)})
	}
	return print, out, true
}
