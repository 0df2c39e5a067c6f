package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Tolerance is how far the clocks of server and clients may stand apart. They
// run on one machine; what is between them is rounding and scheduling.
const Tolerance = 250 * time.Millisecond

// Promise is what was broken.
type Promise string

// The promises, each with what it excuses.
const (
	// What was acknowledged, or seen once, is there until it is deleted.
	Kept Promise = "nothing acknowledged is lost"
	// After a delete was acknowledged no receive that begins gets the message.
	Deleted Promise = "nothing deleted comes back"
	// What is delivered was published, octet for octet, under the id that the
	// publish was told.
	Published Promise = "nothing is invented"
	// One publish is one message. Attempts with one retry token are one
	// publish; without a token every attempt may be a message.
	Once Promise = "a publish is stored once"
	// Nobody else gets a message while its visibility runs.
	Exclusive Promise = "a leased message is given to nobody else"
	// While it runs the receipt works.
	Receipt Promise = "a receipt works while its lease runs"
	// An update later than that has no effect.
	Late Promise = "an update that comes too late does nothing"
	// The count starts at 1 and rises by one for each delivery. Deliveries
	// whose answer was lost are counted too.
	Counted Promise = "the delivery count rises by one for each delivery"
	// No more than Threshold deliveries, then the dead letter queue, for good.
	Buried Promise = "after its last delivery a message goes to the dead letter queue"
	// No message is visible before its delay has passed.
	Delayed Promise = "a delayed message is not early"
	// Ids rise.
	Rising Promise = "ids rise"
	// The counters say what is there.
	Counters Promise = "the counters are exact"
)

// Violation is a promise that was broken, and how one can see it.
type Violation struct {
	Promise Promise
	Message int64 // 0: not about one message
	What    string
}

func (v Violation) String() string {
	if v.Message == 0 {
		return fmt.Sprintf("%s: %s", v.Promise, v.What)
	}
	return fmt.Sprintf("%s: message %d: %s", v.Promise, v.Message, v.What)
}

// Check is what no server that keeps its promises can have done.
func (h *History) Check() []Violation {
	c := &checker{
		h:         h,
		byContent: map[string]*origin{},
		byID:      map[int64]*message{},
		byReceipt: map[string]*lease{},
	}
	c.read()
	c.origins()
	c.rising()
	for _, m := range c.messages {
		c.leases(m)
		c.counts(m)
		c.fate(m)
	}
	c.counters()
	return c.found
}

type checker struct {
	h         *History
	byContent map[string]*origin
	byID      map[int64]*message
	byReceipt map[string]*lease
	messages  []*message
	found     []Violation
}

// origin is all attempts to publish one message.
type origin struct {
	attempts []*Publish
	ids      []int64 // under which it was acknowledged or delivered, each once
	acked    bool    // without being told an id
}

// message is one id.
type message struct {
	id      int64
	origin  *origin // nil: it was never published
	acked   bool
	expire  time.Time // zero: not known
	leases  []*lease  // in the order in which they were made
	deletes []*Delete
}

// lease is one delivery and what its consumer did with it.
type lease struct {
	*Delivery
	of      *message
	at      time.Time // it was made, by the server's clock
	updates []*Update // in their order
}

func (c *checker) broken(p Promise, m *message, format string, args ...any) {
	v := Violation{Promise: p, What: fmt.Sprintf(format, args...)}
	if m != nil {
		v.Message = m.id
	}
	c.found = append(c.found, v)
}

// read sorts the history by messages and leases.
func (c *checker) read() {
	h := c.h
	for i := range h.Publishes {
		p := &h.Publishes[i]
		o := c.byContent[p.Content]
		if o == nil {
			o = &origin{}
			c.byContent[p.Content] = o
		}
		o.attempts = append(o.attempts, p)
		if p.Outcome == Done && p.ID == 0 {
			o.acked = true
		} else if p.Outcome == Done {
			m := c.message(p.ID)
			if m.origin != nil && m.origin != o {
				c.broken(Once, m, "two publishes got this id")
			}
			m.origin, m.acked, m.expire = o, true, p.Expire
			o.has(p.ID)
		}
	}
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		m := c.message(d.ID)
		o := c.byContent[d.Content]
		switch {
		case o == nil:
			c.broken(Published, m, "its content was never published: %.40q", d.Content)
		case m.origin != nil && m.origin != o:
			c.broken(Published, m, "it came with the content of another message: %.40q", d.Content)
		default:
			m.origin = o
			o.has(d.ID)
		}
		l := &lease{Delivery: d, of: m, at: d.VisibleAfter.Add(-d.Visibility)}
		m.leases = append(m.leases, l)
		if other := c.byReceipt[d.Receipt]; other != nil {
			c.broken(Receipt, m, "its receipt was given to message %d, delivery %d, too", other.ID, other.Count)
		}
		c.byReceipt[d.Receipt] = l
	}
	for i := range h.Updates {
		u := &h.Updates[i]
		if l := c.byReceipt[u.Receipt]; l != nil {
			l.updates = append(l.updates, u)
		}
	}
	for i := range h.Deletes {
		d := &h.Deletes[i]
		if l := c.byReceipt[d.Receipt]; l != nil {
			l.of.deletes = append(l.of.deletes, d)
		}
	}
	for _, m := range c.messages {
		slices.SortStableFunc(m.leases, func(a, b *lease) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Count, b.Count))
		})
		slices.SortStableFunc(m.deletes, func(a, b *Delete) int { return a.Start.Compare(b.Start) })
		for _, l := range m.leases {
			slices.SortStableFunc(l.updates, func(a, b *Update) int { return a.Start.Compare(b.Start) })
		}
	}
}

func (c *checker) message(id int64) *message {
	m := c.byID[id]
	if m == nil {
		m = &message{id: id}
		c.byID[id] = m
		c.messages = append(c.messages, m)
	}
	return m
}

func (o *origin) has(id int64) {
	if !slices.Contains(o.ids, id) {
		o.ids = append(o.ids, id)
	}
}

// origins: each message comes from a publish, and no publish made more
// messages than it could.
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
	for _, m := range c.messages {
		if m.origin == nil || len(m.leases) == 0 {
			continue
		}
		first := m.leases[0]
		if at := m.origin.first(); first.End.Before(at) {
			c.broken(Published, m, "delivered before it was published")
		}
		for _, p := range m.origin.attempts {
			if p.Delay > 0 && first.at.Before(first.CreatedAt.Add(p.Delay)) {
				c.broken(Delayed, m, "published %v with a delay of %v, delivered %v", first.CreatedAt, p.Delay, first.at)
			}
		}
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

// span is the end of a lease: not before earliest and not after latest. They
// differ where an update got no answer.
type span struct{ earliest, latest time.Time }

// ends is the end of the lease after the updates before the given one (nil:
// after all).
func (l *lease) ends(before *Update) span {
	s := span{l.VisibleAfter, l.VisibleAfter}
	for _, u := range l.updates {
		if u == before {
			break
		}
		switch u.Outcome {
		case Done:
			s = span{u.VisibleAfter, u.VisibleAfter}
		case Doubt:
			if t := u.Start.Add(u.Visibility - Tolerance); t.Before(s.earliest) {
				s.earliest = t
			}
			if t := u.End.Add(u.Visibility + Tolerance); t.After(s.latest) {
				s.latest = t
			}
		}
	}
	return s
}

// leases: while one runs nobody else gets the message, its receipt works, and
// when it is over an update has no effect.
func (c *checker) leases(m *message) {
	for i, l := range m.leases {
		if i > 0 {
			before := m.leases[i-1]
			if end := before.ends(nil).earliest; l.at.Before(end) {
				c.broken(Exclusive, m, "delivery %d was made %v, while delivery %d ran until %v", l.Count, l.at, before.Count, end)
			}
		}
		for _, u := range l.updates {
			c.update(m, l, i, u)
		}
	}
	for i, d := range m.deletes {
		if d.Outcome != Stale || mayHaveWorked(m.deletes[:i]) {
			continue
		}
		l := c.byReceipt[d.Receipt]
		if end := l.ends(nil).earliest; d.End.Add(Tolerance).Before(end) {
			c.broken(Receipt, m, "a delete was refused %v, while delivery %d ran until %v", d.End, l.Count, end)
		}
	}
}

func (c *checker) update(m *message, l *lease, i int, u *Update) {
	was := l.ends(u)
	switch u.Outcome {
	case Done:
		at := u.VisibleAfter.Add(-u.Visibility)
		if at.After(was.latest) {
			c.broken(Late, m, "delivery %d ended %v and was extended %v", l.Count, was.latest, at)
		}
		if i+1 < len(m.leases) && m.leases[i+1].at.Before(at) {
			c.broken(Late, m, "delivery %d was extended %v, after delivery %d was made %v", l.Count, at, m.leases[i+1].Count, m.leases[i+1].at)
		}
	case Stale:
		var before []*Delete
		for _, d := range m.deletes {
			if d.Start.Before(u.End) {
				before = append(before, d)
			}
		}
		if u.End.Add(Tolerance).Before(was.earliest) && !mayHaveWorked(before) {
			c.broken(Receipt, m, "an update was refused %v, while delivery %d ran until %v", u.End, l.Count, was.earliest)
		}
	}
}

func mayHaveWorked(deletes []*Delete) bool {
	return slices.ContainsFunc(deletes, func(d *Delete) bool { return d.Outcome == Done || d.Outcome == Doubt })
}

// counts: the first delivery is 1 and each has one more than that before it.
// Each receive without an answer may have been one delivery in between.
func (c *checker) counts(m *message) {
	last, since := 0, time.Time{}
	if m.origin != nil {
		since = m.origin.first()
	}
	dead := false
	for _, l := range m.leases {
		gap := l.Count - last - 1
		if gap < 0 {
			c.broken(Counted, m, "a delivery with count %d came after one with count %d", l.Count, last)
		} else if lost := c.lost(since, l.at); gap > lost {
			c.broken(Counted, m, "count %d came after count %d, and %d receives without an answer lie between", l.Count, last, lost)
		}
		last, since = l.Count, l.at

		switch n := c.h.Threshold; {
		case !l.Dead && dead:
			c.broken(Buried, m, "delivered by the queue after it was in the dead letter queue")
		case !l.Dead && n > 0 && l.Count > n:
			c.broken(Buried, m, "delivered by the queue for the %dth time of %d", l.Count, n)
		case l.Dead && l.DeadCount != n:
			c.broken(Buried, m, "moved after %d deliveries, not %d", l.DeadCount, n)
		}
		dead = dead || l.Dead
	}
}

// lost is how many receives without an answer may have made a delivery between
// two instants.
func (c *checker) lost(from, to time.Time) int {
	n := 0
	for _, l := range c.h.Lost {
		if l.Start.Before(to.Add(Tolerance)) && l.End.After(from.Add(-Tolerance)) {
			n++
		}
	}
	return n
}

// fate: a message is there at the end unless somebody deleted it, and not
// there any more once that was acknowledged.
func (c *checker) fate(m *message) {
	drained := false
	for _, l := range m.leases {
		drained = drained || !l.Start.Before(c.h.Drain)
		for _, d := range m.deletes {
			if d.Outcome == Done && l.Start.After(d.End) {
				c.broken(Deleted, m, "deleted %v, delivery %d was asked for %v", d.End, l.Count, l.Start)
			}
		}
	}
	if drained || mayHaveWorked(m.deletes) || !m.expire.IsZero() && m.expire.Before(c.h.Drain.Add(time.Minute)) {
		return
	}
	how := "acknowledged"
	if !m.acked {
		how = "delivered"
	}
	c.broken(Kept, m, "%s, deleted by nobody and not there at the end", how)
}

// counters: before the drain they said what the drain then found, and after it
// that there is nothing.
func (c *checker) counters() {
	var want Stats
	for _, m := range c.messages {
		for _, l := range m.leases {
			if l.Start.Before(c.h.Drain) {
				continue
			}
			if size := int64(len(l.Content)); l.Dead {
				want.DeadVisible++
				want.DeadBytes += size
			} else {
				want.Visible++
				want.Bytes += size
			}
			break // the first time of each message counts
		}
	}
	if c.h.Before != want {
		c.broken(Counters, nil, "%+v, but there was %+v", c.h.Before, want)
	}
	if (c.h.After != Stats{}) {
		c.broken(Counters, nil, "%+v when everything was deleted", c.h.After)
	}
}
