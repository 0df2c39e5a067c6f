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

import "time"

// OneMachine is how far the clocks of a server and of clients in other
// processes of the same machine may stand apart: rounding and scheduling.
const OneMachine = 250 * time.Millisecond

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
	// Tolerance is how far the clocks of server and clients may stand apart;
	// 0: they are one.
	Tolerance time.Duration

	Publishes  []Publish
	Deliveries []Delivery
	Lost       []Lost
	Updates    []Update
	Deletes    []Delete
	Undelivers []Undeliver
	Purges     []Purge

	// How it ended. Drain is when clients began to receive and delete all there
	// is, after everything else had ended and every lease of it had run out.
	// What the counters said then is in Before, and what they said at the end
	// in After.
	//
	// Or nobody drained it: Rest is what was read from the disk, as it was at
	// Drain, when the power failed. Before are the counters that were on it.
	Drain         time.Time
	Before, After Stats
	Rest          *Rest

	// Groups are the consumer groups of the queue; none: it has none. With them,
	// Threshold, Before, After and Rest are theirs, and Unrouted is how many
	// messages are counted that none of them accepted.
	Groups   []Group
	Unrouted int64
}

// Publish is one attempt to publish one message.
type Publish struct {
	Content    string // of this message alone; attempts of the same message share it
	Channel    string
	Token      string // retry token; "": none
	Delay      time.Duration
	For        []string // the consumer groups whose filter accepts it
	Start, End time.Time
	Outcome    Outcome
	ID         int64     // when Done; 0: not told
	Expire     time.Time // when Done; zero: not told
}

// Delivery is one message in the answer to a receive.
type Delivery struct {
	Start, End   time.Time // of the receive
	Group        string    // the consumer group
	Dead         bool      // from the dead letter queue
	Visibility   time.Duration
	ID           int64
	Content      string
	Channel      string
	Receipt      string
	Count        int
	VisibleAfter time.Time
	CreatedAt    time.Time
	Expire       time.Time // zero: not told
	DeadCount    int       // deliveries before the move, as a dead letter says
	DeadAt       time.Time // when it was moved; zero: not told
}

// Loss is why a receive may have made deliveries that nobody was told of.
type Loss int

const (
	// There was no answer: any messages, none of them twice.
	Unanswered Loss = iota
	// The answer has fewer messages than were asked for. One that was deleted,
	// purged or expired before its content was read is left out, and counted.
	Short
	// The client gave up before the answer, which was then taken back: not
	// counted, but receipts of before are dead.
	TakenBack
)

// Lost is a receive that was not told all, or may not have been.
type Lost struct {
	Group      string   // the consumer group
	Channels   []string // that it asked for; nil: any
	Start, End time.Time
	Why        Loss
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

// Undeliver takes a delivery back as if it had not been made. It has no answer,
// so it has no end.
type Undeliver struct {
	Receipt string
	Start   time.Time
}

// Purge removes what is in some channels of a queue, of its dead letter queue,
// or both.
type Purge struct {
	Group        string   // the consumer group
	Channels     []string // nil: all
	Normal, Dead bool
	Start, End   time.Time
	Outcome      Outcome
}

// Stats are the counters of a queue and of its dead letter queue.
type Stats struct {
	Visible, InFlight, Delayed, Bytes    int64
	DeadVisible, DeadInFlight, DeadBytes int64
}

// Rest is all the messages on a disk.
type Rest struct {
	Messages []Found
}

// State is what a message is doing.
type State int

const (
	Visible State = iota
	InFlight
	Delayed
)

// Found is one message on a disk.
type Found struct {
	ID        int64
	Content   string
	Channel   string
	Dead      bool
	State     State
	Count     int
	Until     time.Time // when InFlight: the end of its lease
	CreatedAt time.Time
	Expire    time.Time
	DeadCount int
	DeadAt    time.Time
}
