package broker

import (
	"sync/atomic"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// queueState is one queue in the core.
type queueState struct {
	number store.QueueNumber
	q      queue.Queue
	groups []*consumers          // the primary one first; a queue without consumer groups has that alone
	gone   []queue.ConsumerGroup // deleted ones, while they are kept
	last   uint32                // highest number of a group given out
	turn   int                   // index of the group that is served first

	// Octets on disk, those that several groups have counted once.
	stored int64
	shared sharing

	channels map[string]int // named channels that are in use, and how many groups have messages there
	tokens   int64          // retry tokens of publishes
	full     int64          // gets that found the in-flight limit reached
	dirty    bool
	wake     bool // somebody who waits may be served now

	events  [eventKinds]int64 // of this group
	pending fifo              // guarded by intake.mu
	pace    pace

	// guarded by Broker.shown
	shownQueue  queue.Queue
	shownStored int64
	shownFull   int64
	shownLanes  map[store.LaneKey]*lane
	shownGroups []*consumers
	shownEvents [eventKinds]int64
}

// consumers is one consumer group in the core: the lanes it takes from, who
// waits for them, and what they count.
type consumers struct {
	queue  *queueState
	number uint32              // in its queue; 0: the primary group
	group  queue.ConsumerGroup // zero for that of a queue without consumer groups
	filter filter.Filter

	lanes map[store.LaneKey]*lane
	ready [2][]*lane // lanes with something takeable; [1]: dead ones
	wait  [2]waiters

	main, dead queue.Stats // dormant lanes included

	dormant      int // dead lanes that are not in memory
	dormantStats queue.Stats
	dormantShare int64        // of its octets: those that are in b rows
	deadThrough  store.LaneID // dormant lanes up to this number were purged
	searching    int          // searches for dormant lanes under way
	searchedTo   string

	events [eventKinds]int64 // of this group

	// guarded by Broker.shown
	shownGroup           queue.ConsumerGroup
	shownMain, shownDead queue.Stats
	shownDormant         int
	shownDeadThrough     store.LaneID
	shownEvents          [eventKinds]int64
}

// happened counts what happened to messages of the group.
func (c *consumers) happened(what event, n int64) {
	c.events[what] += n
	c.queue.events[what] += n
}

func newConsumers(q *queueState, number uint32, deadThrough store.LaneID, waiting *atomic.Int64) *consumers {
	c := &consumers{queue: q, number: number, deadThrough: deadThrough, lanes: make(map[store.LaneKey]*lane)}
	for i := range c.wait {
		c.wait[i].total = waiting
	}
	return c
}

// primary is the group that is meant when none is named.
func (q *queueState) primary() *consumers { return q.groups[0] }

// numbered finds a group that lives.
func (q *queueState) numbered(n uint32) *consumers {
	for _, c := range q.groups {
		if c.number == n {
			return c
		}
	}
	return nil
}

func (q *queueState) inFlight() (n int64) {
	for _, c := range q.groups {
		n += c.main.InFlight + c.dead.InFlight
	}
	return n
}

// behind reports whether messages wait to be taken by a group that may.
func (q *queueState) behind() bool {
	for _, c := range q.groups {
		if c.main.Visible > 0 && c.number != unrouted && c.group.State != queue.Inactive {
			return true
		}
	}
	return false
}

// key names a lane of the group.
func (c *consumers) key(dead bool, channel string) store.LaneKey {
	return store.LaneKey{Queue: c.queue.number, Group: c.number, Dead: dead, Channel: channel}
}

func (c *consumers) stats(dead bool) *queue.Stats {
	if dead {
		return &c.dead
	}
	return &c.main
}

func side(dead bool) int {
	if dead {
		return 1
	}
	return 0
}

// setReady keeps the list of lanes that have something takeable.
func (c *consumers) setReady(l *lane) {
	list := &c.ready[side(l.dead())]
	switch want := !l.gone && l.takeable() > 0; {
	case want && l.slot < 0:
		l.slot = len(*list)
		*list = append(*list, l)
	case !want && l.slot >= 0:
		last := (*list)[len(*list)-1]
		(*list)[l.slot], last.slot = last, l.slot
		*list = (*list)[:len(*list)-1]
		l.slot = -1
	}
}

// deliveryLimit is how often a message may be delivered; 0: without end.
func (c *consumers) deliveryLimit() int {
	if c.number == unrouted {
		return 0
	}
	if own := c.group.DeadLetterDeliveryCount; own != nil {
		return *own
	}
	return c.queue.q.DeadLetterDeliveryCount
}

// consumers finds the group that a lane is of; nil if it is gone.
func (b *Broker) consumers(k store.LaneKey) *consumers {
	if q := b.queues[k.Queue]; q != nil {
		return q.numbered(k.Group)
	}
	return nil
}
