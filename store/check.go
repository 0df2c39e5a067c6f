package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queued-mq/queued/queue"
)

// Check is Verify for those who want to know whether all is in order: the
// error tells of every disorder that was found, up to a bound.
func (s *Store) Check() error {
	r, err := s.Verify()
	if err != nil {
		return err
	}
	const most = 20
	var wrong []error
	for _, d := range r.Differences[:min(len(r.Differences), most)] {
		wrong = append(wrong, d)
	}
	return errors.Join(wrong...)
}

// Verify recounts the whole store and compares it with what it says of itself:
// the counters and bounds of every lane, the rows that belong together, and
// the highest numbers given out. It reads every row as of one commit, so it
// may run beside commits; it changes nothing. An error is of the reading; what
// is wrong stands in the report.
//
// Rows of lanes that were given up wait for their removal, and are no disorder.
func (s *Store) Verify() (*Report, error) {
	snap := s.db.NewSnapshot()
	c := &check{
		db: snap, lanes: make(map[LaneID]*counted), removals: make(map[LaneID]bool), queues: make(map[QueueNumber]*Queue),
		report: &Report{Format: s.format, Generation: s.gen},
	}
	err := c.run()
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		err = fmt.Errorf("%s is damaged: %v", info.Path, info.Details)
	}
	if err := errors.Join(err, snap.Close()); err != nil {
		return nil, fmt.Errorf("verify store: %w", err)
	}
	c.sum()
	return c.report, nil
}

// Report is what Verify found.
type Report struct {
	Format      uint64
	Generation  uint64
	State       State
	Queues      []Queue      // by number
	Lanes       []LaneReport // by queue, channels in their order
	Removals    int          // lanes that were given up and whose rows are yet to go
	Differences []Difference // nil: all is in order
	More        int          // differences that were not kept
}

// LaneReport is a lane as it says of itself, and what its rows come to.
type LaneReport struct {
	Queue         string // display name; "" if there is no such queue
	Counted, Have Lane
}

// Difference is one thing that is not as it should be.
type Difference struct {
	Key  string // of the row it is about, in words; "" if none
	Text string
}

func (d Difference) Error() string { return d.Text }

// mostDifferences bounds what a report holds of a store that is all wrong.
const mostDifferences = 1000

// check is one run of Verify.
type check struct {
	db       *pebble.Snapshot
	state    State
	lanes    map[LaneID]*counted
	queues   map[QueueNumber]*Queue
	removals map[LaneID]bool
	report   *Report
}

// counted is a lane and what its rows come to.
type counted struct {
	Lane
	have       Lane
	due, index int64         // timer rows
	after      queue.Instant // of the last message that expires in id order
}

// found notes something wrong with the row of that key, or with none.
func (c *check) found(key []byte, format string, args ...any) {
	if len(c.report.Differences) == mostDifferences {
		c.report.More++
		return
	}
	c.report.Differences = append(c.report.Differences, Difference{keyText(key), fmt.Sprintf(format, args...)})
}

// each calls f for every row of a kind. What f cannot read is noted.
func (c *check) each(kind byte, f func(k, v []byte) error) error {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var v []byte
		if v, err = it.ValueAndErr(); err != nil {
			err = fmt.Errorf("row %s: %w", keyText(it.Key()), err)
		} else if wrong := f(it.Key(), v); wrong != nil {
			c.found(it.Key(), "row %s cannot be read: %v", keyText(it.Key()), wrong)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}

func (c *check) has(key []byte) bool {
	_, closer, err := c.db.Get(key)
	if err != nil {
		return false
	}
	return closer.Close() == nil
}

func (c *check) run() error {
	for _, step := range []func() error{c.readStore, c.readKinds, c.readQueues, c.readLanes, c.readMessages, c.readTimers, c.readShared, c.readWork, c.readTokens} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sum compares the lanes with their rows, and makes the table.
func (c *check) sum() {
	c.report.State, c.report.Removals = c.state, len(c.removals)
	for _, l := range c.lanes {
		r := LaneReport{Counted: l.Lane, Have: l.have}
		if q := c.queues[l.Key.Queue]; q != nil {
			r.Queue = q.DisplayName
		}
		c.report.Lanes = append(c.report.Lanes, r)
		key := laneKey(nil, l.Key)
		for _, n := range []struct {
			name       string
			says, have int64
		}{
			{"fresh", l.Fresh, l.have.Fresh},
			{"returned", l.Returned, l.have.Returned},
			{"in flight", l.InFlight, l.have.InFlight},
			{"delayed", l.Delayed, l.have.Delayed},
			{"indexed", l.Indexed, l.have.Indexed},
			{"octets", l.Bytes, l.have.Bytes},
			{"shared octets", l.Shared, l.have.Shared},
		} {
			if n.says != n.have {
				c.found(key, "lane %d says %d %s, and its rows come to %d", l.ID, n.says, n.name, n.have)
			}
		}
		if l.due != l.have.Delayed || l.index != l.have.Indexed {
			c.found(key, "lane %d has %d delayed and %d indexed messages, and %d t rows and %d x rows", l.ID, l.have.Delayed, l.have.Indexed, l.due, l.index)
		}
	}
	slices.SortFunc(c.report.Lanes, func(a, b LaneReport) int {
		x, y := a.Counted.Key, b.Counted.Key
		return cmp.Or(cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Channel, y.Channel), cmp.Compare(x.Group, y.Group),
			cmp.Compare(a.Counted.ID, b.Counted.ID))
	})
}

// readStore reads what the store says of itself.
func (c *check) readStore() error {
	return c.each(kindStore, func(k, v []byte) error {
		switch name := string(k[1:]); name {
		case "format", "generation":
			if len(v) != 8 {
				return errCorrupt
			}
		case "key":
			if len(v) != 32 {
				return errCorrupt
			}
		case "state":
			r := coder{b: v, reading: true}
			c.state.code(&r)
			return r.done()
		default:
			c.found(k, "row %s is of no kind that is known", keyText(k))
		}
		return nil
	})
}

// readKinds looks for rows between those of the kinds there are.
func (c *check) readKinds() error {
	it, err := c.db.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; {
		k := it.Key()
		if len(k) > 0 && bytes.IndexByte(allKinds, k[0]) >= 0 {
			ok = it.SeekGE([]byte{k[0] + 1})
			continue
		}
		c.found(k, "row %s is of no kind that is known", keyText(k))
		ok = it.Next()
	}
	return errors.Join(it.Error(), it.Close())
}

var allKinds = []byte{
	kindMessage, kindLease, kindReturned, kindDue, kindExpiry, kindLane, kindDeadLane, kindRemoval,
	kindBody, kindHolders, kindShared,
	kindQueue, kindWorkRequest, kindRetryToken, kindStore,
}

func (c *check) readQueues() error {
	return c.each(kindQueue, func(k, v []byte) error {
		var q Queue
		if err := parseJSON(v, &q); err != nil {
			return err
		}
		if !bytes.Equal(k, queueKey(nil, q.Number)) || q.Number > c.state.Queue {
			c.found(k, "row %s holds queue %d; the highest number given out is %d", keyText(k), q.Number, c.state.Queue)
		}
		if q.DeadThrough > c.state.Lane {
			c.found(k, "queue %d has purged dead lanes up to %d; the highest number given out is %d", q.Number, q.DeadThrough, c.state.Lane)
		}
		if q.SharedThrough > c.state.Message {
			c.found(k, "queue %d counts bodies up to %d no more; the highest id given out is %d", q.Number, q.SharedThrough, c.state.Message)
		}
		c.groups(k, &q)
		c.queues[q.Number] = &q
		c.report.Queues = append(c.report.Queues, q)
		return nil
	})
}

func (c *check) readLanes() error {
	err := c.each(kindLane, func(k, v []byte) error {
		l, err := decodeLane(k, v)
		if err != nil {
			return err
		}
		if other := c.lanes[l.ID]; other != nil {
			c.found(k, "lane %d is there twice: %+v and %+v", l.ID, other.Key, l.Key)
		}
		if l.ID == 0 || l.ID > c.state.Lane {
			c.found(k, "lane %d is above the highest number given out, %d", l.ID, c.state.Lane)
		}
		if l.Cursor > c.state.Message {
			c.found(k, "the cursor of lane %d is above the highest id given out: %d, %d", l.ID, l.Cursor, c.state.Message)
		}
		// Dead lanes that are not in memory are given up after their queue.
		if q := c.queues[l.Key.Queue]; q == nil && !l.Key.Dead {
			c.found(k, "lane %d is of queue %d, which is not there", l.ID, l.Key.Queue)
		} else if q != nil && !l.Key.Dead && !q.has(l.Key.Group) {
			c.found(k, "lane %d is of consumer group %d of queue %d, which is not there", l.ID, l.Key.Group, l.Key.Queue)
		}
		c.lanes[l.ID] = &counted{Lane: l, have: Lane{ID: l.ID, Key: l.Key}}
		if l.Key.Dead && !c.has(deadLaneKey(nil, l.ID)) {
			c.found(k, "dead lane %d cannot be found by its number", l.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.each(kindDeadLane, func(k, v []byte) error {
		if len(k) != 9 {
			return errCorrupt
		}
		id := LaneID(be.Uint64(k[1:]))
		if l := c.lanes[id]; l == nil || !l.Key.Dead || !bytes.Equal(v, laneKey(nil, l.Key)) {
			c.found(k, "the number %d leads to a dead lane that is not there", id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.each(kindRemoval, func(k, _ []byte) error {
		if len(k) != 9 {
			return errCorrupt
		}
		id := LaneID(be.Uint64(k[1:]))
		c.removals[id] = true
		if id == 0 || id > c.state.Lane {
			c.found(k, "lane %d, which is to be removed, is above the highest number given out, %d", id, c.state.Lane)
		}
		if c.lanes[id] != nil {
			c.found(k, "lane %d is there and to be removed", id)
		}
		return nil
	})
}

// lane is the lane of a row; nil if it was given up, which is a disorder
// unless it is to be removed.
func (c *check) lane(k []byte, id LaneID) *counted {
	l := c.lanes[id]
	if l == nil && !c.removals[id] {
		c.found(k, "row %s belongs to lane %d, which is not there", keyText(k), id)
	}
	return l
}

// readMessages walks m, l and v rows side by side: their keys have one order.
func (c *check) readMessages() error {
	leases, err := c.walk(kindLease)
	if err != nil {
		return err
	}
	defer leases.Close()
	returned, err := c.walk(kindReturned)
	if err != nil {
		return err
	}
	defer returned.Close()
	err = c.each(kindMessage, func(k, v []byte) error {
		id, message, ok := parseRowKey(k)
		if !ok {
			return errCorrupt
		}
		lease, err := c.next(leases, k[1:])
		if err != nil {
			return err
		}
		back, err := c.next(returned, k[1:])
		if err != nil {
			return err
		}
		m, size, err := decodeMessage(v)
		if err != nil {
			return err
		}
		if l := c.lane(k, id); l != nil {
			return c.message(k, l, message, &m, size, lease, back)
		}
		return nil
	})
	for _, it := range []*pebble.Iterator{leases, returned} {
		if err == nil {
			_, err = c.next(it, nil)
		}
		err = errors.Join(err, it.Error())
	}
	return err
}

func (c *check) walk(kind byte) (*pebble.Iterator, error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err == nil {
		it.First()
	}
	return it, err
}

// next is the value of the row whose key ends in place, nil if there is none.
// Rows before it have no message; a nil place is behind all.
func (c *check) next(it *pebble.Iterator, place []byte) ([]byte, error) {
	for ; it.Valid(); it.Next() {
		order := -1
		if place != nil {
			order = bytes.Compare(it.Key()[1:], place)
		}
		if order > 0 {
			return nil, nil
		}
		if order == 0 {
			v, err := it.ValueAndErr()
			v = bytes.Clone(v)
			it.Next()
			return v, err
		}
		if id, _, ok := parseRowKey(it.Key()); !ok || c.lane(it.Key(), id) != nil {
			c.found(it.Key(), "row %s has no message", keyText(it.Key()))
		}
	}
	return nil, nil
}

// message counts one message and looks whether its rows agree.
func (c *check) message(k []byte, l *counted, id queue.MessageID, m *Message, size uint32, lease, back []byte) error {
	at := fmt.Sprintf("message %d of lane %d", id, l.ID)
	if id == 0 || id > c.state.Message {
		c.found(k, "%s is above the highest id given out, %d", at, c.state.Message)
	}
	if (m.Dead != nil) != l.Key.Dead {
		c.found(k, "%s: dead is %v, and that of its lane %v", at, m.Dead != nil, l.Key.Dead)
	}
	if m.Shared {
		l.have.Shared += int64(size)
		body, err := c.body(id)
		if err != nil {
			return err
		}
		if body == nil {
			c.found(k, "%s has no b row", at)
			body = &Body{Queue: l.Key.Queue, Channel: l.Key.Channel}
		} else if m.Message = body.Message; body.Queue != l.Key.Queue || body.Channel != l.Key.Channel {
			c.found(k, "%s of queue %d, channel %q, has its body in queue %d, channel %q", at, l.Key.Queue, l.Key.Channel, body.Queue, body.Channel)
		}
	}
	if m.Size() != int64(size) {
		c.found(k, "%s has %d octets, and says %d", at, m.Size(), size)
	}
	delayed := m.DueAt != 0 && c.has(timerKey(nil, kindDue, m.DueAt, l.ID, id))
	states := 0
	entry := func(e Entry) {
		e.Lease, e.Deliveries = 0, 0
		if want := m.entry(id, size); e != want {
			c.found(k, "%s is %+v in its m row and %+v in the other", at, want, e)
		}
	}
	if lease != nil {
		states++
		row := Lease{Entry: Entry{ID: id}}
		r := coder{b: lease, reading: true}
		if row.code(&r); r.done() != nil {
			c.found(rowKey(nil, kindLease, l.ID, id), "the lease of %s cannot be read: %v", at, errCorrupt)
		} else if entry(row.Entry); row.Lease == 0 || row.Lease > c.state.Lease || row.Deliveries == 0 {
			c.found(k, "%s has lease %d of %d, deliveries %d", at, row.Lease, c.state.Lease, row.Deliveries)
		}
		l.have.InFlight++
	}
	if back != nil {
		states++
		e, err := decodeReturned(id, back)
		if err != nil {
			c.found(rowKey(nil, kindReturned, l.ID, id), "the v row of %s cannot be read: %v", at, err)
		} else if entry(e); e.Lease > c.state.Lease {
			c.found(k, "%s has lease %d of %d", at, e.Lease, c.state.Lease)
		}
		if id < l.Returning {
			c.found(k, "%s has a v row below %d, where they begin", at, l.Returning)
		}
		l.have.Returned++
	}
	if delayed {
		states++
		l.have.Delayed++
	}
	if states > 0 && m.DueAt == 0 && !l.Key.Dead && id > l.Cursor {
		c.found(k, "%s was delivered, and is above the cursor, %d: it would be delivered as a fresh one", at, l.Cursor)
	}
	switch {
	case states > 1:
		c.found(k, "%s is in %d states at once: leased %v, returned %v, delayed %v", at, states, lease != nil, back != nil, delayed)
	case states == 0:
		l.have.Fresh++
		if id <= l.Cursor || l.Key.Dead || m.DueAt != 0 {
			c.found(k, "%s is in no state: the cursor is at %d, dead %v, due %d", at, l.Cursor, l.Key.Dead, m.DueAt)
		}
	}
	l.have.Bytes += int64(size)
	if m.Indexed {
		l.have.Indexed++
		if !c.has(timerKey(nil, kindExpiry, m.ExpireAfter, l.ID, id)) {
			c.found(k, "%s has no x row", at)
		}
		return nil
	}
	if id < l.Oldest {
		c.found(k, "%s is below %d, where those that expire in order begin", at, l.Oldest)
	}
	if m.ExpireAfter < l.after || m.ExpireAfter > l.LastAfter {
		c.found(k, "%s expires at %d, out of order: before %d or after %d", at, m.ExpireAfter, l.after, l.LastAfter)
	}
	l.after = m.ExpireAfter
	return nil
}

// head is the message of a timer row.
func (c *check) head(t Timer) (m Message, there bool, err error) {
	v, closer, err := c.db.Get(rowKey(nil, kindMessage, t.Lane, t.ID))
	if errors.Is(err, pebble.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	r := coder{b: v, reading: true}
	var size uint32
	if m.codeHead(&r, &size); r.bad {
		m = Message{} // noted already
	}
	return m, true, closer.Close()
}

func (c *check) readTimers() error {
	for _, kind := range []byte{kindDue, kindExpiry} {
		err := c.each(kind, func(k, _ []byte) error {
			t, ok := parseTimerKey(k)
			if !ok {
				return errCorrupt
			}
			l := c.lane(k, t.Lane)
			if kind == kindDue && t.At < c.state.DueFrom {
				c.found(k, "row %s is before %d, where they begin", keyText(k), c.state.DueFrom)
			}
			if l == nil {
				return nil
			}
			m, there, err := c.head(t)
			if err != nil {
				return err
			}
			if kind == kindDue {
				l.due++
				if !there || m.DueAt != t.At {
					c.found(k, "row %s has no message that is due then", keyText(k))
				}
				return nil
			}
			l.index++
			if !there || !m.Indexed || m.ExpireAfter != t.At {
				c.found(k, "row %s has no message that expires then", keyText(k))
			}
			if t.At < c.state.ExpiryFrom {
				c.found(k, "row %s is before %d, where they begin", keyText(k), c.state.ExpiryFrom)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
