package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// ChangeQueueCompartmentRequest moves a queue to another compartment.
type ChangeQueueCompartmentRequest struct {
	QueueRef      string
	IfMatch       *string // an etag, or "*"
	CompartmentID *string // mandatory
}

// ChangeQueueCompartment changes who administers the queue, not its OCID and
// not its messages.
func (s *Service) ChangeQueueCompartment(ctx context.Context, r ChangeQueueCompartmentRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "ChangeQueueCompartment", time.Now(), &err)

	if r.CompartmentID == nil {
		return resp, field{name: "compartmentId"}.missing()
	}
	return s.apply(ctx, change{
		operation: queue.MoveQueue,
		need:      mayMove,
		ref:       r.QueueRef,
		ifMatch:   r.IfMatch,
		noDead:    "it lies where its queue lies; move the queue",
		action:    queue.ActionUpdated,
		run: func(tx *broker.Tx, q queue.Queue) (changed, error) {
			q.CompartmentID = *r.CompartmentID
			if err := q.Validate(); err != nil {
				return changed{}, err
			}
			return changed{queue: put(tx, q), did: "queue moved"}, nil
		},
	})
}
