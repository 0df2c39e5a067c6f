package broker

import (
	"slices"
	"sync/atomic"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// waiters are the gets that wait on one side of a consumer group, in their order. Those
// with the same filter stand in one line, so that a message finds who may take
// it without asking everybody.
type waiters struct {
	lines map[channels.Filter]*line
	wild  []*line // of lines: those whose filter names no single channel
	n     int
	total *atomic.Int64 // of all queues
}

// line is the gets with one filter, first come first served.
type line struct {
	filter      channels.Filter
	first, last *receive

	// idle: no lane with something to take was one of the filter's when it was
	// last looked at, so only a lane that has changed since can be.
	idle bool
}

func (w *waiters) join(r *receive) {
	l := w.lines[r.r.Filter]
	if l == nil {
		if w.lines == nil {
			w.lines = make(map[channels.Filter]*line)
		}
		l = &line{filter: r.r.Filter}
		w.lines[r.r.Filter] = l
		if _, exact := l.filter.Exact(); !exact {
			w.wild = append(w.wild, l)
		}
	}
	r.line, r.before = l, l.last
	if l.last != nil {
		l.last.after = r
	} else {
		l.first = r
	}
	l.last = r
	w.n++
	w.total.Add(1)
}

func (w *waiters) leave(r *receive) {
	l := r.line
	if l == nil {
		return
	}
	if r.before != nil {
		r.before.after = r.after
	} else {
		l.first = r.after
	}
	if r.after != nil {
		r.after.before = r.before
	} else {
		l.last = r.before
	}
	r.line, r.before, r.after = nil, nil, nil
	w.n--
	w.total.Add(-1)
	if l.first != nil {
		return
	}
	delete(w.lines, l.filter)
	for i, x := range w.wild {
		if x == l {
			w.wild = append(w.wild[:i], w.wild[i+1:]...)
			break
		}
	}
}

// all calls f for every waiter; f may make it leave.
func (w *waiters) all(f func(*receive)) {
	for _, l := range w.lines {
		for r := l.first; r != nil; {
			next := r.after
			f(r)
			r = next
		}
	}
}

// serveWaiters gives out what can be given: to the one who has waited longest
// among those who may take something, until there is none.
func (g *group) serveWaiters(c *consumers, dead bool) {
	q, w := c.queue, &c.wait[side(dead)]
	g.changed = g.changed[:0]
	seen := 0
	for w.n > 0 && (len(c.ready[side(dead)]) > 0 || dead && c.dormant > 0) {
		for ; seen < len(g.lanes) && len(w.wild) > 0; seen++ {
			if l := g.lanes[seen]; l.of == c && l.dead() == dead && l.slot >= 0 {
				g.changed = append(g.changed, l)
			}
		}
		var next *receive
		var from *lane
		look := func(l *line) {
			if l.idle && !slices.ContainsFunc(g.changed, func(changed *lane) bool { return l.filter.Match(changed.row.Key.Channel) }) {
				return
			}
			l.idle = false
			if l.first == nil || (next != nil && next.order < l.first.order) {
				return
			}
			lane, none := g.choose(c, dead, l.filter)
			if l.idle = none; lane != nil {
				next, from = l.first, lane
			}
		}
		if len(w.lines)-len(w.wild) <= len(c.ready[side(dead)]) || dead && c.dormant > 0 {
			for _, l := range w.lines {
				look(l)
			}
		} else {
			for _, l := range w.wild {
				look(l)
			}
			for _, ready := range c.ready[side(dead)] {
				if f, err := channels.ParseFilter(ready.row.Key.Channel); err == nil && w.lines[f] != nil && !f.All() {
					look(w.lines[f])
				}
			}
		}
		if next == nil {
			return
		}
		if next.r.Visibility != 0 && g.room(q) <= 0 {
			if !next.full {
				next.full = true
				q.full++
			}
			if q.inFlight() < g.b.limits.InFlightPerQueue {
				g.b.starved[q] = true // it waits for others to give leases back
			}
			return
		}
		if _, _, ok := g.next(from); !ok {
			continue // what it held had expired
		}
		w.leave(next)
		// One whose client is gone takes nothing; its own goroutine ends it.
		if next.ctx.Err() == nil && next.claim() {
			next.take(g, from)
			next.answer(g)
		}
	}
}

// choose picks a lane that the filter allows and that has a message in memory
// to take: any one of them, each as likely as the others. Lanes whose messages
// are on disk only are read on meanwhile. none says that there is no lane of a
// pattern at all with something to take.
func (g *group) choose(c *consumers, dead bool, f channels.Filter) (_ *lane, none bool) {
	if channel, exact := f.Exact(); exact {
		l := g.known(c, dead, channel)
		if l == nil || l.slot < 0 {
			return nil, false
		}
		g.read(l)
		if !l.loaded() {
			return nil, false
		}
		return l, false
	}
	ready, reads := c.ready[side(dead)], 8
	none = !dead || c.dormant == 0
	if len(ready) == 0 {
		return nil, none
	}
	if f.All() {
		for ; reads > 0; reads-- {
			l := ready[g.b.random.IntN(len(ready))]
			if l.loaded() {
				return l, false
			}
			g.read(l)
		}
	}
	var chosen *lane
	n := 0
	for _, l := range ready {
		if !f.Match(l.row.Key.Channel) {
			continue
		}
		if none = false; !l.loaded() {
			if reads > 0 {
				g.read(l)
				reads--
			}
			continue
		}
		// Reservoir sampling: the nth takes the place with a chance of 1 in n.
		if n++; g.b.random.IntN(n) == 0 {
			chosen = l
		}
	}
	return chosen, none
}

// attend looks at all who wait on a queue that changed; those who do not want
// to wait go home.
func (g *group) attend(q *queueState) {
	q.wake = false
	// Groups share the leases of the queue: behind the one that was served last
	// comes the next, else a busy one would leave nothing to the others.
	for i, first := 0, q.turn; i < len(q.groups); i++ {
		at := (first + i) % len(q.groups)
		leases := g.b.state.Lease
		g.serveWaiters(q.groups[at], false)
		g.serveWaiters(q.groups[at], true)
		if g.b.state.Lease > leases {
			q.turn = at + 1
		}
	}
	if len(g.b.hasty) == 0 {
		return
	}
	kept := g.b.hasty[:0]
	for _, r := range g.b.hasty {
		switch {
		case r.q != q:
			kept = append(kept, r)
		case r.line == nil: // served or gone
		case !r.full && g.reading(r):
			kept = append(kept, r)
		case r.claim():
			r.of.wait[side(r.r.Dead)].leave(r)
			r.answer(g)
		}
	}
	clear(g.b.hasty[len(kept):])
	g.b.hasty = kept
}

// reading reports whether messages that r may take are being read.
func (g *group) reading(r *receive) bool {
	if _, exact := r.r.Filter.Exact(); r.r.Dead && !exact && r.of.searching > 0 {
		return true
	}
	for _, l := range r.of.ready[side(r.r.Dead)] {
		if l.loaded() || l.refill == nil && !l.choked() {
			continue
		}
		if channel, exact := r.r.Filter.Exact(); exact && channel == l.row.Key.Channel {
			return true
		} else if !exact && (r.r.Filter.All() || r.r.Filter.Match(l.row.Key.Channel)) {
			return true
		}
	}
	return false
}

// dismiss ends all who wait on a group with an error.
func (g *group) dismiss(c *consumers, err error) {
	for i := range c.wait {
		w := &c.wait[i]
		w.all(func(r *receive) {
			w.leave(r)
			if r.claim() {
				r.err = err
				r.answer(g)
			}
		})
	}
}

var errNoQueue = queue.Errorf(queue.NotAuthorizedOrNotFound, "no queue of that id is known")
