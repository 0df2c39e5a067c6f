package broker

import (
	"cmp"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// A message that more than one consumer group accepts is one message in the
// lane of each, with a state, counts and receipts of its own there; what its
// sender wrote is stored once, in a b row beside an h row that counts the lanes
// which have it, and is gone with the last of them. A message that one group
// alone accepts is as in a queue without groups.
//
// Storage counts octets once, whatever the number of groups, so those that are
// shared are not counted with the lanes, but by channel, in u rows.

// sharing is what the groups of a queue have together.
type sharing struct {
	bytes     int64            // octets of bodies in b rows
	inChannel map[string]int64 // the same by channel, of those channels that were looked at
	held      int64            // the same for each group that has them, so more: what the lanes say
	through   queue.MessageID  // bodies up to this id are counted no more
}

// share stores the body of a message that is in so many lanes.
func (g *group) share(q *queueState, channel string, id queue.MessageID, m *queue.Message, size int64, lanes int) {
	g.cs.Bodies = append(g.cs.Bodies, store.Body{ID: id, Queue: q.number, Channel: channel, Message: *m})
	g.setHolders(id, uint32(lanes))
	g.countShared(q, channel, size)
}

// unshare takes one lane off those that have a message.
func (g *group) unshare(l *lane, e *store.Entry) {
	if q := l.of.queue; g.letGo(e.ID) && e.ID > q.shared.through {
		g.countShared(q, l.row.Key.Channel, -int64(e.Size))
	}
}

// unshareRemoved does the same for a lane that was given up. Its name is not
// known any more; of is a body that it had, which says the queue and the
// channel.
func (g *group) unshareRemoved(of *store.Body, e *store.Entry) {
	if !g.letGo(e.ID) || of == nil {
		return
	}
	if q := g.b.queues[of.Queue]; q != nil && e.ID > q.shared.through {
		g.countShared(q, of.Channel, -int64(e.Size))
	}
}

// letGo takes one lane off, and reports whether it was the last.
func (g *group) letGo(id queue.MessageID) (last bool) {
	n, known := g.holders[id]
	if !known {
		var err error
		if n, err = g.b.store.Holders(id); err != nil {
			g.b.fail(err)
		}
	}
	if n == 0 {
		panic("a body that several groups have is gone before the last of them let go of it")
	}
	g.setHolders(id, n-1)
	if n > 1 {
		return false
	}
	g.b.bodies.remove(id)
	return true
}

func (g *group) setHolders(id queue.MessageID, n uint32) {
	if g.holders == nil {
		g.holders = make(map[queue.MessageID]uint32)
	}
	g.holders[id] = n
	g.changes++
}

// sharedIn is how many octets of bodies several groups have in a channel.
func (g *group) sharedIn(q *queueState, channel string) int64 {
	if q.shared.bytes == 0 {
		return 0
	}
	n, known := q.shared.inChannel[channel]
	if !known {
		var err error
		if n, err = g.b.store.SharedIn(q.number, channel); err != nil {
			g.b.fail(err)
		}
		q.shared.set(channel, n)
		g.touchQueue(q)
	}
	return n
}

func (s *sharing) set(channel string, n int64) {
	if s.inChannel == nil {
		s.inChannel = make(map[string]int64)
	}
	s.inChannel[channel] = n
}

func (g *group) countShared(q *queueState, channel string, n int64) {
	g.touchQueue(q)
	now := g.sharedIn(q, channel) + n
	q.shared.set(channel, now)
	q.shared.bytes += n
	q.stored += n
	g.b.bytes += n
	g.sharedRows = append(g.sharedRows, sharedRow{q, channel})
}

// sharedRow is a u row that changed.
type sharedRow struct {
	q       *queueState
	channel string
}

// closeShared makes the rows of what is shared, at the end of a group.
func (g *group) closeShared() {
	for _, q := range g.queues {
		if q.shared.held == 0 && q.shared.bytes > 0 {
			g.discount(q)
		}
	}
	for id, n := range g.holders {
		g.cs.Holders = append(g.cs.Holders, store.Holders{ID: id, Lanes: n})
	}
	slices.SortFunc(g.cs.Holders, func(a, b store.Holders) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range g.sharedRows {
		n, known := r.q.shared.inChannel[r.channel]
		if !known || slices.ContainsFunc(g.cs.Shared, func(s store.Shared) bool { return s.Queue == r.q.number && s.Channel == r.channel }) {
			continue
		}
		g.cs.Shared = append(g.cs.Shared, store.Shared{Queue: r.q.number, Channel: r.channel, Bytes: n})
	}
	// Channels that have nothing but dead letters are many; they are read when
	// they are asked for.
	for _, q := range g.queues {
		for channel := range q.shared.inChannel {
			if channel != "" && q.channels[channel] == 0 {
				delete(q.shared.inChannel, channel)
			}
		}
	}
}

// discount counts no more what no lane has: all of it was purged, and only its
// removal is to come.
func (g *group) discount(q *queueState) {
	q.stored -= q.shared.bytes
	g.b.bytes -= q.shared.bytes
	q.shared.bytes, q.shared.inChannel = 0, nil
	q.shared.through = g.b.state.Message
	g.cs.Unshared = append(g.cs.Unshared, q.number)
	if g.b.queues[q.number] == q {
		g.cs.Queues = append(g.cs.Queues, q.row())
	}
}
