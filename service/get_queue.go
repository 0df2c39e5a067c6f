package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// Queue is a queue as the API shows it. A list gives the same; its summary
// form leaves fields out.
type Queue struct {
	queue.Queue
	MessagesEndpoint string // scheme://host[:port]
	Capabilities     []queue.Capability
}

// GetQueueRequest asks for one queue.
type GetQueueRequest struct {
	QueueRef string
}

// GetQueueResponse is the queue and the etag of just this version of it.
type GetQueueResponse struct {
	Queue Queue
	ETag  string
}

// GetQueue reads memory. A deleted queue is readable by its OCID for 24 h.
func (s *Service) GetQueue(ctx context.Context, r GetQueueRequest) (GetQueueResponse, error) {
	return GetQueueResponse{}, errSoon
}
