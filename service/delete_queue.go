package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// DeleteQueueRequest deletes a queue with all its messages.
type DeleteQueueRequest struct {
	QueueRef string
	IfMatch  *string // an etag, or "*"
}

// DeleteQueue ends the queue, its consumer groups, its open polls and its
// messages at once. Its record stays readable, as DELETED, for 24 h, and so do
// those of its groups.
func (s *Service) DeleteQueue(ctx context.Context, r DeleteQueueRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "DeleteQueue", time.Now(), &err)

	return s.apply(ctx, change{
		operation: queue.DeleteQueue,
		need:      mayDelete,
		ref:       r.QueueRef,
		ifMatch:   r.IfMatch,
		noDead:    "it lives and dies with its queue; delete the queue, or purge it with purgeType DLQ",
		action:    queue.ActionDeleted,
		run: func(tx *broker.Tx, q queue.Queue) (changed, error) {
			q.State = queue.Deleted
			return changed{queue: put(tx, q), did: "queue deleted"}, nil
		},
	})
}
