package history

import "time"

// span is the end of a lease: not before earliest and not after latest. They
// differ where an update got no answer.
type span struct{ earliest, latest time.Time }

// until is the end of the lease after the updates before the given one (nil:
// after all).
func (c *checker) until(l *lease, before *Update) span {
	s := span{l.VisibleAfter, l.VisibleAfter}
	for _, u := range l.updates {
		if u == before {
			break
		}
		switch u.Outcome {
		case Done:
			s = span{u.VisibleAfter, u.VisibleAfter}
		case Doubt:
			if t := u.Start.Add(u.Visibility - c.h.Tolerance); t.Before(s.earliest) {
				s.earliest = t
			}
			if t := u.End.Add(u.Visibility + c.h.Tolerance); t.After(s.latest) {
				s.latest = t
			}
		}
	}
	if t := l.back.Add(-c.h.Tolerance); !l.back.IsZero() && t.Before(s.earliest) {
		s.earliest = t
	}
	return s
}

// capped is the end of the lease, or that of its message if it is earlier.
func (c *checker) capped(l *lease, before *Update) span {
	s := c.until(l, before)
	if !l.Expire.IsZero() {
		if l.Expire.Before(s.earliest) {
			s.earliest = l.Expire
		}
		if l.Expire.Before(s.latest) {
			s.latest = l.Expire
		}
	}
	return s
}

// leases: while one runs nobody else gets the message, its receipt works, and
// when it is over an update has no effect.
func (c *checker) leases(m *message) {
	for _, l := range m.leases {
		if next := l.next; next != nil {
			if end := c.until(l, nil).earliest; next.at.Before(end) {
				c.broken(Exclusive, m, "delivery %d was made %v, while delivery %d ran until %v", next.Count, next.at, l.Count, end)
			}
		}
		for _, u := range l.updates {
			c.update(m, l, u)
		}
	}
}

func (c *checker) update(m *message, l *lease, u *Update) {
	was := c.capped(l, u)
	switch u.Outcome {
	case Done:
		at := u.VisibleAfter.Add(-u.Visibility)
		if at.After(was.latest) {
			c.broken(Late, m, "delivery %d ended %v and was extended %v", l.Count, was.latest, at)
		}
		if l.next != nil && l.next.at.Before(at) {
			c.broken(Newest, m, "delivery %d was extended %v, after delivery %d was made %v", l.Count, at, l.next.Count, l.next.at)
		}
	case Stale:
		if u.End.Add(c.h.Tolerance).Before(was.earliest) && !c.gone(m, u.End, nil) {
			c.broken(Receipt, m, "an update was refused %v, while delivery %d ran until %v", u.End, l.Count, was.earliest)
		}
	}
}

// receipts: a delete works until its message is delivered again, and not then.
func (c *checker) receipts(m *message) {
	for _, d := range m.deletes {
		l := c.byReceipt[d.Receipt]
		switch d.Outcome {
		case Done:
			// A message that is gone is a success, whatever the receipt. So is,
			// in a rare case, one that was moved; it stays where it is.
			if c.superseded(d) && !c.buried(d) && !c.gone(m, d.End, d) {
				c.broken(Newest, m, "a delete with the receipt of delivery %d was a success %v, after delivery %d was made %v", l.Count, d.End, l.next.Count, l.next.at)
			}
		case Stale:
			if c.gone(m, d.End, d) {
				continue // two deletes at once
			}
			if end := c.until(l, nil).earliest; d.End.Add(c.h.Tolerance).Before(end) {
				c.broken(Receipt, m, "a delete was refused %v, while delivery %d ran until %v", d.End, l.Count, end)
			} else if !c.mayBeSuperseded(l, d.End) {
				c.broken(Receipt, m, "a delete was refused %v, and nobody had got it since delivery %d", d.End, l.Count)
			}
		}
	}
}

// mayBeSuperseded is true if a lease may not have been the last one at an
// instant, or its receipt dead.
func (c *checker) mayBeSuperseded(l *lease, at time.Time) bool {
	at = at.Add(c.h.Tolerance)
	if l.next != nil && !l.next.at.After(at) || !l.back.IsZero() {
		return true
	}
	if n := c.h.Threshold; !l.Dead && n > 0 && l.Count >= n {
		return true // it may have been moved
	}
	for _, lost := range c.h.Lost {
		if lost.Why != Short && inChannel(l.of, lost.Channels) && !lost.Start.After(at) && !lost.End.Before(l.at.Add(-c.h.Tolerance)) {
			return true
		}
	}
	return false
}
