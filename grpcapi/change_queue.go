package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/service"
)

// CreateQueue makes a queue.
func (a *admin) CreateQueue(ctx context.Context, r *queuev1.CreateQueueRequest) (*queuev1.CreateQueueResponse, error) {
	d := r.GetCreateQueueDetails()
	if d == nil {
		d = &queuev1.CreateQueueDetails{}
	}
	tags, err := definedTags("definedTags", d.DefinedTags)
	if err != nil {
		return nil, Status(err)
	}
	resp, err := a.service.CreateQueue(ctx, service.CreateQueueRequest{
		DisplayName:                  d.DisplayName,
		CompartmentID:                d.CompartmentId,
		RetentionInSeconds:           d.RetentionInSeconds,
		VisibilityInSeconds:          d.VisibilityInSeconds,
		TimeoutInSeconds:             d.TimeoutInSeconds,
		ChannelConsumptionLimit:      d.ChannelConsumptionLimit,
		DeadLetterQueueDeliveryCount: d.DeadLetterQueueDeliveryCount,
		CustomEncryptionKeyID:        d.CustomEncryptionKeyId,
		Capabilities:                 capabilities(d.Capabilities),
		FreeformTags:                 d.FreeformTags,
		DefinedTags:                  tags,
		RetryToken:                   r.RetryToken,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.CreateQueueResponse{
		WorkRequestId: resp.WorkRequestID,
		CreatedQueue: &queuev1.CreatedQueue{
			Id:             string(resp.ID),
			DisplayName:    resp.DisplayName,
			LifecycleState: queueState(resp.LifecycleState),
		},
	}, nil
}

func capabilities(in []*queuev1.CapabilityDetails) []service.CapabilityDetails {
	var out []service.CapabilityDetails
	for _, c := range in {
		out = append(out, service.CapabilityDetails{
			Type:                            c.GetType(),
			IsPrimaryConsumerGroupEnabled:   c.IsPrimaryConsumerGroupEnabled,
			PrimaryConsumerGroupDisplayName: c.PrimaryConsumerGroupDisplayName,
			PrimaryConsumerGroupFilter:      c.PrimaryConsumerGroupFilter,
			PrimaryConsumerGroupDeadLetterQueueDeliveryCount: c.PrimaryConsumerGroupDeadLetterQueueDeliveryCount,
		})
	}
	return out
}

// UpdateQueue changes the settings of a queue.
func (a *admin) UpdateQueue(ctx context.Context, r *queuev1.UpdateQueueRequest) (*queuev1.UpdateQueueResponse, error) {
	d := r.GetUpdateQueueDetails()
	if d == nil {
		d = &queuev1.UpdateQueueDetails{}
	}
	freeform, err := replacedFreeformTags("freeformTags", d.FreeformTags)
	if err != nil {
		return nil, Status(err)
	}
	defined, err := replacedDefinedTags("definedTags", d.DefinedTags)
	if err != nil {
		return nil, Status(err)
	}
	resp, err := a.service.UpdateQueue(ctx, service.UpdateQueueRequest{
		QueueRef:                     r.GetQueueId(),
		IfMatch:                      r.IfMatch,
		DisplayName:                  d.DisplayName,
		VisibilityInSeconds:          d.VisibilityInSeconds,
		TimeoutInSeconds:             d.TimeoutInSeconds,
		ChannelConsumptionLimit:      d.ChannelConsumptionLimit,
		DeadLetterQueueDeliveryCount: d.DeadLetterQueueDeliveryCount,
		CustomEncryptionKeyID:        d.CustomEncryptionKeyId,
		Capabilities:                 capabilities(d.Capabilities),
		FreeformTags:                 freeform,
		DefinedTags:                  defined,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.UpdateQueueResponse{WorkRequestId: resp.WorkRequestID}, nil
}

// DeleteQueue removes a queue with all its messages.
func (a *admin) DeleteQueue(ctx context.Context, r *queuev1.DeleteQueueRequest) (*queuev1.DeleteQueueResponse, error) {
	resp, err := a.service.DeleteQueue(ctx, service.DeleteQueueRequest{QueueRef: r.GetQueueId(), IfMatch: r.IfMatch})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.DeleteQueueResponse{WorkRequestId: resp.WorkRequestID}, nil
}

// ChangeQueueCompartment moves a queue to another compartment.
func (a *admin) ChangeQueueCompartment(ctx context.Context, r *queuev1.ChangeQueueCompartmentRequest) (*queuev1.ChangeQueueCompartmentResponse, error) {
	q := service.ChangeQueueCompartmentRequest{QueueRef: r.GetQueueId(), IfMatch: r.IfMatch}
	if d := r.GetChangeQueueCompartmentDetails(); d != nil {
		q.CompartmentID = d.CompartmentId
	}
	resp, err := a.service.ChangeQueueCompartment(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.ChangeQueueCompartmentResponse{WorkRequestId: resp.WorkRequestID}, nil
}

// PurgeQueue deletes the messages of a queue.
func (a *admin) PurgeQueue(ctx context.Context, r *queuev1.PurgeQueueRequest) (*queuev1.PurgeQueueResponse, error) {
	q := service.PurgeQueueRequest{QueueRef: r.GetQueueId(), IfMatch: r.IfMatch}
	if d := r.GetPurgeQueueDetails(); d != nil {
		q.PurgeType, q.ChannelIDs, q.ConsumerGroupID = word(d.PurgeType), d.ChannelIds, d.ConsumerGroupId
	}
	resp, err := a.service.PurgeQueue(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.PurgeQueueResponse{WorkRequestId: resp.WorkRequestID}, nil
}
