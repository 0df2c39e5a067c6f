package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// PutMessagesRequest publishes 1 to 20 messages to one queue, all or nothing.
type PutMessagesRequest struct {
	QueueRef   string       // OCID or display name
	Messages   []PutMessage // mandatory; nil is absent
	RetryToken *string      // 1 to 64 characters: the same token on the same queue within 24 h gives the first answer

	// TextOnly is set by a face whose bodies are text (REST): it alone cannot
	// carry any octets, so there the reserved property stands for the field.
	// See PutMessage.Properties.
	TextOnly bool
}

// PutMessage is one message to publish. Content and Properties belong to the
// service from the call on and must not be changed any more.
type PutMessage struct {
	// Content is mandatory: nil is absent, an empty slice is an empty body.
	Content []byte

	// ContentEncoding says how Content spells the body: absent or "" as it is,
	// "base64" as standard base64 with padding, decoded here before anything
	// is counted or stored.
	ContentEncoding *string

	// ContentType is what a STOMP SEND gave; "" is none.
	ContentType string

	// ChannelID is the channel; nil and "" both mean the queue itself.
	ChannelID *string

	// Properties are the custom properties in any order, each name once.
	//
	// The name "content-encoding" is reserved: it is how a body that is no
	// text is marked for readers who know only OCI's fields. Such a reader who
	// hands back what it was given (a redrive from a dead letter queue) must
	// not be refused and must not store the spelling for the body. So with the
	// value "base64" it is taken, and dropped, beside ContentEncoding "base64"
	// and, if TextOnly, on content that is base64 of octets that are no UTF-8:
	// exactly the messages that come back as they were sent. Everything else
	// under that name is InvalidParameter, since the reader could not tell it
	// from our own mark.
	Properties []queue.Property

	RetentionInSeconds  *int32 // 10 to the queue's; absent: the queue's
	DelayInSeconds      *int32 // 0 to 43200 and below the retention; absent: 0
	VisibilityInSeconds *int32 // 1 to 43200, used when the consumer names none; absent: the queue's
}

// PutMessagesResponse has one entry for each message, in the same order.
type PutMessagesResponse struct {
	Messages []queue.Published
}

// PutMessages publishes; when it returns without an error the messages are
// durable.
func (s *Service) PutMessages(ctx context.Context, r PutMessagesRequest) (PutMessagesResponse, error) {
	return PutMessagesResponse{}, errSoon
}
