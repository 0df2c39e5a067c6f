package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// UpdateQueueRequest changes settings of a queue; what is absent stays. The
// retention of a queue cannot change.
type UpdateQueueRequest struct {
	QueueRef                     string
	IfMatch                      *string // an etag, or "*"
	DisplayName                  *string
	VisibilityInSeconds          *int32
	TimeoutInSeconds             *int32
	ChannelConsumptionLimit      *int32
	DeadLetterQueueDeliveryCount *int32
	CustomEncryptionKeyID        *string             // "" removes it
	Capabilities                 []CapabilityDetails // added; what is left out stays
	FreeformTags                 map[string]string   // empty, not nil: removes all
	DefinedTags                  map[string]map[string]json.RawMessage
}

// WorkRequestResponse names the work request of a change, which is finished
// already.
type WorkRequestResponse struct {
	WorkRequestID string
}

// UpdateQueue changes a live queue.
func (s *Service) UpdateQueue(ctx context.Context, r UpdateQueueRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "UpdateQueue", time.Now(), &err)

	wanted, err := s.readCapabilities(r.Capabilities)
	if err != nil {
		return resp, err
	}
	if err := checkTags(r.FreeformTags, r.DefinedTags); err != nil {
		return resp, err
	}
	return s.apply(ctx, change{
		operation: queue.UpdateQueue,
		need:      mayUpdate,
		ref:       r.QueueRef,
		ifMatch:   r.IfMatch,
		noDead:    "it has no settings of its own; update the queue",
		action:    queue.ActionUpdated,
		run: func(tx *broker.Tx, q queue.Queue) (changed, error) {
			r.set(&q)
			if err := q.Validate(); err != nil {
				return changed{}, err
			}
			primary, err := wanted.add(&q)
			if err != nil {
				return changed{}, err
			}
			q = put(tx, q)
			return changed{queue: q, made: putPrimary(tx, &q, primary), did: "queue updated"}, nil
		},
	})
}

// set changes q as r says.
func (r *UpdateQueueRequest) set(q *queue.Queue) {
	if r.DisplayName != nil {
		q.DisplayName = *r.DisplayName
	}
	q.Visibility = secondsOr(r.VisibilityInSeconds, q.Visibility)
	q.PollingTimeout = secondsOr(r.TimeoutInSeconds, q.PollingTimeout)
	q.ChannelConsumptionLimit = numberOr(r.ChannelConsumptionLimit, q.ChannelConsumptionLimit)
	q.DeadLetterDeliveryCount = numberOr(r.DeadLetterQueueDeliveryCount, q.DeadLetterDeliveryCount)
	if r.CustomEncryptionKeyID != nil {
		q.CustomEncryptionKeyID = *r.CustomEncryptionKeyID
	}
	if r.FreeformTags != nil {
		q.FreeformTags = r.FreeformTags
	}
	if r.DefinedTags != nil {
		q.DefinedTags = r.DefinedTags
	}
}
