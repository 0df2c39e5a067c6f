package store

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/queued-mq/queued/queue"
)

// What follows draws ChangeSets that hold anything a ChangeSet can, whether
// the broker would make it or not. Numbers are often small, so that effects
// meet on the same rows.

func small[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64 | ~int](t *rapid.T, most T) T {
	return rapid.OneOf(
		rapid.Map(rapid.Uint8Range(0, 3), func(n uint8) T { return T(n) }),
		rapid.Map(rapid.Uint64Max(uint64(most)), func(n uint64) T { return T(n) }),
	).Draw(t, "number")
}

func anyInstant(t *rapid.T) queue.Instant { return small[queue.Instant](t, math.MaxInt64) }
func anyLane(t *rapid.T) LaneID           { return small[LaneID](t, math.MaxUint64) }

func anyBytes(t *rapid.T) []byte {
	if b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "octets"); len(b) > 0 {
		return b
	}
	return nil
}

// anyText is valid UTF-8, as everything is that stands in JSON.
func anyText(t *rapid.T) string { return rapid.StringN(0, 8, 30).Draw(t, "text") }

func anyEntry(t *rapid.T) Entry {
	return Entry{
		ID: small(t, queue.MaxMessageID), ExpireAfter: anyInstant(t), Lease: small[uint64](t, math.MaxUint64),
		Size: small[uint32](t, math.MaxUint32), Deliveries: small[uint32](t, math.MaxUint32),
		Visibility: small[uint16](t, math.MaxUint16), Indexed: rapid.Bool().Draw(t, "indexed"),
	}
}

func anyMessage(t *rapid.T) *Message {
	m := &Message{CreatedAt: anyInstant(t), ExpireAfter: anyInstant(t), Indexed: rapid.Bool().Draw(t, "indexed")}
	m.Body = anyBytes(t)
	if rapid.Bool().Draw(t, "due") {
		m.DueAt = anyInstant(t)
	}
	if rapid.Bool().Draw(t, "visibility") {
		m.Visibility = small[uint16](t, math.MaxUint16)
	}
	if rapid.Bool().Draw(t, "dead") {
		m.Dead = &Dead{anyText(t), small[uint32](t, math.MaxUint32), anyInstant(t)}
	}
	if rapid.Bool().Draw(t, "content type") {
		m.ContentType = anyText(t)
	}
	m.Properties = some(t, 3, func(t *rapid.T) queue.Property { return queue.Property{Name: anyText(t), Value: anyText(t)} })
	return m
}

// some is a short list; an empty one is nil.
func some[T any](t *rapid.T, most int, one func(*rapid.T) T) []T {
	var out []T
	for range rapid.IntRange(0, most).Draw(t, "count") {
		out = append(out, one(t))
	}
	return out
}

func anyEffect(t *rapid.T) Effect {
	e := Effect{
		Kind: Kind(rapid.IntRange(int(Put), int(Forget)).Draw(t, "kind")), From: Row(rapid.IntRange(0, int(Delayed)).Draw(t, "from")),
		Lane: anyLane(t), Entry: anyEntry(t), At: anyInstant(t),
	}
	if e.Kind == Put || e.Kind == Bury || rapid.Bool().Draw(t, "message") {
		e.Message = anyMessage(t)
	}
	if e.Kind == Bury {
		e.To, e.ToEntry = anyLane(t), anyEntry(t)
	}
	return e
}

func anyLaneKey(t *rapid.T) LaneKey {
	return LaneKey{small[QueueNumber](t, math.MaxUint64), small[uint32](t, math.MaxUint32), rapid.Bool().Draw(t, "dead"), anyName(t, "channel")}
}

func anyLaneRow(t *rapid.T) Lane {
	return Lane{
		ID: anyLane(t), Key: anyLaneKey(t),
		Cursor: small(t, queue.MaxMessageID), Oldest: small(t, queue.MaxMessageID), Returning: small[queue.MessageID](t, math.MaxUint64),
		LastAfter: anyInstant(t), Fresh: small[int64](t, math.MaxInt64), Returned: small[int64](t, math.MaxInt64),
		InFlight: small[int64](t, math.MaxInt64), Delayed: small[int64](t, math.MaxInt64), Indexed: small[int64](t, math.MaxInt64),
		Bytes: small[int64](t, math.MaxInt64),
	}
}

func anyQueue(t *rapid.T) Queue {
	q := Queue{Number: small[QueueNumber](t, math.MaxUint64), DeadThrough: anyLane(t), Queue: queueExample().Queue}
	q.DisplayName = anyText(t)
	q.Retention = small[time.Duration](t, math.MaxInt64)
	q.FreeformTags = rapid.MapOfN(rapid.StringN(0, 4, -1), rapid.StringN(0, 4, -1), 1, 3).Draw(t, "tags")
	q.DefinedTags = map[string]map[string]json.RawMessage{anyText(t): {anyText(t): json.RawMessage(rapid.SampledFrom([]string{`1`, `"a"`, `null`, `[true]`}).Draw(t, "tag"))}}
	q.Version = small[uint64](t, math.MaxUint64)
	return q
}

func anyWork(t *rapid.T) queue.WorkRequest {
	w := workExample()
	w.ID, w.AcceptedAt = anyText(t), anyInstant(t)
	w.Logs = some(t, 2, func(t *rapid.T) queue.WorkLog { return queue.WorkLog{Message: anyText(t), At: anyInstant(t)} })
	return w
}

func anyToken(t *rapid.T) RetryToken {
	return RetryToken{Scope: anyName(t, "scope"), Token: anyName(t, "token"), At: anyInstant(t), Value: anyBytes(t)}
}

func anyChangeSet(t *rapid.T) *ChangeSet {
	return &ChangeSet{
		State: State{
			small[uint64](t, math.MaxUint64), anyInstant(t), small(t, queue.MaxMessageID), small[uint64](t, math.MaxUint64),
			anyLane(t), small[QueueNumber](t, math.MaxUint64), anyInstant(t), anyInstant(t),
		},
		Effects:   some(t, 6, anyEffect),
		Lanes:     some(t, 3, anyLaneRow),
		GoneLanes: some(t, 3, func(t *rapid.T) Lane { return Lane{ID: anyLane(t), Key: anyLaneKey(t)} }),
		Removals:  some(t, 2, anyLane),
		Removed:   some(t, 2, anyLane),
		Queues:    some(t, 2, anyQueue),
		GoneQueues: some(t, 2, func(t *rapid.T) QueueNumber {
			return small[QueueNumber](t, math.MaxUint64)
		}),
		Work:       some(t, 2, anyWork),
		GoneWork:   some(t, 2, anyWork),
		Tokens:     some(t, 2, anyToken),
		GoneTokens: some(t, 2, anyToken),
	}
}

func mustEncode(t failer, cs *ChangeSet) []byte {
	b, err := cs.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestChangeSetRoundTrip: what was encoded comes back, and nothing shorter or
// longer is taken for it.
func TestChangeSetRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := anyChangeSet(t)
		b := mustEncode(t, cs)
		got, err := DecodeChangeSet(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cs, got); diff != "" {
			t.Fatalf("decoded (-encoded +decoded):\n%s", diff)
		}
		for range 5 {
			n := rapid.IntRange(0, len(b)-1).Draw(t, "length")
			if cs, err := DecodeChangeSet(b[:n]); err == nil {
				t.Fatalf("the first %d of %d octets are taken for %+v", n, len(b), cs)
			}
		}
		if _, err := DecodeChangeSet(append(b, 0)); err == nil {
			t.Fatal("an octet too many was not missed")
		}
		b[0]++
		if _, err := DecodeChangeSet(b); err == nil {
			t.Fatalf("version %d was read", b[0])
		}
	})
}

// TestChangeSetGarbled: whatever is cut short is refused; one wrong octet is
// refused, or makes another ChangeSet; it never does harm.
func TestChangeSetGarbled(t *testing.T) {
	b := mustEncode(t, exampleChangeSet())
	for i := range b {
		if _, err := DecodeChangeSet(b[:i]); err == nil {
			t.Errorf("the first %d of %d octets are read", i, len(b))
		}
		for _, x := range []byte{0x01, 0x80} {
			wrong := append([]byte(nil), b...)
			wrong[i] ^= x
			if cs, err := DecodeChangeSet(wrong); err == nil {
				again := mustEncode(t, cs)
				if _, err := DecodeChangeSet(again); err != nil {
					t.Errorf("octet %d changed by %x: accepted as something that cannot be read again", i, x)
				}
			}
		}
	}
}

// TestChangeSetThatCannotBeWritten: what has no JSON is refused when it is
// encoded, not when somebody reads it.
func TestChangeSetThatCannotBeWritten(t *testing.T) {
	q := queueExample()
	q.DefinedTags = map[string]map[string]json.RawMessage{"ns": {"key": json.RawMessage(`{`)}}
	cs := ChangeSet{Queues: []Queue{q}}
	if b, err := cs.Encode(); err == nil {
		t.Errorf("encoded as %x", b)
	}
	s := open(t, nil)
	if err := s.Commit(&cs); err == nil {
		t.Error("committed")
	}
}

// exampleChangeSet has an effect of each kind from each state, and one of
// everything else.
func exampleChangeSet() *ChangeSet {
	at := exampleAt
	m := &Message{Message: queue.Message{Body: []byte("body")}, CreatedAt: at, ExpireAfter: at + 1000}
	delayed := *m
	delayed.DueAt, delayed.Indexed = at+500, true
	buried := *m
	buried.Indexed, buried.Dead = true, &Dead{queue.DeliveryCountReached, 5, at}
	e := func(id queue.MessageID) Entry { return Entry{ID: id, ExpireAfter: at + 1000, Size: 4, Deliveries: 1} }
	x := func(id queue.MessageID) Entry { e := e(id); e.Indexed = true; return e }
	several := *m // groups have it, so its body is in a row of its own
	several.Message, several.Shared = queue.Message{}, true
	shared := func(id queue.MessageID) Entry { e := e(id); e.Shared = true; return e }
	return &ChangeSet{
		State: State{1, at, 20, 5, 9, 3, at, at},
		Effects: []Effect{
			{Kind: Put, Lane: 7, Entry: e(1), Message: m},
			{Kind: Put, Lane: 7, Entry: x(2), Message: &delayed},
			{Kind: Take, From: Fresh, Lane: 7, Entry: e(3), At: at + 30},
			{Kind: Take, From: Returned, Lane: 7, Entry: e(4), At: at + 30},
			{Kind: Take, From: Leased, Lane: 7, Entry: e(5), At: at + 60},
			{Kind: Return, From: Leased, Lane: 7, Entry: e(6)},
			{Kind: Return, From: Fresh, Lane: 7, Entry: e(7)},
			{Kind: Return, From: Returned, Lane: 7, Entry: e(8)},
			{Kind: Return, From: Delayed, Lane: 7, Entry: e(9), At: at + 500},
			{Kind: Bury, From: Leased, Lane: 7, Entry: e(10), Message: &buried, To: 8, ToEntry: x(10)},
			{Kind: Bury, From: Returned, Lane: 7, Entry: x(11), Message: &buried, To: 8, ToEntry: x(11)},
			{Kind: Drop, From: Fresh, Lane: 7, Entry: e(12)},
			{Kind: Drop, From: Returned, Lane: 7, Entry: e(13)},
			{Kind: Drop, From: Leased, Lane: 7, Entry: x(14)},
			{Kind: Drop, From: Delayed, Lane: 7, Entry: x(15), At: at + 500},
			{Kind: Forget, From: Delayed, Lane: 6, Entry: Entry{ID: 16}, At: at + 500},
			{Kind: Forget, From: Fresh, Lane: 6, Entry: Entry{ID: 16}, At: at + 1000},
			{Kind: Put, Lane: 7, Entry: shared(17), Message: &several},
			{Kind: Take, From: Fresh, Lane: 7, Entry: shared(18), At: at + 30},
			{Kind: Return, From: Leased, Lane: 7, Entry: shared(19)},
			{Kind: Release, Lane: 6, Entry: Entry{ID: 20}},
		},
		Bodies: []Body{{ID: 17, Queue: 3, Channel: "eu", Message: queue.Message{
			Body: []byte("body"), ContentType: "text/plain", Properties: []queue.Property{{Name: "a", Value: "1"}},
		}}},
		Holders:  []Holders{{ID: 17, Lanes: 2}, {ID: 20}},
		Shared:   []Shared{{Queue: 3, Channel: "eu", Bytes: 4}, {Queue: 3, Channel: "us"}},
		Unshared: []QueueNumber{2},
		Lanes: []Lane{
			{ID: 7, Key: LaneKey{Queue: 3, Channel: "eu"}, Cursor: 3, Fresh: 1},
			{ID: 8, Key: LaneKey{Queue: 3, Dead: true, Channel: "eu"}, Returned: 2},
			{ID: 9, Key: LaneKey{Queue: 3, Group: 1, Channel: "eu"}, Fresh: 1, Bytes: 4, Shared: 4},
		},
		GoneLanes:  []Lane{{ID: 6, Key: LaneKey{Queue: 3, Channel: "eu"}}, {ID: 4, Key: LaneKey{Queue: 3, Dead: true, Channel: "us"}}},
		Removals:   []LaneID{6},
		Removed:    []LaneID{5},
		Queues:     []Queue{queueExample()},
		GoneQueues: []QueueNumber{2},
		Work:       []queue.WorkRequest{workExample()},
		GoneWork:   []queue.WorkRequest{{ID: "wr.0", AcceptedAt: at - 1}},
		Tokens:     []RetryToken{{Scope: "publish/3", Token: "abc", At: at, Value: []byte{1, 2}}},
		GoneTokens: []RetryToken{{Scope: "publish/3", Token: "old", At: at - 86_400_000}},
	}
}

func TestChangeSetIsPinned(t *testing.T) {
	cs := exampleChangeSet()
	golden(t, "changeset.golden", []string{fmt.Sprintf("changeset: %x", mustEncode(t, cs))})
	got, err := DecodeChangeSet(pinned(t, "changeset.golden")["changeset"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cs, got); diff != "" {
		t.Errorf("the pinned ChangeSet (-made +read):\n%s", diff)
	}
}

// TestChangeSetEmpty: one field alone makes it worth writing, and Reset leaves
// none.
func TestChangeSetEmpty(t *testing.T) {
	full := exampleChangeSet()
	var cs ChangeSet
	if cs.State.Position = 5; !cs.Empty() {
		t.Error("a state alone is not empty")
	}
	for name, one := range map[string]ChangeSet{
		"Effects": {Effects: full.Effects}, "Lanes": {Lanes: full.Lanes}, "GoneLanes": {GoneLanes: full.GoneLanes},
		"Removals": {Removals: full.Removals}, "Removed": {Removed: full.Removed}, "Queues": {Queues: full.Queues},
		"GoneQueues": {GoneQueues: full.GoneQueues}, "Work": {Work: full.Work}, "GoneWork": {GoneWork: full.GoneWork},
		"Tokens": {Tokens: full.Tokens}, "GoneTokens": {GoneTokens: full.GoneTokens},
	} {
		if one.Empty() {
			t.Errorf("%s alone is empty", name)
		}
	}
	full.Reset()
	if !full.Empty() || full.State != (State{}) {
		t.Errorf("after Reset: %+v", full)
	}
	for _, e := range full.Effects[:cap(full.Effects)] {
		if e.Message != nil {
			t.Error("Reset holds on to a message")
		}
	}
}

func FuzzChangeSet(f *testing.F) {
	b := mustEncode(f, exampleChangeSet())
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(mustEncode(f, &ChangeSet{}))
	f.Add([]byte{})
	// Counts that no memory could hold.
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var cs *ChangeSet
		var err error
		frugal(t, b, func() { cs, err = DecodeChangeSet(b) })
		if err != nil {
			return
		}
		first := mustEncode(t, cs)
		cs, err = DecodeChangeSet(first)
		if err != nil {
			t.Fatalf("%x was accepted, and its new form %x is refused: %v", b, first, err)
		}
		if second := mustEncode(t, cs); string(first) != string(second) {
			t.Fatalf("%x is written as %x and then as %x", b, first, second)
		}
	})
}
