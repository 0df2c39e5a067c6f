package history

import "time"

// rest: what is on the disk is what was told of the message last.
func (c *checker) rest(m *message) {
	f := m.found
	if f == nil {
		return
	}
	if m.origin != nil && f.State == Visible && f.Count == 0 {
		c.early(m, f.CreatedAt, c.h.Drain.Add(c.h.Tolerance))
	}
	if !m.expire.IsZero() && !m.expire.Equal(f.Expire) && f.Dead == (len(m.leases) > 0 && m.leases[len(m.leases)-1].Dead) {
		c.broken(Ended, m, "its end was %v, and is %v on the disk", m.expire, f.Expire)
	}
	l := m.latest()
	if l == nil {
		return
	}
	s := c.until(l, nil)
	running := c.h.Drain.Add(c.h.Tolerance).Before(s.earliest)
	switch {
	case f.Count == l.Count && f.Dead == l.Dead && f.State == InFlight:
		if f.Until.Before(s.earliest) || f.Until.After(s.latest) {
			c.broken(Exclusive, m, "delivery %d runs until %v on the disk, not %v", l.Count, f.Until, s.earliest)
		}
	case running && l == m.leases[len(m.leases)-1]:
		c.broken(Exclusive, m, "delivery %d runs until %v, and on the disk is %+v", l.Count, s.earliest, *f)
	}
}

// fate: a message is there at the end unless somebody deleted it, and not
// there any more once that was acknowledged.
func (c *checker) fate(m *message) {
	there, dead := m.found != nil, false
	for _, l := range m.leases {
		there = there || c.h.Rest == nil && !l.Start.Before(c.h.Drain)
		dead = dead || l.Dead
		for _, d := range m.deletes {
			if c.removes(d) && (l.Start.After(d.End) || l.at.After(d.End.Add(c.h.Tolerance))) {
				c.broken(Deleted, m, "deleted %v, delivery %d was asked for %v and made %v", d.End, l.Count, l.Start, l.at)
			}
		}
		for i := range c.h.Purges {
			if p := &c.h.Purges[i]; p.must(m, l.Dead) && l.Start.After(p.End) {
				c.broken(Purged, m, "purged %v, delivery %d was asked for %v", p.End, l.Count, l.Start)
			}
		}
	}
	if m.found != nil {
		for _, d := range m.deletes {
			if c.removes(d) {
				c.broken(Deleted, m, "deleted %v, and it is on the disk", d.End)
			}
		}
		for i := range c.h.Purges {
			if p := &c.h.Purges[i]; p.must(m, m.found.Dead) {
				c.broken(Purged, m, "purged %v, and it is on the disk", p.End)
			}
		}
	}
	seen := m.acked || len(m.leases) > 0
	switch {
	case there || !seen || c.gone(m, c.last, nil):
	case dead:
		c.broken(Conserved, m, "delivered by the dead letter queue, deleted by nobody and not there at the end")
	case m.acked:
		c.broken(Kept, m, "acknowledged, deleted by nobody and not there at the end")
	default:
		c.broken(Kept, m, "delivered, deleted by nobody and not there at the end")
	}
}

// removes is true for a delete after which its message is gone. One with a
// receipt of before the move to the dead letter queue may be a success and do
// nothing.
func (c *checker) removes(d *Delete) bool {
	return d.Outcome == Done && !c.buried(d)
}

// mayHave is true if a purge may have removed a message.
func (p *Purge) mayHave(m *message) bool {
	return (p.Outcome == Done || p.Outcome == Doubt) && m.origin != nil && inChannel(m, p.Channels) && !m.origin.first().After(p.End)
}

// must is true if a purge has removed a message that was there, and, if it was
// of one side alone, was on that side: a message that is in the queue has
// always been there, and a dead letter has been one since its first delivery
// as such.
func (p *Purge) must(m *message, dead bool) bool {
	if p.Outcome != Done || m.origin == nil || !inChannel(m, p.Channels) {
		return false
	}
	before := func(end time.Time) bool { return end.Before(p.Start) }
	there, buried := false, false
	for _, a := range m.origin.attempts {
		there = there || a.Outcome == Done && (a.ID == m.id || a.ID == 0 && len(m.origin.attempts) == 1) && before(a.End)
	}
	for _, l := range m.leases {
		there = there || before(l.End)
		buried = buried || l.Dead && before(l.End)
	}
	switch {
	case p.Normal && p.Dead:
		return there
	case p.Normal:
		return there && !dead
	default:
		return buried
	}
}

// counters: before the drain they said what the drain then found, and after it
// that there is nothing. Those on a disk say what is on it.
func (c *checker) counters() {
	var want Stats
	for _, m := range c.messages {
		if f := m.found; f != nil {
			want.count(f.State, f.Dead, len(f.Content))
		}
		for _, l := range m.leases {
			if c.h.Rest == nil && !l.Start.Before(c.h.Drain) {
				want.count(Visible, l.Dead, len(l.Content))
				break // the first time of each message counts
			}
		}
	}
	if c.h.Before != want {
		c.broken(Counters, nil, "%+v, but there was %+v", c.h.Before, want)
	}
	if (c.h.After != Stats{}) {
		c.broken(Counters, nil, "%+v when everything was deleted", c.h.After)
	}
}

func (s *Stats) count(state State, dead bool, size int) {
	visible, inFlight, bytes := &s.Visible, &s.InFlight, &s.Bytes
	if dead {
		visible, inFlight, bytes = &s.DeadVisible, &s.DeadInFlight, &s.DeadBytes
	}
	*bytes += int64(size)
	switch state {
	case Visible:
		*visible++
	case InFlight:
		*inFlight++
	case Delayed:
		s.Delayed++
	}
}
