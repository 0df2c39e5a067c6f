package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
)

func ids[T any](list []T, id func(T) queue.MessageID) []queue.MessageID {
	var out []queue.MessageID
	for _, x := range list {
		out = append(out, id(x))
	}
	return out
}

// TestScanMessages: from a place on, within the lane, up to a number or a
// size, never less than one.
func TestScanMessages(t *testing.T) {
	s := open(t, nil)
	for lane := LaneID(1); lane <= 3; lane++ {
		for id := queue.MessageID(1); id <= 5; id++ {
			e := Entry{ID: id * 10, ExpireAfter: exampleAt, Size: 100, Visibility: 7}
			commit(t, s, &ChangeSet{Effects: []Effect{{Kind: Put, Lane: lane, Entry: e, Message: &Message{
				Message: queue.Message{Body: make([]byte, 100)}, ExpireAfter: exampleAt, Visibility: 7,
			}}}})
		}
	}
	for _, tt := range []struct {
		name     string
		lane     LaneID
		from     queue.MessageID
		max      int
		maxBytes int64
		want     []queue.MessageID
		more     bool
	}{
		{"all", 2, 0, 10, 1 << 20, []queue.MessageID{10, 20, 30, 40, 50}, false},
		{"exactly all", 2, 0, 5, 1 << 20, []queue.MessageID{10, 20, 30, 40, 50}, false},
		{"from one that is there", 2, 30, 10, 1 << 20, []queue.MessageID{30, 40, 50}, false},
		{"from between two", 2, 31, 2, 1 << 20, []queue.MessageID{40, 50}, false},
		{"behind the last", 2, 51, 10, 1 << 20, nil, false},
		{"up to a number", 2, 0, 2, 1 << 20, []queue.MessageID{10, 20}, true},
		{"up to a size", 2, 0, 10, 150, []queue.MessageID{10, 20}, true},
		{"one at least", 2, 0, 10, 0, []queue.MessageID{10}, true},
		{"no such lane", 4, 0, 10, 1 << 20, nil, false},
	} {
		for _, heads := range []bool{true, false} {
			got, more, err := s.ScanMessages(tt.lane, tt.from, tt.max, tt.maxBytes, heads)
			if err != nil {
				t.Fatal(err)
			}
			if g := ids(got, func(m ScannedMessage) queue.MessageID { return m.ID }); !slices.Equal(g, tt.want) || more != tt.more {
				t.Errorf("%s: %v, more %v; want %v, %v", tt.name, g, more, tt.want, tt.more)
			}
			for _, m := range got {
				if want := (Entry{ID: m.ID, ExpireAfter: exampleAt, Size: 100, Visibility: 7}); m.Entry != want || (len(m.Body) == 0) != heads {
					t.Errorf("%s: %+v with a body of %d", tt.name, m.Entry, len(m.Body))
				}
			}
		}
	}
	if _, _, found, err := s.Message(2, 11); found || err != nil {
		t.Errorf("a message that is not there: %v, %v", found, err)
	}
	m, e, found, err := s.Message(2, 10)
	if !found || err != nil || len(m.Body) != 100 || e.Size != 100 {
		t.Errorf("a message: %v, %v, %+v", found, err, e)
	}
}

func TestScanReturned(t *testing.T) {
	s := open(t, nil)
	var cs ChangeSet
	for id := queue.MessageID(1); id <= 4; id++ {
		e := Entry{ID: id, ExpireAfter: exampleAt, Lease: uint64(id), Deliveries: 1}
		cs.Effects = append(cs.Effects, Effect{Kind: Return, From: Fresh, Lane: 1, Entry: e}, Effect{Kind: Return, From: Fresh, Lane: 2, Entry: e})
	}
	commit(t, s, &cs)
	for _, tt := range []struct {
		from queue.MessageID
		max  int
		want []queue.MessageID
		more bool
	}{
		{0, 10, []queue.MessageID{1, 2, 3, 4}, false},
		{3, 10, []queue.MessageID{3, 4}, false},
		{2, 2, []queue.MessageID{2, 3}, true},
		{5, 1, nil, false},
	} {
		got, more, err := s.ScanReturned(1, tt.from, tt.max)
		if g := ids(got, func(e Entry) queue.MessageID { return e.ID }); err != nil || !slices.Equal(g, tt.want) || more != tt.more {
			t.Errorf("from %d up to %d: %v, more %v, %v; want %v, %v", tt.from, tt.max, g, more, err, tt.want, tt.more)
		}
	}
	if e, found, err := s.Returned(1, 3); err != nil || !found || e.Lease != 3 {
		t.Errorf("returned 3: %+v, %v, %v", e, found, err)
	}
	if _, found, err := s.Returned(1, 9); err != nil || found {
		t.Errorf("returned 9: %v, %v", found, err)
	}
}

// TestScanTimers: up to an instant and a number, and where to go on.
func TestScanTimers(t *testing.T) {
	s := open(t, nil)
	var cs ChangeSet
	for i, at := range []queue.Instant{10, 20, 20, 30} {
		id := queue.MessageID(i + 1)
		cs.Effects = append(cs.Effects, Effect{Kind: Put, Lane: 1, Entry: Entry{ID: id, ExpireAfter: at, Indexed: true}, Message: &Message{DueAt: at, ExpireAfter: at, Indexed: true}})
	}
	commit(t, s, &cs)
	for name, scan := range map[string]func(from, through queue.Instant, max int) ([]Timer, queue.Instant, error){
		"due": s.ScanDue, "expiry": s.ScanExpiry,
	} {
		for _, tt := range []struct {
			from, through queue.Instant
			max           int
			want          []queue.MessageID
			next          queue.Instant
		}{
			{0, 100, 10, []queue.MessageID{1, 2, 3, 4}, 0},
			{0, 20, 10, []queue.MessageID{1, 2, 3}, 30},
			{11, 20, 10, []queue.MessageID{2, 3}, 30},
			{0, 5, 10, nil, 10},
			{0, 100, 2, []queue.MessageID{1, 2}, 20},
			{31, 100, 10, nil, 0},
		} {
			got, next, err := scan(tt.from, tt.through, tt.max)
			if g := ids(got, func(x Timer) queue.MessageID { return x.ID }); err != nil || !slices.Equal(g, tt.want) || next != tt.next {
				t.Errorf("%s %d to %d up to %d: %v, next %d, %v; want %v, %d", name, tt.from, tt.through, tt.max, g, next, err, tt.want, tt.next)
			}
		}
	}
	for at, want := range map[queue.Instant]bool{20: true, 21: false} {
		if there, err := s.Delayed(Timer{At: at, Lane: 1, ID: 2}); err != nil || there != want {
			t.Errorf("delayed until %d: %v, %v", at, there, err)
		}
	}
}

// TestScanDeadLanes: by channel, within the queue.
func TestScanDeadLanes(t *testing.T) {
	s := open(t, nil)
	var cs ChangeSet
	for q := QueueNumber(1); q <= 2; q++ {
		for i, channel := range []string{"", "a", "b", "c"} {
			id := LaneID(q)*10 + LaneID(i)
			cs.Lanes = append(cs.Lanes, Lane{ID: id, Key: LaneKey{Queue: q, Dead: true, Channel: channel}}, Lane{ID: id + 100, Key: LaneKey{Queue: q, Channel: channel}})
		}
	}
	commit(t, s, &cs)
	for _, tt := range []struct {
		from string
		max  int
		want []LaneID
		more bool
	}{
		{"", 10, []LaneID{10, 11, 12, 13}, false},
		{"aa", 1, []LaneID{12}, true},
		{"c", 1, []LaneID{13}, false},
		{"d", 1, nil, false},
	} {
		got, more, err := s.ScanDeadLanes(LaneKey{Queue: 1}, tt.from, tt.max)
		var g []LaneID
		for _, l := range got {
			g = append(g, l.ID)
		}
		if err != nil || !slices.Equal(g, tt.want) || more != tt.more {
			t.Errorf("from %q up to %d: %v, more %v, %v; want %v, %v", tt.from, tt.max, g, more, err, tt.want, tt.more)
		}
	}
	if _, found, err := s.Lane(LaneKey{Queue: 3}); err != nil || found {
		t.Errorf("a lane that is not there: %v, %v", found, err)
	}
	if l, found, err := s.DeadLane(110); err != nil || found {
		t.Errorf("lane 110 is dead: %+v, %v, %v", l, found, err)
	}
}

// TestWorkRequests: newest first, going on behind one, until the caller has
// enough.
func TestWorkRequests(t *testing.T) {
	s := open(t, nil)
	w := func(id string, at queue.Instant) queue.WorkRequest { return queue.WorkRequest{ID: id, AcceptedAt: at} }
	commit(t, s, &ChangeSet{Work: []queue.WorkRequest{w("b", 1), w("d", 1), w("a", 2), w("c", 3)}})
	list := func(from string, most int) (out []string) {
		for w, err := range s.WorkRequests(from) {
			if err != nil {
				t.Fatal(err)
			}
			if out = append(out, w.ID); len(out) == most {
				break
			}
		}
		return out
	}
	for _, tt := range []struct {
		from string
		most int
		want []string
	}{
		{"", 9, []string{"c", "a", "d", "b"}},
		{"", 2, []string{"c", "a"}},
		{"a", 9, []string{"d", "b"}},
		{"d", 9, []string{"b"}},
		{"b", 9, nil},
		{"x", 9, nil},
	} {
		if got := list(tt.from, tt.most); !slices.Equal(got, tt.want) {
			t.Errorf("from %q: %v, want %v", tt.from, got, tt.want)
		}
	}
	done := w("a", 2)
	done.Percent = 100
	commit(t, s, &ChangeSet{Work: []queue.WorkRequest{done}, GoneWork: []queue.WorkRequest{w("d", 1)}})
	if got := list("", 9); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("after d went: %v", got)
	}
	if got, found, err := s.WorkRequest("a"); err != nil || !found || got.Percent != 100 {
		t.Errorf("work request a: %+v, %v, %v", got, found, err)
	}
	if _, found, err := s.WorkRequest("d"); err != nil || found {
		t.Errorf("work request d: %v, %v", found, err)
	}
}

// TestRetryTokens: by the hours before an instant, oldest first.
func TestRetryTokens(t *testing.T) {
	const hour = queue.Instant(3_600_000)
	s := open(t, nil)
	commit(t, s, &ChangeSet{Tokens: []RetryToken{
		{Scope: "s", Token: "b", At: 2*hour + 5, Value: []byte("2")},
		{Scope: "s", Token: "a", At: hour, Value: nil},
		{Scope: "s", Token: "c", At: 3 * hour, Value: []byte("3")},
	}})
	for _, tt := range []struct {
		before queue.Instant
		max    int
		want   []RetryToken
	}{
		{hour + 100, 9, nil},
		{3*hour + 100, 9, []RetryToken{{Scope: "s", Token: "a", At: hour}, {Scope: "s", Token: "b", At: 2 * hour}}},
		{9 * hour, 1, []RetryToken{{Scope: "s", Token: "a", At: hour}}},
	} {
		got, err := s.RetryTokens(tt.before, tt.max)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("before %d: %v\n%s", tt.before, err, diff)
		}
	}
	got, found, err := s.RetryToken("s", "b")
	if diff := cmp.Diff(RetryToken{Scope: "s", Token: "b", At: 2*hour + 5, Value: []byte("2")}, got); err != nil || !found || diff != "" {
		t.Errorf("token b: %v, %v\n%s", found, err, diff)
	}
	commit(t, s, &ChangeSet{GoneTokens: []RetryToken{{Scope: "s", Token: "b", At: 2 * hour}}})
	if _, found, err := s.RetryToken("s", "b"); err != nil || found {
		t.Errorf("token b after it went: %v, %v", found, err)
	}
	if got, err := s.RetryTokens(9*hour, 9); err != nil || len(got) != 2 {
		t.Errorf("by the hour after b went: %v, %v", got, err)
	}
}

// TestLoad reads back what a start needs, and an error of the caller ends the
// walk over leases and lanes.
func TestLoad(t *testing.T) {
	s := open(t, nil)
	cs := exampleChangeSet()
	commit(t, s, cs)
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Load{State: cs.State, Queues: cs.Queues, Removals: cs.Removals}, l); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if l.Now() != cs.State.Now {
		t.Errorf("now is %v", l.Now())
	}
	var leases []queue.MessageID
	if err := s.Leases(func(lane LaneID, l Lease) error {
		if lane != 7 || l.VisibleAfter == 0 {
			t.Errorf("lane %d, %+v", lane, l)
		}
		leases = append(leases, l.ID)
		return nil
	}); err != nil || !slices.Equal(leases, []queue.MessageID{3, 4, 5, 18}) {
		t.Errorf("leases %v, %v", leases, err)
	}
	stop := errors.New("enough")
	n := 0
	if err := s.Leases(func(LaneID, Lease) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d leases, %v", n, err)
	}
	if err := s.Lanes(func(Lane) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("lanes: %v", err)
	}
}

// TestUnreadableRow: a row that no version of ours wrote is an error of the
// read that meets it, and tells which row.
func TestUnreadableRow(t *testing.T) {
	s := open(t, nil)
	commit(t, s, exampleChangeSet())
	spoil := func(key []byte) {
		if err := s.db.Set(key, []byte{99}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	spoil(rowKey(nil, kindMessage, 7, 1))
	spoil(rowKey(nil, kindReturned, 7, 6))
	spoil(rowKey(nil, kindLease, 7, 3))
	spoil(laneKey(nil, LaneKey{Queue: 3, Channel: "eu"}))
	spoil(queueKey(nil, 3))
	spoil(workKey(nil, exampleAt, "wr.1"))
	spoil(tokenKey(nil, "publish/3", "abc"))
	for name, read := range map[string]func() error{
		"Message":      func() error { _, _, _, err := s.Message(7, 1); return err },
		"ScanMessages": func() error { _, _, err := s.ScanMessages(7, 0, 10, 1<<20, true); return err },
		"Returned":     func() error { _, _, err := s.Returned(7, 6); return err },
		"ScanReturned": func() error { _, _, err := s.ScanReturned(7, 0, 10); return err },
		"Leases":       func() error { return s.Leases(func(LaneID, Lease) error { return nil }) },
		"Lanes":        func() error { return s.Lanes(func(Lane) error { return nil }) },
		"Lane":         func() error { _, _, err := s.Lane(LaneKey{Queue: 3, Channel: "eu"}); return err },
		"Load":         func() error { _, err := s.Load(); return err },
		"WorkRequest":  func() error { _, _, err := s.WorkRequest("wr.1"); return err },
		"WorkRequests": func() error {
			for _, err := range s.WorkRequests("") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"RetryToken": func() error { _, _, err := s.RetryToken("publish/3", "abc"); return err },
	} {
		if err := read(); err == nil {
			t.Errorf("%s read a spoilt row", name)
		}
	}
	if err := s.db.Set(stateKey, []byte{1, 2}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "state row is damaged") {
		t.Errorf("Load read a spoilt state: %v", err)
	}
}
