package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queued-mq/queued/queue"
)

// sharing is an orderly store in which two groups share messages: 1 both have,
// 2 is a dead letter of the second, 3 the first had when its lane was given up,
// 4 has nothing in it, and 5 was purged by all who had it.
func sharing(t testing.TB) *Store {
	t.Helper()
	s := open(t, nil)
	at := exampleAt
	entry := func(id queue.MessageID) Entry {
		e := Entry{ID: id, ExpireAfter: at + 1000, Size: 4, Shared: true}
		if id == 4 {
			e.Size = 0
		}
		return e
	}
	put := func(lane LaneID, id queue.MessageID) Effect {
		return Effect{Kind: Put, Lane: lane, Entry: entry(id), Message: &Message{CreatedAt: at, ExpireAfter: at + 1000, Shared: true}}
	}
	cs := &ChangeSet{
		State: State{1, at, 6, 3, 5, 1, at, at},
		Effects: []Effect{
			put(1, 1), put(2, 1), put(1, 2), put(2, 2), put(4, 3), put(2, 3), put(1, 4), put(2, 4), put(5, 5),
		},
		Holders: []Holders{{1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 1}},
		Shared:  []Shared{{1, "eu", 16}},
		Lanes: []Lane{
			{ID: 1, Key: LaneKey{Queue: 1, Channel: "eu"}, Cursor: 0, Oldest: 1, LastAfter: at + 1000, Fresh: 3, Bytes: 8, Shared: 8},
			{ID: 2, Key: LaneKey{Queue: 1, Group: 1, Channel: "eu"}, Cursor: 2, Oldest: 1, Returning: 1, LastAfter: at + 1000, Fresh: 2, Returned: 1, Bytes: 8, Shared: 8},
			{ID: 3, Key: LaneKey{Queue: 1, Group: 1, Dead: true, Channel: "eu"}, Cursor: 2, Oldest: 3, Returning: 2, Returned: 1, Indexed: 1, Bytes: 4, Shared: 4},
		},
		Removals: []LaneID{4, 5},
	}
	for id := queue.MessageID(1); id <= 5; id++ {
		b := Body{ID: id, Queue: 1, Channel: "eu", Message: queue.Message{Body: []byte("body")}}
		if id == 4 {
			b.Body = nil
		}
		cs.Bodies = append(cs.Bodies, b)
	}
	back, buried := entry(1), entry(2)
	back.Lease, back.Deliveries = 1, 1
	buried.Lease, buried.Deliveries = 2, 5
	there := buried
	there.Lease, there.Indexed = 0, true
	cs.Effects = append(cs.Effects,
		Effect{Kind: Take, From: Fresh, Lane: 2, Entry: back, At: at + 30}, Effect{Kind: Return, From: Leased, Lane: 2, Entry: back},
		Effect{Kind: Take, From: Fresh, Lane: 2, Entry: buried, At: at + 30},
		Effect{Kind: Bury, From: Leased, Lane: 2, Entry: buried, To: 3, ToEntry: there, Message: &Message{
			CreatedAt: at, ExpireAfter: at + 1000, Indexed: true, Shared: true, Dead: &Dead{queue.DeliveryCountReached, 5, at}}})
	cs.Queues = []Queue{sharingQueue()}
	commit(t, s, cs)
	return s
}

func sharingQueue() Queue {
	q := queueExample()
	q.Number, q.LastGroup, q.SharedThrough, q.DeadThrough = 1, 2, 0, 0
	q.Groups = nil
	for n := range uint32(3) {
		g := Group{ConsumerGroup: queue.ConsumerGroup{ID: queue.ID(rune('a' + n)), QueueID: q.ID, Number: n, State: queue.Active}}
		if n == 2 {
			g.State = queue.Deleted
		}
		q.Groups = append(q.Groups, g)
	}
	return q
}

// TestCheckShared: each way in which what groups share may be in disorder is
// seen, and the row is named.
func TestCheckShared(t *testing.T) {
	at := exampleAt
	row := func(kind byte, id queue.MessageID) []byte { return idKey(nil, kind, id) }
	set := func(k, v []byte) func(*Store) error {
		return func(s *Store) error { return s.db.Set(k, v, pebble.Sync) }
	}
	gone := func(k []byte) func(*Store) error {
		return func(s *Store) error { return s.db.Delete(k, pebble.Sync) }
	}
	lane := func(l Lane) func(*Store) error {
		return func(s *Store) error {
			return s.Commit(&ChangeSet{State: State{2, at, 6, 3, 5, 1, at, at}, Lanes: []Lane{l}})
		}
	}
	settings := func(change func(q *Queue)) func(*Store) error {
		return func(s *Store) error {
			q := sharingQueue()
			change(&q)
			return s.Commit(&ChangeSet{State: State{2, at, 6, 3, 5, 1, at, at}, Queues: []Queue{q}})
		}
	}
	body := func(q QueueNumber, channel, text string) []byte {
		return encodeBody(&Body{ID: 1, Queue: q, Channel: channel, Message: queue.Message{Body: []byte(text)}})
	}
	first := Lane{ID: 1, Key: LaneKey{Queue: 1, Channel: "eu"}, Oldest: 1, LastAfter: at + 1000, Fresh: 3, Bytes: 8, Shared: 8}
	less, more := first, first
	less.Shared, more.Shared = 0, 9
	for _, tt := range []struct {
		name, want, key string
		spoil           func(*Store) error
	}{
		{"nothing is wrong", "", "", func(*Store) error { return nil }},
		{"a body without holders", "nobody has the body of message 1", "b 1", gone(row('h', 1))},
		{"a body that nobody has", "message 6 says that 1 lanes have it, and 0 do", "h 6", func(s *Store) error {
			return s.Commit(&ChangeSet{State: State{2, at, 6, 3, 5, 1, at, at}, Holders: []Holders{{6, 1}}, Shared: []Shared{{1, "eu", 20}},
				Bodies: []Body{{ID: 6, Queue: 1, Channel: "eu", Message: queue.Message{Body: []byte("body")}}}})
		}},
		{"one holder too many", "message 2 says that 3 lanes have it, and 2 do", "h 2", set(row('h', 2), []byte{1, 3})},
		{"one holder too few", "message 3 says that 1 lanes have it, and 2 do", "h 3", set(row('h', 3), []byte{1, 1})},
		{"no holder", "message 4 says that 0 lanes have it, and 2 do", "h 4", set(row('h', 4), []byte{1, 0})},
		{"octets off by one", `queue 1 says that groups share 17 octets in channel "eu", and they share 16`, `u queue 1 channel "eu"`, set(sharedKey(nil, 1, "eu"), []byte{1, 17})},
		{"octets that are not counted", `queue 1 does not say that groups share 16 octets in channel "eu"`, "", gone(sharedKey(nil, 1, "eu"))},
		{"octets that count no more", `says that groups share 16 octets in channel "eu", and they share 12`, `u queue 1 channel "eu"`, settings(func(q *Queue) { q.SharedThrough = 1 })},
		{"octets of nothing", `queue 1 says that groups share 1 octets in channel "us", and they share 0`, `u queue 1 channel "us"`, set(sharedKey(nil, 1, "us"), []byte{1, 1})},
		{"octets of no queue", `queue 9 says that groups share 1 octets in channel "eu"`, `u queue 9 channel "eu"`, set(sharedKey(nil, 9, "eu"), []byte{1, 1})},
		{"a message without its body", "message 1 of lane 1 has no b row", "m lane 1 id 1", gone(row('b', 1))},
		{"holders without a body", "message 5 is had by 1 lanes, and its body is not there", "h 5", gone(row('b', 5))},
		{"a body of another channel", `message 1 of lane 1 of queue 1, channel "eu", has its body in queue 1, channel "us"`, "m lane 1 id 1", set(row('b', 1), body(1, "us", "body"))},
		{"a body of another queue", `has its body in queue 2, channel "eu"`, "m lane 1 id 1", set(row('b', 1), body(2, "eu", "body"))},
		{"a body of another size", "message 1 of lane 1 has 5 octets, and says 4", "m lane 1 id 1", set(row('b', 1), body(1, "eu", "bodyy"))},
		{"a lane of a group that never was", "lane 1 is of consumer group 9 of queue 1, which is not there", "c queue 1 group 9", lane(Lane{ID: 1, Key: LaneKey{Queue: 1, Group: 9, Channel: "eu"}, Oldest: 1, LastAfter: at + 1000, Fresh: 3, Bytes: 8, Shared: 8})},
		{"a lane of a group that is gone", "lane 1 is of consumer group 2 of queue 1, which is not there", "c queue 1 group 2", lane(Lane{ID: 1, Key: LaneKey{Queue: 1, Group: 2, Channel: "eu"}, Oldest: 1, LastAfter: at + 1000, Fresh: 3, Bytes: 8, Shared: 8})},
		{"too few octets of a lane", "lane 1 says 0 shared octets, and its rows come to 8", "c queue 1 group 0", lane(less)},
		{"too many octets of a lane", "lane 1 says 9 shared octets, and its rows come to 8", "c queue 1 group 0", lane(more)},
		{"a state of which the body is elsewhere", "in its m row and", "m lane 2 id 1", set(rowKey(nil, 'v', 2, 1), encodeEntry(Entry{ExpireAfter: at + 1000, Lease: 1, Size: 4, Deliveries: 1}))},
		{"a group above the highest", "queue 1 has consumer group 2; the highest number given out is 1", "q 1", settings(func(q *Queue) { q.LastGroup = 1 })},
		{"a number of two groups", "queue 1 has two consumer groups of number 1", "q 1", settings(func(q *Queue) { q.Groups[2].Number = 1 })},
		{"a bound above all lanes", "queue 1 has purged dead lanes of consumer group 1 up to 6; the highest number given out is 5", "q 1", settings(func(q *Queue) { q.Groups[1].DeadThrough = 6 })},
		{"a bound above all ids", "queue 1 counts bodies up to 7 no more; the highest id given out is 6", "q 1", settings(func(q *Queue) { q.SharedThrough = 7 })},
		{"a damaged body", "row b 1 cannot be read: damaged record", "b 1", set(row('b', 1), []byte{9})},
		{"damaged holders", "row h 1 cannot be read: damaged record", "h 1", set(row('h', 1), []byte{9})},
		{"damaged octets", `row u queue 1 channel "eu" cannot be read: damaged record`, `u queue 1 channel "eu"`, set(sharedKey(nil, 1, "eu"), []byte{9})},
		{"a short key of a body", "row 6231 cannot be read", "6231", set([]byte("b1"), nil)},
		{"a short key of holders", "row 6831 cannot be read", "6831", set([]byte("h1"), nil)},
		{"a short key of octets", "row 7531 cannot be read", "7531", set([]byte("u1"), nil)},
	} {
		s := sharing(t)
		if err := tt.spoil(s); err != nil {
			t.Fatal(err)
		}
		r, err := s.Verify()
		if err != nil {
			t.Fatal(err)
		}
		seen := tt.want == "" && len(r.Differences) == 0
		for _, d := range r.Differences {
			seen = seen || tt.want != "" && strings.Contains(d.Text, tt.want) && strings.HasPrefix(d.Key, tt.key)
		}
		if !seen {
			t.Errorf("%s: %+v, want %q of %q", tt.name, r.Differences, tt.want, tt.key)
		}
		closed(t, s)
	}
}

// TestDamagedSharedRows: whoever reads such a row by its key is told which one
// is damaged.
func TestDamagedSharedRows(t *testing.T) {
	s := sharing(t)
	for _, key := range [][]byte{idKey(nil, 'b', 2), idKey(nil, 'h', 2), sharedKey(nil, 1, "eu")} {
		if err := s.db.Set(key, []byte{9}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	_, _, body := s.Body(2)
	_, _, _, message := s.Message(1, 2)
	_, _, scan := s.ScanMessages(1, 0, 10, 1<<20, false)
	_, holders := s.Holders(2)
	_, octets := s.SharedIn(1, "eu")
	all := s.Shared(func(Shared) {})
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"body": {body, "read body 2: damaged record"}, "message": {message, "read body 2: damaged record"}, "scan": {scan, "read body 2: damaged record"},
		"holders": {holders, "read holders of 2: damaged record"},
		"octets":  {octets, `read u queue 1 channel "eu": damaged record`}, "all octets": {all, "read row 7500000000000000016575: damaged record"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, tt.err, tt.want)
		}
	}
}
