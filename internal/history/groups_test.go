package history

import "testing"

func TestGroups(t *testing.T) { tell(t, shared, groupsCases) }

// shared is a good history of a queue with two consumer groups.
//
//	1 "a"  for both: the first deletes it, the second has it as a dead letter
//	2 "b"  for the first alone; found at the end
//	3 "c"  for the second alone; found at the end
//	4 "d"  for neither
//	5 "e"  for neither, without an answer: it may not be counted
//	6 "f"  for both; the second has purged it
func shared() *History {
	both, one, two := []string{"one", "two"}, []string{"one"}, []string{"two"}
	of := func(group string, d Delivery) Delivery {
		d.Group, d.Receipt = group, group+" "+d.Receipt
		return d
	}
	grave := dead(drain+1, 60, 1, "a", 3)
	grave.DeadCount = 2
	return &History{
		Tolerance: OneMachine,
		Drain:     at(drain),
		Groups: []Group{
			{Name: "one", Threshold: 3, Before: Stats{Visible: 2, Bytes: 2}},
			{Name: "two", Threshold: 2, Before: Stats{Visible: 1, Bytes: 1, DeadVisible: 1, DeadBytes: 1}},
		},
		Unrouted: 1,
		Publishes: []Publish{
			{Content: "a", For: both, Start: at(0), End: at(0.1), ID: 1, Expire: at(90000)},
			{Content: "b", For: one, Start: at(1), End: at(1.1), ID: 2, Expire: at(90000)},
			{Content: "c", For: two, Start: at(2), End: at(2.1), ID: 3, Expire: at(90000)},
			{Content: "d", Start: at(3), End: at(3.1), ID: 4, Expire: at(90000)},
			{Content: "e", Start: at(4), End: at(4.1), Outcome: Doubt},
			{Content: "f", For: both, Start: at(5), End: at(5.1), ID: 6, Expire: at(90000)},
		},
		Deliveries: []Delivery{
			of("one", delivery(10, 60, 1, "a", 1)),
			of("two", delivery(11, 5, 1, "a", 1)),
			of("two", delivery(20, 5, 1, "a", 2)),
			of("two", grave),
			of("one", delivery(drain+1, 60, 2, "b", 1)),
			of("two", delivery(drain+2, 60, 3, "c", 1)),
			of("one", delivery(drain+3, 60, 6, "f", 1)),
		},
		Deletes: []Delete{{Receipt: "one 1/1", Start: at(30), End: at(30.1)}},
		Purges:  []Purge{{Group: "two", Channels: []string{""}, Normal: true, Start: at(8), End: at(8.1), Outcome: Doubt}, {Group: "two", Normal: true, Start: at(40), End: at(40.1), Outcome: Doubt}},
	}
}

var groupsCases = []story{
	{broken, Routed, "given to a group that does not accept it", func(h *History) {
		d := delivery(12, 5, 2, "b", 1)
		d.Group, d.Receipt = "two", "two 2/1"
		h.Deliveries = append(h.Deliveries, d)
	}},
	{broken, Routed, "stored for a group that does not accept it", func(h *History) {
		h.Groups[1].Rest = &Rest{Messages: []Found{{ID: 2, Content: "b", Count: 0, Expire: at(90000)}}}
	}},
	{broken, Routed, "given to a group, and for none", func(h *History) {
		d := delivery(12, 5, 4, "d", 1)
		d.Group = "one"
		h.Deliveries = append(h.Deliveries, d)
	}},
	{fine, Routed, "two groups have it at once", func(*History) {}},
	{broken, Kept, "one of the groups that accept it never gets it", func(h *History) {
		h.Deliveries, h.Groups[0].Before = h.Deliveries[:6], Stats{Visible: 1, Bytes: 1}
	}},
	{broken, Kept, "a dead letter of one group is lost, and the other group has deleted the message", func(h *History) {
		h.Deliveries = append(h.Deliveries[:3], h.Deliveries[4:]...)
		h.Groups[1].Before = Stats{Visible: 1, Bytes: 1}
		h.Purges, h.Publishes[5].For = nil, h.Publishes[5].For[:1]
	}},
	{broken, Exclusive, "twice at once in one group", func(h *History) {
		d := delivery(12, 60, 1, "a", 2)
		d.Group, d.Receipt = "one", "one 1/2"
		h.Deliveries = append(h.Deliveries, d)
	}},
	{broken, Buried, "dead by the threshold of another group", func(h *History) { h.Groups[1].Threshold = 3 }},
	{broken, Conserved, "given by a group that has it as a dead letter", func(h *History) {
		d := delivery(drain+10, 60, 1, "a", 4)
		d.Group, d.Receipt = "two", "two 1/4"
		h.Deliveries = append(h.Deliveries, d)
	}},
	{broken, Deleted, "deleted in a group, and there again", func(h *History) {
		d := delivery(drain+10, 60, 1, "a", 2)
		d.Group, d.Receipt = "one", "one 1/2"
		h.Deliveries = append(h.Deliveries, d)
		h.Groups[0].Before = Stats{Visible: 3, Bytes: 3}
	}},
	{broken, Purged, "purged in one group, and there", func(h *History) {
		h.Purges = append(h.Purges, Purge{Group: "one", Normal: true, Dead: true, Start: at(50), End: at(50.1)})
	}},
	{fine, Purged, "purged in one group, and there in the other", func(h *History) {
		h.Purges[1].Outcome = Done
		h.Deliveries = append(h.Deliveries[:5], h.Deliveries[6:]...)
		h.Groups[1].Before = Stats{DeadVisible: 1, DeadBytes: 1}
	}},
	{broken, Receipt, "one receipt in two groups", func(h *History) { h.Deliveries[1].Receipt = "one 1/1" }},
	{broken, Receipt, "refused in one group, for the delete of the other", func(h *History) {
		h.Deliveries[1].VisibleAfter, h.Deliveries[1].Visibility = at(11+3600), 3600e9
		h.Deliveries = append(h.Deliveries[:2], h.Deliveries[4:]...)
		h.Groups[1].Before = Stats{Visible: 1, InFlight: 1, Bytes: 2}
		h.Deletes = append(h.Deletes, Delete{Receipt: "two 1/1", Start: at(35), End: at(35.1), Outcome: Stale})
		h.Purges = nil
	}},
	{broken, Rising, "what nobody accepts got an id of before", func(h *History) { h.Publishes[3].ID = 2; h.Publishes[1].ID = 4 }},
	{broken, Counters, "one that no group accepted is not counted", func(h *History) { h.Unrouted = 0 }},
	{broken, Counters, "one too many is counted", func(h *History) { h.Unrouted = 3 }},
	{broken, Counters, "a counter of one group is wrong", func(h *History) { h.Groups[1].Before.Visible++ }},
	{fine, Counters, "one without an answer is counted", func(h *History) { h.Unrouted = 2 }},
}
