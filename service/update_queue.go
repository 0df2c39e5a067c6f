package service

import (
	"context"
	"encoding/json"
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
	CustomEncryptionKeyID        *string // "" removes it
	Capabilities                 []CapabilityDetails
	FreeformTags                 map[string]string // empty, not nil: removes all
	DefinedTags                  map[string]map[string]json.RawMessage
}

// WorkRequestResponse names the work request of a change, which is finished
// already.
type WorkRequestResponse struct {
	WorkRequestID string
}

// UpdateQueue changes a live queue.
func (s *Service) UpdateQueue(ctx context.Context, r UpdateQueueRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}
