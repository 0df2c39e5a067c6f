package store

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queued-mq/queued/queue"
)

// Message reads one message; found is false when it is gone.
func (s *Store) Message(lane LaneID, id queue.MessageID) (m Message, e Entry, found bool, err error) {
	var buf [laneKeyLen]byte
	v, closer, err := s.db.Get(rowKey(buf[:0], kindMessage, lane, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return m, e, false, nil
	}
	if err != nil {
		return m, e, false, fmt.Errorf("read message: %w", err)
	}
	m, size, err := decodeMessage(v)
	if err = errors.Join(err, closer.Close()); err != nil {
		return m, e, false, fmt.Errorf("read message %d of lane %d: %w", id, lane, err)
	}
	if m.Shared {
		if found, err = s.join(id, &m); err != nil || !found {
			return m, e, false, err
		}
	}
	return m, m.entry(id, size), true, nil
}

// join adds what stands in the b row of a message; found is false when that is
// gone, and with it the message.
func (s *Store) join(id queue.MessageID, m *Message) (found bool, err error) {
	b, found, err := s.Body(id)
	if found {
		m.Message = b.Message
	}
	return found, err
}

// Body reads the body of a message that several groups have.
func (s *Store) Body(id queue.MessageID) (b *Body, found bool, err error) {
	var buf [1 + 8]byte
	v, closer, err := s.db.Get(idKey(buf[:0], kindBody, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read body: %w", err)
	}
	b, err = decodeBody(id, v)
	if err = errors.Join(err, closer.Close()); err != nil {
		return nil, false, fmt.Errorf("read body %d: %w", id, err)
	}
	return b, true, nil
}

// Holders reads how many lanes have a message whose body is in a b row; 0: it
// is gone.
func (s *Store) Holders(id queue.MessageID) (uint32, error) {
	v, found, err := s.get(idKey(nil, kindHolders, id))
	if err != nil || !found {
		return 0, err
	}
	n, err := decodeHolders(v)
	if err != nil {
		return 0, fmt.Errorf("read holders of %d: %w", id, err)
	}
	return n, nil
}

func decodeHolders(v []byte) (n uint32, err error) {
	c := coder{b: v, reading: true}
	c.version(rowVersion)
	number(&c, &n)
	return n, c.done()
}

// SharedIn reads how many octets of bodies several groups have in a channel.
func (s *Store) SharedIn(q QueueNumber, channel string) (int64, error) {
	key := sharedKey(nil, q, channel)
	v, found, err := s.get(key)
	if err != nil || !found {
		return 0, err
	}
	n, err := decodeShared(v)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", keyText(key), err)
	}
	return n, nil
}

func decodeShared(v []byte) (n int64, err error) {
	c := coder{b: v, reading: true}
	c.version(rowVersion)
	number(&c, &n)
	return n, c.done()
}

// Returned reads the v row of a message; found is false when it has none.
func (s *Store) Returned(lane LaneID, id queue.MessageID) (e Entry, found bool, err error) {
	var buf [laneKeyLen]byte
	v, closer, err := s.db.Get(rowKey(buf[:0], kindReturned, lane, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("read returned: %w", err)
	}
	e, err = decodeReturned(id, v)
	if err = errors.Join(err, closer.Close()); err != nil {
		return e, false, fmt.Errorf("read returned %d of lane %d: %w", id, lane, err)
	}
	return e, true, nil
}

func decodeReturned(id queue.MessageID, v []byte) (Entry, error) {
	e := Entry{ID: id}
	c := coder{b: v, reading: true}
	c.version(rowVersion)
	e.code(&c)
	return e, c.done()
}

// Delayed reports whether the t row of a message is there.
func (s *Store) Delayed(t Timer) (bool, error) {
	_, found, err := s.get(timerKey(nil, kindDue, t.At, t.Lane, t.ID))
	return found, err
}

// ScannedMessage is a row of a scan: a message with what the engine must know of it.
type ScannedMessage struct {
	Entry
	Message
}

// ScanMessages reads up to max messages of the lane in the order of their ids,
// from the id from on, and stops early when their rows have more than
// maxBytes octets in all. more is false when it has come to the end of the
// lane. With heads only, the bodies are left out.
func (s *Store) ScanMessages(lane LaneID, from queue.MessageID, max int, maxBytes int64, heads bool) (out []ScannedMessage, more bool, err error) {
	var read int64
	err = s.scan(lanePrefix(nil, kindMessage, lane), rowKey(nil, kindMessage, lane, from), func(k, v []byte) error {
		if len(out) == max || read > maxBytes {
			more = true
			return errStop
		}
		_, id, ok := parseRowKey(k)
		if !ok {
			return errCorrupt
		}
		var m Message
		var size uint32
		c := coder{b: v, reading: true}
		if m.codeHead(&c, &size); c.bad {
			return errCorrupt
		}
		switch {
		case heads:
		case m.Shared: // if it is gone by now, so is the message
			if _, err := s.join(id, &m); err != nil {
				return err
			}
			read += m.Size()
		default:
			m.Body = append([]byte(nil), c.b...)
		}
		read += int64(len(v))
		out = append(out, ScannedMessage{m.entry(id, size), m})
		return nil
	})
	return out, more, err
}

// ScanReturned reads up to max v rows of the lane, like ScanMessages.
func (s *Store) ScanReturned(lane LaneID, from queue.MessageID, max int) (out []Entry, more bool, err error) {
	err = s.scan(lanePrefix(nil, kindReturned, lane), rowKey(nil, kindReturned, lane, from), func(k, v []byte) error {
		if len(out) == max {
			more = true
			return errStop
		}
		_, id, ok := parseRowKey(k)
		if !ok {
			return errCorrupt
		}
		e, err := decodeReturned(id, v)
		out = append(out, e)
		return err
	})
	return out, more, err
}

// Lane reads the row of a lane.
func (s *Store) Lane(k LaneKey) (l Lane, found bool, err error) {
	return s.lane(laneKey(nil, k))
}

// DeadLane reads the row of the dead lane of that number.
func (s *Store) DeadLane(id LaneID) (l Lane, found bool, err error) {
	key, found, err := s.get(deadLaneKey(nil, id))
	if err != nil || !found {
		return l, false, err
	}
	return s.lane(key)
}

func (s *Store) lane(key []byte) (l Lane, found bool, err error) {
	v, found, err := s.get(key)
	if err != nil || !found {
		return l, false, err
	}
	if l, err = decodeLane(key, v); err != nil {
		return l, false, fmt.Errorf("read lane %x: %w", key, err)
	}
	return l, true, nil
}

// ScanDeadLanes reads up to max dead lanes of the group that of is of, in the
// order of their channels, from the channel from on. more is false when it has come to the
// last.
func (s *Store) ScanDeadLanes(of LaneKey, from string, max int) (out []Lane, more bool, err error) {
	prefix := laneKey(nil, LaneKey{Queue: of.Queue, Group: of.Group, Dead: true})
	err = s.scan(prefix, append(prefix[:len(prefix):len(prefix)], from...), func(k, v []byte) error {
		if len(out) == max {
			more = true
			return errStop
		}
		l, err := decodeLane(k, v)
		out = append(out, l)
		return err
	})
	return out, more, err
}

// ScanDue reads up to max t rows from the instant from up to and including
// through.
func (s *Store) ScanDue(from, through queue.Instant, max int) (out []Timer, next queue.Instant, err error) {
	return s.scanTimers(kindDue, from, through, max)
}

// ScanExpiry does the same for x rows.
func (s *Store) ScanExpiry(from, through queue.Instant, max int) (out []Timer, next queue.Instant, err error) {
	return s.scanTimers(kindExpiry, from, through, max)
}

// scanTimers also reports the instant of the first row it left, 0 if there is
// none at all.
func (s *Store) scanTimers(kind byte, from, through queue.Instant, max int) (out []Timer, next queue.Instant, err error) {
	err = s.scan([]byte{kind}, timerKey(nil, kind, from, 0, 0), func(k, _ []byte) error {
		t, ok := parseTimerKey(k)
		if !ok {
			return errCorrupt
		}
		if t.At > through || len(out) == max {
			next = t.At
			return errStop
		}
		out = append(out, t)
		return nil
	})
	return out, next, err
}

// WorkRequest reads one work request.
func (s *Store) WorkRequest(id string) (w queue.WorkRequest, found bool, err error) {
	at, found, err := s.get(workIDKey(nil, id))
	if err != nil || !found {
		return w, false, err
	}
	if len(at) != 8 {
		return w, false, fmt.Errorf("read work request: %w", errCorrupt)
	}
	v, found, err := s.get(workKey(nil, queue.Instant(be.Uint64(at)), id))
	if err != nil || !found {
		return w, false, err
	}
	return w, true, parseJSON(v, &w)
}

// WorkRequests yields the work requests, newest first, that come after the one
// with the id from; "" begins at the newest, an unknown id yields none.
func (s *Store) WorkRequests(from string) iter.Seq2[queue.WorkRequest, error] {
	return func(yield func(queue.WorkRequest, error) bool) {
		prefix := []byte{kindWorkRequest, 1}
		upper := after(prefix)
		if from != "" {
			at, found, err := s.get(workIDKey(nil, from))
			if err != nil || !found || len(at) != 8 {
				if err != nil {
					yield(queue.WorkRequest{}, err)
				}
				return
			}
			upper = workKey(nil, queue.Instant(be.Uint64(at)), from)
		}
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: upper})
		if err != nil {
			yield(queue.WorkRequest{}, fmt.Errorf("read work requests: %w", err))
			return
		}
		defer it.Close()
		for ok := it.Last(); ok; ok = it.Prev() {
			var w queue.WorkRequest
			v, err := it.ValueAndErr()
			if err == nil {
				err = parseJSON(v, &w)
			}
			if !yield(w, err) || err != nil {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(queue.WorkRequest{}, fmt.Errorf("read work requests: %w", err))
		}
	}
}

// RetryToken reads what was stored under the token.
func (s *Store) RetryToken(scope, token string) (t RetryToken, found bool, err error) {
	v, found, err := s.get(tokenKey(nil, scope, token))
	if err != nil || !found {
		return t, false, err
	}
	t = RetryToken{Scope: scope, Token: token}
	c := coder{b: v, reading: true}
	t.code(&c)
	return t, true, c.done()
}

// RetryTokens reads up to max tokens that were used in an hour before that of
// the instant, oldest first. Value is not set, and At only to its hour.
func (s *Store) RetryTokens(before queue.Instant, max int) (out []RetryToken, err error) {
	err = s.scan([]byte{kindRetryToken, 1}, nil, func(k, _ []byte) error {
		if len(k) < 11 {
			return errCorrupt
		}
		hour := be.Uint64(k[2:])
		if hour >= hourOf(before) || len(out) == max {
			return errStop
		}
		scope, token, ok := cut(k[10:])
		if !ok {
			return errCorrupt
		}
		out = append(out, RetryToken{Scope: scope, Token: token, At: queue.Instant(hour * 3_600_000)})
		return nil
	})
	return out, err
}

func cut(b []byte) (scope, token string, ok bool) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), string(b[i+1:]), true
		}
	}
	return "", "", false
}
