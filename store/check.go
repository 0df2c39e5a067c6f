package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queued-mq/queued/queue"
)

// Check recounts the whole store and compares it with what it says of itself:
// the counters and bounds of every lane, the rows that belong together, and
// the highest numbers given out. It reads every row as of one commit, so it
// may run beside commits; it changes nothing. The error tells of every
// disorder it found, up to a bound.
//
// Rows of lanes that were given up wait for their removal, and are no disorder.
func (s *Store) Check() error {
	snap := s.db.NewSnapshot()
	c := &check{db: snap, lanes: make(map[LaneID]*counted), removals: make(map[LaneID]bool)}
	err := errors.Join(c.run(), snap.Close())
	return errors.Join(append(c.wrong, err)...)
}

const mostDisorders = 20

// check is one run of Check.
type check struct {
	db       *pebble.Snapshot
	state    State
	lanes    map[LaneID]*counted
	removals map[LaneID]bool
	wrong    []error
}

// counted is a lane and what its rows come to.
type counted struct {
	Lane
	have       Lane
	due, index int64         // timer rows
	after      queue.Instant // of the last message that expires in id order
}

func (c *check) found(format string, args ...any) {
	if len(c.wrong) < mostDisorders {
		c.wrong = append(c.wrong, fmt.Errorf(format, args...))
	}
}

// each calls f for every row of a kind.
func (c *check) each(kind byte, f func(k, v []byte) error) error {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			err = f(it.Key(), v)
		}
		if err != nil {
			err = fmt.Errorf("check row %x: %w", it.Key(), err)
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
	err := c.each(kindStore, func(k, v []byte) error {
		if bytes.Equal(k, stateKey) {
			r := coder{b: v, reading: true}
			c.state.code(&r)
			return r.done()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, step := range []func() error{c.readLanes, c.readMessages, c.readTimers, c.readAdmin} {
		if err := step(); err != nil {
			return err
		}
	}
	for id, l := range c.lanes {
		want, have := l.Lane, l.have
		want.Cursor, want.Oldest, want.Returning, want.LastAfter = 0, 0, 0, 0
		if want != have {
			c.found("lane %d says %+v, and its rows come to %+v", id, want, have)
		}
		if l.due != have.Delayed || l.index != have.Indexed {
			c.found("lane %d has %d delayed and %d indexed messages, and %d t rows and %d x rows", id, have.Delayed, have.Indexed, l.due, l.index)
		}
	}
	return nil
}

func (c *check) readLanes() error {
	err := c.each(kindLane, func(k, v []byte) error {
		l, err := decodeLane(k, v)
		if err != nil {
			return err
		}
		if other := c.lanes[l.ID]; other != nil {
			c.found("lane %d is there twice: %+v and %+v", l.ID, other.Key, l.Key)
		}
		if l.ID == 0 || l.ID > c.state.Lane {
			c.found("lane %d is above the highest number given out, %d", l.ID, c.state.Lane)
		}
		if l.Cursor > c.state.Message {
			c.found("the cursor of lane %d is above the highest id given out: %d, %d", l.ID, l.Cursor, c.state.Message)
		}
		c.lanes[l.ID] = &counted{Lane: l, have: Lane{ID: l.ID, Key: l.Key}}
		if l.Key.Dead && !c.has(deadLaneKey(nil, l.ID)) {
			c.found("dead lane %d cannot be found by its number", l.ID)
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
			c.found("the number %d leads to a dead lane that is not there", id)
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
		if c.lanes[id] != nil {
			c.found("lane %d is there and to be removed", id)
		}
		return nil
	})
}

// lane is the lane of a row; nil if it was given up, which is a disorder
// unless it is to be removed.
func (c *check) lane(k []byte, id LaneID) *counted {
	l := c.lanes[id]
	if l == nil && !c.removals[id] {
		c.found("row %x belongs to lane %d, which is not there", k, id)
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
			return c.message(l, message, &m, size, lease, back)
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
			c.found("row %x has no message", it.Key())
		}
	}
	return nil, nil
}

// message counts one message and looks whether its rows agree.
func (c *check) message(l *counted, id queue.MessageID, m *Message, size uint32, lease, back []byte) error {
	at := fmt.Sprintf("message %d of lane %d", id, l.ID)
	if id == 0 || id > c.state.Message {
		c.found("%s is above the highest id given out, %d", at, c.state.Message)
	}
	if (m.Dead != nil) != l.Key.Dead {
		c.found("%s: dead is %v, and that of its lane %v", at, m.Dead != nil, l.Key.Dead)
	}
	delayed := m.DueAt != 0 && c.has(timerKey(nil, kindDue, m.DueAt, l.ID, id))
	states := 0
	entry := func(e Entry) {
		e.Lease, e.Deliveries = 0, 0
		if want := m.entry(id, size); e != want {
			c.found("%s is %+v in its m row and %+v in the other", at, want, e)
		}
	}
	if lease != nil {
		states++
		row := Lease{Entry: Entry{ID: id}}
		r := coder{b: lease, reading: true}
		if row.code(&r); r.done() != nil {
			return errCorrupt
		}
		entry(row.Entry)
		if row.Lease == 0 || row.Lease > c.state.Lease || row.Deliveries == 0 {
			c.found("%s has lease %d of %d, deliveries %d", at, row.Lease, c.state.Lease, row.Deliveries)
		}
		l.have.InFlight++
	}
	if back != nil {
		states++
		e, err := decodeReturned(id, back)
		if err != nil {
			return err
		}
		entry(e)
		if e.Lease > c.state.Lease {
			c.found("%s has lease %d of %d", at, e.Lease, c.state.Lease)
		}
		if id < l.Returning {
			c.found("%s has a v row below %d, where they begin", at, l.Returning)
		}
		l.have.Returned++
	}
	if delayed {
		states++
		l.have.Delayed++
	}
	switch {
	case states > 1:
		c.found("%s is in %d states at once: leased %v, returned %v, delayed %v", at, states, lease != nil, back != nil, delayed)
	case states == 0:
		l.have.Fresh++
		if id <= l.Cursor || l.Key.Dead || m.DueAt != 0 {
			c.found("%s is in no state: the cursor is at %d, dead %v, due %d", at, l.Cursor, l.Key.Dead, m.DueAt)
		}
	}
	l.have.Bytes += int64(size)
	if m.Indexed {
		l.have.Indexed++
		if !c.has(timerKey(nil, kindExpiry, m.ExpireAfter, l.ID, id)) {
			c.found("%s has no x row", at)
		}
		return nil
	}
	if id < l.Oldest {
		c.found("%s is below %d, where those that expire in order begin", at, l.Oldest)
	}
	if m.ExpireAfter < l.after || m.ExpireAfter > l.LastAfter {
		c.found("%s expires at %d, out of order: before %d or after %d", at, m.ExpireAfter, l.after, l.LastAfter)
	}
	l.after = m.ExpireAfter
	return nil
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
				c.found("row %x is before %d, where they begin", k, c.state.DueFrom)
			}
			if l == nil {
				return nil
			}
			if kind == kindDue {
				l.due++
				return nil
			}
			l.index++
			if t.At < c.state.ExpiryFrom {
				c.found("row %x is before %d, where they begin", k, c.state.ExpiryFrom)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readAdmin looks at the rows that come in pairs.
func (c *check) readAdmin() error {
	err := c.each(kindQueue, func(k, v []byte) error {
		var q Queue
		if err := parseJSON(v, &q); err != nil {
			return err
		}
		if !bytes.Equal(k, queueKey(nil, q.Number)) || q.Number > c.state.Queue {
			c.found("row %x holds queue %d; the highest number given out is %d", k, q.Number, c.state.Queue)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.each(kindWorkRequest, func(k, v []byte) error {
		switch {
		case len(k) >= 2 && k[1] == 1:
			var w queue.WorkRequest
			if err := parseJSON(v, &w); err != nil {
				return err
			}
			if !bytes.Equal(k, workKey(nil, w.AcceptedAt, w.ID)) || !c.has(workIDKey(nil, w.ID)) {
				c.found("row %x holds work request %q, which cannot be found by its id", k, w.ID)
			}
		case len(k) >= 2 && k[1] == 2 && len(v) == 8:
			if !c.has(workKey(nil, queue.Instant(be.Uint64(v)), string(k[2:]))) {
				c.found("work request %q is not there", k[2:])
			}
		default:
			return errCorrupt
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.each(kindRetryToken, func(k, v []byte) error {
		if len(k) < 2 || k[1] == 1 { // of an hour; one that was used again since has two
			return nil
		}
		scope, token, ok := cut(k[2:])
		t := RetryToken{Scope: scope, Token: token}
		r := coder{b: v, reading: true}
		if t.code(&r); !ok || r.done() != nil {
			return errCorrupt
		}
		if !c.has(tokenHourKey(nil, t.hour(), scope, token)) {
			c.found("the retry token %x is in no hour: it would stay for ever", k)
		}
		return nil
	})
}
