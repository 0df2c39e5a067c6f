package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// UpdateConsumerGroupRequest changes settings of a group; what is absent
// stays.
type UpdateConsumerGroupRequest struct {
	ConsumerGroupID              string  // OCID or display name
	IfMatch                      *string // an etag, or "*"
	DisplayName                  *string
	Filter                       *string // for what is published from now on
	IsEnabled                    *bool
	DeadLetterQueueDeliveryCount *int32            // 0 to 20; -1: back to the queue's
	FreeformTags                 map[string]string // empty, not nil: removes all
	DefinedTags                  map[string]map[string]json.RawMessage
}

// UpdateConsumerGroup changes a group. A disabled one gets no messages and
// gives none out; what it has stays until it expires, and receipts still work.
func (s *Service) UpdateConsumerGroup(ctx context.Context, r UpdateConsumerGroupRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "UpdateConsumerGroup", time.Now(), &err)

	if err := checkTags(r.FreeformTags, r.DefinedTags); err != nil {
		return resp, err
	}
	return s.applyGroup(ctx, groupChange{
		operation: queue.UpdateConsumerGroup,
		ref:       r.ConsumerGroupID,
		ifMatch:   r.IfMatch,
		action:    queue.ActionUpdated,
		run: func(tx *broker.Tx, g queue.ConsumerGroup) (string, error) {
			r.set(&g)
			if err := checkGroup(&g, nil); err != nil {
				return "", err
			}
			if err := checkName(tx, &g); err != nil {
				return "", err
			}
			putGroup(tx, g)
			return "consumer group updated", nil
		},
	})
}

// set changes g as r says.
func (r *UpdateConsumerGroupRequest) set(g *queue.ConsumerGroup) {
	if r.DisplayName != nil {
		g.DisplayName = *r.DisplayName
	}
	if r.Filter != nil {
		g.Filter = *r.Filter
	}
	if r.IsEnabled != nil {
		g.State = groupState(r.IsEnabled)
	}
	switch n := r.DeadLetterQueueDeliveryCount; {
	case n == nil:
	case *n == -1:
		g.DeadLetterDeliveryCount = nil
	default:
		g.DeadLetterDeliveryCount = new(int(*n))
	}
	if r.FreeformTags != nil {
		g.FreeformTags = r.FreeformTags
	}
	if r.DefinedTags != nil {
		g.DefinedTags = r.DefinedTags
	}
}
