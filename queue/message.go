package queue

import "time"

// MessageID numbers a message: rising in one store, below 2^53, never reused.
// It is for tracing; acting takes a Receipt.
type MessageID uint64

// MaxMessageID keeps ids exact in JavaScript numbers (OCI reference 1.4).
const MaxMessageID MessageID = 1<<53 - 1

// Receipt is the opaque token of one delivery, in the base64url alphabet
// without padding. The empty receipt names nothing.
type Receipt string

// Property is one custom property of a message: name and value are text.
type Property struct{ Name, Value string }

// Message is what a producer hands in, and the part of it that comes back
// unchanged. Body and Properties are owned by whoever made the Message and
// must not be changed after it has been handed over.
type Message struct {
	Body        []byte     // any octets; empty is legal
	ContentType string     // as a STOMP SEND gave it; "" is none
	Properties  []Property // in the order of their names
}

// Size is what the message counts against every limit: octets of the body and
// of the names and values of its properties, as stored (contract, REST).
func (m *Message) Size() int64 {
	n := int64(len(m.Body))
	for _, p := range m.Properties {
		n += int64(len(p.Name) + len(p.Value))
	}
	return n
}

// NewMessage is one message of a publish: the message, where it goes, and its
// own times. Zero times mean "as the queue says".
type NewMessage struct {
	Message
	Channel    string        // "" is the queue itself, outside all channels
	Retention  time.Duration // 10 s to the queue's retention; 0: the queue's
	Delay      time.Duration // hidden until this has passed; 0: at once
	Visibility time.Duration // used when the consumer names none; 0: the queue's
}

// Published is the answer for one published message.
type Published struct {
	ID          MessageID
	ExpireAfter Instant
}

// Delivery is one message given to one consumer.
type Delivery struct {
	Message
	ID            MessageID
	Channel       string
	Receipt       Receipt
	DeliveryCount int     // this delivery included, so 1 the first time
	CreatedAt     Instant // when it was published
	VisibleAfter  Instant // when the visibility timeout ends
	ExpireAfter   Instant // when the retention ends
	DeadLetter    *DeadLetter
}

// DeadLetter tells how a message came into the dead letter queue; nil on
// others.
type DeadLetter struct {
	Reason        string // DeliveryCountReached
	DeliveryCount int    // deliveries made before the move
	Channel       string // the channel it came from
	At            Instant
}

// DeliveryCountReached is the reason of a move to the dead letter queue after
// the last allowed delivery ended without a delete.
const DeliveryCountReached = "DELIVERY_COUNT_REACHED"

// Stats are the counters of a queue, a channel or a dead letter queue.
type Stats struct {
	Visible  int64
	InFlight int64
	Delayed  int64
	Bytes    int64 // stored octets of all of them
}

// Plus is the sum of both.
func (s Stats) Plus(o Stats) Stats {
	return Stats{s.Visible + o.Visible, s.InFlight + o.InFlight, s.Delayed + o.Delayed, s.Bytes + o.Bytes}
}

// Empty reports whether nothing is counted.
func (s Stats) Empty() bool { return s == Stats{} }
