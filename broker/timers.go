package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// alarm wakes one goroutine at the earliest instant that anybody wants.
type alarm struct {
	at   atomic.Int64 // 0: nobody wants anything
	kick chan struct{}
}

func newAlarm() *alarm { return &alarm{kick: make(chan struct{}, 1)} }

// wants asks for work at the instant; it never blocks.
func (a *alarm) wants(at queue.Instant) {
	for {
		have := a.at.Load()
		if have != 0 && have <= int64(at) {
			return
		}
		if a.at.CompareAndSwap(have, max(int64(at), 1)) {
			break
		}
	}
	a.recheck()
}

// recheck has the clock asked again whether the instant has come.
func (a *alarm) recheck() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// run calls work whenever the instant has come, until ctx is done. What work
// leaves to be done it must want again.
func (a *alarm) run(ctx context.Context, now func() queue.Instant, work func(context.Context)) {
	for ctx.Err() == nil {
		var timer <-chan time.Time
		if at := queue.Instant(a.at.Load()); at != 0 {
			wait := at.Sub(now())
			if wait <= 0 {
				a.at.CompareAndSwap(int64(at), 0)
				work(ctx)
				continue
			}
			// The engine's time may run up to a slew slower than the timer.
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-a.kick:
		case <-timer:
		}
	}
}

// lapseSome ends leases whose visibility timeout is over, a bounded number in
// one group.
func (g *group) lapseSome() {
	const most = 1000
	b := g.b
	more := b.lapses.Advance(g.now, most, func(t *visibility.Timer[*lease]) {
		x := t.Value
		switch {
		case x.ExpireAfter <= g.now && !b.held(x.ExpireAfter):
			g.dropLeased(x)
			x.lane.of.happened(evExpired, 1)
		case g.lastDelivery(x):
			g.changes++
			g.buryLeased(x)
		default:
			g.giveBack(x, x.Entry)
			x.lane.of.happened(evLapsed, 1)
		}
	})
	if more {
		b.internal((*group).lapseSome)
	}
}

// keeperChunk is how many rows the keeper takes at a time.
const keeperChunk = 256

// keeper does what time asks for and the core cannot decide from memory:
// delayed messages that are due, and messages whose retention is over. It
// reads outside the core and has the core decide; it is one goroutine, so
// nothing else makes a message due or takes one out of the order of expiry.
type keeper struct {
	b *Broker
	*alarm
	expiryFrom queue.Instant // x rows before it are done, or held

	heldTo  queue.Instant // in this round: x rows up to it are passed over
	sweptAt queue.Instant
}

// round does all there is to do now.
func (k *keeper) round(ctx context.Context) {
	b := k.b
	var now, dueFrom, hold queue.Instant
	k.heldTo = 0
	var looks []look
	// Asked in the core, now is an instant behind which no earlier decision
	// can still be on its way to disk.
	if !b.do(func(g *group) {
		now, dueFrom = g.now, b.state.DueFrom
		if b.holding && now >= b.holdUntil {
			g.endHold()
			k.expiryFrom = b.state.ExpiryFrom
		}
		if b.holding {
			hold = b.holdUntil
			k.heldTo = b.holdTo
		}
		looks = g.looks()
	}) {
		return
	}
	if hold > now {
		k.wants(hold)
	}
	k.due(ctx, dueFrom, now)
	k.expire(ctx, now)
	for _, l := range looks {
		k.look(ctx, l, now)
	}
	if len(looks) > 0 {
		k.wants(now) // there may be more
	} else {
		b.do(func(g *group) {
			if at, ok := b.expiries.Next(); ok {
				k.wants(at)
			}
		})
	}
	k.sweepTokens(ctx, now)
}

// due makes delayed messages visible.
func (k *keeper) due(ctx context.Context, from, now queue.Instant) {
	b := k.b
	for ctx.Err() == nil {
		rows, next, err := b.store.ScanDue(from, now, keeperChunk)
		if err != nil {
			b.fail(fmt.Errorf("due: %w", err))
		}
		entries := k.heads(rows)
		done := next == 0 || next > now
		if from = next; done {
			from = now + 1
		}
		if len(rows) > 0 && !b.do(func(g *group) {
			for i, t := range rows {
				g.due(t, entries[i])
			}
			b.state.DueFrom = from
			g.cs.State.DueFrom = from
		}) {
			return
		}
		if done {
			if next != 0 {
				k.wants(next)
			}
			return
		}
	}
}

// heads reads what the engine must know of the messages; nil for one that is
// gone.
func (k *keeper) heads(rows []store.Timer) []*store.ScannedMessage {
	out := make([]*store.ScannedMessage, len(rows))
	for i, t := range rows {
		m, e, found, err := k.b.store.Message(t.Lane, t.ID)
		if err != nil {
			k.b.fail(fmt.Errorf("keeper: %w", err))
		}
		if found {
			m.Body = nil
			out[i] = &store.ScannedMessage{Entry: e, Message: m}
		}
	}
	return out
}

func (g *group) due(t store.Timer, m *store.ScannedMessage) {
	l := g.b.lanes[t.Lane]
	if l == nil || m == nil {
		g.changes++
		g.effect(store.Effect{Kind: store.Forget, From: store.Delayed, Lane: t.Lane, Entry: store.Entry{ID: t.ID}, At: t.At})
		return
	}
	if m.Entry.ExpireAfter <= g.now && !g.b.held(m.Entry.ExpireAfter) {
		g.expire(t.Lane, m)
		return
	}
	g.touch(l)
	g.effect(store.Effect{Kind: store.Return, From: store.Delayed, Lane: l.row.ID, Entry: m.Entry, At: t.At})
	g.count(l, store.Delayed, -1)
	g.addReturned(l, m.Entry)
}

// expire ends the messages that expire out of the order of their ids.
func (k *keeper) expire(ctx context.Context, now queue.Instant) {
	b := k.b
	for ctx.Err() == nil {
		k.expiryFrom = max(k.expiryFrom, k.heldTo+1)
		rows, next, err := b.store.ScanExpiry(k.expiryFrom, now, keeperChunk)
		if err != nil {
			b.fail(fmt.Errorf("expire: %w", err))
		}
		done := next == 0 || next > now
		if k.expiryFrom = next; done {
			k.expiryFrom = now + 1
		}
		heads := k.heads(rows)
		if len(rows) > 0 && !b.do(func(g *group) {
			for i, t := range rows {
				switch {
				case heads[i] == nil:
					g.changes++
					g.effect(store.Effect{Kind: store.Forget, From: store.Fresh, Lane: t.Lane, Entry: store.Entry{ID: t.ID}, At: t.At})
				default:
					g.expire(t.Lane, heads[i])
				}
			}
			if !b.holding {
				b.state.ExpiryFrom = k.expiryFrom
				g.cs.State.ExpiryFrom = k.expiryFrom
			}
		}) {
			return
		}
		if done {
			if next != 0 {
				k.wants(next)
			}
			return
		}
	}
}

// expire ends one message whose retention is over, whatever state it is in.
func (g *group) expire(id store.LaneID, m *store.ScannedMessage) {
	l := g.numbered(id)
	e := m.Entry
	if l == nil || e.ExpireAfter > g.now || g.b.held(e.ExpireAfter) {
		return
	}
	if x := l.leases[e.ID]; x != nil {
		g.dropLeased(x)
		l.of.happened(evExpired, 1)
		return
	}
	if r, ok := g.findReturned(l, e.ID); ok {
		g.dropReturned(l, r)
		l.of.happened(evExpired, 1)
		return
	}
	switch {
	case l.dead():
		return // gone meanwhile
	case m.DueAt != 0:
		there, err := g.b.store.Delayed(store.Timer{At: m.DueAt, Lane: id, ID: e.ID})
		if err != nil {
			g.b.fail(fmt.Errorf("expire: %w", err))
		}
		if !there {
			return
		}
		g.touch(l)
		g.count(l, store.Delayed, -1)
		g.drop(l, store.Delayed, e, m.DueAt)
	case e.ID > l.row.Cursor:
		g.touch(l)
		if _, ok := l.fresh.remove(e.ID); !ok && l.refill != nil && l.refill.window == &l.fresh {
			l.refill.remove(e.ID)
		}
		g.count(l, store.Fresh, -1)
		g.drop(l, store.Fresh, e, 0)
	default:
		return
	}
	l.of.happened(evExpired, 1)
}

// look is a lane whose oldest messages are to be looked at.
type look struct {
	lane store.LaneID
	from queue.MessageID
}

// looks are the lanes whose time has come.
func (g *group) looks() []look {
	var out []look
	g.b.expiries.Advance(g.now, 64, func(t *visibility.Timer[*lane]) {
		l := t.Value
		out = append(out, look{l.row.ID, l.look})
	})
	return out
}

// look ends the messages at the old end of a lane, where they expire in the
// order of their ids, and comes back when the next one does.
func (k *keeper) look(ctx context.Context, at look, now queue.Instant) {
	b := k.b
	for ctx.Err() == nil {
		found, more, err := b.store.ScanMessages(at.lane, at.from, keeperChunk, refillBytes, true)
		if err != nil {
			b.fail(fmt.Errorf("look: %w", err))
		}
		var expired []*store.ScannedMessage
		var next queue.Instant
		for i := range found {
			m := &found[i]
			if !m.Entry.Indexed && m.Entry.ExpireAfter > now {
				next, more = m.Entry.ExpireAfter, false
				at.from = m.ID
				break
			}
			at.from = m.ID + 1
			if !m.Entry.Indexed {
				expired = append(expired, m)
			}
		}
		if !b.do(func(g *group) {
			for _, m := range expired {
				g.expire(at.lane, m)
			}
			l := b.lanes[at.lane]
			if l == nil {
				return
			}
			l.look = at.from
			if !b.holding && l.row.Oldest < at.from {
				l.row.Oldest = at.from // stored with the lane's next change
			}
			if next != 0 && (!l.expiry.Scheduled() || l.expiry.At() > next) {
				b.expiries.Schedule(&l.expiry, next)
			}
		}) || !more {
			return
		}
	}
}

// The hold: messages that expired while the server was down are not given out,
// and not deleted before the grace is over, in case the clock is wrong.

// held reports whether a message that expired at the instant is held. Also what
// had expired before the server went down is held, if it was not deleted yet:
// it may have been held then.
func (b *Broker) held(at queue.Instant) bool {
	return b.holding && at <= b.holdTo
}

func (g *group) endHold() {
	b := g.b
	b.holding = false
	g.changes++
	for _, l := range b.lanes {
		if l.look = l.row.Oldest; !l.dead() {
			b.expiries.Schedule(&l.expiry, g.now)
		}
	}
}

// sweepTokens forgets retry tokens that are older than 24 h, once an hour.
func (k *keeper) sweepTokens(ctx context.Context, now queue.Instant) {
	b := k.b
	if k.sweptAt != 0 && now.Sub(k.sweptAt) < time.Hour {
		k.wants(k.sweptAt.Add(time.Hour))
		return
	}
	for ctx.Err() == nil {
		old, err := b.store.RetryTokens(now.Add(-tokenLife), keeperChunk)
		if err != nil {
			b.fail(fmt.Errorf("sweep retry tokens: %w", err))
		}
		if len(old) == 0 {
			break
		}
		if !b.do(func(g *group) {
			g.changes++
			g.cs.GoneTokens = append(g.cs.GoneTokens, old...)
			for _, t := range old {
				// A token may have been used anew since: that use stays.
				if used, found := g.token(t.Scope, t.Token); found {
					g.cs.Tokens = append(g.cs.Tokens, used)
				}
				if q := b.queueOfToken(t.Scope); q != nil {
					q.tokens--
				}
			}
		}) {
			return
		}
	}
	k.sweptAt = now
	k.wants(now.Add(time.Hour))
}

// tokenLife is how long a retry token is honoured (OCI reference 4.13).
const tokenLife = 24 * time.Hour
