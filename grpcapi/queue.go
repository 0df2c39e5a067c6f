package grpcapi

import (
	"context"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// GetQueue shows a queue.
func (a *admin) GetQueue(ctx context.Context, r *queuev1.GetQueueRequest) (*queuev1.GetQueueResponse, error) {
	resp, err := a.service.GetQueue(ctx, service.GetQueueRequest{QueueRef: r.GetQueueId()})
	if err != nil {
		return nil, Status(err)
	}
	q, err := queueMessage(&resp.Queue)
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.GetQueueResponse{Queue: q, Etag: resp.ETag}, nil
}

// queueMessage is q for the wire.
func queueMessage(q *service.Queue) (*queuev1.Queue, error) {
	m := &queuev1.Queue{
		Id:                           string(q.ID),
		CompartmentId:                q.CompartmentID,
		TimeCreated:                  timestamp(q.CreatedAt),
		TimeUpdated:                  timestamp(q.UpdatedAt),
		LifecycleState:               queueState(q.State),
		MessagesEndpoint:             q.MessagesEndpoint,
		RetentionInSeconds:           seconds(q.Retention),
		VisibilityInSeconds:          seconds(q.Visibility),
		TimeoutInSeconds:             seconds(q.PollingTimeout),
		DeadLetterQueueDeliveryCount: int32(q.DeadLetterDeliveryCount),
		DisplayName:                  optional(q.DisplayName),
		LifecycleDetails:             optional(q.LifecycleDetails),
		CustomEncryptionKeyId:        optional(q.CustomEncryptionKeyID),
		ChannelConsumptionLimit:      optional(int32(q.ChannelConsumptionLimit)),
		FreeformTags:                 q.FreeformTags,
	}
	for _, c := range q.Capabilities {
		m.Capabilities = append(m.Capabilities, &queuev1.CapabilityDetails{Type: optional(string(c))})
	}
	var err error
	if m.DefinedTags, err = tagStructs(q.DefinedTags); err != nil {
		return nil, err
	}
	m.SystemTags, err = tagStructs(q.SystemTags)
	return m, err
}

func queueState(s queue.LifecycleState) queuev1.Queue_LifecycleState {
	return enum[queuev1.Queue_LifecycleState](queuev1.Queue_LifecycleState_value, s)
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

// ListQueues lists queues.
func (a *admin) ListQueues(ctx context.Context, r *queuev1.ListQueuesRequest) (*queuev1.ListQueuesResponse, error) {
	resp, err := a.service.ListQueues(ctx, service.ListQueuesRequest{
		CompartmentID:  r.CompartmentId,
		LifecycleState: word(r.LifecycleState),
		DisplayName:    r.DisplayName,
		ID:             r.Id,
		SortBy:         word(r.SortBy),
		SortOrder:      word(r.SortOrder),
		Limit:          r.Limit,
		Page:           r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	page := &queuev1.QueueCollection{}
	for i := range resp.Items {
		q := &resp.Items[i]
		s := &queuev1.QueueSummary{
			Id:               string(q.ID),
			CompartmentId:    q.CompartmentID,
			TimeCreated:      timestamp(q.CreatedAt),
			TimeUpdated:      timestamp(q.UpdatedAt),
			LifecycleState:   queueState(q.State),
			MessagesEndpoint: q.MessagesEndpoint,
			DisplayName:      optional(q.DisplayName),
			LifecycleDetails: optional(q.LifecycleDetails),
			FreeformTags:     q.FreeformTags,
		}
		for _, c := range q.Capabilities {
			s.Capabilities = append(s.Capabilities, string(c))
		}
		if s.DefinedTags, err = tagStructs(q.DefinedTags); err != nil {
			return nil, Status(err)
		}
		if s.SystemTags, err = tagStructs(q.SystemTags); err != nil {
			return nil, Status(err)
		}
		page.Items = append(page.Items, s)
	}
	return &queuev1.ListQueuesResponse{QueueCollection: page, NextPage: optional(resp.NextPage)}, nil
}
