package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queued-mq/queued/queue"
)

// orderly is a store with a message in each state, a lane that is being
// removed, and one of everything else.
func orderly(t testing.TB) *Store { return orderlyOn(t, nil) }

func orderlyOn(t testing.TB, disk vfs.FS) *Store {
	t.Helper()
	s := open(t, disk)
	at := exampleAt
	key, dead := LaneKey{Queue: 1, Channel: "eu"}, LaneKey{Queue: 1, Dead: true, Channel: "eu"}
	entry := func(id queue.MessageID, indexed bool) Entry {
		return Entry{ID: id, ExpireAfter: at + 1000, Size: 4, Indexed: indexed}
	}
	message := func(e Entry) *Message {
		return &Message{Message: queue.Message{Body: []byte("body")}, CreatedAt: at, ExpireAfter: e.ExpireAfter, Indexed: e.Indexed}
	}
	put := func(lane LaneID, e Entry, due queue.Instant) Effect {
		m := message(e)
		m.DueAt = due
		return Effect{Kind: Put, Lane: lane, Entry: e, Message: m}
	}
	leased, returned, buried := entry(1, false), entry(2, false), entry(3, false)
	leased.Lease, leased.Deliveries = 1, 1
	returned.Lease, returned.Deliveries = 2, 1
	there := buried
	there.Indexed, there.Deliveries = true, 5
	grave := message(there)
	grave.Dead = &Dead{queue.DeliveryCountReached, 5, at}
	q := queueExample()
	q.Number = 1
	commit(t, s, &ChangeSet{
		State: State{1, at, 8, 3, 3, 1, at, at},
		Effects: []Effect{
			put(1, entry(1, false), 0), put(1, entry(2, false), 0), put(1, entry(3, false), 0),
			put(1, entry(4, true), at+500), put(1, entry(5, false), at+500), put(1, entry(6, false), 0),
			put(3, entry(7, true), at+500), put(3, entry(8, false), 0),
			{Kind: Take, From: Fresh, Lane: 1, Entry: leased, At: at + 30},
			{Kind: Take, From: Fresh, Lane: 1, Entry: returned, At: at + 30},
			{Kind: Return, From: Leased, Lane: 1, Entry: returned},
			{Kind: Take, From: Fresh, Lane: 1, Entry: buried, At: at + 30},
			{Kind: Bury, From: Leased, Lane: 1, Entry: buried, Message: grave, To: 2, ToEntry: there},
		},
		Lanes: []Lane{
			{ID: 1, Key: key, Cursor: 5, Oldest: 1, Returning: 2, LastAfter: at + 1000, Fresh: 1, Returned: 1, InFlight: 1, Delayed: 2, Indexed: 1, Bytes: 20},
			{ID: 2, Key: dead, Cursor: 3, Oldest: 4, Returning: 3, Returned: 1, Indexed: 1, Bytes: 4},
		},
		Removals: []LaneID{3},
		Queues:   []Queue{q},
		Work:     []queue.WorkRequest{workExample()},
		Tokens:   []RetryToken{{Scope: "publish/1", Token: "a", At: at, Value: []byte("x")}},
	})
	return s
}

func TestCheck(t *testing.T) {
	if err := orderly(t).Check(); err != nil {
		t.Fatalf("an orderly store: %v", err)
	}
	if err := open(t, vfs.NewMem()).Check(); err != nil {
		t.Fatalf("a new store: %v", err)
	}
	at := exampleAt
	row := func(kind byte, id queue.MessageID) []byte { return rowKey(nil, kind, 1, id) }
	set := func(k, v []byte) func(*Store) error {
		return func(s *Store) error { return s.db.Set(k, v, pebble.Sync) }
	}
	gone := func(k []byte) func(*Store) error {
		return func(s *Store) error { return s.db.Delete(k, pebble.Sync) }
	}
	copied := func(from, to []byte) func(*Store) error {
		return func(s *Store) error {
			v, _, err := s.get(from)
			if err != nil {
				return err
			}
			return s.db.Set(to, v, pebble.Sync)
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*Store) error
		want  string
	}{
		{"a message is lost", gone(row('m', 6)), "lane 1 says"},
		{"a fresh message comes back", copied(row('m', 6), row('m', 7)), "lane 1 says"},
		{"a message comes back below the cursor", copied(row('m', 1), rowKey(nil, 'm', 1, 0)), "is in no state"},
		{"a leased message without its row", gone(row('m', 1)), "has no message"},
		{"a returned message without its row", gone(row('m', 2)), "has no message"},
		{"a lease is lost", gone(row('l', 1)), "message 1 of lane 1 is in no state"},
		{"leased and returned", copied(row('v', 2), row('v', 1)), "is in 2 states at once"},
		{"leased twice", copied(row('l', 1), row('l', 2)), "is in 2 states at once"},
		{"delayed and fresh", gone(timerKey(nil, 't', at+500, 1, 5)), "message 5 of lane 1 is in no state"},
		{"a due row too many", set(timerKey(nil, 't', at+500, 1, 6), nil), "3 t rows"},
		{"a due row before its bound", set(timerKey(nil, 't', at-1, 3, 7), nil), "is before"},
		{"an expiry row is lost", gone(timerKey(nil, 'x', at+1000, 1, 4)), "has no x row"},
		{"an expiry row too many", set(timerKey(nil, 'x', at+1000, 1, 6), nil), "2 x rows"},
		{"an expiry row before its bound", set(timerKey(nil, 'x', at-1, 1, 6), nil), "is before"},
		{"a row of no lane", set(rowKey(nil, 'v', 9, 1), nil), "belongs to lane 9"},
		{"a timer of no lane", set(timerKey(nil, 'x', at, 9, 1), nil), "belongs to lane 9"},
		{"a lane is lost", gone(laneKey(nil, LaneKey{Queue: 1, Channel: "eu"})), "belongs to lane 1"},
		{"a lane twice", copied(laneKey(nil, LaneKey{Queue: 1, Channel: "eu"}), laneKey(nil, LaneKey{Queue: 1, Channel: "us"})), "is there twice"},
		{"a lane that is being removed", set(removalKey(nil, 1), []byte{1}), "is there and to be removed"},
		{"a dead lane without its number", gone(deadLaneKey(nil, 2)), "cannot be found by its number"},
		{"a number without its lane", set(deadLaneKey(nil, 1), laneKey(nil, LaneKey{Queue: 1, Channel: "eu"})), "leads to a dead lane that is not there"},
		{"a dead message in a lane", copied(rowKey(nil, 'm', 2, 3), row('m', 6)), "dead is true, and that of its lane false"},
		{"rows that differ", set(row('v', 2), encodeEntry(Entry{ExpireAfter: at + 1000, Lease: 2, Size: 5, Deliveries: 1})), "in its m row and"},
		{"a lease number from nowhere", set(row('v', 2), encodeEntry(Entry{ExpireAfter: at + 1000, Lease: 4, Size: 4, Deliveries: 1})), "has lease 4 of 3"},
		{"a lease without a delivery", set(row('l', 1), encoded(Lease{Entry{ExpireAfter: at + 1000, Lease: 1, Size: 4}, at + 30}, (*Lease).code)), "deliveries 0"},
		{"out of order", set(row('m', 6), encodeMessage(&Message{ExpireAfter: at + 999, CreatedAt: at}, 4)), "expires at"},
		{"numbers given out", set(stateKey, encoded(State{}, (*State).code)), "above the highest"},
		{"a counter", func(s *Store) error {
			return s.Commit(&ChangeSet{
				State: State{2, at, 8, 3, 3, 1, at, at},
				Lanes: []Lane{{ID: 2, Key: LaneKey{Queue: 1, Dead: true, Channel: "eu"}, Cursor: 3, Oldest: 4, Returning: 3, Returned: 1, Indexed: 1, Bytes: 5}},
			})
		}, "lane 2 says"},
		{"a bound", func(s *Store) error {
			return s.Commit(&ChangeSet{
				State: State{2, at, 8, 3, 3, 1, at, at},
				Lanes: []Lane{{ID: 2, Key: LaneKey{Queue: 1, Dead: true, Channel: "eu"}, Cursor: 3, Oldest: 4, Returning: 4, Returned: 1, Indexed: 1, Bytes: 4}},
			})
		}, "where they begin"},
		{"a queue under another number", copied(queueKey(nil, 1), queueKey(nil, 5)), "holds queue 1"},
		{"a work request that cannot be found", gone(workIDKey(nil, "wr.1")), "cannot be found by its id"},
		{"a work request that is not there", gone(workKey(nil, at, "wr.1")), "is not there"},
		{"a token that would stay", gone(tokenHourKey(nil, hourOf(at), "publish/1", "a")), "is in no hour"},
		{"a damaged row", set(row('m', 6), []byte{9}), "row m lane 1 id 6 cannot be read: damaged record"},
		{"a damaged lease", set(row('l', 1), []byte{1, 2}), "the lease of message 1 of lane 1 cannot be read"},
		{"a damaged v row", set(row('v', 2), []byte{9}), "the v row of message 2 of lane 1 cannot be read"},
		{"a damaged lane", set(laneKey(nil, LaneKey{Queue: 1, Channel: "eu"}), []byte{9}), `row c queue 1 group 0 dead false channel "eu" cannot be read`},
		{"a damaged queue", set(queueKey(nil, 1), []byte("{")), "row q 1 cannot be read"},
		{"a damaged work request", set(workKey(nil, at, "wr.1"), []byte{1, '{'}), `row w at 1767225600000 id "wr.1" cannot be read`},
		{"a damaged state", set(stateKey, []byte{1}), `row s "state" cannot be read`},
		{"a damaged key", set(storeKey("key"), []byte{1}), `row s "key" cannot be read`},
		{"a key of no kind", set([]byte("y1"), nil), "row 7931 is of no kind that is known"},
		{"a key before all kinds", set([]byte{0}, nil), "row 00 is of no kind that is known"},
		{"a key that is too short", set([]byte("m1"), nil), "row 6d31 cannot be read"},
		{"something unknown of the store", set(storeKey("extra"), nil), `row s "extra" is of no kind that is known`},
		{"a wrong size", set(row('m', 6), encodeMessage(&Message{CreatedAt: at, ExpireAfter: at + 1000}, 4)), "message 6 of lane 1 has 0 octets, and says 4"},
		{"delivered and above the cursor", func(s *Store) error {
			return s.Commit(&ChangeSet{
				State: State{2, at, 8, 3, 3, 1, at, at},
				Lanes: []Lane{{ID: 1, Key: LaneKey{Queue: 1, Channel: "eu"}, Cursor: 1, Oldest: 1, Returning: 2, LastAfter: at + 1000, Fresh: 1, Returned: 1, InFlight: 1, Delayed: 2, Indexed: 1, Bytes: 20}},
			})
		}, "message 2 of lane 1 was delivered, and is above the cursor, 1"},
		{"a due row of another instant", set(timerKey(nil, 't', at+501, 1, 5), nil), "row t at 1767225600501 lane 1 id 5 has no message that is due then"},
		{"an expiry row of another instant", set(timerKey(nil, 'x', at+999, 1, 4), nil), "row x at 1767225600999 lane 1 id 4 has no message that expires then"},
		{"a lane of no queue", gone(queueKey(nil, 1)), "lane 1 is of queue 1, which is not there"},
		{"a removal from nowhere", set(removalKey(nil, 9), []byte{1}), "lane 9, which is to be removed, is above the highest number given out, 3"},
		{"an hour without its token", gone(tokenKey(nil, "publish/1", "a")), `row r hour 490896 scope "publish/1" has no retry token`},
		{"a damaged token", set(tokenKey(nil, "publish/1", "a"), []byte{9}), `row r scope "publish/1" cannot be read`},
	} {
		s := orderly(t)
		if err := tt.spoil(s); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if r, err := s.Verify(); err != nil || len(r.Differences) == 0 || r.Differences[0].Key == "" {
			t.Errorf("%s: %+v, %v: no row is named", tt.name, r, err)
		}
		closed(t, s)
	}
}

// TestVerifyIsBounded: a store that is all wrong does not fill the memory.
func TestVerifyIsBounded(t *testing.T) {
	s := open(t, nil)
	b := s.db.NewBatch()
	for id := range queue.MessageID(mostDifferences + 5) {
		if err := b.Set(rowKey(nil, kindLease, 1, id), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Verify(); err != nil || len(r.Differences) != mostDifferences || r.More < 5 {
		t.Errorf("%d differences and %d more, %v", len(r.Differences), r.More, err)
	}
}
