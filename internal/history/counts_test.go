package history

import (
	"slices"
	"testing"
)

// countsCases: what becomes of a message that is delivered again and again.
var countsCases = []story{
	{broken, Counted, "first delivery is not 1", func(h *History) { h.Deliveries[8].Count = 2 }},
	{fine, Counted, "first delivery is not 1, a receive was lost", func(h *History) {
		h.Deliveries[8].Count = 2
		h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51)})
	}},
	{broken, Counted, "a receive was lost before the message was there", func(h *History) {
		h.Deliveries[8].Count = 2
		h.Lost = append(h.Lost, Lost{Start: at(1), End: at(2)})
	}},
	{broken, Counted, "one receive was lost, two deliveries are missing", func(h *History) {
		h.Deliveries[8].Count = 3
		h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51)})
	}},
	{broken, Counted, "count stands still", func(h *History) { h.Deliveries[6].Count = 1 }},
	{broken, Counted, "count falls", func(h *History) { h.Deliveries[4].Count, h.Deliveries[5].Count = 3, 2 }},
	{broken, Counted, "count is lost with the restart", func(h *History) { h.Deliveries[7].Count = 1 }},
	{broken, Buried, "delivered too often", func(h *History) {
		h.Deliveries = slices.Insert(h.Deliveries, 7, delivery(30, 5, 3, "c", 4))
		h.Deliveries[8].Count, h.Deliveries[8].DeadCount = 5, 4
	}},
	{broken, Buried, "moved too early", func(h *History) {
		h.Deliveries[7].Count, h.Deliveries[7].DeadCount = 3, 2
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "3/3" })
	}},
	{broken, Conserved, "comes back from the dead letter queue", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(30, 5, 3, "c", 4))
		h.Deliveries[7] = delivery(drain+2, 60, 3, "c", 5)
		h.Before = Stats{Visible: 3, Bytes: 3}
	}},
	{fine, Counted, "a delivery was taken back", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23))
	}},
	{broken, Counted, "a delivery was taken back and is counted", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23))
		h.Deliveries[6].Count = 3
	}},
	{fine, Counted, "a delivery was taken back late and is counted", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 3620))
		h.Deliveries[6] = delivery(3700, 60, 2, "b", 3)
	}},
	{broken, Counted, "a delivery was taken back, and one more is missing", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23))
		h.Deliveries[6].Count = 4
	}},
	{broken, Counted, "a delivery was not taken back, and not counted", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23))
		h.Undelivers = nil
	}},
	{fine, Counted, "a receive was told no more of a message that was deleted", func(h *History) {
		h.Deliveries[1].Count = 3
		h.Lost = append(h.Lost, Lost{Start: at(19), End: at(23), Why: Short})
	}},
	{broken, Counted, "a receive was told less, and the message was there", func(h *History) {
		h.Deliveries[8].Count = 2
		h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51), Why: Short})
	}},
	{broken, Counted, "a receive of another channel was lost", func(h *History) {
		h.Deliveries[8].Count = 2
		h.Lost = append(h.Lost, Lost{Channels: []string{"c"}, Start: at(50), End: at(51)})
	}},
	{broken, Counted, "a receive that was given up is counted", func(h *History) {
		h.Deliveries[8].Count = 2
		h.Lost = append(h.Lost, Lost{Start: at(50), End: at(51), Why: TakenBack})
	}},
	{broken, Buried, "moved while its last delivery runs", func(h *History) { h.Deliveries[7].DeadAt = at(26.9) }},
	{fine, Buried, "moved when its last delivery was given back", func(h *History) {
		h.Deliveries[7].DeadAt = at(25)
		h.Updates = append(h.Updates, Update{Receipt: "3/3", Start: at(24.9), End: at(25.1), VisibleAfter: at(25)})
	}},
	{broken, Conserved, "dead letter is gone", func(h *History) {
		h.Deliveries[7] = dead(30, 5, 3, "c", 4)
		h.Before.DeadVisible, h.Before.DeadBytes = 0, 0
	}},
	{fine, Conserved, "dead letter was deleted", func(h *History) {
		h.Deliveries[7] = dead(30, 5, 3, "c", 4)
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/4", Start: at(31), End: at(31.1)})
		h.Before.DeadVisible, h.Before.DeadBytes = 0, 0
	}},
	{broken, Conserved, "deleted with a receipt of before the move", func(h *History) {
		h.Deliveries[7] = dead(30, 5, 3, "c", 4)
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/3", Start: at(31), End: at(31.1)})
		h.Before.DeadVisible, h.Before.DeadBytes = 0, 0
	}},
	{broken, Conserved, "moved twice", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(30, 5, 3, "c", 4))
		h.Deliveries[7] = dead(drain+2, 60, 3, "c", 5)
		h.Deliveries[7].DeadAt = at(40)
	}},
}

func TestCounts(t *testing.T) { tell(t, good, countsCases) }
