package broker

import (
	"context"
	"fmt"

	"github.com/queued-mq/queued/dlq"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// burial is one message on its way to the dead letter queue: its row is read
// outside the core, then the core moves it if nothing has changed.
type burial struct {
	lane  store.LaneID
	id    queue.MessageID
	lease uint64 // its last lease
}

// buryLeased sends a message whose last lease is over to the dead letter
// queue. Until it is there it is in flight, and its receipt can delete it.
func (g *group) buryLeased(x *lease) {
	x.burying = true
	g.b.lapses.Cancel(&x.timer)
	g.burial(burial{x.lane.row.ID, x.ID, x.Lease.Lease})
}

// bury does the same for a returned message, one that had come back before the
// limit was lowered.
func (g *group) bury(l *lane, e store.Entry) {
	g.burial(burial{l.row.ID, e.ID, e.Lease})
}

func (g *group) burial(x burial) {
	g.after = append(g.after, func() { g.b.burials.add(x) })
}

// buryAll reads the messages and has the core move them, a few octets at a
// time.
func (b *Broker) buryAll(ctx context.Context, list []burial) {
	const most = 1 << 20
	for len(list) > 0 && ctx.Err() == nil {
		var messages []store.Message
		var octets int64
		for len(messages) < len(list) && octets < most {
			m, _, found, err := b.store.Message(list[len(messages)].lane, list[len(messages)].id)
			if err != nil {
				b.fail(fmt.Errorf("bury: %w", err))
			}
			if !found {
				m.ExpireAfter = 0 // gone: the core will not find it either
			}
			octets += m.Size()
			messages = append(messages, m)
		}
		n := len(messages)
		if !b.do(func(g *group) {
			for i := range messages {
				g.moveToDead(list[i], messages[i])
			}
		}) {
			return
		}
		list = list[n:]
	}
}

// moveToDead moves one message, or lets it be visible again if the limit has
// been raised meanwhile.
func (g *group) moveToDead(x burial, m store.Message) {
	l := g.b.lanes[x.lane]
	if l == nil || m.ExpireAfter == 0 {
		return
	}
	q := l.of.queue
	var e store.Entry
	from := store.Returned
	if lease := l.leases[x.id]; lease != nil {
		if lease.Lease.Lease != x.lease || !lease.burying {
			return
		}
		switch e = lease.Entry; {
		case e.ExpireAfter <= g.now && !g.b.held(e.ExpireAfter):
			g.dropLeased(lease)
			l.of.happened(evExpired, 1)
			return
		case e.ExpireAfter <= g.now, !dlq.Exhausted(int(e.Deliveries), l.of.deliveryLimit()):
			g.giveBack(lease, e)
			l.of.happened(evLapsed, 1)
			return
		}
		from = store.Leased
		g.touch(l)
		g.b.release(lease)
		g.count(l, store.Leased, -1)
	} else {
		var dying bool
		if e, dying = l.dying[x.id]; !dying || e.Lease != x.lease {
			return
		}
		if e.ExpireAfter <= g.now {
			return // expiry comes for it
		}
		g.touch(l)
		g.removeReturned(l, e.ID)
		if !dlq.Exhausted(int(e.Deliveries), l.of.deliveryLimit()) {
			g.addReturned(l, e) // its row is as it was
			return
		}
	}
	row, dead := dlq.Bury(m, e, &q.q, g.now)
	to := g.lane(l.of, true, l.row.Key.Channel)
	g.touch(to)
	g.effect(store.Effect{Kind: store.Bury, From: from, Lane: l.row.ID, Entry: e, Message: row, To: to.row.ID, ToEntry: dead})
	g.size(l, &e, -1)
	g.size(to, &dead, 1)
	if !e.Shared { // else the others go on with the body
		g.b.bodies.remove(e.ID)
		g.b.bodies.add(dead.ID, row)
	}
	g.addReturned(to, dead)
	g.b.keeper.wants(dead.ExpireAfter)
	l.of.happened(evDeadLettered, 1)
}
