package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// UpdateMessage sets how long a message stays hidden.
func (d *data) UpdateMessage(ctx context.Context, r *queuev1.UpdateMessageRequest) (*queuev1.UpdateMessageResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "messageReceipt", r.GetMessageReceipt(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return nil, Status(err)
	}
	q := service.UpdateMessageRequest{
		QueueRef:        r.GetQueueId(),
		Receipt:         queue.Receipt(r.GetMessageReceipt()),
		ConsumerGroupID: r.ConsumerGroupId,
	}
	if details := r.GetUpdateMessageDetails(); details != nil {
		q.VisibilityInSeconds = details.VisibilityInSeconds
	}
	resp, err := d.service.UpdateMessage(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.UpdateMessageResponse{UpdatedMessage: &queuev1.UpdatedMessage{
		Id:           int64(resp.ID),
		VisibleAfter: timestamp(resp.VisibleAfter),
	}}, nil
}

// UpdateMessages sets how long messages stay hidden, each with its result.
func (d *data) UpdateMessages(ctx context.Context, r *queuev1.UpdateMessagesRequest) (*queuev1.UpdateMessagesResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return nil, Status(err)
	}
	q := service.UpdateMessagesRequest{QueueRef: r.GetQueueId(), ConsumerGroupID: r.ConsumerGroupId}
	if entries := r.GetUpdateMessagesDetails().GetEntries(); entries != nil {
		q.Entries = make([]service.UpdateMessagesEntry, len(entries))
		for i, e := range entries {
			if err := checkTextAt(i, e.GetReceipt()); err != nil {
				return nil, Status(err)
			}
			q.Entries[i] = service.UpdateMessagesEntry{Receipt: queue.Receipt(e.GetReceipt()), VisibilityInSeconds: e.VisibilityInSeconds}
		}
	}
	resp, err := d.service.UpdateMessages(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	out := &queuev1.UpdateMessagesResult{
		ServerFailures: int32(resp.ServerFailures),
		ClientFailures: int32(resp.ClientFailures),
		Entries:        make([]*queuev1.UpdateMessagesResultEntry, len(resp.Entries)),
	}
	for i := range resp.Entries {
		e := &resp.Entries[i]
		if e.Failed() {
			out.Entries[i] = &queuev1.UpdateMessagesResultEntry{ErrorCode: optional(int32(e.ErrorCode)), ErrorMessage: &e.ErrorMessage}
		} else {
			out.Entries[i] = &queuev1.UpdateMessagesResultEntry{Id: optional(int64(e.ID)), VisibleAfter: timestamp(e.VisibleAfter)}
		}
	}
	return &queuev1.UpdateMessagesResponse{UpdateMessagesResult: out}, nil
}
