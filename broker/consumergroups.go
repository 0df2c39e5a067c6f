package broker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// The consumer groups of a queue. Which group a lane is of is part of its key,
// so a group is a set of lanes of its own, with counters, leases and dead
// letters of its own; a queue without consumer groups is its primary group
// alone. So switching them on moves nothing: what is there is the primary
// group's.

// unrouted is the number of the group that no client has: what no other group
// accepted, if the server keeps it.
const unrouted = store.UnroutedGroup

var (
	errNoGroup  = queue.Errorf(queue.NotAuthorizedOrNotFound, "the queue has no such consumer group")
	errInactive = queue.Errorf(queue.IncorrectState, "the consumer group is disabled; enable it before its messages are taken")
)

// find is the group of that id; "" is the primary one. nil: there is none.
func (q *queueState) find(id queue.ID) *consumers {
	if id == "" {
		return q.primary()
	}
	for _, c := range q.groups {
		if c.group.ID == id {
			return c
		}
	}
	return nil
}

// row is the queue as it is stored.
func (q *queueState) row() store.Queue {
	r := store.Queue{
		Number: q.number, DeadThrough: q.primary().deadThrough, Queue: q.q,
		LastGroup: q.last, SharedThrough: q.shared.through,
	}
	for _, c := range q.groups {
		switch {
		case c.number == unrouted || c.group.ID == "":
		case c.number == 0:
			r.Groups = append(r.Groups, store.Group{ConsumerGroup: c.group})
		default:
			r.Groups = append(r.Groups, store.Group{DeadThrough: c.deadThrough, ConsumerGroup: c.group})
		}
	}
	for _, g := range q.gone {
		r.Groups = append(r.Groups, store.Group{ConsumerGroup: g})
	}
	return r
}

// readable refuses groups whose filter cannot be read.
func readable(rows []store.Group) error {
	for i := range rows {
		if _, err := filter.Parse(rows[i].Filter); err != nil && rows[i].Live() {
			return fmt.Errorf("the filter of consumer group %s: %w", rows[i].ID, err)
		}
	}
	return nil
}

// addGroups makes the groups of a queue that was read from its row.
func (b *Broker) addGroups(q *queueState, rows []store.Group) {
	for i := range rows {
		switch g := &rows[i]; {
		case !g.Live():
			q.gone = append(q.gone, g.ConsumerGroup)
		case g.Number == 0:
			q.primary().set(g.ConsumerGroup)
			b.addUnrouted(q)
		default:
			c := newConsumers(q, g.Number, g.DeadThrough, &b.waiting)
			c.set(g.ConsumerGroup)
			q.add(c)
		}
	}
}

// addUnrouted makes the group of what no group accepts.
func (b *Broker) addUnrouted(q *queueState) {
	c := newConsumers(q, unrouted, 0, &b.waiting)
	c.group = queue.ConsumerGroup{ID: queue.UnroutedGroup, QueueID: q.q.ID, Number: unrouted, State: queue.Active}
	q.add(c)
}

func (q *queueState) add(c *consumers) {
	q.groups = append(q.groups, c)
	slices.SortFunc(q.groups, func(a, b *consumers) int { return cmp.Compare(a.number, b.number) })
}

// set gives a group its settings.
func (c *consumers) set(g queue.ConsumerGroup) {
	f, err := filter.Parse(g.Filter)
	if err != nil {
		panic(fmt.Sprintf("the filter of consumer group %s: %v", g.ID, err))
	}
	c.group, c.filter = g, f
}

// accepts reports whether a message that is published now is one for the
// group.
func (c *consumers) accepts(m *queue.NewMessage) bool {
	return c.number != unrouted && c.group.State != queue.Inactive && c.filter.Match(m.Properties)
}

// Group is the consumer group of that id, deleted ones included while they are
// kept.
func (tx *Tx) Group(id queue.ID) (queue.ConsumerGroup, bool) {
	for _, q := range tx.g.b.queues {
		for _, g := range q.allGroups() {
			if g.ID == id {
				return g, true
			}
		}
	}
	return queue.ConsumerGroup{}, false
}

// Groups are the consumer groups of a queue, the primary one first and the
// others in the order of their creation, deleted ones included while they are
// kept. A queue without the capability has none.
func (tx *Tx) Groups(id queue.ID) []queue.ConsumerGroup {
	if q := tx.find(id); q != nil {
		return q.allGroups()
	}
	return nil
}

func (q *queueState) allGroups() (out []queue.ConsumerGroup) {
	for _, c := range q.groups {
		if c.group.ID != "" && c.number != unrouted {
			out = append(out, c.group)
		}
	}
	out = append(out, q.gone...)
	slices.SortStableFunc(out, func(a, b queue.ConsumerGroup) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// PutGroup creates the consumer group or replaces it whole. The first one of a
// queue becomes its primary group, and has the messages that are there. A
// change to the state Deleted removes all its messages and ends those who wait
// for some with NotAuthorizedOrNotFound; a change to Inactive ends them with
// IncorrectState. The broker sets Number and Version itself.
//
// The queue must be there and the filter must be one that can be read: to
// break this is a fault of the caller's, and panics.
func (tx *Tx) PutGroup(group queue.ConsumerGroup) {
	g, q := tx.g, tx.find(group.QueueID)
	if q == nil {
		panic(fmt.Sprintf("consumer group %s is of queue %s, which is not there", group.ID, group.QueueID))
	}
	g.changes++
	c := q.find(group.ID)
	switch {
	case c != nil:
		group.Number, group.Version = c.number, c.group.Version+1
	case q.primary().group.ID == "":
		c = q.primary()
		group.Number, group.Version = 0, 1
		g.b.addUnrouted(q)
	default:
		q.last++
		c = newConsumers(q, q.last, 0, &g.b.waiting)
		group.Number, group.Version = q.last, 1
		q.add(c)
	}
	c.set(group)
	switch group.State {
	case queue.Deleted:
		g.dropGroup(c)
	case queue.Inactive:
		g.dismiss(c, errInactive)
	}
	g.cs.Queues = append(g.cs.Queues, q.row())
	g.catalog = true
	g.serve(q) // a setting may let somebody have what they wait for
}

// dropGroup removes a group with all that it has; its settings stay readable.
func (g *group) dropGroup(c *consumers) {
	q := c.queue
	g.purgeAll(c)
	g.dismiss(c, errNoGroup)
	q.gone = append(q.gone, c.group)
	if c.number == 0 { // a queue has consumers always
		c.set(queue.ConsumerGroup{})
		return
	}
	q.groups = slices.DeleteFunc(q.groups, func(x *consumers) bool { return x == c })
}

// DropGroup forgets a consumer group that is Deleted; any other is left alone.
func (tx *Tx) DropGroup(id queue.ID) {
	for _, q := range tx.g.b.queues {
		i := slices.IndexFunc(q.gone, func(g queue.ConsumerGroup) bool { return g.ID == id })
		if i < 0 {
			continue
		}
		tx.g.changes++
		q.gone = slices.Delete(q.gone, i, i+1)
		tx.g.cs.Queues = append(tx.g.cs.Queues, q.row())
		tx.g.catalog = true
		return
	}
}

// LookupGroup finds the consumer group of a queue that text names: by id, or a
// live one by its display name, whatever the case; "" is the primary one. It is
// a memory read and shows the applied state.
func (b *Broker) LookupGroup(id queue.ID, text string) (queue.ConsumerGroup, bool) {
	b.shown.RLock()
	defer b.shown.RUnlock()
	if g, ok := b.shown.groups[queue.ID(text)]; ok {
		return g, g.QueueID == id
	}
	if q := b.shown.byID[id]; q != nil {
		for _, c := range q.shownGroups {
			if g := &c.shownGroup; g.ID != "" && c.number != unrouted && (text == "" || g.Named(text)) {
				return *g, true
			}
		}
	}
	return queue.ConsumerGroup{}, false
}

// FindGroup finds a consumer group among those of all queues, deleted ones
// included while they are kept.
func (b *Broker) FindGroup(id queue.ID) (queue.ConsumerGroup, bool) {
	b.shown.RLock()
	defer b.shown.RUnlock()
	g, ok := b.shown.groups[id]
	return g, ok
}

// Groups are the consumer groups of all queues, deleted ones included while
// they are kept, queue by queue, oldest first.
func (b *Broker) Groups() (out []queue.ConsumerGroup) {
	b.shown.RLock()
	defer b.shown.RUnlock()
	return slices.Clone(b.shown.allGroups)
}

// shownGroup is the group as it is shown; "" is the primary one. nil: there is
// none. The lock of Broker.shown is held.
func (q *queueState) shownGroup(id queue.ID) *consumers {
	for i, c := range q.shownGroups {
		if c.shownGroup.ID == id || id == "" && i == 0 {
			return c
		}
	}
	return nil
}
