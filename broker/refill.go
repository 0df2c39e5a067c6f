package broker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// refillBytes bounds what one read of fresh messages may pull from disk.
const refillBytes = 4 << 20

// read has the next entries of a lane read from disk if its windows are nearly
// used up. The read runs outside the core; gets wait meanwhile.
func (g *group) read(l *lane) {
	w := l.wants()
	if w == nil {
		return
	}
	from := w.through + 1
	if w == &l.fresh {
		from = max(from, l.row.Cursor+1)
	} else if w.len() == 0 {
		from = max(from, l.row.Returning)
	}
	r := &refill{of: l.of.queue, window: w, from: from, removed: make(map[queue.MessageID]bool), limit: wholeLane, room: w.cap - w.len()}
	l.refill = r
	id, fresh := l.row.ID, w == &l.fresh
	b := g.b
	g.after = append(g.after, func() { b.reads.add(func() { b.refill(id, r, fresh) }) })
}

// refill reads and merges.
func (b *Broker) refill(id store.LaneID, r *refill, fresh bool) {
	var entries []store.Entry
	var bodies []*store.Message // of entries; nil: not read
	through := wholeLane
	var more bool
	var err error
	if fresh {
		var found []store.ScannedMessage
		found, more, err = b.store.ScanMessages(id, r.from, r.room, refillBytes, false)
		for i := range found {
			through = found[i].ID
			if found[i].DueAt == 0 { // delayed ones come by their t row
				entries = append(entries, found[i].Entry)
				bodies = append(bodies, &found[i].Message)
			}
		}
	} else {
		entries, more, err = b.store.ScanReturned(id, r.from, r.room)
		if len(entries) > 0 {
			through = entries[len(entries)-1].ID
		}
	}
	if err != nil {
		b.fail(fmt.Errorf("refill: %w", err))
	}
	if !more {
		through = wholeLane
	}
	b.internal(func(g *group) { g.merge(id, r, entries, bodies, through) })
}

// note remembers a message that came in above the window during the read.
func (r *refill) note(e store.Entry) {
	if len(r.added) >= r.window.cap {
		r.limit = min(r.limit, e.ID-1) // read it later
		return
	}
	r.added = append(r.added, e)
	delete(r.removed, e.ID)
}

// remove remembers that a message above the window is gone.
func (r *refill) remove(id queue.MessageID) {
	r.removed[id] = true
	r.added = slices.DeleteFunc(r.added, func(e store.Entry) bool { return e.ID == id })
}

// merge joins what was read with what has changed since.
func (g *group) merge(id store.LaneID, r *refill, entries []store.Entry, bodies []*store.Message, through queue.MessageID) {
	l := g.b.lanes[id]
	if l == nil || l.refill != r { // the lane is gone: who waited for it goes home
		g.serve(r.of)
		return
	}
	g.changes++
	l.refill = nil
	w := r.window
	through = min(through, r.limit)
	known := make(map[queue.MessageID]bool, len(r.added))
	aside := func(id queue.MessageID) bool { _, ok := l.aside(id); return ok }
	var fresh []store.Entry
	for _, e := range r.added {
		if e.ID <= through {
			known[e.ID] = true
			fresh = append(fresh, e)
		}
	}
	for i, e := range entries {
		if e.ID <= through && !r.removed[e.ID] && !known[e.ID] && !aside(e.ID) {
			fresh = append(fresh, e)
			if bodies != nil {
				g.b.bodies.add(e.ID, bodies[i])
			}
		}
	}
	slices.SortFunc(fresh, func(a, b store.Entry) int { return cmp.Compare(a.ID, b.ID) })
	if through > w.through {
		w.through = through
	}
	for _, e := range fresh {
		if left, isLeft := w.add(e); isLeft && w == &l.returned {
			kept := left // this group may have changed it
			g.rows[rowID{id, left.ID}] = &kept
		}
	}
	if w == &l.returned && w.len() > 0 {
		l.row.Returning = min(w.front().ID, l.firstAside())
	}
	l.settleBounds()
	l.of.setReady(l)
	g.touch(l)
	g.read(l) // it may have held delayed ones only
	g.serve(l.of.queue)
}

// firstAside is the lowest id of the messages that are not given out.
func (l *lane) firstAside() queue.MessageID {
	first := wholeLane
	for _, all := range []map[queue.MessageID]store.Entry{l.parked, l.dying} {
		for id := range all {
			first = min(first, id)
		}
	}
	return first
}
