package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/queued-mq/queued/queue"
)

// Consumer groups are not built yet, and no queue has the capability. So far
// the operations say what is true: there is none to list (200 and an empty
// list, as a sweeper or a data source of Terraform expects), none that could be
// read, changed or deleted (404, which Terraform takes for "gone already"), and
// none can be made (501 MethodNotImplemented, which the SDKs neither retry nor
// count against their circuit breaker).

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
func (s *Service) ListConsumerGroups(ctx context.Context, r ListConsumerGroupsRequest) (resp ListConsumerGroupsResponse, err error) {
	defer s.done(ctx, "ListConsumerGroups", time.Now(), &err)

	if _, err := lifecycleState(r.LifecycleState); err != nil {
		return resp, err
	}
	if _, err := parseOrder(r.SortBy, r.SortOrder); err != nil {
		return resp, err
	}
	if _, err := s.pageLimit(r.Limit); err != nil {
		return resp, err
	}
	if r.Page != nil {
		return resp, errPage // no list of ours has had a second page
	}
	return resp, nil
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
func (s *Service) CreateConsumerGroup(ctx context.Context, r CreateConsumerGroupRequest) (resp CreateConsumerGroupResponse, err error) {
	defer s.done(ctx, "CreateConsumerGroup", time.Now(), &err)

	return resp, queue.Errorf(queue.MethodNotImplemented, "consumer groups are not built yet")
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
func (s *Service) GetConsumerGroup(ctx context.Context, r GetConsumerGroupRequest) (resp GetConsumerGroupResponse, err error) {
	defer s.done(ctx, "GetConsumerGroup", time.Now(), &err)

	return resp, unknownGroup(r.ConsumerGroupID)
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
func (s *Service) UpdateConsumerGroup(ctx context.Context, r UpdateConsumerGroupRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "UpdateConsumerGroup", time.Now(), &err)

	return resp, unknownGroup(r.ConsumerGroupID)
}

// DeleteConsumerGroupRequest deletes a group.
type DeleteConsumerGroupRequest struct {
	ConsumerGroupID string
	IfMatch         *string
}

// DeleteConsumerGroup deletes a group with its copies of the messages.
func (s *Service) DeleteConsumerGroup(ctx context.Context, r DeleteConsumerGroupRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "DeleteConsumerGroup", time.Now(), &err)

	return resp, unknownGroup(r.ConsumerGroupID)
}

// unknownGroup is the one answer for a group that is not there and for one the
// caller may not use.
func unknownGroup(text string) error {
	return queue.Errorf(queue.NotAuthorizedOrNotFound, "consumer group %q is not known, or you may not use it so", text)
}
