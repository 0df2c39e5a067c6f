package store

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/queued-mq/queued/queue"
)

// liveMessage is a message of a lifeLane, as the core would know it.
type liveMessage struct {
	lane  *Lane
	state Row
	entry Entry
	due   queue.Instant
}

// lives makes ChangeSets that a broker could make: messages come, go through
// the states of docs/states.md, and end, any number of steps in one group;
// lanes come, are given up with all that is in them, and have successors;
// their rows are removed later; retry tokens are dropped and used again.
type lives struct {
	t        *rapid.T
	cs       *ChangeSet
	ids      queue.MessageID
	lanes    [2][2]*Lane // by channel and dead
	last     LaneID
	messages []*liveMessage
	given    []LaneID            // up in groups before
	timers   map[LaneID][]Effect // Forgets of what stood in them
	changed  map[*Lane]bool      // in this group
	tokens   map[string]RetryToken
	hour     queue.Instant
}

func (w *lives) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, what) }

// lane finds a lane or makes it.
func (w *lives) lane(channel, dead int) *Lane {
	l := w.lanes[channel][dead]
	if l == nil {
		w.last++
		l = &Lane{ID: w.last, Key: LaneKey{Queue: 1, Dead: dead == 1, Channel: []string{"a", "b"}[channel]}}
		w.lanes[channel][dead] = l
	}
	w.changed[l] = true
	return l
}

func (w *lives) effect(e Effect) { w.cs.Effects = append(w.cs.Effects, e) }

func (w *lives) put() {
	w.ids++
	m := &liveMessage{lane: w.lane(w.pick("channel", 2), 0), state: Fresh}
	m.entry = Entry{ID: w.ids, ExpireAfter: 1000 + queue.Instant(w.pick("end", 3)), Size: 4, Indexed: w.pick("indexed", 2) == 1}
	if w.pick("delayed", 3) == 0 {
		m.state, m.due = Delayed, 500+queue.Instant(w.pick("due", 3))
	}
	w.messages = append(w.messages, m)
	w.effect(Effect{Kind: Put, Lane: m.lane.ID, Entry: m.entry, Message: &Message{
		Message: queue.Message{Body: []byte{byte(w.ids)}}, ExpireAfter: m.entry.ExpireAfter, DueAt: m.due, Indexed: m.entry.Indexed,
	}})
}

// step takes one message one step on.
func (w *lives) step() {
	if len(w.messages) == 0 {
		return
	}
	at := w.pick("which", len(w.messages))
	m := w.messages[at]
	w.changed[m.lane] = true
	end := func() { w.messages = slices.Delete(w.messages, at, at+1) }
	e := Effect{From: m.state, Lane: m.lane.ID}
	if m.state == Delayed {
		e.At = m.due
	}
	kinds := map[Row][]Kind{Fresh: {Take, Return, Drop}, Returned: {Take, Return, Bury, Drop}, Leased: {Take, Return, Bury, Drop}, Delayed: {Return, Drop}}[m.state]
	e.Kind = kinds[w.pick("step", len(kinds))]
	if e.Kind == Bury && m.lane.Key.Dead {
		e.Kind = Drop
	}
	switch e.Kind {
	case Take:
		m.entry.Lease++
		m.entry.Deliveries++
		m.state, e.At = Leased, 700+queue.Instant(m.entry.Lease)
	case Return:
		m.state = Returned
	case Bury:
		channel := 0
		if m.lane.Key.Channel == "b" {
			channel = 1
		}
		to := w.lane(channel, 1)
		dead := Entry{ID: m.entry.ID, ExpireAfter: m.entry.ExpireAfter + 1, Size: 4, Indexed: w.pick("indexed", 2) == 1}
		e.Entry, e.To, e.ToEntry = m.entry, to.ID, dead
		e.Message = &Message{Message: queue.Message{Body: []byte{byte(m.entry.ID), 1}}, ExpireAfter: dead.ExpireAfter, Indexed: dead.Indexed, Dead: &Dead{Reason: "r"}}
		w.effect(e)
		m.lane, m.state, m.entry = to, Returned, dead
		return
	case Drop:
		end()
	}
	e.Entry = m.entry
	w.effect(e)
}

// purge gives a lane up.
func (w *lives) purge() {
	l := &w.lanes[w.pick("channel", 2)][w.pick("dead", 2)]
	if *l == nil {
		return
	}
	w.messages = slices.DeleteFunc(w.messages, func(m *liveMessage) bool {
		if m.lane != *l {
			return false
		}
		if m.due != 0 && m.state == Delayed {
			w.timers[m.lane.ID] = append(w.timers[m.lane.ID], Effect{Kind: Forget, From: Delayed, Lane: m.lane.ID, Entry: Entry{ID: m.entry.ID}, At: m.due})
		}
		if m.entry.Indexed {
			w.timers[m.lane.ID] = append(w.timers[m.lane.ID], Effect{Kind: Forget, From: Fresh, Lane: m.lane.ID, Entry: Entry{ID: m.entry.ID}, At: m.entry.ExpireAfter})
		}
		return true
	})
	delete(w.changed, *l)
	w.cs.GoneLanes = append(w.cs.GoneLanes, Lane{ID: (*l).ID, Key: (*l).Key})
	w.cs.Removals = append(w.cs.Removals, (*l).ID)
	*l = nil
}

// remove takes the rows of a lane that was given up in a group before.
func (w *lives) remove() {
	if len(w.given) == 0 {
		return
	}
	at := w.pick("given", len(w.given))
	for _, e := range w.timers[w.given[at]] {
		w.effect(e)
	}
	w.cs.Removed = append(w.cs.Removed, w.given[at])
	w.given = slices.Delete(w.given, at, at+1)
}

// token drops a retry token that is old and uses it again, or uses a new one.
func (w *lives) token() {
	name := []string{"x", "y"}[w.pick("token", 2)]
	if slices.ContainsFunc(w.cs.Tokens, func(t RetryToken) bool { return t.Token == name }) {
		return // within 24 h
	}
	if old, used := w.tokens[name]; used {
		w.cs.GoneTokens = append(w.cs.GoneTokens, old)
	}
	w.hour += 25 * 3_600_000
	w.tokens[name] = RetryToken{Scope: "publish/1", Token: name, At: w.hour, Value: []byte{byte(w.ids)}}
	w.cs.Tokens = append(w.cs.Tokens, w.tokens[name])
}

// group is the ChangeSet of the next group.
func (w *lives) group() *ChangeSet {
	w.cs, w.changed = &ChangeSet{State: State{Message: w.ids}}, make(map[*Lane]bool)
	for range rapid.IntRange(1, 12).Draw(w.t, "steps") {
		switch w.pick("what", 12) {
		case 0, 1, 2:
			w.put()
		case 3:
			w.purge()
		case 4:
			w.remove()
		case 5:
			w.token()
		default:
			w.step()
		}
	}
	for _, pair := range w.lanes {
		for _, l := range pair {
			if l != nil && w.changed[l] {
				l.Cursor = w.ids
				w.cs.Lanes = append(w.cs.Lanes, *l)
			}
		}
	}
	w.given = append(w.given, w.cs.Removals...)
	return w.cs
}

// TestApplyKeepsTheOrder: one batch for a whole group leaves the same rows as
// its effects one by one, each in a batch of its own, and the rest behind them.
// What is left when all is over is what a store would have that knew nothing
// but the messages that live.
func TestApplyKeepsTheOrder(t *testing.T) {
	together, single := open(t, nil), open(t, nil)
	hits := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, s := range []*Store{together, single} {
			if err := s.db.DeleteRange([]byte{0}, []byte{0xff}, nil); err != nil {
				t.Fatal(err)
			}
		}
		w := &lives{t: t, timers: make(map[LaneID][]Effect), tokens: make(map[string]RetryToken)}
		for range rapid.IntRange(1, 5).Draw(t, "groups") {
			cs := w.group()
			count(hits, cs)
			if err := together.Commit(cs); err != nil {
				t.Fatal(err)
			}
			rest := *cs
			rest.Effects = nil
			for _, e := range cs.Effects {
				if err := single.Commit(&ChangeSet{Effects: []Effect{e}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := single.Commit(&rest); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(dump(t, single), dump(t, together)); diff != "" {
				t.Fatalf("a group leaves other rows than its effects (-one by one +together):\n%s\n%+v", diff, cs.Effects)
			}
		}
		for len(w.given) > 0 {
			w.cs = &ChangeSet{}
			w.remove()
			if err := together.Commit(w.cs); err != nil {
				t.Fatal(err)
			}
		}
		rows := 0
		for _, row := range dump(t, together) {
			if row[0] == kindMessage || row[0] == kindLease || row[0] == kindReturned || row[0] == kindDue || row[0] == kindExpiry {
				rows++
			}
		}
		for _, m := range w.messages {
			if rows--; m.state != Fresh {
				rows--
			}
			if m.entry.Indexed {
				rows--
			}
		}
		if rows != 0 {
			t.Fatalf("%d rows too many", rows)
		}
	})
	for _, what := range []string{"put and dropped", "buried and dropped", "put and buried", "put and given up", "put beside a removal", "token again"} {
		if hits[what] == 0 {
			t.Errorf("never in one group: %s", what)
		}
	}
}

// count notes what a group has in it that an order could spoil.
func count(hits map[string]int, cs *ChangeSet) {
	put, buried := map[queue.MessageID]bool{}, map[queue.MessageID]bool{}
	for _, e := range cs.Effects {
		switch e.Kind {
		case Put:
			put[e.Entry.ID] = true
			if slices.Contains(cs.Removals, e.Lane) {
				hits["put and given up"]++
			}
			if len(cs.Removed) > 0 {
				hits["put beside a removal"]++
			}
		case Bury:
			buried[e.Entry.ID] = true
			if put[e.Entry.ID] {
				hits["put and buried"]++
			}
		case Drop:
			if put[e.Entry.ID] {
				hits["put and dropped"]++
			}
			if buried[e.Entry.ID] {
				hits["buried and dropped"]++
			}
		}
	}
	if len(cs.GoneTokens) > 0 {
		hits["token again"]++
	}
}
