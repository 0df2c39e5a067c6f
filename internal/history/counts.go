package history

import "time"

// late is how long before the end of a lease it may be too late to take the
// delivery back: nobody is told when that is done.
const late = time.Second

// counts: the first delivery is 1 and each has one more than that before it. A
// delivery that was taken back is not counted; if that came late it may be.
// Each receive that was not told all may have been one delivery in between.
func (c *checker) counts(m *message) {
	last, since, loose := 0, time.Time{}, 0
	if m.origin != nil {
		since = m.origin.first()
	}
	for _, l := range m.leases {
		gap := l.Count - last - 1
		switch {
		case gap < 0:
			c.broken(Counted, m, "a delivery with count %d came after one with count %d", l.Count, last)
		case gap > loose:
			if lost := c.unseen(m, since, l.at); gap > loose+lost {
				c.broken(Counted, m, "count %d came after count %d, and %d receives that were not told all lie between", l.Count, last, lost)
			}
		}
		switch {
		case l.back.IsZero():
			last, since, loose = l.Count, l.at, 0
		case l.VisibleAfter.Sub(l.back) < late:
			loose++
		}
	}
	if m.found == nil {
		return
	}
	gap := m.found.Count - last
	switch {
	case gap < 0:
		c.broken(Counted, m, "its count is %d on the disk, after a delivery with count %d", m.found.Count, last)
	case gap > loose:
		if lost := c.unseen(m, since, c.h.Drain); gap > loose+lost {
			c.broken(Counted, m, "its count is %d on the disk, after count %d and %d receives that were not told all", m.found.Count, last, lost)
		}
	}
}

// unseen is how many deliveries of a message may have been made and counted
// between two instants, and told to nobody.
func (c *checker) unseen(m *message, from, to time.Time) int {
	n := 0
	for _, l := range c.h.Lost {
		if !inChannel(m, l.Channels) || l.Start.After(to.Add(c.h.Tolerance)) || l.End.Before(from.Add(-c.h.Tolerance)) {
			continue
		}
		if l.Why == Unanswered || l.Why == Short && c.gone(m, l.End, nil) {
			n++
		}
	}
	return n
}

// graves: after Threshold deliveries a message is in the dead letter queue, no
// sooner and no later, and never anywhere else again.
func (c *checker) graves(m *message) {
	n := c.h.Threshold
	var before *lease // the last delivery by the queue itself
	dead := false
	moved := time.Time{}
	for _, l := range m.leases {
		switch {
		case !l.Dead && dead:
			c.broken(Conserved, m, "delivered by the queue after it was in the dead letter queue")
		case !l.Dead && n > 0 && l.Count > n:
			c.broken(Buried, m, "delivered by the queue for the %dth time of %d", l.Count, n)
		case l.Dead && l.DeadCount != n:
			c.broken(Buried, m, "moved after %d deliveries, not %d", l.DeadCount, n)
		case l.Dead && before != nil && !l.DeadAt.IsZero() && l.DeadAt.Before(c.until(before, nil).earliest):
			c.broken(Buried, m, "moved %v, while delivery %d ran until %v", l.DeadAt, before.Count, c.until(before, nil).earliest)
		case l.Dead && !moved.IsZero() && !moved.Equal(l.DeadAt):
			c.broken(Conserved, m, "moved %v and %v", moved, l.DeadAt)
		}
		if l.Dead {
			dead, moved = true, l.DeadAt
		} else {
			before = l
		}
	}
	switch f := m.found; {
	case f == nil:
	case !f.Dead && dead:
		c.broken(Conserved, m, "it is in the queue on the disk, after it was in the dead letter queue")
	case !f.Dead && n > 0 && (f.Count > n || f.Count == n && f.State == Visible):
		c.broken(Buried, m, "it is in the queue on the disk after %d deliveries of %d", f.Count, n)
	case f.Dead && f.DeadCount != n:
		c.broken(Buried, m, "moved after %d deliveries, not %d", f.DeadCount, n)
	case f.Dead && !moved.IsZero() && !moved.Equal(f.DeadAt):
		c.broken(Conserved, m, "moved %v and %v", moved, f.DeadAt)
	}
}
