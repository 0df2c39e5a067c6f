package store

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queued-mq/queued/queue"
)

// has reports whether the queue has a consumer group of that number, the
// primary one and that of what no group accepted included.
func (q *Queue) has(group uint32) bool {
	if group == 0 || group == UnroutedGroup && len(q.Groups) > 0 {
		return true
	}
	for i := range q.Groups {
		if q.Groups[i].Number == group && q.Groups[i].Live() {
			return true
		}
	}
	return false
}

// groups looks at the consumer groups in the row of a queue.
func (c *check) groups(k []byte, q *Queue) {
	had := make(map[uint32]bool)
	for i := range q.Groups {
		g := &q.Groups[i]
		if g.Number > q.LastGroup {
			c.found(k, "queue %d has consumer group %d; the highest number given out is %d", q.Number, g.Number, q.LastGroup)
		}
		if had[g.Number] {
			c.found(k, "queue %d has two consumer groups of number %d", q.Number, g.Number)
		}
		if had[g.Number] = true; g.DeadThrough > c.state.Lane {
			c.found(k, "queue %d has purged dead lanes of consumer group %d up to %d; the highest number given out is %d", q.Number, g.Number, g.DeadThrough, c.state.Lane)
		}
	}
}

// body is the b row of a message, nil if there is none.
func (c *check) body(id queue.MessageID) (*Body, error) {
	v, closer, err := c.db.Get(idKey(nil, kindBody, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, wrong := decodeBody(id, v)
	if wrong != nil {
		b = nil // it is noted where the b rows are read
	}
	return b, closer.Close()
}

// readShared compares the bodies that several groups have with those who have
// them.
func (c *check) readShared() error {
	type place struct {
		queue   QueueNumber
		channel string
	}
	lanes := make(map[place][]LaneID)
	for _, l := range c.lanes {
		at := place{l.Key.Queue, l.Key.Channel}
		lanes[at] = append(lanes[at], l.ID)
	}
	octets := make(map[place]int64)
	err := c.each(kindBody, func(k, v []byte) error {
		if len(k) != 9 {
			return errCorrupt
		}
		id := queue.MessageID(be.Uint64(k[1:]))
		b, err := decodeBody(id, v)
		if err != nil {
			return err
		}
		if !c.has(idKey(nil, kindHolders, id)) {
			c.found(k, "nobody has the body of message %d", id)
		}
		at := place{b.Queue, b.Channel}
		q := c.queues[b.Queue]
		if q != nil && id > q.SharedThrough {
			octets[at] += b.Size()
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.each(kindHolders, func(k, v []byte) error {
		if len(k) != 9 {
			return errCorrupt
		}
		says, err := decodeHolders(v)
		if err != nil {
			return err
		}
		id, have := queue.MessageID(be.Uint64(k[1:])), uint32(0)
		b, err := c.body(id)
		if err != nil {
			return err
		}
		if b == nil {
			c.found(k, "message %d is had by %d lanes, and its body is not there", id, says)
			return nil
		}
		for _, lane := range lanes[place{b.Queue, b.Channel}] {
			if c.has(rowKey(nil, kindMessage, lane, id)) {
				have++
			}
		}
		for lane := range c.removals {
			if c.has(rowKey(nil, kindMessage, lane, id)) {
				have++
			}
		}
		if says != have {
			c.found(k, "message %d says that %d lanes have it, and %d do", id, says, have)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.each(kindShared, func(k, v []byte) error {
		if len(k) < 9 {
			return errCorrupt
		}
		says, err := decodeShared(v)
		if err != nil {
			return err
		}
		at := place{QueueNumber(be.Uint64(k[1:])), string(k[9:])}
		if have := octets[at]; says != have {
			c.found(k, "queue %d says that groups share %d octets in channel %q, and they share %d", at.queue, says, at.channel, have)
		}
		delete(octets, at)
		return nil
	})
	for at, have := range octets {
		if have > 0 {
			c.found(nil, "queue %d does not say that groups share %d octets in channel %q", at.queue, have, at.channel)
		}
	}
	return err
}

// readWork looks at the rows of work requests, which come in pairs.
func (c *check) readWork() error {
	return c.each(kindWorkRequest, func(k, v []byte) error {
		switch {
		case len(k) >= 2 && k[1] == 1:
			var w queue.WorkRequest
			if err := parseJSON(v, &w); err != nil {
				return err
			}
			if !bytes.Equal(k, workKey(nil, w.AcceptedAt, w.ID)) || !c.has(workIDKey(nil, w.ID)) {
				c.found(k, "row %s holds work request %q, which cannot be found by its id", keyText(k), w.ID)
			}
		case len(k) >= 2 && k[1] == 2 && len(v) == 8:
			if !c.has(workKey(nil, queue.Instant(be.Uint64(v)), string(k[2:]))) {
				c.found(k, "work request %q is not there", k[2:])
			}
		default:
			return errCorrupt
		}
		return nil
	})
}

// readTokens looks at the rows of retry tokens, which come in pairs.
func (c *check) readTokens() error {
	return c.each(kindRetryToken, func(k, v []byte) error {
		switch {
		case len(k) > 10 && k[1] == 1:
			if scope, token, ok := cut(k[10:]); !ok {
				return errCorrupt
			} else if !c.has(tokenKey(nil, scope, token)) {
				c.found(k, "row %s has no retry token", keyText(k))
			}
			return nil
		case len(k) < 2 || k[1] != 2:
			return errCorrupt
		}
		scope, token, ok := cut(k[2:])
		t := RetryToken{Scope: scope, Token: token}
		r := coder{b: v, reading: true}
		if t.code(&r); !ok || r.done() != nil {
			return errCorrupt
		}
		if !c.has(tokenHourKey(nil, t.hour(), scope, token)) {
			c.found(k, "the retry token %x is in no hour: it would stay for ever", k)
		}
		return nil
	})
}
