package store

import (
	"encoding/binary"
	"fmt"

	"github.com/queued-mq/queued/queue"
)

// LaneID numbers a lane: the messages of one channel of one queue, or of its
// dead letter queue. A lane that has become empty, or was purged, is never
// used again: what comes later stands in a new lane. So whatever bears an old
// number (a receipt, a timer row) matches nothing.
type LaneID uint64

// QueueNumber numbers a queue inside one store; like all numbers it rises and
// is never reused.
type QueueNumber uint64

// The keys. One letter says the kind; integers are 8 octets, big-endian, so
// that byte order is the order of the numbers.
//
//	m lane id                       a message: times, properties, body
//	l lane id                       its lease, while it is in flight
//	v lane id                       its place among the returned ones: visible, delivered before or delayed before
//	t due lane id                   it is delayed until due
//	x expiry lane id                it expires at expiry, which is not in the order of the ids
//	c queue group dead channel      a lane: its number, cursor, counters
//	d lane                          which dead lane has that number: not all of them are in memory
//	b id                            the body of a message that several groups have, once
//	h id                            how many of them have it still
//	u queue channel                 octets of such bodies in that channel
//	z lane                          a lane whose messages are gone and whose rows are yet to be removed
//	q queue                         a queue: settings and state
//	w 1 accepted id                 a work request
//	w 2 id                          when that work request was accepted
//	r 1 hour scope 0 token          a retry token, by the hour it was used, so that old hours go at once
//	r 2 scope 0 token               what was answered under it, and the hour
//	s name                          the store itself: format, state, receipt key
//
// group is 4 octets (0: the primary consumer group, all there is without groups;
// ffffffff: what no group accepted), dead is 1 octet
// (0: the queue, 1: its dead letter queue), channel is the rest.
const (
	kindMessage     = 'm'
	kindLease       = 'l'
	kindReturned    = 'v'
	kindDue         = 't'
	kindExpiry      = 'x'
	kindLane        = 'c'
	kindDeadLane    = 'd'
	kindBody        = 'b'
	kindHolders     = 'h'
	kindShared      = 'u'
	kindRemoval     = 'z'
	kindQueue       = 'q'
	kindWorkRequest = 'w'
	kindRetryToken  = 'r'
	kindStore       = 's'
)

const (
	laneKeyLen  = 1 + 8 + 8     // m, l, v
	timerKeyLen = 1 + 8 + 8 + 8 // t, x
)

var be = binary.BigEndian

func u64(b []byte, n uint64) []byte { return be.AppendUint64(b, n) }

// rowKey appends the key of a row of one message: kind is m, l or v.
func rowKey(b []byte, kind byte, lane LaneID, id queue.MessageID) []byte {
	return u64(u64(append(b, kind), uint64(lane)), uint64(id))
}

// lanePrefix appends what every key of that kind in the lane begins with.
func lanePrefix(b []byte, kind byte, lane LaneID) []byte {
	return u64(append(b, kind), uint64(lane))
}

// timerKey appends the key of a timer row: kind is t or x.
func timerKey(b []byte, kind byte, at queue.Instant, lane LaneID, id queue.MessageID) []byte {
	return u64(u64(u64(append(b, kind), uint64(at)), uint64(lane)), uint64(id))
}

// Timer is a due or an expiry row.
type Timer struct {
	At   queue.Instant
	Lane LaneID
	ID   queue.MessageID
}

func parseRowKey(k []byte) (LaneID, queue.MessageID, bool) {
	if len(k) != laneKeyLen {
		return 0, 0, false
	}
	return LaneID(be.Uint64(k[1:])), queue.MessageID(be.Uint64(k[9:])), true
}

func parseTimerKey(k []byte) (Timer, bool) {
	if len(k) != timerKeyLen {
		return Timer{}, false
	}
	return Timer{queue.Instant(be.Uint64(k[1:])), LaneID(be.Uint64(k[9:])), queue.MessageID(be.Uint64(k[17:]))}, true
}

// UnroutedGroup is the number of the group of what no consumer group accepted.
const UnroutedGroup = 1<<32 - 1

// LaneKey names a lane by what it is for.
type LaneKey struct {
	Queue   QueueNumber
	Group   uint32 // 0: the primary consumer group, or the queue without groups
	Dead    bool   // of the dead letter queue
	Channel string // "": outside all channels
}

func laneKey(b []byte, k LaneKey) []byte {
	b = u64(append(b, kindLane), uint64(k.Queue))
	b = be.AppendUint32(b, k.Group)
	if k.Dead {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return append(b, k.Channel...)
}

func parseLaneKey(b []byte) (k LaneKey, ok bool) {
	if len(b) < 14 || b[13] > 1 {
		return k, false
	}
	return LaneKey{QueueNumber(be.Uint64(b[1:])), be.Uint32(b[9:]), b[13] == 1, string(b[14:])}, true
}

func deadLaneKey(b []byte, lane LaneID) []byte { return u64(append(b, kindDeadLane), uint64(lane)) }

// idKey appends the key of a row of a message that several groups have: kind
// is b or h.
func idKey(b []byte, kind byte, id queue.MessageID) []byte { return u64(append(b, kind), uint64(id)) }

func sharedKey(b []byte, q QueueNumber, channel string) []byte {
	return append(u64(append(b, kindShared), uint64(q)), channel...)
}

func removalKey(b []byte, lane LaneID) []byte { return u64(append(b, kindRemoval), uint64(lane)) }

func queueKey(b []byte, n QueueNumber) []byte { return u64(append(b, kindQueue), uint64(n)) }

func workKey(b []byte, at queue.Instant, id string) []byte {
	return append(u64(append(b, kindWorkRequest, 1), uint64(at)), id...)
}

func workIDKey(b []byte, id string) []byte { return append(append(b, kindWorkRequest, 2), id...) }

func tokenHourKey(b []byte, hour uint64, scope, token string) []byte {
	b = u64(append(b, kindRetryToken, 1), hour)
	return append(append(append(b, scope...), 0), token...)
}

func tokenKey(b []byte, scope, token string) []byte {
	return append(append(append(append(b, kindRetryToken, 2), scope...), 0), token...)
}

func storeKey(name string) []byte { return append([]byte{kindStore}, name...) }

// after is the first key behind every key that begins with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// keyText is a key in words: its kind and its fields, "" for none. One that is
// not ours is its octets.
func keyText(k []byte) string {
	if len(k) == 0 {
		return ""
	}
	switch k[0] {
	case kindMessage, kindLease, kindReturned:
		if lane, id, ok := parseRowKey(k); ok {
			return fmt.Sprintf("%c lane %d id %d", k[0], lane, id)
		}
	case kindDue, kindExpiry:
		if t, ok := parseTimerKey(k); ok {
			return fmt.Sprintf("%c at %d lane %d id %d", k[0], t.At, t.Lane, t.ID)
		}
	case kindLane:
		if l, ok := parseLaneKey(k); ok {
			return fmt.Sprintf("c queue %d group %d dead %v channel %q", l.Queue, l.Group, l.Dead, l.Channel)
		}
	case kindDeadLane, kindRemoval, kindQueue, kindBody, kindHolders:
		if len(k) == 9 {
			return fmt.Sprintf("%c %d", k[0], be.Uint64(k[1:]))
		}
	case kindShared:
		if len(k) >= 9 {
			return fmt.Sprintf("u queue %d channel %q", be.Uint64(k[1:]), k[9:])
		}
	case kindWorkRequest:
		if len(k) > 10 && k[1] == 1 {
			return fmt.Sprintf("w at %d id %q", be.Uint64(k[2:]), k[10:])
		}
		if len(k) > 2 && k[1] == 2 {
			return fmt.Sprintf("w id %q", k[2:])
		}
	case kindRetryToken: // without the token itself
		if len(k) > 10 && k[1] == 1 {
			scope, _, _ := cut(k[10:])
			return fmt.Sprintf("r hour %d scope %q", be.Uint64(k[2:]), scope)
		}
		if len(k) > 2 && k[1] == 2 {
			scope, _, _ := cut(k[2:])
			return fmt.Sprintf("r scope %q", scope)
		}
	case kindStore:
		return fmt.Sprintf("s %q", k[1:])
	}
	return fmt.Sprintf("%x", k)
}
