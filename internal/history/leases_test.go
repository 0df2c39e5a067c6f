package history

import (
	"slices"
	"testing"
	"time"
)

// leasesCases: what a delivery allows its consumer, and forbids all others.
var leasesCases = []story{
	{broken, Exclusive, "delivered while leased", func(h *History) {
		h.Deliveries[4] = delivery(14.9, 5, 3, "c", 2)
	}},
	{broken, Exclusive, "delivered while an extension runs", func(h *History) {
		h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 20 * time.Second, Start: at(11), End: at(11.1), VisibleAfter: at(31)})
	}},
	{fine, Exclusive, "delivered at the very end of a lease", func(h *History) {
		h.Deliveries[4] = delivery(15, 5, 3, "c", 2)
	}},
	{fine, Exclusive, "delivered early after an update to 0 without an answer", func(h *History) {
		h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 0, Start: at(12), End: at(12.1), Outcome: Doubt})
		h.Deliveries[4] = delivery(13, 5, 3, "c", 2)
	}},
	{broken, Exclusive, "delivered before an update to 0 without an answer", func(h *History) {
		h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: 0, Start: at(12), End: at(12.1), Outcome: Doubt})
		h.Deliveries[4] = delivery(11, 5, 3, "c", 2)
	}},
	{broken, Exclusive, "moved to the dead letter queue while leased", func(h *History) {
		h.Deliveries[7] = dead(26, 5, 3, "c", 4)
		h.Deliveries = append(h.Deliveries, dead(drain+2, 60, 3, "c", 5))
	}},
	{broken, Receipt, "delete refused while leased", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/1", Start: at(11), End: at(11.1), Outcome: Stale})
	}},
	{fine, Receipt, "delete refused, but another may have worked", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt},
			Delete{Receipt: "2/1", Start: at(14), End: at(14.1), Outcome: Stale})
	}},
	{broken, Receipt, "update refused while leased", func(h *History) {
		h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: time.Second, Start: at(11), End: at(11.1), Outcome: Stale})
	}},
	{fine, Receipt, "update refused since the server was busy", func(h *History) {
		h.Updates = append(h.Updates, Update{Receipt: "3/1", Visibility: time.Second, Start: at(11), End: at(11.1), Outcome: Refused})
	}},
	{broken, Receipt, "one receipt for two deliveries", func(h *History) { h.Deliveries[1].Receipt = "1/1" }},
	{broken, Late, "extended after it was over", func(h *History) {
		h.Updates[3] = Update{Receipt: "2/1", Visibility: 9 * time.Second, Start: at(18), End: at(18.1), VisibleAfter: at(27)}
	}},
	{fine, Late, "extended after an extension without an answer", func(h *History) {
		h.Updates[3] = Update{Receipt: "2/1", Visibility: 9 * time.Second, Start: at(18), End: at(18.1), VisibleAfter: at(27)}
		h.Updates = append(h.Updates, Update{Receipt: "2/1", Visibility: 5 * time.Second, Start: at(16), End: at(16.1), Outcome: Doubt})
	}},
	{broken, Newest, "extended when another had it", func(h *History) {
		h.Updates[0] = Update{Receipt: "1/1", Visibility: 20 * time.Second, Start: at(12), End: at(12.1), VisibleAfter: at(32)}
		h.Updates[1] = Update{Receipt: "1/1", Visibility: 0, Start: at(15), End: at(15.1), Outcome: Doubt}
		h.Updates[2] = Update{Receipt: "1/1", Visibility: 9 * time.Second, Start: at(21), End: at(21.1), VisibleAfter: at(30)}
	}},
	{broken, Exclusive, "delivered before it was taken back", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23), delivery(22, 5, 2, "b", 2))
		h.Deliveries[6] = delivery(drain+1, 60, 2, "b", 3)
	}},
	{fine, Exclusive, "delivered when it was taken back", func(h *History) {
		h.Deliveries = append(h.Deliveries, takenBack(h, 20, 23), delivery(24, 5, 2, "b", 2))
		h.Deliveries[6] = delivery(drain+1, 60, 2, "b", 3)
	}},
	{broken, Receipt, "delete refused after the lease, and nobody got the message", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(50), End: at(50.1), Outcome: Stale})
	}},
	{broken, Receipt, "delete refused after the lease, and a receive of another channel was given up", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(50), End: at(50.1), Outcome: Stale})
		h.Lost = append(h.Lost, Lost{Channels: []string{"c"}, Start: at(40), End: at(41), Why: TakenBack})
	}},
	{fine, Receipt, "delete refused after the lease, and a receive that was given up may have got the message", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(50), End: at(50.1), Outcome: Stale})
		h.Lost = append(h.Lost, Lost{Start: at(40), End: at(41), Why: TakenBack})
	}},
	{fine, Receipt, "delete refused when the message may have been moved", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/3", Start: at(27), End: at(27.1), Outcome: Stale})
	}},
	{fine, Receipt, "update refused while leased, but the message was at its end", func(h *History) {
		h.Publishes[5].Outcome, h.Publishes[5].ID, h.Publishes[5].Expire = Done, 5, at(42)
		h.Deliveries = append(h.Deliveries, until(42, delivery(40, 5, 5, "e", 1)))
		h.Updates = append(h.Updates, Update{Receipt: "5/1", Visibility: time.Second, Start: at(43), End: at(43.1), Outcome: Stale})
	}},
	{broken, Late, "extended after the end of its message", func(h *History) {
		h.Publishes[5].Outcome, h.Publishes[5].ID, h.Publishes[5].Expire = Done, 5, at(42)
		h.Deliveries = append(h.Deliveries, until(42, delivery(40, 5, 5, "e", 1)))
		h.Updates = append(h.Updates, Update{Receipt: "5/1", Visibility: time.Second, Start: at(43), End: at(43.1), VisibleAfter: at(44)})
	}},
	{broken, Newest, "an earlier receipt deletes", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/1", Start: at(17), End: at(17.1)})
	}},
	{broken, Newest, "an earlier receipt deletes for good", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/2", Start: at(23), End: at(23.1)})
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Dead })
		h.Before.DeadVisible, h.Before.DeadBytes = 0, 0
	}},
	{fine, Newest, "an earlier receipt deletes before the message is delivered again", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/3", Start: at(26), End: at(26.1)})
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Dead })
		h.Before.DeadVisible, h.Before.DeadBytes = 0, 0
	}},
	{fine, Newest, "an earlier receipt is told that the message is gone", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "1/1", Start: at(23), End: at(23.1)})
	}},
	{fine, Newest, "a receipt of before the move is told that the message is gone, and does nothing", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "3/3", Start: at(60), End: at(60.1)})
	}},
}

func TestLeases(t *testing.T) { tell(t, good, leasesCases) }
