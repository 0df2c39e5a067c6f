package history

import (
	"fmt"
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
		Tolerance: OneMachine,
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
		CreatedAt: at(float64(id)), VisibleAfter: at(made + visibility), Expire: at(90000),
	}
}

func dead(made, visibility float64, id int64, content string, count int) Delivery {
	d := delivery(made, visibility, id, content, count)
	d.Dead, d.DeadCount, d.DeadAt, d.Expire = true, 3, at(27), at(90027)
	return d
}

// until is a delivery of a message with another end.
func until(end float64, d Delivery) Delivery {
	d.Expire = at(end)
	return d
}

// ends gives message 2 another end.
func ends(h *History, end float64) {
	h.Publishes[2].Expire = at(end)
	h.Deliveries[2].Expire, h.Deliveries[6].Expire = at(end), at(end)
}

// takenBack is a second delivery of message 2, for long, that is taken back.
func takenBack(h *History, made, back float64) Delivery {
	d := delivery(made, 3600, 2, "b", 2)
	d.Receipt = "2/back"
	h.Undelivers = append(h.Undelivers, Undeliver{Receipt: d.Receipt, Start: at(back)})
	return d
}
