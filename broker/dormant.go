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
func (g *group) known(c *consumers, dead bool, channel string) *lane {
	key := c.key(dead, channel)
	if l := c.lanes[key]; l != nil || !dead || c.dormant == 0 {
		return l
	}
	row, found, err := g.b.store.Lane(key)
	if err != nil {
		g.b.fail(err)
	}
	if !found {
		return nil
	}
	return g.wake(c, row)
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
	c := g.b.consumers(row.Key)
	if !found || c == nil || c.lanes[row.Key] != nil {
		return nil
	}
	return g.wake(c, row)
}

// wake brings a dormant lane into memory; nil if it was purged.
func (g *group) wake(c *consumers, row store.Lane) *lane {
	for i := range g.cs.GoneLanes {
		if g.cs.GoneLanes[i].ID == row.ID {
			return nil // by this group: its row is still there
		}
	}
	if row.ID <= c.deadThrough {
		g.changes++
		g.giveUp(row)
		return nil
	}
	l := newLane(g.b.windows.each, c, row)
	g.b.link(l)
	c.dormant--
	g.b.dormant--
	c.dormantStats = c.dormantStats.Plus(negative(row.Stats()))
	c.dormantShare -= row.Shared
	g.touch(l)
	c.setReady(l)
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
			l.of.lanes[l.of.key(false, l.row.Key.Channel)] == nil {
			idle = append(idle, l)
		}
	}
	slices.SortFunc(idle, func(a, b *lane) int { return cmp.Compare(a.used, b.used) })
	for _, l := range idle[:min(len(idle), b.deadLanes-b.mostDeadLanes*3/4)] {
		c := l.of
		b.unlink(l)
		l.unload()
		b.windows.charge(l)
		c.dormant++
		b.dormant++
		c.dormantStats = c.dormantStats.Plus(l.row.Stats())
		c.dormantShare += l.row.Shared
		g.slept = append(g.slept, l)
		g.touchQueue(c.queue)
	}
}

// search looks among the dormant lanes of a group for some that a get of any
// channel, or with a pattern, may take from. Each search goes on where the
// last one ended, so that all have their turn.
func (g *group) search(c *consumers, f channels.Filter) {
	if c.dormant == 0 {
		return
	}
	g.changes++
	c.searching++
	b, from := g.b, c.searchedTo
	g.after = append(g.after, func() {
		b.reads.add(func() {
			rows, to := b.findDormant(c.key(true, ""), f, from)
			b.internal(func(g *group) {
				g.changes++
				c.searching--
				c.searchedTo = to
				for _, row := range rows {
					if l := g.known(c, true, row.Key.Channel); l != nil {
						g.touch(l)
					}
				}
				g.serve(c.queue)
			})
		})
	})
}

// findDormant reads the rows of dead lanes from a channel on, once around.
func (b *Broker) findDormant(of store.LaneKey, f channels.Filter, from string) (rows []store.Lane, to string) {
	start, wrapped := from, from == ""
	for {
		found, more, err := b.store.ScanDeadLanes(of, from, searchReads)
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

// purgeDormant gives up all dormant lanes of a group at once: a mark says so,
// and their rows are removed in the background.
func (g *group) purgeDormant(c *consumers) int64 {
	if c.dormant == 0 {
		return 0
	}
	n := c.dormantStats.Visible + c.dormantStats.InFlight
	c.deadThrough = g.b.state.Lane
	own := c.dormantStats.Bytes - c.dormantShare
	g.b.bytes -= own
	c.queue.stored -= own
	c.queue.shared.held -= c.dormantShare
	g.b.dormant -= c.dormant
	c.dead = c.dead.Plus(negative(c.dormantStats))
	c.dormant, c.dormantStats, c.dormantShare = 0, queue.Stats{}, 0
	c.happened(evPurged, n)
	g.cs.Queues = append(g.cs.Queues, c.queue.row())
	g.touchQueue(c.queue)
	g.after = append(g.after, func() { g.b.remover.add(removal{dormant: c.key(true, "")}) })
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

// removeDormant gives up, one after the other, the dead lanes of a group that
// a purge has marked, or that is gone.
func (b *Broker) removeDormant(ctx context.Context, of store.LaneKey) {
	from, more := "", true
	for more && ctx.Err() == nil {
		rows, m, err := b.store.ScanDeadLanes(of, from, searchReads)
		if err != nil {
			b.fail(fmt.Errorf("remove dead lanes: %w", err))
		}
		if more = m; len(rows) == 0 {
			return
		}
		from = rows[len(rows)-1].Key.Channel + "\x00"
		b.do(func(g *group) {
			c := b.consumers(of)
			for _, row := range rows {
				if c != nil && (row.ID > c.deadThrough || b.lanes[row.ID] != nil) {
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
