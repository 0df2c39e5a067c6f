package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// applier builds the batch of one ChangeSet. Its buffers are kept from one to
// the next, so a commit costs no memory beyond the batch.
type applier struct {
	key []byte
	c   coder
}

// coder is the applier's own, empty: what is coded with it, write stores.
func (a *applier) coder() *coder {
	a.c = coder{b: a.c.b[:0]}
	return &a.c
}

func (a *applier) write(b *pebble.Batch, key []byte) error {
	a.key = key
	return b.Set(key, a.c.b, nil)
}

// apply is the whole of what a ChangeSet means on disk: a pure function from
// the ChangeSet to the batch. It looks at no clock, no setting, and not at the
// database.
func (a *applier) apply(b *pebble.Batch, cs *ChangeSet) error {
	// Messages that come, those that go, then the rows that say where they
	// stand: a memtable finds the place of a key soonest next to the key before.
	// A message comes once and goes once, in that order.
	for _, write := range [...]func(*applier, *pebble.Batch, *Effect) error{(*applier).arrive, (*applier).depart, (*applier).move} {
		for i := range cs.Effects {
			if err := write(a, b, &cs.Effects[i]); err != nil {
				return err
			}
		}
	}
	if err := a.share(b, cs); err != nil {
		return err
	}
	// A lane that was given up may have a successor under the same key.
	for i := range cs.GoneLanes {
		l := &cs.GoneLanes[i]
		if err := a.delete(b, laneKey(a.key[:0], l.Key)); err != nil {
			return err
		}
		if l.Key.Dead {
			if err := a.delete(b, deadLaneKey(a.key[:0], l.ID)); err != nil {
				return err
			}
		}
	}
	for i := range cs.Lanes {
		l := &cs.Lanes[i]
		l.code(a.coder())
		if err := a.write(b, laneKey(a.key[:0], l.Key)); err != nil {
			return err
		}
		if l.Key.Dead {
			if err := b.Set(deadLaneKey(nil, l.ID), a.key, nil); err != nil {
				return err
			}
		}
	}
	for _, lane := range cs.Removals {
		if err := b.Set(removalKey(a.key[:0], lane), []byte{rowVersion}, nil); err != nil {
			return err
		}
	}
	for _, lane := range cs.Removed {
		for _, kind := range []byte{kindMessage, kindLease, kindReturned} {
			if err := b.DeleteRange(lanePrefix(nil, kind, lane), lanePrefix(nil, kind, lane+1), nil); err != nil {
				return err
			}
		}
		if err := a.delete(b, removalKey(a.key[:0], lane)); err != nil {
			return err
		}
	}
	if err := a.admin(b, cs); err != nil {
		return err
	}
	cs.State.code(a.coder())
	return a.write(b, append(a.key[:0], stateKey...))
}

// arrive writes the m row of a message that is new in its lane.
func (a *applier) arrive(b *pebble.Batch, e *Effect) error {
	switch e.Kind {
	case Put:
		return a.message(b, e.Lane, &e.Entry, e.Message)
	case Bury:
		return a.message(b, e.To, &e.ToEntry, e.Message)
	}
	return nil
}

// depart removes the m row of a message that leaves its lane.
func (a *applier) depart(b *pebble.Batch, e *Effect) error {
	if e.Kind == Drop || e.Kind == Bury || e.Kind == Release {
		return a.delete(b, rowKey(a.key[:0], kindMessage, e.Lane, e.Entry.ID))
	}
	return nil
}

// move writes the rows that say which state the message is in.
func (a *applier) move(b *pebble.Batch, e *Effect) error {
	id, lane := e.Entry.ID, e.Lane
	switch e.Kind {
	case Put:
		if e.Message.DueAt != 0 {
			if err := b.Set(timerKey(a.key[:0], kindDue, e.Message.DueAt, lane, id), nil, nil); err != nil {
				return err
			}
		}
		return a.index(b, lane, &e.Entry)
	case Take:
		if e.From == Returned {
			if err := a.leave(b, e); err != nil {
				return err
			}
		}
		l := Lease{Entry: e.Entry, VisibleAfter: e.At}
		l.code(a.coder())
		return a.write(b, rowKey(a.key[:0], kindLease, lane, id))
	case Return:
		if e.From != Returned { // a returned one is written over
			if err := a.leave(b, e); err != nil {
				return err
			}
		}
		return a.returned(b, lane, &e.Entry)
	case Bury:
		if err := a.end(b, e); err != nil {
			return err
		}
		if err := a.index(b, e.To, &e.ToEntry); err != nil {
			return err
		}
		return a.returned(b, e.To, &e.ToEntry)
	case Drop:
		return a.end(b, e)
	case Forget:
		kind := byte(kindExpiry)
		if e.From == Delayed {
			kind = kindDue
		}
		return a.delete(b, timerKey(a.key[:0], kind, e.At, lane, id))
	case Release:
		return nil
	}
	return fmt.Errorf("apply: effect of unknown kind %d", e.Kind)
}

// message writes the m row.
func (a *applier) message(b *pebble.Batch, lane LaneID, e *Entry, m *Message) error {
	c := a.coder()
	size := e.Size
	m.codeHead(c, &size)
	body := m.Body
	if m.Shared {
		body = nil
	}
	op := b.SetDeferred(laneKeyLen, len(c.b)+len(body))
	rowKey(op.Key[:0], kindMessage, lane, e.ID)
	copy(op.Value[copy(op.Value, c.b):], body)
	return op.Finish()
}

// share writes what several groups have together.
func (a *applier) share(b *pebble.Batch, cs *ChangeSet) error {
	for i := range cs.Bodies {
		m := &cs.Bodies[i]
		c := a.coder()
		m.codeHead(c)
		op := b.SetDeferred(1+8, len(c.b)+len(m.Body))
		idKey(op.Key[:0], kindBody, m.ID)
		copy(op.Value[copy(op.Value, c.b):], m.Body)
		if err := op.Finish(); err != nil {
			return err
		}
	}
	for i := range cs.Holders {
		h := &cs.Holders[i]
		if h.Lanes == 0 {
			for _, kind := range []byte{kindBody, kindHolders} {
				if err := a.delete(b, idKey(a.key[:0], kind, h.ID)); err != nil {
					return err
				}
			}
			continue
		}
		c := a.coder()
		c.version(rowVersion)
		number(c, &h.Lanes)
		if err := a.write(b, idKey(a.key[:0], kindHolders, h.ID)); err != nil {
			return err
		}
	}
	for _, q := range cs.Unshared {
		if err := b.DeleteRange(sharedKey(nil, q, ""), sharedKey(nil, q+1, ""), nil); err != nil {
			return err
		}
	}
	for i := range cs.Shared {
		s := &cs.Shared[i]
		key := sharedKey(a.key[:0], s.Queue, s.Channel)
		if s.Bytes == 0 {
			if err := a.delete(b, key); err != nil {
				return err
			}
			continue
		}
		c := a.coder()
		c.version(rowVersion)
		number(c, &s.Bytes)
		if err := a.write(b, key); err != nil {
			return err
		}
	}
	return nil
}

// index writes the x row, if the message has one.
func (a *applier) index(b *pebble.Batch, lane LaneID, e *Entry) error {
	if !e.Indexed {
		return nil
	}
	return b.Set(timerKey(a.key[:0], kindExpiry, e.ExpireAfter, lane, e.ID), nil, nil)
}

func (a *applier) returned(b *pebble.Batch, lane LaneID, e *Entry) error {
	c := a.coder()
	c.version(rowVersion)
	e.code(c)
	return a.write(b, rowKey(a.key[:0], kindReturned, lane, e.ID))
}

// leave removes the row that says which state the message is in.
func (a *applier) leave(b *pebble.Batch, e *Effect) error {
	switch e.From {
	case Returned:
		return a.delete(b, rowKey(a.key[:0], kindReturned, e.Lane, e.Entry.ID))
	case Leased:
		return a.delete(b, rowKey(a.key[:0], kindLease, e.Lane, e.Entry.ID))
	case Delayed:
		return a.delete(b, timerKey(a.key[:0], kindDue, e.At, e.Lane, e.Entry.ID))
	}
	return nil
}

// end removes all rows but the m row.
func (a *applier) end(b *pebble.Batch, e *Effect) error {
	if err := a.leave(b, e); err != nil {
		return err
	}
	if !e.Entry.Indexed {
		return nil
	}
	return a.delete(b, timerKey(a.key[:0], kindExpiry, e.Entry.ExpireAfter, e.Lane, e.Entry.ID))
}

func (a *applier) delete(b *pebble.Batch, key []byte) error {
	a.key = key
	return b.Delete(key, nil)
}

// admin writes the rows of the control plane.
func (a *applier) admin(b *pebble.Batch, cs *ChangeSet) error {
	for i := range cs.Queues {
		if err := a.json(b, queueKey(nil, cs.Queues[i].Number), &cs.Queues[i]); err != nil {
			return err
		}
	}
	for _, n := range cs.GoneQueues {
		if err := a.delete(b, queueKey(nil, n)); err != nil {
			return err
		}
	}
	for i := range cs.Work {
		w := &cs.Work[i]
		if err := a.json(b, workKey(nil, w.AcceptedAt, w.ID), w); err != nil {
			return err
		}
		if err := b.Set(workIDKey(nil, w.ID), u64(nil, uint64(w.AcceptedAt)), nil); err != nil {
			return err
		}
	}
	for i := range cs.GoneWork {
		w := &cs.GoneWork[i]
		if err := a.delete(b, workKey(nil, w.AcceptedAt, w.ID)); err != nil {
			return err
		}
		if err := a.delete(b, workIDKey(nil, w.ID)); err != nil {
			return err
		}
	}
	// A token that was dropped may be used again.
	for i := range cs.GoneTokens {
		t := &cs.GoneTokens[i]
		if err := a.delete(b, tokenHourKey(nil, t.hour(), t.Scope, t.Token)); err != nil {
			return err
		}
		if err := a.delete(b, tokenKey(nil, t.Scope, t.Token)); err != nil {
			return err
		}
	}
	for i := range cs.Tokens {
		t := &cs.Tokens[i]
		if err := b.Set(tokenHourKey(nil, t.hour(), t.Scope, t.Token), nil, nil); err != nil {
			return err
		}
		t.code(a.coder())
		if err := a.write(b, tokenKey(nil, t.Scope, t.Token)); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) json(b *pebble.Batch, key []byte, v any) error {
	value, err := appendJSON(nil, v)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return b.Set(key, value, nil)
}
