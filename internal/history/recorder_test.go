package history

import (
	"fmt"
	"sync"
	"testing"
)

// A recorder takes events from many goroutines.
func TestRecorder(t *testing.T) {
	var r Recorder
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			told := r.Begin(History{Publishes: []Publish{{Content: fmt.Sprint(i), Outcome: Doubt}}})
			r.Add(History{
				Deliveries: []Delivery{{ID: int64(i)}, {ID: int64(i)}}, Lost: []Lost{{}}, Updates: []Update{{}},
				Deletes: []Delete{{}}, Undelivers: []Undeliver{{}}, Purges: []Purge{{}},
			})
			told(History{Publishes: []Publish{{Content: fmt.Sprint(i)}}})
		})
	}
	wg.Wait()
	h := r.History(at(0))
	if len(h.Publishes) != 8 || len(h.Deliveries) != 16 || len(h.Lost) != 8 || len(h.Updates) != 8 || len(h.Deletes) != 8 ||
		len(h.Undelivers) != 8 || len(h.Purges) != 8 {
		t.Errorf("recorded %+v", h)
	}
	for _, p := range h.Publishes {
		if p.Outcome != Done {
			t.Errorf("%+v was answered", p)
		}
	}
}

// What has no answer yet is in doubt and ends now; later it is what was told.
func TestRecorderUnderWay(t *testing.T) {
	var r Recorder
	told := r.Begin(History{
		Publishes: []Publish{{Content: "a", Outcome: Doubt, Start: at(1)}}, Lost: []Lost{{Start: at(1)}},
		Updates: []Update{{Outcome: Doubt}}, Deletes: []Delete{{Outcome: Doubt}}, Purges: []Purge{{Outcome: Doubt}},
	})
	before := r.History(at(2))
	told(History{Publishes: []Publish{{Content: "a", Start: at(1), End: at(3), ID: 1}}})
	after := r.History(at(4))
	for _, end := range []bool{
		before.Publishes[0].End == at(2), before.Lost[0].End == at(2), before.Updates[0].End == at(2),
		before.Deletes[0].End == at(2), before.Purges[0].End == at(2), before.Publishes[0].Outcome == Doubt,
	} {
		if !end {
			t.Errorf("under way: %+v", before)
		}
	}
	if len(after.Publishes) != 1 || after.Publishes[0].End != at(3) || after.Publishes[0].Outcome != Done || len(after.Lost) != 0 {
		t.Errorf("answered: %+v", after)
	}
}
