package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// GetMessagesRequest asks for messages of one channel of a queue or, with
// "_dlq" behind the reference, of its dead letter queue.
type GetMessagesRequest struct {
	QueueRef            string
	VisibilityInSeconds *int32  // 0 (peek) to 43200; absent: the message's, else the queue's
	TimeoutInSeconds    *int32  // how long to wait for a first message, 0 to 30; absent: the queue's
	Limit               *int32  // 1 to 20; absent: the default-get-limit of the server
	ChannelFilter       *string // a channel, or a pattern with "*"; absent or empty: any one channel
	ConsumerGroupID     *string // OCID or display name; absent or empty: the primary group
}

// GetMessagesResponse holds what was delivered; none is not an error.
type GetMessagesResponse struct {
	Messages []queue.Delivery
}

// GetMessages leases messages to the caller, each under a durable receipt. If
// no octet of an answer can be handed to the client, the face calls Undeliver.
func (s *Service) GetMessages(ctx context.Context, r GetMessagesRequest) (GetMessagesResponse, error) {
	return GetMessagesResponse{}, errSoon
}

// Undeliver takes back deliveries of which no octet has left: they are visible
// again and were not counted. It never blocks and never fails.
func (s *Service) Undeliver(messages []queue.Delivery) {}
