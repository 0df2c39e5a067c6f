package history

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// at is an instant of the stories below, in seconds since they began.
func at(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

const drain = 100

// good is a history on which nothing is wrong. Every case below changes it in
// one place.
//
//	1 "a"  delivered at 10 for 5 s, extended, given back; at 20 again and deleted
//	2 "b"  published under a token, twice; delivered at 12 for 5 s, lapsed; found at the end
//	3 "c"  delivered three times, moved to the dead letter queue
//	4 "d"  delayed by 30 s; found at the end
//	5 "e"  published without an answer and never delivered: it may not be there
func good() *History {
	h := &History{
		Threshold: 3,
		Drain:     at(drain),
		Publishes: []Publish{
			{Content: "a", Start: at(0), End: at(0.1), ID: 1, Expire: at(90000)},
			{Content: "b", Token: "t", Start: at(1), End: at(1.1), Outcome: Doubt},
			{Content: "b", Token: "t", Start: at(2), End: at(2.1), ID: 2, Expire: at(90000)},
			{Content: "c", Start: at(3), End: at(3.1), ID: 3, Expire: at(90000)},
			{Content: "d", Start: at(4), End: at(4.1), ID: 4, Delay: 30 * time.Second, Expire: at(90000)},
			{Content: "e", Start: at(5), End: at(5.1), Outcome: Doubt},
		},
		Deliveries: []Delivery{
			delivery(10, 5, 1, "a", 1),
			delivery(20, 5, 1, "a", 2),
			delivery(12, 5, 2, "b", 1),
			delivery(10, 5, 3, "c", 1),
			delivery(16, 5, 3, "c", 2),
			delivery(22, 5, 3, "c", 3),
			delivery(drain+1, 60, 2, "b", 2),
			dead(drain+2, 60, 3, "c", 4),
			delivery(drain+3, 60, 4, "d", 1),
		},
		Updates: []Update{
			{Receipt: "1/1", Visibility: 10 * time.Second, Start: at(12), End: at(12.1), VisibleAfter: at(22)},
			{Receipt: "1/1", Visibility: 0, Start: at(15), End: at(15.1), VisibleAfter: at(15.05)},
			{Receipt: "1/1", Visibility: 9 * time.Second, Start: at(21), End: at(21.1), Outcome: Stale},
			{Receipt: "2/1", Visibility: 9 * time.Second, Start: at(18), End: at(18.1), Outcome: Stale},
		},
		Deletes: []Delete{
			{Receipt: "1/1", Start: at(21), End: at(21.1), Outcome: Stale},
			{Receipt: "1/2", Start: at(22), End: at(22.1)},
		},
		Before: Stats{Visible: 2, Bytes: 2, DeadVisible: 1, DeadBytes: 1},
	}
	return h
}

// delivery is one that was asked for half a second before it was made.
func delivery(made, visibility float64, id int64, content string, count int) Delivery {
	return Delivery{
		Start: at(made - 0.5), End: at(made + 0.1), Visibility: time.Duration(visibility * float64(time.Second)),
		ID: id, Content: content, Receipt: fmt.Sprintf("%d/%d", id, count), Count: count,
		CreatedAt: at(float64(id)), VisibleAfter: at(made + visibility),
	}
}

func dead(made, visibility float64, id int64, content string, count int) Delivery {
	d := delivery(made, visibility, id, content, count)
	d.Dead, d.DeadCount = true, 3
	return d
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(h *History)
		want   Promise // "": nothing is wrong
	}{
		{"good", func(*History) {}, ""},
		{"empty", func(h *History) { *h = History{} }, ""},

		{"acknowledged message is gone", func(h *History) {
			h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
			h.Before.Visible, h.Before.Bytes = 1, 1
		}, Kept},
		{"acknowledged message without an id is gone", func(h *History) {
			h.Publishes[5].Outcome = Done
		}, Kept},
		{"acknowledged without an id, and there", func(h *History) {
			h.Publishes[4].ID, h.Publishes[4].Expire = 0, time.Time{}
		}, ""},
		{"acknowledged without an id, and stored twice", func(h *History) {
			h.Publishes[4].ID = 0
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "d", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Once},
		{"message seen once is gone, though its publish had no answer", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(30, 5, 5, "e", 1))
		}, Kept},
		{"message is gone after a delete without an answer", func(h *History) {
			h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "2/2" })
			h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt})
			h.Before.Visible, h.Before.Bytes = 1, 1
		}, ""},
		{"message is gone after a delete that was refused", func(h *History) {
			h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "2/2" })
			h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Refused})
			h.Before.Visible, h.Before.Bytes = 1, 1
		}, Kept},
		{"message is gone because its retention is over", func(h *History) {
			h.Publishes[4].Expire = at(50)
			h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
			h.Before.Visible, h.Before.Bytes = 1, 1
		}, ""},

		{"deleted message comes back", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(40, 5, 1, "a", 3))
		}, Deleted},
		{"deleted message is found at the end", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 1, "a", 3))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Deleted},
		{"delete without an answer did nothing", func(h *History) {
			h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt})
		}, ""},
		{"receive that was under way sees the message before the delete", func(h *History) {
			h.Deliveries[1].Start = at(19)
			h.Deletes[1] = Delete{Receipt: "1/2", Start: at(20.2), End: at(20.3)}
		}, ""},

		{"content that was never published", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "x", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Published},
		{"content of another message", func(h *History) { h.Deliveries[2].Content = "a" }, Published},
		{"publish that was refused", func(h *History) {
			h.Publishes[5].Outcome = Refused
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 5, "e", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Once},
		{"delivered before it was published", func(h *History) {
			h.Deliveries[0].End, h.Deliveries[0].Start = at(-1), at(-2)
		}, Published},
		{"publish without an answer was stored", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 5, "e", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, ""},

		{"one token, two messages", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Once},
		{"one token, two answers", func(h *History) {
			h.Publishes[1].Outcome, h.Publishes[1].ID = Done, 9
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, Once},
		{"no token, two attempts, two messages", func(h *History) {
			h.Publishes[1].Token, h.Publishes[2].Token = "", ""
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
			h.Before.Visible, h.Before.Bytes = 3, 3
		}, ""},
		{"no token, two attempts, three messages", func(h *History) {
			h.Publishes[1].Token, h.Publishes[2].Token = "", ""
			h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1), delivery(drain+4, 60, 10, "b", 1))
			h.Before.Visible, h.Before.Bytes = 4, 4
		}, Once},
		{"two publishes, one id", func(h *History) { h.Publishes[3].ID = 4 }, Once},

		{"delivered while leased", func(h *History) {
			h.Deliveries[4] = delivery(14.9, 5, 3, "c", 2)
		}, Exclusive},
		{"delivered while an extension runs", func(h *History) {
			h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 20 * time.Second, Start: at(11), End: at(11.1), VisibleAfter: at(31)})
		}, Exclusive},
		{"delivered at the very end of a lease", func(h *History) {
			h.Deliveries[4] = delivery(15, 5, 3, "c", 2)
		}, ""},
		{"delivered early after an update to 0 without an answer", func(h *History) {
			h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 0, Start: at(12), End: at(12.1), Outcome: Doubt})
			h.Deliveries[4] = delivery(13, 5, 3, "c", 2)
		}, ""},
		{"delivered before an update to 0 without an answer", func(h *History) {
			h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 0, Start: at(12), End: at(12.1), Outcome: Doubt})
			h.Deliveries[4] = delivery(11, 5, 3, "c", 2)
		}, Exclusive},
		{"moved to the dead letter queue while leased", func(h *History) {
			h.Deliveries[7] = dead(26, 5, 3, "c", 4)
			h.Deliveries = append(h.Deliveries, dead(drain+2, 60, 3, "c", 5))
		}, Exclusive},

		{"delete refused while leased", func(h *History) {
			h.Deletes = append(h.Deletes, Delete{Receipt: "3/1", Start: at(11), End: at(11.1), Outcome: Stale})
		}, Receipt},
		{"delete refused, but another may have worked", func(h *History) {
			h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt},
				Delete{Receipt: "2/1", Start: at(14), End: at(14.1), Outcome: Stale})
		}, ""},
		{"update refused while leased", func(h *History) {
			h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: time.Second, Start: at(11), End: at(11.1), Outcome: Stale})
		}, Receipt},
		{"update refused since the server was busy", func(h *History) {
			h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: time.Second, Start: at(11), End: at(11.1), Outcome: Refused})
		}, ""},
		{"one receipt for two deliveries", func(h *History) { h.Deliveries[1].Receipt = "1/1" }, Receipt},

		{"extended after it was over", func(h *History) {
			h.Updates[3] = Update{Receipt: "2/1", Visibility: 9 * time.Second, Start: at(18), End: at(18.1), VisibleAfter: at(27)}
		}, Late},
		{"extended after an extension without an answer", func(h *History) {
			h.Updates[3] = Update{Receipt: "2/1", Visibility: 9 * time.Second, Start: at(18), End: at(18.1), VisibleAfter: at(27)}
			h.Updates = append(h.Updates, Update{Receipt: "2/1", Visibility: 5 * time.Second, Start: at(16), End: at(16.1), Outcome: Doubt})
		}, ""},
		{"extended when another had it", func(h *History) {
			h.Updates[0] = Update{Receipt: "1/1", Visibility: 20 * time.Second, Start: at(12), End: at(12.1), VisibleAfter: at(32)}
			h.Updates[1] = Update{Receipt: "1/1", Visibility: 0, Start: at(15), End: at(15.1), Outcome: Doubt}
			h.Updates[2] = Update{Receipt: "1/1", Visibility: 9 * time.Second, Start: at(21), End: at(21.1), VisibleAfter: at(30)}
		}, Late},

		{"first delivery is not 1", func(h *History) { h.Deliveries[8].Count = 2 }, Counted},
		{"first delivery is not 1, a receive was lost", func(h *History) {
			h.Deliveries[8].Count = 2
			h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51)})
		}, ""},
		{"a receive was lost before the message was there", func(h *History) {
			h.Deliveries[8].Count = 2
			h.Lost = append(h.Lost, Lost{Start: at(1), End: at(2)})
		}, Counted},
		{"one receive was lost, two deliveries are missing", func(h *History) {
			h.Deliveries[8].Count = 3
			h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51)})
		}, Counted},
		{"count stands still", func(h *History) { h.Deliveries[6].Count = 1 }, Counted},
		{"count falls", func(h *History) { h.Deliveries[4].Count, h.Deliveries[5].Count = 3, 2 }, Counted},
		{"count is lost with the restart", func(h *History) { h.Deliveries[7].Count = 1 }, Counted},

		{"delivered too often", func(h *History) {
			h.Deliveries = slices.Insert(h.Deliveries, 7, delivery(30, 5, 3, "c", 4))
			h.Deliveries[8].Count, h.Deliveries[8].DeadCount = 5, 4
		}, Buried},
		{"moved too early", func(h *History) {
			h.Deliveries[7].Count, h.Deliveries[7].DeadCount = 3, 2
			h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "3/3" })
		}, Buried},
		{"comes back from the dead letter queue", func(h *History) {
			h.Deliveries = append(h.Deliveries, dead(30, 5, 3, "c", 4))
			h.Deliveries[7] = delivery(drain+2, 60, 3, "c", 5)
			h.Before = Stats{Visible: 3, Bytes: 3}
		}, Buried},

		{"delivered before its delay has passed", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(33, 5, 4, "d", 1))
			h.Deliveries[8] = delivery(drain+3, 60, 4, "d", 2)
		}, Delayed},
		{"delivered when its delay has passed", func(h *History) {
			h.Deliveries = append(h.Deliveries, delivery(34, 5, 4, "d", 1))
			h.Deliveries[8] = delivery(drain+3, 60, 4, "d", 2)
		}, ""},

		{"later publish, lower id", func(h *History) {
			h.Publishes[0].Start, h.Publishes[0].End = at(7), at(7.1)
		}, Rising},
		{"publishes at the same time, ids in any order", func(h *History) {
			h.Publishes[0].Start, h.Publishes[0].End = at(0), at(7.1)
		}, ""},

		{"counters before", func(h *History) { h.Before.Visible = 3 }, Counters},
		{"counters of the dead letter queue", func(h *History) { h.Before.DeadBytes = 0 }, Counters},
		{"in flight at the end", func(h *History) { h.Before.InFlight = 1 }, Counters},
		{"counters after", func(h *History) { h.After.Bytes = -1 }, Counters},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := good()
			tt.change(h)
			found := h.Check()
			for _, v := range found {
				t.Log(v)
			}
			if tt.want == "" {
				if len(found) > 0 {
					t.Error("nothing is wrong with it")
				}
				return
			}
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Promise == tt.want }) {
				t.Errorf("not found: %s", tt.want)
			}
		})
	}
}

// A recorder takes entries from many goroutines.
func TestRecorder(t *testing.T) {
	var r Recorder
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r.Publish(Publish{Content: fmt.Sprint(i)})
			r.Deliver(Delivery{ID: int64(i)}, Delivery{ID: int64(i)})
			r.Lose(Lost{})
			r.Update(Update{})
			r.Delete(Delete{})
		})
	}
	wg.Wait()
	h := r.History()
	if len(h.Publishes) != 8 || len(h.Deliveries) != 16 || len(h.Lost) != 8 || len(h.Updates) != 8 || len(h.Deletes) != 8 {
		t.Errorf("recorded %d %d %d %d %d", len(h.Publishes), len(h.Deliveries), len(h.Lost), len(h.Updates), len(h.Deletes))
	}
}
