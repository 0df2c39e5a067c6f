package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// ListConsumerGroups lists consumer groups.
func (a *admin) ListConsumerGroups(ctx context.Context, r *queuev1.ListConsumerGroupsRequest) (*queuev1.ListConsumerGroupsResponse, error) {
	resp, err := a.service.ListConsumerGroups(ctx, service.ListConsumerGroupsRequest{
		LifecycleState: word(r.LifecycleState),
		DisplayName:    r.DisplayName,
		ID:             r.Id,
		QueueID:        r.QueueId,
		SortBy:         word(r.SortBy),
		SortOrder:      word(r.SortOrder),
		Limit:          r.Limit,
		Page:           r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	page := &queuev1.ConsumerGroupCollection{}
	for i := range resp.Items {
		g := &resp.Items[i]
		s := &queuev1.ConsumerGroupSummary{
			Id:             string(g.ID),
			DisplayName:    g.DisplayName,
			TimeCreated:    timestamp(g.CreatedAt),
			TimeUpdated:    timestamp(g.UpdatedAt),
			LifecycleState: groupState(g.State),
			Filter:         g.Filter,
			QueueId:        string(g.QueueID),
			FreeformTags:   g.FreeformTags,
		}
		if s.DefinedTags, err = tagStructs(g.DefinedTags); err != nil {
			return nil, Status(err)
		}
		if s.SystemTags, err = tagStructs(g.SystemTags); err != nil {
			return nil, Status(err)
		}
		page.Items = append(page.Items, s)
	}
	return &queuev1.ListConsumerGroupsResponse{ConsumerGroupCollection: page, NextPage: optional(resp.NextPage)}, nil
}

// GetConsumerGroup shows a consumer group.
func (a *admin) GetConsumerGroup(ctx context.Context, r *queuev1.GetConsumerGroupRequest) (*queuev1.GetConsumerGroupResponse, error) {
	resp, err := a.service.GetConsumerGroup(ctx, service.GetConsumerGroupRequest{ConsumerGroupID: r.GetConsumerGroupId()})
	if err != nil {
		return nil, Status(err)
	}
	g := &resp.ConsumerGroup
	m := &queuev1.ConsumerGroup{
		Id:             string(g.ID),
		DisplayName:    g.DisplayName,
		TimeCreated:    timestamp(g.CreatedAt),
		TimeUpdated:    timestamp(g.UpdatedAt),
		LifecycleState: groupState(g.State),
		Filter:         g.Filter,
		QueueId:        string(g.QueueID),
		FreeformTags:   g.FreeformTags,
	}
	if n := g.DeadLetterDeliveryCount; n != nil {
		m.DeadLetterQueueDeliveryCount = new(int32(*n))
	}
	if m.DefinedTags, err = tagStructs(g.DefinedTags); err != nil {
		return nil, Status(err)
	}
	if m.SystemTags, err = tagStructs(g.SystemTags); err != nil {
		return nil, Status(err)
	}
	return &queuev1.GetConsumerGroupResponse{ConsumerGroup: m, Etag: resp.ETag}, nil
}

func groupState(s queue.LifecycleState) queuev1.ConsumerGroup_LifecycleState {
	return enum[queuev1.ConsumerGroup_LifecycleState](queuev1.ConsumerGroup_LifecycleState_value, s)
}

// CreateConsumerGroup makes a consumer group.
func (a *admin) CreateConsumerGroup(ctx context.Context, r *queuev1.CreateConsumerGroupRequest) (*queuev1.CreateConsumerGroupResponse, error) {
	d := r.GetCreateConsumerGroupDetails()
	if d == nil {
		d = &queuev1.CreateConsumerGroupDetails{}
	}
	tags, err := definedTags("definedTags", d.DefinedTags)
	if err != nil {
		return nil, Status(err)
	}
	resp, err := a.service.CreateConsumerGroup(ctx, service.CreateConsumerGroupRequest{
		DisplayName:                  d.DisplayName,
		QueueID:                      d.QueueId,
		Filter:                       d.Filter,
		IsEnabled:                    d.IsEnabled,
		DeadLetterQueueDeliveryCount: d.DeadLetterQueueDeliveryCount,
		FreeformTags:                 d.FreeformTags,
		DefinedTags:                  tags,
		RetryToken:                   r.RetryToken,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.CreateConsumerGroupResponse{WorkRequestId: resp.WorkRequestID}, nil
}

// UpdateConsumerGroup changes the settings of a consumer group.
func (a *admin) UpdateConsumerGroup(ctx context.Context, r *queuev1.UpdateConsumerGroupRequest) (*queuev1.UpdateConsumerGroupResponse, error) {
	d := r.GetUpdateConsumerGroupDetails()
	if d == nil {
		d = &queuev1.UpdateConsumerGroupDetails{}
	}
	freeform, err := replacedFreeformTags("freeformTags", d.FreeformTags)
	if err != nil {
		return nil, Status(err)
	}
	defined, err := replacedDefinedTags("definedTags", d.DefinedTags)
	if err != nil {
		return nil, Status(err)
	}
	resp, err := a.service.UpdateConsumerGroup(ctx, service.UpdateConsumerGroupRequest{
		ConsumerGroupID:              r.GetConsumerGroupId(),
		IfMatch:                      r.IfMatch,
		DisplayName:                  d.DisplayName,
		Filter:                       d.Filter,
		IsEnabled:                    d.IsEnabled,
		DeadLetterQueueDeliveryCount: d.DeadLetterQueueDeliveryCount,
		FreeformTags:                 freeform,
		DefinedTags:                  defined,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.UpdateConsumerGroupResponse{WorkRequestId: resp.WorkRequestID}, nil
}

// DeleteConsumerGroup removes a consumer group.
func (a *admin) DeleteConsumerGroup(ctx context.Context, r *queuev1.DeleteConsumerGroupRequest) (*queuev1.DeleteConsumerGroupResponse, error) {
	resp, err := a.service.DeleteConsumerGroup(ctx, service.DeleteConsumerGroupRequest{ConsumerGroupID: r.GetConsumerGroupId(), IfMatch: r.IfMatch})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.DeleteConsumerGroupResponse{WorkRequestId: resp.WorkRequestID}, nil
}
