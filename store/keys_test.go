package store

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/queued-mq/queued/queue"
)

// named is a key beside what it was made of: the kind, then numbers, then
// texts.
type named struct {
	kind    byte
	numbers []uint64
	texts   []string
	key     []byte
}

func (a named) compare(b named) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), slices.Compare(a.numbers, b.numbers), slices.Compare(a.texts, b.texts))
}

// anyNumber draws from few numbers, so that keys share their beginnings, and
// from all.
func anyNumber(t *rapid.T, label string) uint64 {
	return rapid.OneOf(
		rapid.SampledFrom([]uint64{0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0xffff, 1 << 32, 1<<53 - 1, math.MaxInt64}),
		rapid.Uint64Max(math.MaxInt64),
	).Draw(t, label)
}

// anyName has no NUL; what may stand before another text never has one.
func anyName(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "aa", "ab", "b", "\x01", "\xff", "é"}),
		rapid.StringMatching(`[A-Za-z0-9_./-]{1,12}`),
	).Draw(t, label)
}

func anyKey(t *rapid.T, label string) named {
	kind := rapid.SampledFrom([]byte{
		kindMessage, kindLease, kindReturned, kindDue, kindExpiry, kindLane, kindDeadLane, kindRemoval, kindQueue, kindWorkRequest, kindRetryToken, kindStore,
	}).Draw(t, label)
	n := func(label string) uint64 { return anyNumber(t, label) }
	k := named{kind: kind}
	switch kind {
	case kindMessage, kindLease, kindReturned:
		k.numbers = []uint64{n("lane"), n("id")}
		k.key = rowKey(nil, kind, LaneID(k.numbers[0]), queue.MessageID(k.numbers[1]))
	case kindDue, kindExpiry:
		k.numbers = []uint64{n("at"), n("lane"), n("id")}
		k.key = timerKey(nil, kind, queue.Instant(k.numbers[0]), LaneID(k.numbers[1]), queue.MessageID(k.numbers[2]))
	case kindLane:
		k.numbers = []uint64{n("queue"), uint64(uint32(n("group"))), uint64(rapid.IntRange(0, 1).Draw(t, "dead"))}
		k.texts = []string{anyName(t, "channel")}
		k.key = laneKey(nil, LaneKey{QueueNumber(k.numbers[0]), uint32(k.numbers[1]), k.numbers[2] == 1, k.texts[0]})
	case kindDeadLane:
		k.numbers = []uint64{n("lane")}
		k.key = deadLaneKey(nil, LaneID(k.numbers[0]))
	case kindRemoval:
		k.numbers = []uint64{n("lane")}
		k.key = removalKey(nil, LaneID(k.numbers[0]))
	case kindQueue:
		k.numbers = []uint64{n("queue")}
		k.key = queueKey(nil, QueueNumber(k.numbers[0]))
	case kindWorkRequest:
		k.texts = []string{anyName(t, "id")}
		if rapid.Bool().Draw(t, "by id") {
			k.numbers = []uint64{2}
			k.key = workIDKey(nil, k.texts[0])
		} else {
			k.numbers = []uint64{1, n("accepted")}
			k.key = workKey(nil, queue.Instant(k.numbers[1]), k.texts[0])
		}
	case kindRetryToken:
		k.texts = []string{anyName(t, "scope"), anyName(t, "token")}
		if rapid.Bool().Draw(t, "by scope") {
			k.numbers = []uint64{2}
			k.key = tokenKey(nil, k.texts[0], k.texts[1])
		} else {
			k.numbers = []uint64{1, n("hour")}
			k.key = tokenHourKey(nil, k.numbers[1], k.texts[0], k.texts[1])
		}
	case kindStore:
		k.texts = []string{anyName(t, "name")}
		k.key = storeKey(k.texts[0])
	}
	return k
}

// TestKeyOrder: the order of the octets is the order of kind, numbers, texts;
// so two keys are equal only if they mean the same.
func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey(t, "a"), anyKey(t, "b")
		if got, want := bytes.Compare(a.key, b.key), a.compare(b); got != want {
			t.Fatalf("keys %x and %x compare as %d, what they mean as %d", a.key, b.key, got, want)
		}
	})
}

func TestKeysAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t, "key")
		switch k.kind {
		case kindMessage, kindLease, kindReturned:
			lane, id, ok := parseRowKey(k.key)
			if !ok || lane != LaneID(k.numbers[0]) || id != queue.MessageID(k.numbers[1]) {
				t.Fatalf("%x is lane %d id %d %v", k.key, lane, id, ok)
			}
		case kindDue, kindExpiry:
			timer, ok := parseTimerKey(k.key)
			if want := (Timer{queue.Instant(k.numbers[0]), LaneID(k.numbers[1]), queue.MessageID(k.numbers[2])}); !ok || timer != want {
				t.Fatalf("%x is %+v %v", k.key, timer, ok)
			}
		case kindLane:
			l, ok := parseLaneKey(k.key)
			if want := (LaneKey{QueueNumber(k.numbers[0]), uint32(k.numbers[1]), k.numbers[2] == 1, k.texts[0]}); !ok || l != want {
				t.Fatalf("%x is %+v %v", k.key, l, ok)
			}
		case kindRetryToken:
			if k.numbers[0] != 1 {
				return
			}
			scope, token, ok := cut(k.key[10:])
			if !ok || scope != k.texts[0] || token != k.texts[1] {
				t.Fatalf("%x is %q %q %v", k.key, scope, token, ok)
			}
		}
	})
}

// TestAfter: after is above everything that begins with the prefix, and not
// above anything else.
func TestAfter(t *testing.T) {
	for _, tt := range []struct{ prefix, want []byte }{
		{[]byte{'m'}, []byte{'n'}},
		{[]byte{'m', 0, 0xff}, []byte{'m', 1}},
		{[]byte{'m', 0xff, 0xff}, []byte{'n'}},
		{[]byte{0xff, 0xff}, nil},
	} {
		if got := after(tt.prefix); !bytes.Equal(got, tt.want) {
			t.Errorf("after(%x) = %x, want %x", tt.prefix, got, tt.want)
		}
	}
	if got := lanePrefix(nil, kindMessage, math.MaxUint64); bytes.Compare(after(got), rowKey(nil, kindMessage, math.MaxUint64, math.MaxUint64)) <= 0 {
		t.Errorf("the last lane ends before its last message")
	}
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t, "key").key
		prefix := k[:rapid.IntRange(1, len(k)).Draw(t, "length")]
		if end := after(prefix); bytes.Compare(k, end) >= 0 || bytes.HasPrefix(end, prefix) {
			t.Fatalf("after(%x) = %x", prefix, end)
		}
	})
}

// FuzzKeys gives the parsers what they did not make: they refuse it, or it is
// the key of what they say.
func FuzzKeys(f *testing.F) {
	for _, k := range pinned(f, "keys.golden") {
		f.Add(k)
		f.Add(k[:len(k)-1])
		f.Add(append(k, 0))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, k []byte) {
		if lane, id, ok := parseRowKey(k); ok && !bytes.Equal(rowKey(nil, k[0], lane, id), k) {
			t.Errorf("%x is read as lane %d id %d", k, lane, id)
		}
		if timer, ok := parseTimerKey(k); ok && !bytes.Equal(timerKey(nil, k[0], timer.At, timer.Lane, timer.ID), k) {
			t.Errorf("%x is read as %+v", k, timer)
		}
		if l, ok := parseLaneKey(k); ok && !bytes.Equal(laneKey(nil, l)[1:], k[1:]) {
			t.Errorf("%x is read as %+v", k, l)
		}
		if len(k) > 10 {
			if scope, token, ok := cut(k[10:]); ok && !bytes.Equal(append(append([]byte(scope), 0), token...), k[10:]) {
				t.Errorf("%x is read as %q %q", k, scope, token)
			}
		}
	})
}
