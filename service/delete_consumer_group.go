package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// DeleteConsumerGroupRequest deletes a group.
type DeleteConsumerGroupRequest struct {
	ConsumerGroupID string  // OCID or display name
	IfMatch         *string // an etag, or "*"
}

// DeleteConsumerGroup ends the group, its open polls and its copies of the
// messages at once. Its record stays readable, as DELETED, for 24 h. The primary
// group cannot be deleted: Conflict.
func (s *Service) DeleteConsumerGroup(ctx context.Context, r DeleteConsumerGroupRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "DeleteConsumerGroup", time.Now(), &err)

	return s.applyGroup(ctx, groupChange{
		operation: queue.DeleteConsumerGroup,
		ref:       r.ConsumerGroupID,
		ifMatch:   r.IfMatch,
		action:    queue.ActionDeleted,
		run: func(tx *broker.Tx, g queue.ConsumerGroup) (string, error) {
			if g.Primary() {
				return "", queue.Errorf(queue.Conflict, "the primary consumer group lives and dies with its queue; disable it instead")
			}
			g.State = queue.Deleted
			putGroup(tx, g)
			dropOldGroups(tx, g.QueueID)
			return "consumer group deleted", nil
		},
	})
}
