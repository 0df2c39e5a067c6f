package history

import (
	"slices"
	"testing"
	"time"
)

// fateCases: what is there at the end.
var fateCases = []story{
	{broken, Kept, "acknowledged message is gone", func(h *History) {
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{broken, Kept, "acknowledged message without an id is gone", func(h *History) {
		h.Publishes[5].Outcome = Done
	}},
	{fine, Kept, "acknowledged without an id, and there", func(h *History) {
		h.Publishes[4].ID, h.Publishes[4].Expire = 0, time.Time{}
	}},
	{broken, Kept, "message seen once is gone, though its publish had no answer", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(30, 5, 5, "e", 1))
	}},
	{fine, Kept, "message is gone after a delete without an answer", func(h *History) {
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "2/2" })
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt})
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{broken, Kept, "message is gone after a delete that was refused", func(h *History) {
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.Receipt == "2/2" })
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Refused})
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{fine, Kept, "message is gone because its retention is over", func(h *History) {
		h.Publishes[4].Expire = at(50)
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{broken, Deleted, "deleted message comes back", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(40, 5, 1, "a", 3))
	}},
	{broken, Deleted, "deleted message is found at the end", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 1, "a", 3))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{fine, Deleted, "delete without an answer did nothing", func(h *History) {
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/1", Start: at(13), End: at(13.1), Outcome: Doubt})
	}},
	{fine, Deleted, "receive that was under way sees the message before the delete", func(h *History) {
		h.Deliveries[1].Start = at(19)
		h.Deletes[1] = Delete{Receipt: "1/2", Start: at(20.2), End: at(20.3)}
	}},
	{broken, Counters, "counters before", func(h *History) { h.Before.Visible = 3 }},
	{broken, Counters, "counters of the dead letter queue", func(h *History) { h.Before.DeadBytes = 0 }},
	{broken, Counters, "in flight at the end", func(h *History) { h.Before.InFlight = 1 }},
	{broken, Counters, "counters after", func(h *History) { h.After.Bytes = -1 }},
	{broken, Kept, "message is gone before its retention is over", func(h *History) {
		h.Publishes[4].Expire = at(drain + 5)
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{broken, Deleted, "made after the delete by a receive from before", func(h *History) {
		d := delivery(40, 5, 1, "a", 3)
		d.Start = at(21)
		h.Deliveries = append(h.Deliveries, d)
	}},
	{broken, Purged, "purged message is found at the end", func(h *History) {
		h.Purges = []Purge{{Normal: true, Dead: true, Start: at(50), End: at(51)}}
	}},
	{broken, Purged, "message is found where only the queue was purged", func(h *History) {
		h.Purges = []Purge{{Normal: true, Start: at(50), End: at(51)}}
	}},
	{broken, Purged, "dead letter was seen, purged and seen again", func(h *History) {
		h.Deliveries = append(h.Deliveries, dead(30, 5, 3, "c", 4))
		h.Deliveries[7] = dead(drain+2, 60, 3, "c", 5)
		h.Purges = []Purge{{Dead: true, Start: at(50), End: at(51)}}
	}},
	{fine, Purged, "dead letter may have been moved when the dead letter queue had been purged", func(h *History) {
		h.Purges = []Purge{{Dead: true, Start: at(50), End: at(51)}}
	}},
	{fine, Purged, "purge of another channel", func(h *History) {
		h.Purges = []Purge{{Channels: []string{"c"}, Normal: true, Dead: true, Start: at(50), End: at(51)}}
	}},
	{fine, Purged, "purge of before", func(h *History) {
		h.Purges = []Purge{{Normal: true, Dead: true, Start: at(-2), End: at(-1)}}
	}},
	{fine, Purged, "purge without an answer did nothing", func(h *History) {
		h.Purges = []Purge{{Normal: true, Dead: true, Start: at(50), End: at(51), Outcome: Doubt}}
	}},
	{fine, Kept, "all is gone after a purge without an answer", func(h *History) {
		h.Purges = []Purge{{Normal: true, Dead: true, Start: at(50), End: at(51), Outcome: Doubt}}
		h.Deliveries, h.Before = h.Deliveries[:6], Stats{}
	}},
	{broken, Kept, "published after the purge and gone", func(h *History) {
		h.Purges = []Purge{{Normal: true, Dead: true, Start: at(3.5), End: at(3.6)}}
		h.Deliveries = slices.DeleteFunc(h.Deliveries, func(d Delivery) bool { return d.ID == 4 })
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
	{fine, Counters, "counters of what was there", func(h *History) {
		h.Deliveries = h.Deliveries[:8]
		h.Deletes = append(h.Deletes, Delete{Receipt: "2/2", Start: at(drain + 2), End: at(drain + 3)})
		h.Publishes = h.Publishes[:4]
		h.Before.Visible, h.Before.Bytes = 1, 1
	}},
}

func TestFate(t *testing.T) { tell(t, good, fateCases) }
