package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// Queue is a queue as the API shows it. A list gives the same; its summary
// form leaves fields out.
type Queue struct {
	queue.Queue
	MessagesEndpoint string // scheme://host[:port]
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
func (s *Service) GetQueue(ctx context.Context, r GetQueueRequest) (resp GetQueueResponse, err error) {
	defer s.done(ctx, "GetQueue", time.Now(), &err)

	q, ref, err := s.findAny(ctx, r.QueueRef, mayRead)
	if err != nil {
		return resp, err
	}
	if err := refuseOther(ref, "it has no settings of its own; read those of the queue"); err != nil {
		return resp, err
	}
	return GetQueueResponse{Queue: s.show(ctx, q), ETag: etag(q.Version)}, nil
}
