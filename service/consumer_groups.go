package service

import (
	"context"
	"encoding/json"

	"github.com/queued-mq/queued/queue"
)

// ConsumerGroup is a consumer group as the API shows it.
type ConsumerGroup struct {
	ID                           string
	QueueID                      queue.ID
	DisplayName                  string
	State                        queue.LifecycleState
	LifecycleDetails             string
	Filter                       string // "" is everything
	DeadLetterQueueDeliveryCount *int32 // nil: the queue's
	CreatedAt                    queue.Instant
	UpdatedAt                    queue.Instant
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
	SystemTags                   map[string]map[string]json.RawMessage
}

// ListConsumerGroupsRequest asks for the groups the caller may see. Filters
// are exact and all optional.
type ListConsumerGroupsRequest struct {
	LifecycleState *string
	DisplayName    *string
	ID             *string
	QueueID        *string
	SortBy         *string // timeCreated (the default) or displayName
	SortOrder      *string // ASC or DESC; absent: newest first, names from A
	Limit          *int32  // 1 to 1000; absent: 100
	Page           *string // NextPage of the page before
}

// ListConsumerGroupsResponse is one page.
type ListConsumerGroupsResponse struct {
	Items    []ConsumerGroup
	NextPage string // "" on the last page
}

// ListConsumerGroups lists groups.
func (s *Service) ListConsumerGroups(ctx context.Context, r ListConsumerGroupsRequest) (ListConsumerGroupsResponse, error) {
	return ListConsumerGroupsResponse{}, errSoon
}

// CreateConsumerGroupRequest describes a group to be made.
type CreateConsumerGroupRequest struct {
	DisplayName                  *string // mandatory
	QueueID                      *string // mandatory
	Filter                       *string
	IsEnabled                    *bool
	DeadLetterQueueDeliveryCount *int32
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
	RetryToken                   *string
}

// CreateConsumerGroupResponse tells the new group and its work request.
type CreateConsumerGroupResponse struct {
	ID             string
	DisplayName    string
	LifecycleState queue.LifecycleState
	WorkRequestID  string
}

// CreateConsumerGroup makes a group.
func (s *Service) CreateConsumerGroup(ctx context.Context, r CreateConsumerGroupRequest) (CreateConsumerGroupResponse, error) {
	return CreateConsumerGroupResponse{}, errSoon
}

// GetConsumerGroupRequest asks for one group.
type GetConsumerGroupRequest struct {
	ConsumerGroupID string
}

// GetConsumerGroupResponse is the group and the etag of just this version.
type GetConsumerGroupResponse struct {
	ConsumerGroup ConsumerGroup
	ETag          string
}

// GetConsumerGroup reads one group.
func (s *Service) GetConsumerGroup(ctx context.Context, r GetConsumerGroupRequest) (GetConsumerGroupResponse, error) {
	return GetConsumerGroupResponse{}, errSoon
}

// UpdateConsumerGroupRequest changes settings of a group; what is absent
// stays.
type UpdateConsumerGroupRequest struct {
	ConsumerGroupID              string
	IfMatch                      *string
	DisplayName                  *string
	Filter                       *string
	IsEnabled                    *bool
	DeadLetterQueueDeliveryCount *int32 // -1: back to the queue's
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
}

// UpdateConsumerGroup changes a group.
func (s *Service) UpdateConsumerGroup(ctx context.Context, r UpdateConsumerGroupRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}

// DeleteConsumerGroupRequest deletes a group.
type DeleteConsumerGroupRequest struct {
	ConsumerGroupID string
	IfMatch         *string
}

// DeleteConsumerGroup deletes a group with its copies of the messages.
func (s *Service) DeleteConsumerGroup(ctx context.Context, r DeleteConsumerGroupRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}
