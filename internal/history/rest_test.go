package history

import (
	"slices"
	"testing"
	"time"
)

// cut is a history that ends with a loss of power at 30. Nothing is wrong with
// it.
//
//	1 "a"  deleted
//	2 "b"  delivered at 12, for 100 s
//	3 "c"  delivered three times and moved
//	4 "d"  delayed until 34
//	5 "e"  published without an answer, and there
//	6 "f"  published
func cut() *History {
	end := at(90000)
	return &History{
		Threshold: 3,
		Drain:     at(30),
		Publishes: []Publish{
			{Content: "a", Start: at(0), End: at(0.1), ID: 1, Expire: end},
			{Content: "b", Start: at(1), End: at(1.1), ID: 2, Expire: end},
			{Content: "c", Start: at(2), End: at(2.1), ID: 3, Expire: end},
			{Content: "d", Start: at(3), End: at(3.1), ID: 4, Expire: end, Delay: 30 * time.Second},
			{Content: "e", Start: at(4), End: at(30), Outcome: Doubt},
			{Content: "f", Start: at(6), End: at(6.1), ID: 6, Expire: end},
		},
		Deliveries: []Delivery{
			delivery(10, 5, 1, "a", 1),
			delivery(12, 100, 2, "b", 1),
			delivery(10, 5, 3, "c", 1),
			delivery(16, 5, 3, "c", 2),
			delivery(22, 5, 3, "c", 3),
		},
		Deletes: []Delete{{Receipt: "1/1", Start: at(11), End: at(11.1)}},
		Before:  Stats{Visible: 2, InFlight: 1, Delayed: 1, Bytes: 4, DeadVisible: 1, DeadBytes: 1},
		Rest: &Rest{[]Found{
			{ID: 2, Content: "b", State: InFlight, Count: 1, Until: at(112), CreatedAt: at(2), Expire: end},
			{ID: 3, Content: "c", Dead: true, Count: 3, CreatedAt: at(3), Expire: at(90027), DeadCount: 3, DeadAt: at(27)},
			{ID: 4, Content: "d", State: Delayed, CreatedAt: at(4), Expire: end},
			{ID: 5, Content: "e", CreatedAt: at(5), Expire: end},
			{ID: 6, Content: "f", CreatedAt: at(6), Expire: end},
		}},
	}
}

// without removes a message from the disk, in good order.
func without(h *History, i int) {
	h.Rest.Messages = slices.Delete(h.Rest.Messages, i, i+1)
	recount(h)
}

// recount sets the counters to what is on the disk.
func recount(h *History) {
	h.Before = Stats{}
	for _, f := range h.Rest.Messages {
		h.Before.count(f.State, f.Dead, len(f.Content))
	}
}

// restCases: what is on the disk when the power has failed.
var restCases = []story{
	{broken, Kept, "acknowledged and not on the disk", func(h *History) { without(h, 4) }},
	{broken, Kept, "leased and not on the disk", func(h *History) { without(h, 0) }},
	{broken, Kept, "moved and not on the disk", func(h *History) { without(h, 1) }},
	{fine, Kept, "in doubt and not on the disk", func(h *History) { without(h, 3) }},
	{fine, Kept, "its delete is under way, and it is not on the disk", func(h *History) {
		without(h, 0)
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(29), End: at(30), Outcome: Doubt})
	}},
	{broken, Deleted, "deleted and on the disk", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(29), End: at(29.1)})
	}},
	{fine, Deleted, "its delete is under way, and it is on the disk", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(29), End: at(30), Outcome: Doubt})
	}},
	{broken, Purged, "purged and on the disk", func(h *History) {
		h.Purges = []Purge{{Normal: true, Start: at(28), End: at(29)}}
	}},
	{broken, Published, "never published and on the disk", func(h *History) {
		h.Rest.Messages[4].Content = "x"
	}},
	{broken, Published, "in another channel", func(h *History) { h.Rest.Messages[4].Channel = "x" }},
	{broken, Once, "twice on the disk, under two ids", func(h *History) {
		h.Rest.Messages = append(h.Rest.Messages, Found{ID: 9, Content: "f", CreatedAt: at(9), Expire: at(90000)})
		recount(h)
	}},
	{broken, Conserved, "twice on the disk, under one id", func(h *History) {
		m := h.Rest.Messages[1]
		m.Dead = false
		h.Rest.Messages = append(h.Rest.Messages, m)
		recount(h)
	}},
	{broken, Conserved, "a dead letter is in the queue again", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(28, 100, 3, "c", 4))
		h.Rest.Messages[1].Dead, h.Rest.Messages[1].Count = false, 4
		recount(h)
	}},
	{broken, Conserved, "a dead letter was moved again", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(28, 1, 3, "c", 4))
		h.Rest.Messages[1].Count, h.Rest.Messages[1].DeadAt = 4, at(29)
	}},
	{fine, Conserved, "a dead letter is leased", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(28, 100, 3, "c", 4))
		m := &h.Rest.Messages[1]
		m.Count, m.State, m.Until = 4, InFlight, at(128)
		recount(h)
	}},
	{broken, Buried, "visible after its last delivery", func(h *History) {
		h.Rest.Messages[1].Dead = false
		recount(h)
	}},
	{broken, Buried, "moved too early", func(h *History) { h.Rest.Messages[1].DeadCount = 2 }},
	{fine, Buried, "on its way to the dead letter queue", func(h *History) {
		m := &h.Rest.Messages[1]
		m.Dead, m.State, m.Until, m.Expire = false, InFlight, at(27), at(90000)
		recount(h)
	}},
	{broken, Exclusive, "leased and visible on the disk", func(h *History) {
		h.Rest.Messages[0].State = Visible
		recount(h)
	}},
	{broken, Exclusive, "leased and dead on the disk", func(h *History) {
		h.Rest.Messages[0] = Found{ID: 2, Content: "b", Dead: true, Count: 1, CreatedAt: at(2), Expire: at(90020), DeadCount: 1, DeadAt: at(20)}
		recount(h)
	}},
	{broken, Exclusive, "leased for another time", func(h *History) { h.Rest.Messages[0].Until = at(111) }},
	{broken, Exclusive, "its extension is not on the disk", func(h *History) {
		h.Updates = []Update{{Receipt: "2/1", Visibility: 200 * time.Second, Start: at(20), End: at(20.1), VisibleAfter: at(220)}}
	}},
	{fine, Exclusive, "its extension is under way", func(h *History) {
		h.Updates = []Update{{Receipt: "2/1", Visibility: 200 * time.Second, Start: at(29), End: at(30), Outcome: Doubt}}
	}},
	{fine, Exclusive, "its extension is under way, and on the disk", func(h *History) {
		h.Updates = []Update{{Receipt: "2/1", Visibility: 200 * time.Second, Start: at(29), End: at(30), Outcome: Doubt}}
		h.Rest.Messages[0].Until = at(229.5)
	}},
	{broken, Exclusive, "leased, and leased again on the disk", func(h *History) {
		h.Rest.Messages[0].Count, h.Rest.Messages[0].Until = 2, at(120)
		h.Lost = []Lost{{Start: at(20), End: at(30)}}
	}},
	{broken, Counted, "its count is not on the disk", func(h *History) { h.Rest.Messages[0].Count = 0 }},
	{broken, Counted, "a delivery too many is on the disk", func(h *History) { h.Rest.Messages[4].Count = 1 }},
	{fine, Counted, "a delivery is under way", func(h *History) {
		h.Lost = []Lost{{Start: at(20), End: at(30)}}
		m := &h.Rest.Messages[4]
		m.Count, m.State, m.Until = 1, InFlight, at(50)
		recount(h)
	}},
	{broken, Delay, "visible on the disk before its time", func(h *History) {
		h.Rest.Messages[2].State = Visible
		recount(h)
	}},
	{fine, Delay, "visible on the disk in its time", func(h *History) {
		h.Publishes[3].Delay = 26 * time.Second
		h.Rest.Messages[2].State = Visible
		recount(h)
	}},
	{broken, Ended, "another end is on the disk", func(h *History) { h.Rest.Messages[0].Expire = at(80000) }},
	{broken, Counters, "the counters are not what is on the disk", func(h *History) { h.Before.InFlight = 0 }},
	{broken, Counters, "the octets are not what is on the disk", func(h *History) { h.Before.Bytes = 5 }},
}

func TestRest(t *testing.T) { tell(t, cut, restCases) }
