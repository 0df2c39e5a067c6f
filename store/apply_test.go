package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/queued-mq/queued/queue"
)

// TestApplyIsPinned writes down what every effect does to the rows.
func TestApplyIsPinned(t *testing.T) {
	s := open(t, nil)
	var lines []string
	for _, e := range exampleChangeSet().Effects {
		b := s.db.NewBatch()
		if err := new(applier).apply(b, &ChangeSet{Effects: []Effect{e}}); err != nil {
			t.Fatal(err)
		}
		from := []string{"nothing", "fresh", "returned", "leased", "delayed"}[e.From]
		kind := []string{"", "put", "take", "return", "bury", "drop", "forget", "release"}[e.Kind]
		lines = append(lines, "# "+kind+" from "+from)
		all := steps(t, b)
		lines = append(lines, all[:len(all)-1]...) // the last is the state
	}
	cs := exampleChangeSet()
	cs.Effects = nil
	b := s.db.NewBatch()
	if err := new(applier).apply(b, cs); err != nil {
		t.Fatal(err)
	}
	golden(t, "apply.golden", append(append(lines, "# the rest"), steps(t, b)...))
}

// TestApplyIsPure: the batch depends on the ChangeSet alone, whatever the
// applier did before; a ChangeSet that has been encoded and decoded makes the
// same batch; and applying does not change it.
func TestApplyIsPure(t *testing.T) {
	s := open(t, nil)
	var used applier
	rapid.Check(t, func(t *rapid.T) {
		cs := anyChangeSet(t)
		before := mustEncode(t, cs)
		decoded, err := DecodeChangeSet(before)
		if err != nil {
			t.Fatal(err)
		}
		var batches [][]byte
		for _, x := range []struct {
			a  *applier
			cs *ChangeSet
		}{{new(applier), cs}, {&used, cs}, {new(applier), decoded}} {
			b := s.db.NewBatch()
			if err := x.a.apply(b, x.cs); err != nil {
				t.Fatal(err)
			}
			batches = append(batches, bytes.Clone(b.Repr()))
			b.Close()
		}
		if !bytes.Equal(batches[0], batches[1]) {
			t.Fatal("an applier that was used makes another batch")
		}
		if !bytes.Equal(batches[0], batches[2]) {
			t.Fatal("the decoded ChangeSet makes another batch")
		}
		if !bytes.Equal(before, mustEncode(t, cs)) {
			t.Fatal("applying changed the ChangeSet")
		}
	})
}

// TestApplyIsIdempotent: the same ChangeSet twice gives the same rows as once,
// on whatever was there before.
func TestApplyIsIdempotent(t *testing.T) {
	s := open(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		if err := s.db.DeleteRange([]byte{0}, []byte{0xff}, nil); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			cs := anyChangeSet(t)
			if err := s.Commit(cs); err != nil {
				t.Fatal(err)
			}
			once := dump(t, s)
			if err := s.Commit(cs); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, dump(t, s)); diff != "" {
				t.Fatalf("the second time changed rows (-once +twice):\n%s", diff)
			}
		}
	})
}

// TestApplyRefuses: an effect of a kind that is not known is an error, and
// nothing of its ChangeSet is stored.
func TestApplyRefuses(t *testing.T) {
	s := open(t, nil)
	before := dump(t, s)
	for _, kind := range []Kind{0, Release + 1, 255} {
		cs := exampleChangeSet()
		cs.Effects[len(cs.Effects)-1].Kind = kind
		if err := s.Commit(cs); err == nil {
			t.Errorf("kind %d was committed", kind)
		}
	}
	if diff := cmp.Diff(before, dump(t, s)); diff != "" {
		t.Errorf("a refused ChangeSet left rows:\n%s", diff)
	}
}

// TestSuccessorLane: a lane that is purged and made anew under the same key in
// one ChangeSet is there afterwards, under its new number, and the rows of the
// old one alone go.
func TestSuccessorLane(t *testing.T) {
	s := open(t, nil)
	key := LaneKey{Queue: 1, Channel: "eu"}
	put := func(lane LaneID, id queue.MessageID) Effect {
		e := Entry{ID: id, ExpireAfter: exampleAt, Size: 4, Indexed: true}
		return Effect{Kind: Put, Lane: lane, Entry: e, Message: &Message{ExpireAfter: exampleAt, Indexed: true, DueAt: exampleAt - 1}}
	}
	commit(t, s, &ChangeSet{Effects: []Effect{put(1, 10)}, Lanes: []Lane{{ID: 1, Key: key, Delayed: 1}}})
	// Purged, made anew, purged again, made anew: all in one group.
	commit(t, s, &ChangeSet{
		Effects:   []Effect{put(2, 11), put(3, 12)},
		GoneLanes: []Lane{{ID: 1, Key: key}, {ID: 2, Key: key}},
		Removals:  []LaneID{1, 2},
		Lanes:     []Lane{{ID: 3, Key: key, Delayed: 1}},
	})
	check := func(removals ...LaneID) {
		t.Helper()
		var lanes []Lane
		if err := s.Lanes(func(l Lane) error { lanes = append(lanes, l); return nil }); err != nil {
			t.Fatal(err)
		}
		l, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		if want := []Lane{{ID: 3, Key: key, Delayed: 1}}; !cmp.Equal(lanes, want) || !slices.Equal(l.Removals, removals) {
			t.Fatalf("lanes %+v, removals %v", lanes, l.Removals)
		}
	}
	check(1, 2)
	// The remover comes for the old ones.
	for id, lane := range map[queue.MessageID]LaneID{10: 1, 11: 2} {
		commit(t, s, &ChangeSet{
			Effects: []Effect{
				{Kind: Forget, From: Delayed, Lane: lane, Entry: Entry{ID: id}, At: exampleAt - 1},
				{Kind: Forget, From: Fresh, Lane: lane, Entry: Entry{ID: id}, At: exampleAt},
			},
			Removed: []LaneID{lane},
		})
	}
	check()
	for _, row := range dump(t, s) {
		if row[0] == 'm' || row[0] == 't' || row[0] == 'x' {
			if !bytes.Contains([]byte(row), []byte("0000000000000003")) {
				t.Errorf("left behind: %s", row)
			}
		}
	}
	if _, _, found, err := s.Message(3, 12); err != nil || !found {
		t.Errorf("the message of the new lane: %v %v", found, err)
	}
}

// TestSuccessorDeadLane: the same for a dead lane, which can be found by its
// number too.
func TestSuccessorDeadLane(t *testing.T) {
	s := open(t, nil)
	key := LaneKey{Queue: 1, Dead: true, Channel: "eu"}
	commit(t, s, &ChangeSet{Lanes: []Lane{{ID: 1, Key: key, Returned: 1}}})
	commit(t, s, &ChangeSet{GoneLanes: []Lane{{ID: 1, Key: key}}, Removals: []LaneID{1}, Lanes: []Lane{{ID: 2, Key: key, Returned: 2}}})
	want := Lane{ID: 2, Key: key, Returned: 2}
	if l, found, err := s.Lane(key); err != nil || !found || l != want {
		t.Errorf("the lane is %+v, %v, %v", l, found, err)
	}
	if l, found, err := s.DeadLane(2); err != nil || !found || l != want {
		t.Errorf("lane 2 is %+v, %v, %v", l, found, err)
	}
	if l, found, err := s.DeadLane(1); err != nil || found {
		t.Errorf("lane 1 is %+v, %v, %v", l, found, err)
	}
}

// TestSuccessorToken: a token that is dropped and used again in one ChangeSet
// is there afterwards.
func TestSuccessorToken(t *testing.T) {
	s := open(t, nil)
	old := RetryToken{Scope: "publish/1", Token: "a", At: exampleAt, Value: []byte("old")}
	used := RetryToken{Scope: "publish/1", Token: "a", At: exampleAt + 25*3_600_000, Value: []byte("new")}
	commit(t, s, &ChangeSet{Tokens: []RetryToken{old}})
	commit(t, s, &ChangeSet{GoneTokens: []RetryToken{old}, Tokens: []RetryToken{used}})
	got, found, err := s.RetryToken("publish/1", "a")
	if err != nil || !found || string(got.Value) != "new" {
		t.Errorf("the token is %+v, %v, %v", got, found, err)
	}
	left, err := s.RetryTokens(used.At+3_600_000, 10)
	if err != nil || len(left) != 1 || left[0].At != used.At/3_600_000*3_600_000 {
		t.Errorf("tokens by the hour: %+v, %v", left, err)
	}
}
