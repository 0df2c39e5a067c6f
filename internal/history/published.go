package history

import (
	"slices"
	"time"
)

func (o *origin) has(id int64) {
	if !slices.Contains(o.ids, id) {
		o.ids = append(o.ids, id)
	}
}

// first is when the first attempt began.
func (o *origin) first() time.Time {
	at := o.attempts[0].Start
	for _, p := range o.attempts {
		if p.Start.Before(at) {
			at = p.Start
		}
	}
	return at
}

// origins: no publish made more messages than it could, and what was
// acknowledged without an id is seen.
func (c *checker) origins() {
	for content, o := range c.byContent {
		stored, token := 0, o.attempts[0].Token
		for _, p := range o.attempts {
			if p.Outcome == Done || p.Outcome == Doubt {
				stored++
			}
			if p.Token != token {
				token = ""
			}
		}
		if stored > 1 && token != "" {
			stored = 1
		}
		if len(o.ids) > stored {
			c.broken(Once, nil, "%.40q is stored as %v, after %d attempts of which %d may count", content, o.ids, len(o.attempts), stored)
		}
		if o.acked && len(o.ids) == 0 {
			c.broken(Kept, nil, "%.40q was acknowledged and is never seen", content)
		}
	}
}

// rising: a publish that began when another had been answered got a higher id.
// An attempt that may have been answered from memory is left out.
func (c *checker) rising() {
	var starts, ends []*Publish
	for _, o := range c.byContent {
		if len(o.attempts) == 1 && o.attempts[0].Outcome == Done && o.attempts[0].ID != 0 {
			starts = append(starts, o.attempts[0])
		}
	}
	ends = slices.Clone(starts)
	slices.SortFunc(starts, func(a, b *Publish) int { return a.Start.Compare(b.Start) })
	slices.SortFunc(ends, func(a, b *Publish) int { return a.End.Compare(b.End) })
	highest := int64(0)
	for _, p := range starts {
		for len(ends) > 0 && ends[0].End.Before(p.Start) {
			highest = max(highest, ends[0].ID)
			ends = ends[1:]
		}
		if p.ID <= highest {
			c.broken(Rising, c.byID[p.ID], "a publish that was answered before this one began got %d", highest)
		}
	}
}

// times: nothing is delivered before it was published, before its delay has
// passed, or after its end; and its end stays where it is.
func (c *checker) times(m *message) {
	if m.origin == nil {
		return
	}
	var end time.Time
	for _, p := range m.origin.attempts {
		if p.Outcome == Done && p.ID == m.id {
			end = p.Expire
		}
	}
	for i, l := range m.leases {
		if i == 0 && l.End.Before(m.origin.first()) {
			c.broken(Published, m, "delivered before it was published")
		}
		c.early(m, l.CreatedAt, l.at)
		if l.Expire.IsZero() {
			continue
		}
		if !l.at.Before(l.Expire) {
			c.broken(Ended, m, "delivery %d was made %v, after its end %v", l.Count, l.at, l.Expire)
		}
		if moved := i > 0 && l.Dead != m.leases[i-1].Dead || i == 0 && l.Dead; !moved && !end.IsZero() && !end.Equal(l.Expire) {
			c.broken(Ended, m, "its end was %v, and %v at delivery %d", end, l.Expire, l.Count)
		}
		end = l.Expire
	}
}

// early: a message is not visible before its delay has passed.
func (c *checker) early(m *message, created, visible time.Time) {
	for _, p := range m.origin.attempts {
		if due := created.Add(p.Delay); p.Delay > 0 && visible.Before(due) {
			c.broken(Delay, m, "published %v with a delay of %v, visible %v", created, p.Delay, visible)
			return
		}
	}
}
