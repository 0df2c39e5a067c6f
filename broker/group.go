package broker

import (
	"fmt"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// group is what the core decides between two syncs. Requests see each other's
// changes: memory is changed at once, and what memory does not hold is looked
// up in the rows this group has touched before the store is asked.
type group struct {
	b   *Broker
	now queue.Instant
	cs  store.ChangeSet

	lanes  []*lane       // changed
	queues []*queueState // changed, or with somebody to serve

	changed []*lane // scratch of serveWaiters

	// returned rows that are on disk only and were changed by this group; nil
	// means gone.
	rows map[rowID]*store.Entry

	holders    map[queue.MessageID]uint32 // lanes that have a body, of those that changed
	sharedRows []sharedRow
	into       []*lane // scratch of put

	changes  int // effects and other changes so far
	catalog  bool
	finished []*request
	slept    []*lane  // dormant from now on
	after    []func() // run when the group is durable, without blocking
}

type rowID struct {
	lane store.LaneID
	id   queue.MessageID
}

func (g *group) reset() {
	g.cs.Reset()
	g.cs.State = g.b.state
	clear(g.lanes)
	clear(g.queues)
	clear(g.finished)
	clear(g.after)
	clear(g.slept)
	g.slept = g.slept[:0]
	g.lanes, g.queues, g.finished, g.after = g.lanes[:0], g.queues[:0], g.finished[:0], g.after[:0]
	clear(g.rows)
	clear(g.holders)
	clear(g.sharedRows)
	g.sharedRows = g.sharedRows[:0]
	g.changes, g.catalog = 0, false
}

// touch marks a lane and its queue as changed; it comes before any change.
func (g *group) touch(l *lane) {
	g.changes++
	if !l.dirty {
		l.dirty = true
		g.lanes = append(g.lanes, l)
	}
	g.touchQueue(l.of.queue)
}

func (g *group) touchQueue(q *queueState) {
	if !q.dirty {
		q.dirty = true
		g.queues = append(g.queues, q)
	}
}

// serve asks that those who wait on q are looked at before the group ends.
func (g *group) serve(q *queueState) {
	q.wake = true
	g.touchQueue(q)
}

func (g *group) effect(e store.Effect) {
	g.cs.Effects = append(g.cs.Effects, e)
}

// lane finds a lane or makes it.
func (g *group) lane(c *consumers, dead bool, channel string) *lane {
	if l := g.known(c, dead, channel); l != nil {
		return l
	}
	if !dead && c.dormant > 0 {
		g.known(c, true, channel) // a dead lane sleeps only while its channel has nothing else
	}
	g.changes++
	key := c.key(dead, channel)
	if dead && c.deadThrough > 0 {
		g.giveUpMarked(key)
	}
	g.b.state.Lane++
	g.cs.State.Lane = g.b.state.Lane
	l := newLane(g.b.windows.each, c, store.Lane{ID: g.b.state.Lane, Key: key, Cursor: g.b.state.Message, Oldest: g.b.state.Message + 1})
	g.b.link(l)
	g.touch(l)
	return l
}

func newLane(windowCap int, c *consumers, row store.Lane) *lane {
	l := &lane{row: row, of: c, slot: -1, look: row.Oldest}
	l.expiry.Value = l
	l.fresh.cap, l.returned.cap = windowCap, windowCap
	l.fresh.through = row.Cursor
	if row.Returning > 0 {
		l.returned.through = row.Returning - 1
	}
	l.settleBounds()
	return l
}

// link puts a lane into the maps of the core.
func (b *Broker) link(l *lane) {
	l.of.lanes[l.row.Key] = l
	b.lanes[l.row.ID] = l
	switch {
	case l.dead():
		b.deadLanes++
	case l.row.Key.Channel != "":
		l.of.queue.channels[l.row.Key.Channel]++
	}
}

// unlink takes a lane out of them.
func (b *Broker) unlink(l *lane) {
	l.gone = true
	delete(l.of.lanes, l.row.Key)
	delete(b.lanes, l.row.ID)
	b.expiries.Cancel(&l.expiry)
	l.of.setReady(l)
	switch channels := l.of.queue.channels; {
	case l.dead():
		b.deadLanes--
	case l.row.Key.Channel != "":
		if channels[l.row.Key.Channel]--; channels[l.row.Key.Channel] == 0 {
			delete(channels, l.row.Key.Channel)
		}
	}
}

// count changes the counters of a lane and of its queue together.
func (g *group) count(l *lane, row store.Row, n int64) {
	stats := l.of.stats(l.dead())
	switch row {
	case store.Fresh:
		l.row.Fresh += n
		stats.Visible += n
	case store.Returned:
		l.row.Returned += n
		stats.Visible += n
	case store.Leased:
		l.row.InFlight += n
		stats.InFlight += n
		g.b.inFlight += n
		if n < 0 {
			g.feed()
		}
	case store.Delayed:
		l.row.Delayed += n
		stats.Delayed += n
	}
}

// feed serves the queues that waited for leases of others to end.
func (g *group) feed() {
	for q := range g.b.starved {
		g.serve(q)
	}
	clear(g.b.starved)
}

// size changes what a lane and its queue hold.
func (g *group) size(l *lane, e *store.Entry, n int64) {
	octets := n * int64(e.Size)
	l.row.Bytes += octets
	l.of.stats(l.dead()).Bytes += octets
	if q := l.of.queue; e.Shared {
		l.row.Shared += octets
		q.shared.held += octets
	} else {
		q.stored += octets
		g.b.bytes += octets
	}
	if e.Indexed {
		l.row.Indexed += n
	}
}

// take leases a message that has been taken out of its window.
func (g *group) take(l *lane, from store.Row, e store.Entry, until queue.Instant) *lease {
	g.b.state.Lease++
	e.Lease = g.b.state.Lease
	e.Deliveries++
	g.effect(store.Effect{Kind: store.Take, From: from, Lane: l.row.ID, Entry: e, At: until})
	if from == store.Fresh {
		l.row.Cursor = e.ID
	}
	g.count(l, from, -1)
	g.count(l, store.Leased, 1)
	return g.b.hold(l, store.Lease{Entry: e, VisibleAfter: until})
}

// hold puts a lease into the table.
func (b *Broker) hold(l *lane, row store.Lease) *lease {
	x := &lease{Lease: row, lane: l}
	x.timer.Value = x
	if l.leases == nil {
		l.leases = make(map[queue.MessageID]*lease)
	}
	l.leases[row.ID] = x
	b.lapses.Schedule(&x.timer, row.VisibleAfter)
	return x
}

// release takes a lease out of the table.
func (b *Broker) release(x *lease) {
	b.lapses.Cancel(&x.timer)
	delete(x.lane.leases, x.ID)
	if len(x.lane.leases) == 0 {
		x.lane.leases = nil
	}
}

// extend moves the end of a lease.
func (g *group) extend(x *lease, until queue.Instant) {
	g.touch(x.lane)
	g.effect(store.Effect{Kind: store.Take, From: store.Leased, Lane: x.lane.row.ID, Entry: x.Entry, At: until})
	x.VisibleAfter = until
	g.b.lapses.Schedule(&x.timer, until)
}

// giveBack ends a lease: the message is visible again, as e.
func (g *group) giveBack(x *lease, e store.Entry) {
	l := x.lane
	g.touch(l)
	g.effect(store.Effect{Kind: store.Return, From: store.Leased, Lane: l.row.ID, Entry: e})
	g.b.release(x)
	g.count(l, store.Leased, -1)
	g.addReturned(l, e)
}

// addReturned puts a message that has a v row now into its place.
func (g *group) addReturned(l *lane, e store.Entry) {
	g.count(l, store.Returned, 1)
	l.row.Returning = min(l.row.Returning, e.ID)
	if left, isLeft := l.returned.add(e); isLeft {
		kept := left
		g.rows[rowID{l.row.ID, left.ID}] = &kept
		if l.refill != nil && l.refill.window == &l.returned {
			l.refill.note(left)
		}
	}
	g.serve(l.of.queue)
}

// findReturned looks for a visible message that has been delivered before, in
// memory or on disk.
func (g *group) findReturned(l *lane, id queue.MessageID) (store.Entry, bool) {
	if e, ok := l.aside(id); ok {
		return e, true
	}
	if i, ok := l.returned.find(id); ok {
		return l.returned.entries[i], true
	}
	if id <= l.returned.through || l.row.Returned == 0 {
		return store.Entry{}, false
	}
	if e, ok := g.rows[rowID{l.row.ID, id}]; ok {
		if e == nil {
			return store.Entry{}, false
		}
		return *e, true
	}
	e, ok, err := g.b.store.Returned(l.row.ID, id)
	if err != nil {
		g.b.fail(err)
	}
	return e, ok
}

// removeReturned takes a message that findReturned found out of memory.
func (g *group) removeReturned(l *lane, id queue.MessageID) {
	g.count(l, store.Returned, -1)
	g.rows[rowID{l.row.ID, id}] = nil // also if it is in memory: the window may shrink yet
	if _, ok := l.aside(id); ok {
		delete(l.parked, id)
		if _, ok := l.dying[id]; ok {
			delete(l.dying, id)
			g.serve(l.of.queue) // a lane that had too many goes on
		}
		return
	}
	if _, ok := l.returned.remove(id); ok {
		return
	}
	if r := l.refill; r != nil && r.window == &l.returned {
		r.remove(id)
	}
}

// drop ends a message whatever state it is in. It must be out of its window
// already; at is the due instant of a delayed one.
func (g *group) drop(l *lane, from store.Row, e store.Entry, at queue.Instant) {
	g.touch(l)
	g.effect(store.Effect{Kind: store.Drop, From: from, Lane: l.row.ID, Entry: e, At: at})
	g.size(l, &e, -1)
	if e.Shared {
		g.unshare(l, &e)
	} else {
		g.b.bodies.remove(e.ID)
	}
	if from == store.Leased || l.of.queue.inFlight() > 0 {
		g.serve(l.of.queue) // room under the in-flight limit
	}
}

// dropReturned ends a returned message.
func (g *group) dropReturned(l *lane, e store.Entry) {
	g.touch(l)
	g.removeReturned(l, e.ID)
	g.drop(l, store.Returned, e, 0)
}

// dropLeased ends a message in flight.
func (g *group) dropLeased(x *lease) {
	g.touch(x.lane)
	g.b.release(x)
	g.count(x.lane, store.Leased, -1)
	g.drop(x.lane, store.Leased, x.Entry, 0)
}

// purge gives a lane up with all that is in it: it is in no map any more, so
// nothing finds its messages, and its rows are removed in the background. What
// is published next stands in a new lane.
func (g *group) purge(l *lane) int64 {
	g.touch(l)
	s := l.row.Stats()
	n := s.Visible + s.InFlight + s.Delayed
	for _, x := range l.leases {
		g.b.lapses.Cancel(&x.timer)
	}
	l.leases = nil
	g.b.inFlight -= s.InFlight
	g.feed()
	g.serve(l.of.queue)
	own := s.Bytes - l.row.Shared
	g.b.bytes -= own
	l.of.queue.stored -= own
	l.of.queue.shared.held -= l.row.Shared
	all := l.of.stats(l.dead())
	*all = all.Plus(queue.Stats{Visible: -s.Visible, InFlight: -s.InFlight, Delayed: -s.Delayed, Bytes: -s.Bytes})
	l.of.happened(evPurged, n)
	g.cs.GoneLanes = append(g.cs.GoneLanes, store.Lane{ID: l.row.ID, Key: l.row.Key})
	g.cs.Removals = append(g.cs.Removals, l.row.ID)
	g.b.unlink(l)
	id, walk := l.row.ID, l.row.Delayed+l.row.Indexed > 0 || l.of.queue.last > 0
	g.after = append(g.after, func() { g.b.remover.add(removal{lane: id, walk: walk}) })
	return n
}

// close makes the rows of all lanes that changed; those that are empty go.
func (g *group) close() {
	for _, l := range g.lanes {
		l.dirty = false
		l.used = g.b.state.Position
		if l.gone {
			g.b.windows.charge(l)
			continue
		}
		if l.row.Empty() {
			if l.dead() || l.row.Key.Channel != "" {
				g.b.unlink(l)
				g.b.windows.charge(l)
				g.cs.GoneLanes = append(g.cs.GoneLanes, store.Lane{ID: l.row.ID, Key: l.row.Key})
				continue
			}
			l.row.Cursor, l.row.Oldest = g.b.state.Message, g.b.state.Message+1
			l.look = l.row.Oldest
		}
		l.settleBounds()
		l.of.setReady(l)
		g.b.windows.charge(l)
		g.cs.Lanes = append(g.cs.Lanes, l.row)
	}
	for _, q := range g.queues {
		q.pace.set(q.behind())
	}
	g.closeShared()
	g.b.windows.shrink(g.b.lanes)
	g.putToSleep()
	if g.b.checked {
		g.check()
	}
}

// check finds broken invariants; tests run with it.
func (g *group) check() {
	for _, l := range g.lanes {
		if l.gone {
			continue
		}
		r := &l.row
		if r.Fresh < 0 || r.Returned < 0 || r.InFlight < 0 || r.Delayed < 0 || r.Bytes < 0 || r.Indexed < 0 || r.Shared < 0 || r.Shared > r.Bytes {
			panic(fmt.Sprintf("a counter of lane %d fell below zero: %+v", r.ID, *r))
		}
		if int64(len(l.leases)) != r.InFlight {
			panic(fmt.Sprintf("lane %d counts %d in flight and holds %d leases", r.ID, r.InFlight, len(l.leases)))
		}
	}
}
