package grpcapi

import (
	"context"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

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
	out := &queuev1.GetMessages{Messages: deliveries(resp.Messages)}
	if base64 {
		for _, m := range out.Messages {
			m.ContentEncoding = r.ContentEncoding
		}
	}
	return &queuev1.GetMessagesResponse{GetMessages: out}, nil
}

// deliveries are messages for the wire; they share the bodies. All of them lie
// in one piece of memory, as they come and go together.
func deliveries(messages []queue.Delivery) []*queuev1.GetMessage {
	if len(messages) == 0 {
		return nil
	}
	all := make([]struct {
		message                queuev1.GetMessage
		visible, expire, since timestamppb.Timestamp
	}, len(messages))
	out := make([]*queuev1.GetMessage, len(messages))
	for i := range messages {
		m, one := &messages[i], &all[i]
		out[i] = &one.message
		out[i].VisibleAfter = stamp(&one.visible, m.VisibleAfter)
		out[i].ExpireAfter = stamp(&one.expire, m.ExpireAfter)
		out[i].CreatedAt = stamp(&one.since, m.CreatedAt)
		fillDelivery(out[i], m)
	}
	return out
}

// fillDelivery fills in all but the instants.
func fillDelivery(out *queuev1.GetMessage, m *queue.Delivery) {
	out.Id = int64(m.ID)
	out.Content = m.Body
	out.Receipt = string(m.Receipt)
	out.DeliveryCount = int32(m.DeliveryCount)
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
}
