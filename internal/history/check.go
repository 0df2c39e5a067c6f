package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Promise is what was broken.
type Promise string

// The promises. What each excuses stands in docs/reliability.md.
const (
	// What was acknowledged, or seen once, is there until it is deleted.
	Kept Promise = "nothing acknowledged is lost"
	// After a delete was acknowledged no receive that begins gets the message.
	Deleted Promise = "nothing deleted comes back"
	// After a purge was acknowledged nobody gets what was there before it.
	Purged Promise = "nothing purged comes back"
	// What is delivered was published, octet for octet, under the id and in the
	// channel that the publish was told.
	Published Promise = "nothing is invented"
	// One publish is one message. Attempts with one retry token are one
	// publish; without a token every attempt may be a message.
	Once Promise = "a publish is stored once"
	// Nobody else gets a message while its visibility runs.
	Exclusive Promise = "a leased message is given to nobody else"
	// While it runs the receipt works, and a delete does until the message is
	// delivered again.
	Receipt Promise = "a receipt works while its lease runs"
	// An update later than that has no effect.
	Late Promise = "an update that comes too late does nothing"
	// Once a message was delivered again, earlier receipts do nothing.
	Newest Promise = "only the newest receipt acts"
	// The count starts at 1 and rises by one for each delivery.
	Counted Promise = "the delivery count rises by one for each delivery"
	// Threshold deliveries, no more and no fewer, then the dead letter queue.
	Buried Promise = "after its last delivery a message goes to the dead letter queue"
	// What was moved is in the dead letter queue, and nowhere else, until it is
	// deleted from there.
	Conserved Promise = "a dead letter is there once"
	// No message is visible before its delay has passed.
	Delay Promise = "a delayed message is not early"
	// No message is delivered when its retention is over, and its end does not
	// move but by the move to the dead letter queue.
	Ended Promise = "nothing is delivered after its end"
	// Ids rise.
	Rising Promise = "ids rise"
	// Each consumer group is a queue of its own for what its filter accepts.
	Routed Promise = "a consumer group gets what its filter accepts, and nothing else"
	// The counters say what is there.
	Counters Promise = "the counters are exact"
)

// Violation is a promise that was broken, and how one can see it.
type Violation struct {
	Promise Promise
	Group   string // "": of the whole queue
	Message int64  // 0: not about one message
	What    string
}

func (v Violation) String() string {
	text := string(v.Promise) + ": "
	if v.Group != "" {
		text += fmt.Sprintf("consumer group %s: ", v.Group)
	}
	if v.Message != 0 {
		text += fmt.Sprintf("message %d: ", v.Message)
	}
	return text + v.What
}

// Check is what no server that keeps its promises can have done.
func (h *History) Check() []Violation {
	if len(h.Groups) > 0 {
		return h.checkGroups()
	}
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
		c.times(m)
		c.leases(m)
		c.receipts(m)
		c.counts(m)
		c.graves(m)
		c.rest(m)
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
	last      time.Time // when the last request had ended
	found     []Violation
}

// origin is all attempts to publish one message.
type origin struct {
	attempts []*Publish
	ids      []int64 // under which it was acknowledged, delivered or found, each once
	acked    bool    // without being told an id
}

// message is one id.
type message struct {
	id      int64
	origin  *origin // nil: it was never published
	acked   bool
	expire  time.Time // the last that was told; zero: not known
	leases  []*lease  // in the order in which they were made
	deletes []*Delete // in the order in which they were asked for
	found   *Found    // what there is of it on the disk
	moved   time.Time // to the dead letter queue; zero: not known
}

// lease is one delivery and what its consumer did with it.
type lease struct {
	*Delivery
	of      *message
	next    *lease    // of the same message
	at      time.Time // it was made, by the server's clock
	updates []*Update // in their order
	back    time.Time // it was taken back, if it was
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
		c.publish(&h.Publishes[i])
	}
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		m := c.message(d.ID)
		c.comes(m, d.Content, d.Channel)
		l := &lease{Delivery: d, of: m, at: d.VisibleAfter.Add(-d.Visibility)}
		m.leases = append(m.leases, l)
		if other := c.byReceipt[d.Receipt]; other != nil {
			c.broken(Receipt, m, "its receipt was given to message %d, delivery %d, too", other.ID, other.Count)
		}
		c.byReceipt[d.Receipt] = l
		c.ends(d.End)
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
		c.ends(d.End)
	}
	for _, u := range h.Undelivers {
		if l := c.byReceipt[u.Receipt]; l != nil {
			l.back = u.Start
		}
	}
	for _, l := range h.Lost {
		c.ends(l.End)
	}
	for _, p := range h.Purges {
		c.ends(p.End)
	}
	if h.Rest != nil {
		for i := range h.Rest.Messages {
			f := &h.Rest.Messages[i]
			m := c.message(f.ID)
			c.comes(m, f.Content, f.Channel)
			if m.found != nil {
				c.broken(Conserved, m, "it is on the disk twice")
			}
			m.found = f
		}
		c.last = h.Drain
	}
	for _, m := range c.messages {
		c.sort(m)
	}
}

func (c *checker) publish(p *Publish) {
	o := c.byContent[p.Content]
	if o == nil {
		o = &origin{}
		c.byContent[p.Content] = o
	}
	o.attempts = append(o.attempts, p)
	switch {
	case p.Outcome != Done:
	case p.ID == 0:
		o.acked = true
	default:
		m := c.message(p.ID)
		if m.origin != nil && m.origin != o {
			c.broken(Once, m, "two publishes got this id")
		}
		m.origin, m.acked, m.expire = o, true, p.Expire
		o.has(p.ID)
	}
}

// comes notes that a message is there, with a content and a channel.
func (c *checker) comes(m *message, content, channel string) {
	o := c.byContent[content]
	switch {
	case o == nil:
		c.broken(Published, m, "its content was never published: %.40q", content)
		return
	case m.origin != nil && m.origin != o:
		c.broken(Published, m, "it came with the content of another message: %.40q", content)
		return
	case o.attempts[0].Channel != channel:
		c.broken(Published, m, "published in channel %q, it came in %q", o.attempts[0].Channel, channel)
	}
	m.origin = o
	o.has(m.id)
}

// sort puts what happened to a message in its order. A delivery that was taken
// back was before the one that has its count.
func (c *checker) sort(m *message) {
	taken := func(l *lease) int {
		if l.back.IsZero() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(m.leases, func(a, b *lease) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Count, b.Count), cmp.Compare(taken(a), taken(b)))
	})
	slices.SortStableFunc(m.deletes, func(a, b *Delete) int { return a.Start.Compare(b.Start) })
	for i, l := range m.leases {
		slices.SortStableFunc(l.updates, func(a, b *Update) int { return a.Start.Compare(b.Start) })
		if i > 0 {
			m.leases[i-1].next = l
		}
		if !l.Expire.IsZero() {
			m.expire = l.Expire
		}
		if l.Dead && m.moved.IsZero() {
			m.moved = l.DeadAt
		}
	}
	if m.found != nil && m.found.Dead && m.moved.IsZero() {
		m.moved = m.found.DeadAt
	}
}

func (c *checker) ends(at time.Time) {
	if at.After(c.last) {
		c.last = at
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

// latest is the last delivery that was not taken back, nil if there is none.
func (m *message) latest() *lease {
	for _, l := range slices.Backward(m.leases) {
		if l.back.IsZero() {
			return l
		}
	}
	return nil
}

// inChannel is true if a message is in one of the channels; nil: in any.
func inChannel(m *message, channels []string) bool {
	return channels == nil || m.origin != nil && slices.Contains(channels, m.origin.attempts[0].Channel)
}

// over is true if a message may have been removed by time alone.
func (c *checker) over(m *message, at time.Time) bool {
	return !m.expire.IsZero() && !m.expire.After(at.Add(c.h.Tolerance))
}

// gone is true if a message may have been removed by then, by anything but the
// delete given (nil: by anything).
func (c *checker) gone(m *message, at time.Time, but *Delete) bool {
	for _, d := range m.deletes {
		if d != but && !d.Start.After(at) && c.mayAct(d) {
			return true
		}
	}
	for i := range c.h.Purges {
		if p := &c.h.Purges[i]; !p.Start.After(at) && p.mayHave(m) {
			return true
		}
	}
	return c.over(m, at)
}

// mayAct is true for a delete that may have removed its message: one that was
// not refused, with a receipt that was the newest.
func (c *checker) mayAct(d *Delete) bool {
	return (d.Outcome == Done || d.Outcome == Doubt) && !c.superseded(d)
}

// superseded is true for a delete that was asked for when its message had been
// delivered again or moved.
func (c *checker) superseded(d *Delete) bool {
	next := c.byReceipt[d.Receipt].next
	return next != nil && next.at.Add(c.h.Tolerance).Before(d.Start) || c.buried(d)
}

// buried is true for a delete with a receipt of before the move to the dead
// letter queue, asked for after it.
func (c *checker) buried(d *Delete) bool {
	l := c.byReceipt[d.Receipt]
	return !l.Dead && !l.of.moved.IsZero() && l.of.moved.Add(c.h.Tolerance).Before(d.Start)
}
