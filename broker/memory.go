package broker

import (
	"cmp"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// bodies keeps the messages that were published last, so that a message which
// is consumed soon is never read from disk. It belongs to the core. When it is
// full the oldest go.
type bodies struct {
	limit int64
	size  int64
	byID  map[queue.MessageID]*store.Message
	order []queue.MessageID // as they came; those that left are passed over
	head  int
}

const bodyOverhead = 200 // octets of memory that a message costs beside its own

func cost(m *store.Message) int64 { return m.Size() + bodyOverhead }

func (c *bodies) add(id queue.MessageID, m *store.Message) {
	n := cost(m)
	if n > c.limit/8 || c.byID[id] != nil {
		return
	}
	c.size += n
	c.byID[id] = m
	c.order = append(c.order, id)
	for c.size > c.limit {
		c.remove(c.order[c.head])
		c.head++
	}
	if len(c.order)-c.head > 2*len(c.byID)+1024 || c.head > 64<<10 {
		kept := c.order[:0]
		for _, id := range c.order[c.head:] {
			if c.byID[id] != nil {
				kept = append(kept, id)
			}
		}
		c.order, c.head = kept, 0
	}
}

func (c *bodies) get(id queue.MessageID) *store.Message { return c.byID[id] }

func (c *bodies) remove(id queue.MessageID) {
	if m := c.byID[id]; m != nil {
		c.size -= cost(m)
		delete(c.byID, id)
	}
}

// windows holds all windows together under one bound: when they have more
// entries than that, the lanes that were not used for longest let go of
// theirs. What they held is on disk, and is read again when it is asked for.
type windows struct {
	limit int // entries
	total int
	each  int // most entries of one window
}

const entryBytes = 48 // of memory that an entry takes

// charge counts what the lane holds now.
func (w *windows) charge(l *lane) {
	have := cap(l.fresh.entries) + cap(l.returned.entries)
	if l.gone {
		have = 0
	}
	w.total += have - l.charged
	l.charged = have
}

// shrink lets go of a quarter when the bound is passed. It runs at the end of
// a group: nothing is decided any more before all is on disk.
func (w *windows) shrink(all map[store.LaneID]*lane) {
	if w.total <= w.limit {
		return
	}
	var old []*lane
	for _, l := range all {
		if l.charged > 0 && l.refill == nil {
			old = append(old, l)
		}
	}
	slices.SortFunc(old, func(a, b *lane) int { return cmp.Compare(a.used, b.used) })
	for _, l := range old {
		if w.total <= w.limit-w.limit/4 {
			return
		}
		l.unload()
		w.charge(l)
	}
}

// unload lets go of the windows of a lane.
func (l *lane) unload() {
	l.fresh.forget(l.row.Cursor)
	l.returned.forget(max(l.row.Returning, 1) - 1)
	l.settleBounds()
}
