package service

import (
	"context"
	"encoding/json"

	"github.com/queued-mq/queued/queue"
)

// CreateQueueRequest describes a queue to be made.
type CreateQueueRequest struct {
	DisplayName                  *string // mandatory, 1 to 255 characters
	CompartmentID                *string // absent: the root compartment
	RetentionInSeconds           *int32  // 10 to 604800; absent: 86400
	VisibilityInSeconds          *int32  // 1 to 43200; absent: 30
	TimeoutInSeconds             *int32  // 0 to 30; absent: 30
	ChannelConsumptionLimit      *int32  // 1 to 100; absent: 100
	DeadLetterQueueDeliveryCount *int32  // 0 (never) to 20; absent: the server's default
	CustomEncryptionKeyID        *string
	Capabilities                 []CapabilityDetails
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
	RetryToken                   *string // 1 to 64 characters
}

// CapabilityDetails asks for a capability. The other fields belong to
// CONSUMER_GROUPS.
type CapabilityDetails struct {
	Type                                             string
	IsPrimaryConsumerGroupEnabled                    *bool
	PrimaryConsumerGroupDisplayName                  *string
	PrimaryConsumerGroupFilter                       *string
	PrimaryConsumerGroupDeadLetterQueueDeliveryCount *int32
}

// CreateQueueResponse tells the new queue, which serves already, and the work
// request, which is finished already.
type CreateQueueResponse struct {
	ID             queue.ID
	DisplayName    string
	LifecycleState queue.LifecycleState
	WorkRequestID  string
}

// CreateQueue makes a queue. The same retry token with the same body within
// 24 h gives the first answer.
func (s *Service) CreateQueue(ctx context.Context, r CreateQueueRequest) (CreateQueueResponse, error) {
	return CreateQueueResponse{}, errSoon
}

// EnsureQueue makes the queue unless a live one bears its display name, and
// tells which one it is and whether it was made now.
func (s *Service) EnsureQueue(ctx context.Context, r CreateQueueRequest) (id queue.ID, made bool, err error) {
	return "", false, errSoon
}
