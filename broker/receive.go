package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/dlq"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// ReceiveRequest asks for messages.
type ReceiveRequest struct {
	Queue      queue.ID
	Group      queue.ID        // the consumer group; "": the primary one
	Dead       bool            // from its dead letter queue
	Filter     channels.Filter // the zero Filter takes any one channel
	Limit      int             // most messages, 1 and up
	MaxBytes   int64           // most octets of all together, but never less than one message; 0: no bound
	Visibility time.Duration   // how long they stay hidden; 0 peeks; negative: as the message or the queue says
	Wait       time.Duration   // how long to wait for a first message; 0: not at all
}

// Receive gives up to Limit visible messages of one channel, each under a
// durable lease, and waits up to Wait for the first. An empty answer is no
// error. When ctx ends while it waits it takes nothing and returns ctx.Err();
// when ctx has ended by the time of the answer, the deliveries are taken back.
//
// Errors: NotAuthorizedOrNotFound (also when the queue or the group is deleted
// during the wait), IncorrectState (the group is disabled, or is so during the
// wait), InsufficientStorage, ServiceUnavailable.
func (b *Broker) Receive(ctx context.Context, r ReceiveRequest) ([]queue.Delivery, error) {
	q, err := b.find(r.Queue)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := &receive{q: q, r: r, ctx: ctx, done: make(chan struct{})}
	x.turn.what = x
	if err := b.submit(q, &x.turn); err != nil {
		return nil, err
	}
	if err := b.await(x); err != nil {
		return nil, err
	}
	return b.deliver(x)
}

// await waits until x is answered, its time is over, or its client is gone.
func (b *Broker) await(x *receive) error {
	var timeout <-chan time.Time
	if x.r.Wait > 0 {
		t := time.NewTimer(x.r.Wait)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-x.done:
		return x.err
	case <-timeout:
	case <-x.ctx.Done():
	}
	if !x.claim() { // it is being answered
		<-x.done
		return x.err
	}
	b.internal(func(g *group) { // the core lets go of it
		if x.line != nil {
			x.of.wait[side(x.r.Dead)].leave(x)
		}
	})
	return x.ctx.Err()
}

// deliver makes the answer: receipts, and the bodies that are not in memory.
// Both are work that the core need not do.
func (b *Broker) deliver(x *receive) ([]queue.Delivery, error) {
	if x.ctx.Err() != nil {
		b.takeBack(x.taken)
		return nil, x.ctx.Err()
	}
	out := make([]queue.Delivery, 0, len(x.taken))
	for i := range x.taken {
		t := &x.taken[i]
		m := t.message
		if m == nil {
			read, _, found, err := b.store.Message(store.LaneID(t.token.Lane), t.entry.ID)
			if err != nil {
				b.takeBack(x.taken)
				return nil, fmt.Errorf("receive: %w", err)
			}
			if !found { // purged or expired since
				continue
			}
			m = &read
		}
		d := queue.Delivery{
			Message:       m.Message,
			ID:            t.entry.ID,
			Channel:       t.channel,
			Receipt:       b.sealer.Seal(t.token),
			DeliveryCount: int(t.entry.Deliveries),
			CreatedAt:     m.CreatedAt,
			VisibleAfter:  t.visibleAfter,
			ExpireAfter:   t.entry.ExpireAfter,
		}
		if m.Dead != nil {
			d.DeadLetter = &queue.DeadLetter{
				Reason: m.Dead.Reason, DeliveryCount: int(m.Dead.Deliveries), Channel: t.channel, At: m.Dead.At,
			}
		}
		out = append(out, d)
	}
	if len(x.last) > 0 {
		b.internal(func(g *group) {
			for _, last := range x.last {
				if last.lane.leases[last.ID] == last && !last.lane.gone {
					g.changes++
					g.buryLeased(last)
				}
			}
		})
	}
	return out, nil
}

// receive is one get, waiting or not. The core and the goroutine that waits
// for it agree by claim on who ends it.
type receive struct {
	turn  request
	q     *queueState
	of    *consumers // the group it takes from; nil before it is decided
	r     ReceiveRequest
	ctx   context.Context
	order uint64 // of arrival

	line          *line // it stands in; nil: in none
	before, after *receive
	full          bool // it found the in-flight limit reached

	claimed atomic.Bool
	done    chan struct{} // closed when taken and err are set
	taken   []taken
	last    []*lease // of them: peeked at for the last time, so dead when the body has been read
	err     error
}

// taken is one delivery as the core makes it.
type taken struct {
	entry        store.Entry
	token        visibility.Token
	channel      string
	visibleAfter queue.Instant
	message      *store.Message // nil: to be read
}

// claim makes the caller the one who ends the get: the core with an answer, or
// the waiting goroutine without one.
func (x *receive) claim() bool { return x.claimed.CompareAndSwap(false, true) }

// answer wakes the waiting goroutine once the group is durable.
func (x *receive) answer(g *group) {
	g.after = append(g.after, func() { close(x.done) })
}

// decide lines the get up; it is served at the end of the group, behind those
// who came before it.
func (x *receive) decide(g *group) error {
	b, q := g.b, x.q
	if !q.q.Live() {
		return errNoQueue
	}
	switch x.of = q.find(x.r.Group); {
	case x.of == nil:
		return errNoGroup
	case x.of.group.State == queue.Inactive:
		return errInactive
	}
	if x.r.Visibility != 0 {
		if err := b.disk.lease(); err != nil {
			return err
		}
	}
	if b.draining {
		return ErrClosing
	}
	if x.r.Wait > 0 {
		w := 0
		for _, c := range q.groups {
			w += c.wait[0].n + c.wait[1].n
		}
		if err := b.limits.CheckPolls(w, int(b.waiting.Load())); err != nil {
			return err
		}
	} else {
		b.hasty = append(b.hasty, x)
	}
	g.changes++
	if _, exact := x.r.Filter.Exact(); x.r.Dead && !exact {
		g.search(x.of, x.r.Filter)
	}
	b.order++
	x.order = b.order
	x.of.wait[side(x.r.Dead)].join(x)
	g.serve(q)
	return nil
}

// room is how many more leases q may have.
func (g *group) room(q *queueState) int64 {
	l := g.b.limits
	have := q.inFlight()
	ofQueue := l.InFlightPerQueue - have
	ofServer := max(l.InFlightTotal-g.b.inFlight, l.InFlightReservedPerQueue-have)
	return min(ofQueue, ofServer)
}

// next is the next message of the lane to take, the one with the lowest id in
// memory, and which window it is in. Those before it that have expired, or
// that may not be delivered again, leave the window.
func (g *group) next(l *lane) (*window, store.Row, bool) {
	for l.loaded() {
		w, row := &l.fresh, store.Fresh
		if w.len() == 0 || (l.returned.len() > 0 && l.returned.front().ID < w.front().ID) {
			w, row = &l.returned, store.Returned
		}
		e := w.front()
		switch {
		case e.ExpireAfter <= g.now && g.b.held(e.ExpireAfter):
			g.park(l, row, w.pop())
		case e.ExpireAfter <= g.now:
			g.touch(l)
			e := w.pop()
			g.count(l, row, -1)
			if row == store.Fresh {
				l.row.Cursor = e.ID
			}
			g.drop(l, row, e, 0)
			l.of.happened(evExpired, 1)
		case row == store.Returned && !l.dead() && dlq.Exhausted(int(e.Deliveries), l.of.deliveryLimit()):
			e := w.pop()
			g.touch(l)
			if l.dying == nil {
				l.dying = make(map[queue.MessageID]store.Entry)
			}
			l.dying[e.ID] = e
			g.bury(l, e)
		default:
			return w, row, true
		}
	}
	l.of.setReady(l)
	g.read(l)
	return nil, 0, false
}

// park sets a visible message aside that is held.
func (g *group) park(l *lane, row store.Row, e store.Entry) {
	g.touch(l)
	if row == store.Fresh {
		g.effect(store.Effect{Kind: store.Return, From: store.Fresh, Lane: l.row.ID, Entry: e})
		g.count(l, store.Fresh, -1)
		g.count(l, store.Returned, 1)
		l.row.Cursor = e.ID
		l.row.Returning = min(l.row.Returning, e.ID)
	}
	if l.parked == nil {
		l.parked = make(map[queue.MessageID]store.Entry)
	}
	l.parked[e.ID] = e
}

// take hands out messages of the lane; it has one at least.
func (x *receive) take(g *group, l *lane) {
	b, q := g.b, x.q
	limit := int64(x.r.Limit)
	peek := x.r.Visibility == 0
	if !peek {
		limit = min(limit, g.room(q))
	}
	g.touch(l)
	var peeked []store.Entry // back to their place after the last, so that none is met twice
	var octets int64
	for int64(len(x.taken)) < limit {
		w, row, ok := g.next(l)
		if !ok {
			break
		}
		if octets += int64(w.front().Size); len(x.taken) > 0 && x.r.MaxBytes > 0 && octets > x.r.MaxBytes {
			break
		}
		e := w.pop()
		hidden := x.r.Visibility
		if hidden < 0 {
			hidden = q.q.Visibility
			if e.Visibility > 0 {
				hidden = time.Duration(e.Visibility) * time.Second
			}
		}
		until := g.now.Add(hidden)
		if peek && !(dlq.Exhausted(int(e.Deliveries)+1, x.of.deliveryLimit()) && !l.dead()) {
			e = g.peek(l, row, e)
			peeked = append(peeked, e)
		} else {
			lease := g.take(l, row, e, until)
			e = lease.Entry
			if peek { // and that was the last delivery: it moves when the answer is made
				b.lapses.Cancel(&lease.timer)
				x.last = append(x.last, lease)
			}
		}
		x.taken = append(x.taken, taken{
			entry:        e,
			token:        visibility.Token{Queue: uint64(q.number), Lane: uint64(l.row.ID), Message: e.ID, Lease: e.Lease, Generation: b.store.Generation()},
			channel:      l.row.Key.Channel,
			visibleAfter: until,
			message:      b.cached(l, &e),
		})
	}
	for _, e := range peeked {
		g.addReturned(l, e)
	}
	x.of.happened(evDelivered, int64(len(x.taken)))
	l.of.setReady(l)
	g.read(l)
}

// cached is the message if it is in memory. One that several groups have is not
// kept as the dead letter of one of them.
func (b *Broker) cached(l *lane, e *store.Entry) *store.Message {
	if e.Shared && l.dead() {
		return nil
	}
	return b.bodies.get(e.ID)
}

// peek is a lease and its end in one: the delivery counts, and the receipt can
// delete, but the message stays visible. The caller puts it back.
func (g *group) peek(l *lane, row store.Row, e store.Entry) store.Entry {
	g.b.state.Lease++
	e.Lease = g.b.state.Lease
	e.Deliveries++
	g.effect(store.Effect{Kind: store.Return, From: row, Lane: l.row.ID, Entry: e})
	g.count(l, row, -1)
	if row == store.Fresh {
		l.row.Cursor = e.ID
	}
	return e
}

// Undeliver takes deliveries back that no octet of was handed to a client: the
// messages are visible again, the delivery is not counted and its receipt is
// dead. It never blocks and has no answer; a receipt that is stale by now is
// passed over.
func (b *Broker) Undeliver(receipts []queue.Receipt) {
	var back []taken
	for _, r := range receipts {
		if t, err := b.sealer.Open(r); err == nil {
			back = append(back, taken{token: t})
		}
	}
	b.takeBack(back)
}

// Release ends deliveries whose client is gone: the messages are visible again,
// or dead if that was their last delivery, the deliveries stay counted, and
// their receipts are dead, so that nobody acts on what others may have by now.
// It never blocks and has no answer; a receipt that is stale by now is passed
// over.
func (b *Broker) Release(receipts []queue.Receipt) {
	tokens := make([]visibility.Token, 0, len(receipts))
	for _, r := range receipts {
		if t, err := b.sealer.Open(r); err == nil {
			tokens = append(tokens, t)
		}
	}
	for some := range slices.Chunk(tokens, ownChunk) {
		b.internal(func(g *group) {
			for _, t := range some {
				g.release(t)
			}
		})
	}
}

// ownChunk is how many deliveries the core ends in one step of its own.
const ownChunk = 100

func (g *group) release(t visibility.Token) {
	l := g.numbered(store.LaneID(t.Lane))
	if l == nil || t.Generation != g.b.store.Generation() {
		return
	}
	x := l.leases[t.Message]
	if x == nil || x.Lease.Lease != t.Lease {
		return
	}
	if g.lastDelivery(x) {
		g.extend(x, g.now) // it lapses here and now
		g.buryLeased(x)
		return
	}
	e := x.Entry
	e.Lease = 0
	g.giveBack(x, e)
	l.of.happened(evReturned, 1)
}

// QueueOf is the queue of a receipt, alive or not. Whether the delivery still
// holds is not looked at.
//
// Errors: InvalidParameter (not a receipt of ours), NotAuthorizedOrNotFound
// (the queue is gone).
func (b *Broker) QueueOf(r queue.Receipt) (queue.ID, error) {
	t, err := b.sealer.Open(r)
	if err != nil {
		return "", err
	}
	b.shown.RLock()
	defer b.shown.RUnlock()
	at, found := slices.BinarySearchFunc(b.shown.ordered, store.QueueNumber(t.Queue),
		func(q *queueState, n store.QueueNumber) int { return cmp.Compare(q.number, n) })
	if found {
		return b.shown.ordered[at].shownQueue.ID, nil
	}
	return "", errNoQueue
}

func (b *Broker) takeBack(back []taken) {
	if len(back) == 0 {
		return
	}
	b.internal(func(g *group) {
		for i := range back {
			g.undeliver(back[i].token)
		}
	})
}

func (g *group) undeliver(t visibility.Token) {
	l := g.numbered(store.LaneID(t.Lane))
	if l == nil || t.Generation != g.b.store.Generation() {
		return
	}
	if x := l.leases[t.Message]; x != nil {
		if x.Lease.Lease != t.Lease {
			return
		}
		e := x.Entry // also if it is on its way to the dead letter queue
		e.Lease, e.Deliveries = 0, e.Deliveries-1
		g.giveBack(x, e)
		l.of.happened(evReturned, 1)
		return
	}
	if e, ok := g.findReturned(l, t.Message); ok && e.Lease == t.Lease {
		if _, aside := l.aside(t.Message); aside {
			return
		}
		g.touch(l)
		g.removeReturned(l, e.ID)
		e.Lease, e.Deliveries = 0, e.Deliveries-1
		g.effect(store.Effect{Kind: store.Return, From: store.Returned, Lane: l.row.ID, Entry: e})
		g.addReturned(l, e)
		l.of.happened(evReturned, 1)
	}
}
