// Package history judges what clients of a queue have seen: were the promises
// kept? Clients record every request with the instants around it and what was
// answered, or that no answer came; Check compares all of it with what the
// server promises (docs/contract.md) and lists what cannot have happened on a
// server that keeps its word.
//
// It knows no server, no HTTP and no clock. Its one idea: what was acknowledged
// holds, what was refused changed nothing, and what got no answer (the server
// was killed, the connection was lost) may have happened or not, so it excuses
// just what it can explain and nothing else.
//
// Two clocks are in it. Instants in answers are the server's and are compared
// with each other exactly. The instants around a request are the client's; the
// two are compared only with Tolerance between them.
package history

import (
	"sync"
	"time"
)

// Outcome is what became of a request as far as its client knows.
type Outcome int

const (
	Done    Outcome = iota // acknowledged
	Refused                // answered with an error that has nothing to do with the message: nothing changed
	Stale                  // answered that the receipt is not good any more (404)
	Doubt                  // no answer: it may or may not have been carried out
)

// History is all that clients did with one queue and were told.
type History struct {
	// Threshold is the queue's deadLetterQueueDeliveryCount; 0: none.
	Threshold int

	Publishes  []Publish
	Deliveries []Delivery
	Lost       []Lost
	Updates    []Update
	Deletes    []Delete

	// Drain is when clients began to receive and delete all there is, after
	// everything else had ended and every lease of it had run out. What the
	// counters said then is in Before, and what they said at the end in After.
	Drain         time.Time
	Before, After Stats
}

// Publish is one attempt to publish one message.
type Publish struct {
	Content    string // of this message alone; attempts of the same message share it
	Token      string // retry token; "": none
	Delay      time.Duration
	Start, End time.Time
	Outcome    Outcome
	ID         int64     // when Done; 0: not told
	Expire     time.Time // when Done
}

// Delivery is one message in the answer to a receive.
type Delivery struct {
	Start, End   time.Time // of the receive
	Dead         bool      // from the dead letter queue
	Visibility   time.Duration
	ID           int64
	Content      string
	Receipt      string
	Count        int
	VisibleAfter time.Time
	CreatedAt    time.Time
	DeadCount    int // deliveries before the move, as a dead letter says
}

// Lost is a receive that got no answer. It may have delivered any messages,
// none of them twice.
type Lost struct {
	Start, End time.Time
}

// Update is a change of visibility.
type Update struct {
	Receipt      string
	Visibility   time.Duration
	Start, End   time.Time
	Outcome      Outcome
	VisibleAfter time.Time // when Done
}

// Delete removes a message by the receipt of one delivery.
type Delete struct {
	Receipt    string
	Start, End time.Time
	Outcome    Outcome
}

// Stats are the counters of a queue and of its dead letter queue.
type Stats struct {
	Visible, InFlight, Delayed, Bytes    int64
	DeadVisible, DeadInFlight, DeadBytes int64
}

// Recorder collects a history from many goroutines.
type Recorder struct {
	mu sync.Mutex
	h  History
}

// Publish adds an attempt to publish a message.
func (r *Recorder) Publish(p Publish) {
	r.add(func(h *History) { h.Publishes = append(h.Publishes, p) })
}

// Deliver adds what one receive gave.
func (r *Recorder) Deliver(d ...Delivery) {
	r.add(func(h *History) { h.Deliveries = append(h.Deliveries, d...) })
}

// Lose adds a receive that got no answer.
func (r *Recorder) Lose(l Lost) { r.add(func(h *History) { h.Lost = append(h.Lost, l) }) }

// Update adds a change of visibility.
func (r *Recorder) Update(u Update) { r.add(func(h *History) { h.Updates = append(h.Updates, u) }) }

// Delete adds a delete.
func (r *Recorder) Delete(d Delete) { r.add(func(h *History) { h.Deletes = append(h.Deletes, d) }) }

func (r *Recorder) add(f func(*History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.h)
}

// History is what has been recorded. Nothing may be added any more.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.h
}
