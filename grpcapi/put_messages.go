package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// PutMessages publishes messages.
func (d *data) PutMessages(ctx context.Context, r *queuev1.PutMessagesRequest) (*queuev1.PutMessagesResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "retryToken", r.GetRetryToken()); err != nil {
		return nil, Status(err)
	}
	if err := checkTextOf(r.GetPutMessagesDetails().GetMessages()); err != nil {
		return nil, Status(err)
	}
	rest := service.CallerOf(ctx).Face == service.FaceREST
	q := service.PutMessagesRequest{
		QueueRef:   r.GetQueueId(),
		Messages:   putMessages(r.GetPutMessagesDetails().GetMessages(), rest),
		RetryToken: r.RetryToken,
		TextOnly:   rest,
	}
	resp, err := d.service.PutMessages(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.PutMessagesResponse{PutMessages: &queuev1.PutMessages{Messages: published(resp.Messages)}}, nil
}

// published is the answer for published messages, in one piece of memory.
func published(messages []queue.Published) []*queuev1.PutMessage {
	all := make([]struct {
		message queuev1.PutMessage
		expire  timestamppb.Timestamp
	}, len(messages))
	out := make([]*queuev1.PutMessage, len(messages))
	for i, m := range messages {
		one := &all[i]
		one.message.Id = int64(m.ID)
		one.message.ExpireAfter = stamp(&one.expire, m.ExpireAfter)
		out[i] = &one.message
	}
	return out
}

// putMessages are entries of a publish for the service, which owns their
// contents from now on; nil stays nil.
func putMessages(entries []*queuev1.PutMessagesDetailsEntry, rest bool) []service.PutMessage {
	if entries == nil {
		return nil
	}
	messages := make([]service.PutMessage, len(entries))
	for i, e := range entries {
		m := &messages[i]
		m.Content = e.Content
		if rest { // over gRPC content is the octets
			m.ContentEncoding = e.ContentEncoding
		}
		m.RetentionInSeconds, m.DelayInSeconds, m.VisibilityInSeconds = e.RetentionInSeconds, e.DelayInSeconds, e.VisibilityInSeconds
		if e.Metadata != nil {
			m.ChannelID = e.Metadata.ChannelId
			for name, value := range e.Metadata.CustomProperties {
				m.Properties = append(m.Properties, queue.Property{Name: name, Value: value})
			}
		}
	}
	return messages
}
