package history

import (
	"sync"
	"time"
)

// Recorder collects a history from many goroutines. The zero Recorder is ready.
type Recorder struct {
	mu   sync.Mutex
	h    History
	open map[int]History // what is under way, as it is if no answer comes
	next int
}

// Add adds events; what is not an event is passed over.
func (r *Recorder) Add(events History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.add(events)
}

// Begin adds what is under way from now on, as it will stand if it is never
// answered. The function it gives puts the answer in its place, once.
func (r *Recorder) Begin(doubt History) (told func(History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[int]History)
	}
	n := r.next
	r.next++
	r.open[n] = doubt
	return func(events History) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, n)
		r.h.add(events)
	}
}

// History is what has been recorded until at. What is under way and has no end
// ends then.
func (r *Recorder) History(at time.Time) *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := new(History)
	h.add(r.h)
	for _, doubt := range r.open {
		h.add(doubt)
	}
	end := func(t *time.Time) {
		if t.IsZero() {
			*t = at
		}
	}
	for i := range h.Publishes {
		end(&h.Publishes[i].End)
	}
	for i := range h.Lost {
		end(&h.Lost[i].End)
	}
	for i := range h.Updates {
		end(&h.Updates[i].End)
	}
	for i := range h.Deletes {
		end(&h.Deletes[i].End)
	}
	for i := range h.Purges {
		end(&h.Purges[i].End)
	}
	return h
}

// add appends the events of another history.
func (h *History) add(o History) {
	h.Publishes = append(h.Publishes, o.Publishes...)
	h.Deliveries = append(h.Deliveries, o.Deliveries...)
	h.Lost = append(h.Lost, o.Lost...)
	h.Updates = append(h.Updates, o.Updates...)
	h.Deletes = append(h.Deletes, o.Deletes...)
	h.Undelivers = append(h.Undelivers, o.Undelivers...)
	h.Purges = append(h.Purges, o.Purges...)
}
