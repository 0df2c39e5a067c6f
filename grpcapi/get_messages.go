package grpcapi

import (
	"context"
	"strings"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// GetMessages delivers messages.
func (d *data) GetMessages(ctx context.Context, r *queuev1.GetMessagesRequest) (*queuev1.GetMessagesResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "channelFilter", r.GetChannelFilter(), "consumerGroupId", r.GetConsumerGroupId(), "contentEncoding", r.GetContentEncoding()); err != nil {
		return nil, Status(err)
	}
	resp, err := d.service.GetMessages(ctx, service.GetMessagesRequest{
		QueueRef:            r.GetQueueId(),
		VisibilityInSeconds: r.VisibilityInSeconds,
		TimeoutInSeconds:    r.TimeoutInSeconds,
		Limit:               r.Limit,
		ChannelFilter:       r.ChannelFilter,
		ConsumerGroupID:     r.ConsumerGroupId,
	})
	if err != nil {
		return nil, Status(err)
	}
	if ctx.Err() != nil { // the answer cannot reach anyone any more
		d.service.Undeliver(resp.Messages)
		return nil, Status(ctx.Err())
	}
	// REST says here that it will spell every body so; gRPC has octets alone.
	base64 := service.CallerOf(ctx).Face == service.FaceREST && strings.EqualFold(r.GetContentEncoding(), "base64")
	out := &queuev1.GetMessages{Messages: make([]*queuev1.GetMessage, len(resp.Messages))}
	for i := range resp.Messages {
		m := delivery(&resp.Messages[i])
		if base64 {
			m.ContentEncoding = r.ContentEncoding
		}
		out.Messages[i] = m
	}
	return &queuev1.GetMessagesResponse{GetMessages: out}, nil
}

// delivery is m for the wire; it shares the body.
func delivery(m *queue.Delivery) *queuev1.GetMessage {
	out := &queuev1.GetMessage{
		Id:            int64(m.ID),
		Content:       m.Body,
		Receipt:       string(m.Receipt),
		DeliveryCount: int32(m.DeliveryCount),
		VisibleAfter:  timestamp(m.VisibleAfter),
		ExpireAfter:   timestamp(m.ExpireAfter),
		CreatedAt:     timestamp(m.CreatedAt),
	}
	if m.Channel != "" || len(m.Properties) > 0 {
		out.Metadata = &queuev1.MessageMetadata{ChannelId: optional(m.Channel)}
		if len(m.Properties) > 0 {
			out.Metadata.CustomProperties = make(map[string]string, len(m.Properties))
			for _, p := range m.Properties {
				out.Metadata.CustomProperties[p.Name] = p.Value
			}
		}
	}
	if dead := m.DeadLetter; dead != nil {
		out.DeadLetter = &queuev1.DeadLetter{
			Reason:        dead.Reason,
			DeliveryCount: int32(dead.DeliveryCount),
			ChannelId:     optional(dead.Channel),
			At:            timestamp(dead.At),
		}
	}
	return out
}
