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
func orderly(t testing.TB) *Store {
	t.Helper()
	s := open(t, nil)
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
		{"a damaged row", set(row('m', 6), []byte{9}), "damaged record"},
	} {
		s := orderly(t)
		if err := tt.spoil(s); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		closed(t, s)
	}
}
