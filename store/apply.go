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
	for i := range cs.Effects {
		if err := a.effect(b, &cs.Effects[i]); err != nil {
			return err
		}
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

func (a *applier) effect(b *pebble.Batch, e *Effect) error {
	id, lane := e.Entry.ID, e.Lane
	switch e.Kind {
	case Put:
		if e.Message.DueAt != 0 {
			if err := b.Set(timerKey(a.key[:0], kindDue, e.Message.DueAt, lane, id), nil, nil); err != nil {
				return err
			}
		}
		return a.put(b, lane, &e.Entry, e.Message)
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
		if err := a.drop(b, e); err != nil {
			return err
		}
		if err := a.put(b, e.To, &e.ToEntry, e.Message); err != nil {
			return err
		}
		return a.returned(b, e.To, &e.ToEntry)
	case Drop:
		return a.drop(b, e)
	case Forget:
		kind := byte(kindExpiry)
		if e.From == Delayed {
			kind = kindDue
		}
		return a.delete(b, timerKey(a.key[:0], kind, e.At, lane, id))
	}
	return fmt.Errorf("apply: effect of unknown kind %d", e.Kind)
}

// put writes the m row and, if it has one, the x row.
func (a *applier) put(b *pebble.Batch, lane LaneID, e *Entry, m *Message) error {
	if e.Indexed {
		if err := b.Set(timerKey(a.key[:0], kindExpiry, e.ExpireAfter, lane, e.ID), nil, nil); err != nil {
			return err
		}
	}
	c := a.coder()
	size := e.Size
	m.codeHead(c, &size)
	op := b.SetDeferred(laneKeyLen, len(c.b)+len(m.Body))
	rowKey(op.Key[:0], kindMessage, lane, e.ID)
	copy(op.Value[copy(op.Value, c.b):], m.Body)
	return op.Finish()
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

func (a *applier) drop(b *pebble.Batch, e *Effect) error {
	if err := a.leave(b, e); err != nil {
		return err
	}
	if e.Entry.Indexed {
		if err := a.delete(b, timerKey(a.key[:0], kindExpiry, e.Entry.ExpireAfter, e.Lane, e.Entry.ID)); err != nil {
			return err
		}
	}
	return a.delete(b, rowKey(a.key[:0], kindMessage, e.Lane, e.Entry.ID))
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
