package client

import (
	"math"
	"time"
	"unicode/utf8"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// Message is a message to publish. The zero value is one without content. The
// body and the properties are not copied: leave them as they are until the
// message is published. Times are rounded up to whole seconds.
type Message struct {
	Body       []byte            // any octets; with the properties up to 256 KiB, 512 if the queue has LARGE_MESSAGES
	Channel    string            // up to 64 characters; "" is none
	Properties map[string]string // up to 64

	Delay      time.Duration // hidden for so long before its first delivery; up to 12 h
	Retention  time.Duration // lives for so long; 0 is as long as the queue says, which is also the most
	Visibility time.Duration // a delivery hides it for so long if the consumer names no time; 0 is as the queue says
}

// entry is m for the wire, and how many octets the server counts.
func (m *Message) entry() (entry *queuev1.PutMessagesDetailsEntry, octets int, err error) {
	entry = &queuev1.PutMessagesDetailsEntry{
		Content:             m.Body,
		DelayInSeconds:      seconds(m.Delay),
		RetentionInSeconds:  seconds(m.Retention),
		VisibilityInSeconds: seconds(m.Visibility),
	}
	if entry.Content == nil {
		entry.Content = []byte{}
	}
	octets = len(m.Body)
	if m.Channel != "" || len(m.Properties) > 0 {
		entry.Metadata = &queuev1.MessageMetadata{CustomProperties: m.Properties}
		if m.Channel != "" {
			entry.Metadata.ChannelId = &m.Channel
		}
	}
	// What would surely be refused must not take the rest of a batch with it.
	if !utf8.ValidString(m.Channel) {
		return nil, 0, refusal(InvalidParameter, "the channel %.70q is not UTF-8", m.Channel)
	}
	for name, value := range m.Properties {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, 0, refusal(InvalidParameter, "the property %.70q is not UTF-8", name)
		}
		octets += len(name) + len(value)
	}
	return entry, octets, nil
}

// Delivery is a message that was delivered. It belongs to the handler, body
// and properties included.
type Delivery struct {
	ID         int64             // for tracing
	Body       []byte            // as it was published
	Channel    string            // "" is none
	Properties map[string]string // nil if there are none
	Count      int               // how many times it was delivered, this time included
	CreatedAt  time.Time         // when it was published
	ExpiresAt  time.Time         // when it dies
	Receipt    string            // of this delivery, for the operations of Client.Messages
	DeadLetter *DeadLetter       // why it is in a dead letter queue; nil if it is not
}

// DeadLetter is how a message came to a dead letter queue.
type DeadLetter struct {
	Reason  string    // DELIVERY_COUNT_REACHED
	Count   int       // how many times it had been delivered
	Channel string    // where it was; "" is none
	At      time.Time // when it was moved
}

func deliveryOf(m *queuev1.GetMessage) Delivery {
	d := Delivery{
		ID:         m.Id,
		Body:       m.Content,
		Channel:    m.Metadata.GetChannelId(),
		Properties: m.Metadata.GetCustomProperties(),
		Count:      int(m.DeliveryCount),
		CreatedAt:  m.CreatedAt.AsTime(),
		ExpiresAt:  m.ExpireAfter.AsTime(),
		Receipt:    m.Receipt,
	}
	if l := m.DeadLetter; l != nil {
		d.DeadLetter = &DeadLetter{Reason: l.Reason, Count: int(l.DeliveryCount), Channel: l.GetChannelId(), At: l.At.AsTime()}
	}
	return d
}

// wholeSeconds is d in seconds, rounded up. What is out of range stays so, for
// the server to refuse.
func wholeSeconds(d time.Duration) int32 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return int32(min(max(s, math.MinInt32), math.MaxInt32))
}

// seconds is wholeSeconds for a field that is absent if d is zero.
func seconds(d time.Duration) *int32 {
	if d == 0 {
		return nil
	}
	return new(wholeSeconds(d))
}
