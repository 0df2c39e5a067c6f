package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// Dead letters stay for days, and each channel that ever had one has a dead
// lane, so their number grows with what went wrong. Only so many are in
// memory; of the others, which are dormant, the core knows how many there are
// and what they count together. A dormant lane is woken when somebody names
// its channel or its number, or by a search when a get would take any.

const (
	searchWakes = 32   // lanes that one search brings into memory at most
	searchReads = 1024 // rows that it reads at a time
)

// known finds a lane in memory or wakes it.
func (g *group) known(q *queueState, dead bool, channel string) *lane {
	key := store.LaneKey{Queue: q.number, Dead: dead, Channel: channel}
	if l := q.lanes[key]; l != nil || !dead || q.dormant == 0 {
		return l
	}
	row, found, err := g.b.store.Lane(key)
	if err != nil {
		g.b.fail(err)
	}
	if !found {
		return nil
	}
	return g.wake(q, row)
}

// numbered finds a lane by its number, in memory or dormant.
func (g *group) numbered(id store.LaneID) *lane {
	if l := g.b.lanes[id]; l != nil || g.b.dormant == 0 {
		return l
	}
	row, found, err := g.b.store.DeadLane(id)
	if err != nil {
		g.b.fail(err)
	}
	q := g.b.queues[row.Key.Queue]
	if !found || q == nil || q.lanes[row.Key] != nil {
		return nil
	}
	return g.wake(q, row)
}

// wake brings a dormant lane into memory; nil if it was purged.
func (g *group) wake(q *queueState, row store.Lane) *lane {
	for i := range g.cs.GoneLanes {
		if g.cs.GoneLanes[i].ID == row.ID {
			return nil // by this group: its row is still there
		}
	}
	if row.ID <= q.deadThrough {
		g.changes++
		g.giveUp(row)
		return nil
	}
	l := newLane(g.b.windows.each, q, row)
	g.b.link(l)
	q.dormant--
	g.b.dormant--
	q.dormantStats = q.dormantStats.Plus(negative(row.Stats()))
	g.touch(l)
	q.setReady(l)
	return l
}

func negative(s queue.Stats) queue.Stats {
	return queue.Stats{Visible: -s.Visible, InFlight: -s.InFlight, Delayed: -s.Delayed, Bytes: -s.Bytes}
}

// putToSleep makes dead lanes dormant when too many are in memory, those that
// were not used for longest first. It runs at the end of a group.
func (g *group) putToSleep() {
	b := g.b
	if b.deadLanes <= b.mostDeadLanes {
		return
	}
	var idle []*lane
	for _, l := range b.lanes {
		if l.dead() && len(l.leases) == 0 && len(l.parked)+len(l.dying) == 0 && l.refill == nil &&
			l.of.lanes[store.LaneKey{Queue: l.of.number, Channel: l.row.Key.Channel}] == nil {
			idle = append(idle, l)
		}
	}
	slices.SortFunc(idle, func(a, b *lane) int { return cmp.Compare(a.used, b.used) })
	for _, l := range idle[:min(len(idle), b.deadLanes-b.mostDeadLanes*3/4)] {
		q := l.of
		b.unlink(l)
		l.unload()
		b.windows.charge(l)
		q.dormant++
		b.dormant++
		q.dormantStats = q.dormantStats.Plus(l.row.Stats())
		g.slept = append(g.slept, l)
		g.touchQueue(q)
	}
}

// search looks among the dormant lanes of a queue for some that a get of any
// channel, or with a pattern, may take from. Each search goes on where the
// last one ended, so that all have their turn.
func (g *group) search(q *queueState, f channels.Filter) {
	if q.dormant == 0 {
		return
	}
	g.changes++
	q.searching++
	b, from := g.b, q.searchedTo
	g.after = append(g.after, func() {
		b.reads.add(func() {
			rows, to := b.findDormant(q.number, f, from)
			b.internal(func(g *group) {
				g.changes++
				q.searching--
				q.searchedTo = to
				for _, row := range rows {
					if l := g.known(q, true, row.Key.Channel); l != nil {
						g.touch(l)
					}
				}
				g.serve(q)
			})
		})
	})
}

// findDormant reads the rows of dead lanes from a channel on, once around.
func (b *Broker) findDormant(q store.QueueNumber, f channels.Filter, from string) (rows []store.Lane, to string) {
	start, wrapped := from, from == ""
	for {
		found, more, err := b.store.ScanDeadLanes(q, from, searchReads)
		if err != nil {
			b.fail(fmt.Errorf("search dead lanes: %w", err))
		}
		for _, l := range found {
			if wrapped && start != "" && l.Key.Channel >= start {
				return rows, start
			}
			from = l.Key.Channel + "\x00" // behind it
			if f.Match(l.Key.Channel) && l.Returned > 0 {
				if rows = append(rows, l); len(rows) == searchWakes {
					return rows, from
				}
			}
		}
		if !more {
			if from = ""; wrapped {
				return rows, ""
			}
			wrapped = true
		}
	}
}

// purgeDormant gives up all dormant lanes of a queue at once: a mark says so,
// and their rows are removed in the background.
func (g *group) purgeDormant(q *queueState) int64 {
	if q.dormant == 0 {
		return 0
	}
	n := q.dormantStats.Visible + q.dormantStats.InFlight
	q.deadThrough = g.b.state.Lane
	g.b.bytes -= q.dormantStats.Bytes
	g.b.dormant -= q.dormant
	q.dead = q.dead.Plus(negative(q.dormantStats))
	q.dormant, q.dormantStats = 0, queue.Stats{}
	q.events[evPurged] += n
	g.cs.Queues = append(g.cs.Queues, store.Queue{Number: q.number, DeadThrough: q.deadThrough, Queue: q.q})
	g.touchQueue(q)
	g.after = append(g.after, func() { g.b.remover.add(removal{queue: q.number}) })
	return n
}

// giveUp removes the row of a lane that was purged while it was dormant; the
// rows of its messages follow.
func (g *group) giveUp(row store.Lane) {
	b := g.b
	g.cs.GoneLanes = append(g.cs.GoneLanes, store.Lane{ID: row.ID, Key: row.Key})
	g.cs.Removals = append(g.cs.Removals, row.ID)
	g.after = append(g.after, func() { b.remover.add(removal{lane: row.ID, walk: true}) })
}

// giveUpMarked gives a lane up that was purged while it was dormant and that
// the remover has not come to: its row is about to be written over.
func (g *group) giveUpMarked(key store.LaneKey) {
	row, found, err := g.b.store.Lane(key)
	if err != nil {
		g.b.fail(err)
	}
	for i := range g.cs.GoneLanes {
		if g.cs.GoneLanes[i].ID == row.ID {
			return // in this group
		}
	}
	if found && g.b.lanes[row.ID] == nil {
		g.giveUp(row)
	}
}

// removeDormant gives up, one after the other, the dead lanes of a queue that
// a purge has marked.
func (b *Broker) removeDormant(ctx context.Context, n store.QueueNumber) {
	from, more := "", true
	for more && ctx.Err() == nil {
		rows, m, err := b.store.ScanDeadLanes(n, from, searchReads)
		if err != nil {
			b.fail(fmt.Errorf("remove dead lanes: %w", err))
		}
		if more = m; len(rows) == 0 {
			return
		}
		from = rows[len(rows)-1].Key.Channel + "\x00"
		b.do(func(g *group) {
			q := b.queues[n]
			for _, row := range rows {
				if q != nil && (row.ID > q.deadThrough || b.lanes[row.ID] != nil) {
					continue
				}
				g.changes++
				if now, found, err := b.store.Lane(row.Key); err != nil {
					b.fail(err)
				} else if !found || now.ID != row.ID {
					continue // it has a successor, or is gone
				}
				g.giveUp(row)
			}
		})
	}
}
