package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// GetConsumerGroupRequest asks for one group.
type GetConsumerGroupRequest struct {
	ConsumerGroupID string // OCID or display name
}

// GetConsumerGroupResponse is the group and the etag of just this version.
type GetConsumerGroupResponse struct {
	ConsumerGroup queue.ConsumerGroup
	ETag          string
}

// GetConsumerGroup reads memory. A deleted group is readable by its OCID for
// 24 h.
func (s *Service) GetConsumerGroup(ctx context.Context, r GetConsumerGroupRequest) (resp GetConsumerGroupResponse, err error) {
	defer s.done(ctx, "GetConsumerGroup", time.Now(), &err)

	g, _, err := s.findGroup(ctx, r.ConsumerGroupID, mayRead)
	if err != nil {
		return resp, err
	}
	return GetConsumerGroupResponse{ConsumerGroup: g, ETag: etag(g.Version)}, nil
}
