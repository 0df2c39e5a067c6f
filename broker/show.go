package broker

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// What is shown is the applied state: it is copied out of the core at the end
// of a group that is durable, so reading it never waits for a sync and never
// sees what a crash could take back.

// publish shows what the group has changed.
func (g *group) publish() {
	b := g.b
	if len(g.queues) == 0 && !g.catalog {
		return
	}
	b.shown.Lock()
	defer b.shown.Unlock()
	for _, l := range g.lanes {
		l.shown = l.row.Stats()
		lanes := l.of.queue.shownLanes
		if l.gone && lanes[l.row.Key] == l {
			delete(lanes, l.row.Key)
		} else if !l.gone {
			lanes[l.row.Key] = l
		}
	}
	for _, l := range g.slept {
		if lanes := l.of.queue.shownLanes; lanes[l.row.Key] == l {
			delete(lanes, l.row.Key)
		}
	}
	for _, q := range g.queues {
		q.dirty = false
		b.show(q)
	}
	if g.catalog {
		b.catalog()
	}
	b.shown.bytes, b.shown.inFlight, b.shown.position = b.bytes, b.inFlight, b.state.Position
}

// show copies one queue.
func (b *Broker) show(q *queueState) {
	if q.shownLanes == nil {
		q.shownLanes = make(map[store.LaneKey]*lane)
		for _, c := range q.groups {
			for k, l := range c.lanes {
				q.shownLanes[k] = l
				l.shown = l.row.Stats()
			}
		}
	}
	q.shownQueue, q.shownStored, q.shownFull = q.q, q.stored, q.full
	for _, c := range q.groups {
		c.shownMain, c.shownDead = c.main, c.dead
		c.shownDormant, c.shownDeadThrough = c.dormant, c.deadThrough
		for i, n := range c.events {
			c.shownEvents[i] += n
		}
		clear(c.events[:])
	}
	for i, n := range q.events {
		q.shownEvents[i] += n
	}
	clear(q.events[:])
}

// catalog rebuilds the ways to find a queue; control-plane changes are rare.
func (b *Broker) catalog() {
	b.shown.ordered = slices.SortedFunc(maps.Values(b.queues), byNumber)
	b.shown.byID = maps.Clone(b.byID)
	b.shown.byName = make(map[string][]*queueState)
	for _, q := range b.shown.ordered {
		if q.q.Live() {
			b.shown.byName[q.q.DisplayName] = append(b.shown.byName[q.q.DisplayName], q)
		}
	}
	b.shown.groups, b.shown.allGroups = make(map[queue.ID]queue.ConsumerGroup), nil
	for _, q := range b.shown.ordered {
		q.shownGroups = slices.Clone(q.groups)
		for _, c := range q.groups {
			c.shownGroup = c.group
		}
		for _, g := range q.allGroups() {
			b.shown.groups[g.ID] = g
			b.shown.allGroups = append(b.shown.allGroups, g)
		}
	}
}

// find is the queue of that id, for a request.
func (b *Broker) find(id queue.ID) (*queueState, error) {
	b.shown.RLock()
	defer b.shown.RUnlock()
	q := b.shown.byID[id]
	if q == nil || !q.shownQueue.Live() {
		return nil, errNoQueue
	}
	return q, nil
}

// Lookup finds the queue that ref names: by id, or the oldest live one that
// bears the name and that visible (nil: all) accepts. It is a memory read and
// shows the applied state. Deleted queues are found by id while they are kept.
func (b *Broker) Lookup(ref queue.Ref, visible func(*queue.Queue) bool) (queue.Queue, bool) {
	b.shown.RLock()
	defer b.shown.RUnlock()
	if ref.ID != "" {
		q := b.shown.byID[ref.ID]
		if q == nil || (visible != nil && !visible(&q.shownQueue)) {
			return queue.Queue{}, false
		}
		return q.shownQueue, true
	}
	if !queue.Addressable(ref.Name) {
		return queue.Queue{}, false
	}
	for _, q := range b.shown.byName[ref.Name] {
		if visible == nil || visible(&q.shownQueue) {
			return q.shownQueue, true
		}
	}
	return queue.Queue{}, false
}

// Queues is a copy of all queues, deleted ones included while they are kept,
// oldest first.
func (b *Broker) Queues() []queue.Queue {
	b.shown.RLock()
	defer b.shown.RUnlock()
	out := make([]queue.Queue, len(b.shown.ordered))
	for i, q := range b.shown.ordered {
		out[i] = q.shownQueue
	}
	return out
}

// Stats are the exact counters of the applied state: of all that a consumer
// group of the queue has ("": the primary one), or of one channel if channel is
// not nil; the group's own and its dead letter queue's. An unknown channel,
// group or queue counts zero.
func (b *Broker) Stats(id, group queue.ID, channel *string) (main, dead queue.Stats) {
	b.shown.RLock()
	q, c := b.shown.byID[id], (*consumers)(nil)
	if q != nil {
		c = q.shownGroup(group)
	}
	if c == nil {
		b.shown.RUnlock()
		return main, dead
	}
	if channel == nil {
		defer b.shown.RUnlock()
		return c.shownMain, c.shownDead
	}
	key := c.key(false, *channel)
	if l := q.shownLanes[key]; l != nil {
		main = l.shown
	}
	key.Dead = true
	l, dormant, purged := q.shownLanes[key], c.shownDormant > 0, c.shownDeadThrough
	if l != nil {
		dead = l.shown
	}
	b.shown.RUnlock()
	if l != nil || !dormant {
		return main, dead
	}
	// It may be dormant. The core does not wait for this read.
	row, found, err := b.store.Lane(key)
	if err != nil {
		b.fail(err)
	}
	if found && row.ID > purged {
		dead = row.Stats()
	}
	return main, dead
}

// Channels lists the named channels in which a consumer group of the queue
// ("": the primary one) has messages, in order, that match the filter and come
// after the name after; at most limit.
func (b *Broker) Channels(id, group queue.ID, dead bool, filter channels.Filter, after string, limit int) []string {
	var out []string
	b.shown.RLock()
	q, c := b.shown.byID[id], (*consumers)(nil)
	if q != nil {
		c = q.shownGroup(group)
	}
	if c != nil && dead && c.shownDormant > 0 {
		through := c.shownDeadThrough
		b.shown.RUnlock()
		return b.deadChannels(c.key(true, ""), through, filter, after, limit)
	}
	if c != nil {
		for k, l := range q.shownLanes {
			if k.Group == c.number && k.Dead == dead && k.Channel > after && !l.shown.Empty() && filter.Match(k.Channel) {
				out = append(out, k.Channel)
			}
		}
	}
	b.shown.RUnlock()
	slices.Sort(out)
	return out[:min(len(out), limit)]
}

// deadChannels lists them from the store, which has those in memory too.
func (b *Broker) deadChannels(of store.LaneKey, purged store.LaneID, filter channels.Filter, after string, limit int) (out []string) {
	for from, more := after+"\x00", true; more; {
		var rows []store.Lane
		var err error
		if rows, more, err = b.store.ScanDeadLanes(of, from, searchReads); err != nil {
			b.fail(err)
		}
		for _, l := range rows {
			if from = l.Key.Channel + "\x00"; l.ID > purged && l.Key.Channel != "" && !l.Empty() && filter.Match(l.Key.Channel) {
				if out = append(out, l.Key.Channel); len(out) == limit {
					return out
				}
			}
		}
	}
	return out
}

// WorkRequest reads one work request.
func (b *Broker) WorkRequest(id string) (queue.WorkRequest, bool, error) {
	return b.store.WorkRequest(id)
}

// WorkRequests yields the work requests, newest first, that come after the id
// after ("": from the newest).
func (b *Broker) WorkRequests(after string) iter.Seq2[queue.WorkRequest, error] {
	return b.store.WorkRequests(after)
}

// OldestAge is how long ago the oldest message of the queue was published, not
// counting dead letters and what no group accepted; 0 when it holds none. It reads one row of
// each channel.
func (b *Broker) OldestAge(id queue.ID) (time.Duration, error) {
	type place struct {
		l    *lane
		from queue.MessageID
	}
	var places []place
	b.shown.RLock()
	if q := b.shown.byID[id]; q != nil {
		for k, l := range q.shownLanes {
			if !k.Dead && k.Group != unrouted && !l.shown.Empty() {
				places = append(places, place{l, queue.MessageID(l.oldest.Load())})
			}
		}
	}
	b.shown.RUnlock()
	now := b.Now()
	created := now
	for _, p := range places {
		found, _, err := b.store.ScanMessages(p.l.row.ID, p.from, 1, 0, true)
		if err != nil {
			return 0, err
		}
		if len(found) > 0 {
			created = min(created, found[0].CreatedAt)
			p.l.oldest.Store(uint64(found[0].ID)) // nothing comes in below it
		}
	}
	return now.Sub(created), nil
}

// QueueSnapshot is one queue for metrics.
type QueueSnapshot struct {
	Queue      queue.Queue
	Main, Dead queue.Stats       // of all consumer groups together
	Stored     int64             // octets, those that several groups have counted once
	Groups     []GroupSnapshot   // none: the queue has no consumer groups
	Events     [eventKinds]int64 // since the broker was opened, by EventNames
	Full       int64             // gets that found the in-flight limit reached, since then
	Held       int64             // publishes that waited for consumers, since then
}

// GroupSnapshot is one consumer group for metrics, that of what no group
// accepted included.
type GroupSnapshot struct {
	Group      queue.ConsumerGroup
	Main, Dead queue.Stats
	Events     [eventKinds]int64 // as of a queue; published: what the group accepted
}

// Snapshot is the broker as metrics show it.
type Snapshot struct {
	Queues     []QueueSnapshot // live ones, oldest first
	Waiters    int64
	InFlight   int64
	Bytes      int64
	FreeBytes  int64 // on the disk; -1: not known
	ClockAhead time.Duration
	ClockJumps int64
}

// Snapshot is a copy of all counters as of the last durable group.
func (b *Broker) Snapshot() Snapshot {
	s := Snapshot{Waiters: b.waiting.Load(), FreeBytes: -1}
	s.ClockAhead, s.ClockJumps = b.clock.difference()
	if free, ok := b.disk.room(); ok {
		s.FreeBytes = free
	}
	b.shown.RLock()
	defer b.shown.RUnlock()
	s.InFlight, s.Bytes = b.shown.inFlight, b.shown.bytes
	for _, q := range b.shown.ordered {
		if q.shownQueue.Live() {
			all := QueueSnapshot{Queue: q.shownQueue, Stored: q.shownStored, Events: q.shownEvents, Full: q.shownFull, Held: q.pace.held.Load()}
			for _, c := range q.shownGroups {
				all.Main, all.Dead = all.Main.Plus(c.shownMain), all.Dead.Plus(c.shownDead)
				if c.shownGroup.ID != "" {
					all.Groups = append(all.Groups, GroupSnapshot{c.shownGroup, c.shownMain, c.shownDead, c.shownEvents})
				}
			}
			s.Queues = append(s.Queues, all)
		}
	}
	return s
}

// measured calls back for every group that was stored.
type measured struct {
	mu      sync.Mutex
	observe func(requests int, sync time.Duration)
}

func (m *measured) group(requests int, sync time.Duration) {
	m.mu.Lock()
	f := m.observe
	m.mu.Unlock()
	if f != nil {
		f(requests, sync)
	}
}

// ObserveGroups has f called after every synced group with the number of
// requests in it and how long the commit took. f must be quick.
func (b *Broker) ObserveGroups(f func(requests int, sync time.Duration)) {
	b.measured.mu.Lock()
	defer b.measured.mu.Unlock()
	b.measured.observe = f
}
