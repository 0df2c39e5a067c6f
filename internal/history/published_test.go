package history

import (
	"testing"
)

// publishedCases: what is published is there as it was, and in its time.
var publishedCases = []story{
	{broken, Published, "content that was never published", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "x", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Published, "content of another message", func(h *History) { h.Deliveries[2].Content = "a" }},
	{broken, Published, "delivered before it was published", func(h *History) {
		h.Deliveries[0].End, h.Deliveries[0].Start = at(-1), at(-2)
	}},
	{fine, Published, "publish without an answer was stored", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 5, "e", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Once, "acknowledged without an id, and stored twice", func(h *History) {
		h.Publishes[4].ID = 0
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "d", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Once, "publish that was refused", func(h *History) {
		h.Publishes[5].Outcome = Refused
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 5, "e", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Once, "one token, two messages", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Once, "one token, two answers", func(h *History) {
		h.Publishes[1].Outcome, h.Publishes[1].ID = Done, 9
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{fine, Once, "no token, two attempts, two messages", func(h *History) {
		h.Publishes[1].Token, h.Publishes[2].Token = "", ""
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1))
		h.Before.Visible, h.Before.Bytes = 3, 3
	}},
	{broken, Once, "no token, two attempts, three messages", func(h *History) {
		h.Publishes[1].Token, h.Publishes[2].Token = "", ""
		h.Deliveries = append(h.Deliveries, delivery(drain+4, 60, 9, "b", 1), delivery(drain+4, 60, 10, "b", 1))
		h.Before.Visible, h.Before.Bytes = 4, 4
	}},
	{broken, Once, "two publishes, one id", func(h *History) { h.Publishes[3].ID = 4 }},
	{broken, Rising, "later publish, lower id", func(h *History) {
		h.Publishes[0].Start, h.Publishes[0].End = at(7), at(7.1)
	}},
	{fine, Rising, "publishes at the same time, ids in any order", func(h *History) {
		h.Publishes[0].Start, h.Publishes[0].End = at(0), at(7.1)
	}},
	{broken, Delay, "delivered before its delay has passed", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(33, 5, 4, "d", 1))
		h.Deliveries[8] = delivery(drain+3, 60, 4, "d", 2)
	}},
	{fine, Delay, "delivered when its delay has passed", func(h *History) {
		h.Deliveries = append(h.Deliveries, delivery(34, 5, 4, "d", 1))
		h.Deliveries[8] = delivery(drain+3, 60, 4, "d", 2)
	}},
	{broken, Published, "another channel", func(h *History) { h.Deliveries[2].Channel = "c" }},
	{fine, Published, "the same channel", func(h *History) {
		h.Publishes[3].Channel = "c"
		for _, i := range []int{3, 4, 5, 7} {
			h.Deliveries[i].Channel = "c"
		}
	}},
	{broken, Ended, "delivered at its end", func(h *History) { ends(h, 101) }},
	{fine, Ended, "delivered just before its end", func(h *History) { ends(h, 101.001) }},
	{broken, Ended, "its end moves", func(h *History) { h.Deliveries[6].Expire = at(90001) }},
	{broken, Ended, "its end is not the one that the publish was told", func(h *History) { h.Publishes[0].Expire = at(90001) }},
	{fine, Ended, "its end moves with the move to the dead letter queue", func(h *History) { h.Deliveries[7].Expire = at(99000) }},
}

func TestPublished(t *testing.T) { tell(t, good, publishedCases) }
