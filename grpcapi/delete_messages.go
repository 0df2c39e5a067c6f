package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// DeleteMessage deletes a message.
func (d *data) DeleteMessage(ctx context.Context, r *queuev1.DeleteMessageRequest) (*queuev1.DeleteMessageResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "messageReceipt", r.GetMessageReceipt(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return nil, Status(err)
	}
	_, err := d.service.DeleteMessage(ctx, service.DeleteMessageRequest{
		QueueRef:        r.GetQueueId(),
		Receipt:         queue.Receipt(r.GetMessageReceipt()),
		ConsumerGroupID: r.ConsumerGroupId,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.DeleteMessageResponse{}, nil
}

// DeleteMessages deletes messages, each with its result.
func (d *data) DeleteMessages(ctx context.Context, r *queuev1.DeleteMessagesRequest) (*queuev1.DeleteMessagesResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return nil, Status(err)
	}
	q := service.DeleteMessagesRequest{QueueRef: r.GetQueueId(), ConsumerGroupID: r.ConsumerGroupId}
	if entries := r.GetDeleteMessagesDetails().GetEntries(); entries != nil {
		q.Receipts = make([]queue.Receipt, len(entries))
		for i, e := range entries {
			if err := checkTextAt(i, e.GetReceipt()); err != nil {
				return nil, Status(err)
			}
			q.Receipts[i] = queue.Receipt(e.GetReceipt())
		}
	}
	resp, err := d.service.DeleteMessages(ctx, q)
	if err != nil {
		return nil, Status(err)
	}
	out := &queuev1.DeleteMessagesResult{
		ServerFailures: int32(resp.ServerFailures),
		ClientFailures: int32(resp.ClientFailures),
		Entries:        make([]*queuev1.DeleteMessagesResultEntry, len(resp.Entries)),
	}
	for i := range resp.Entries {
		out.Entries[i] = &queuev1.DeleteMessagesResultEntry{}
		if e := &resp.Entries[i]; e.Failed() {
			out.Entries[i].ErrorCode, out.Entries[i].ErrorMessage = optional(int32(e.ErrorCode)), &e.ErrorMessage
		}
	}
	return &queuev1.DeleteMessagesResponse{DeleteMessagesResult: out}, nil
}
