package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// DeleteMessageRequest removes one delivered message.
type DeleteMessageRequest struct {
	QueueRef        string
	Receipt         queue.Receipt
	ConsumerGroupID *string
}

// DeleteMessageResponse is empty.
type DeleteMessageResponse struct{}

// DeleteMessage succeeds when the message is gone for good, also if it was
// gone before. NotAuthorizedOrNotFound: it has been delivered again or moved
// to the dead letter queue since; InvalidParameter: not a receipt of ours.
func (s *Service) DeleteMessage(ctx context.Context, r DeleteMessageRequest) (resp DeleteMessageResponse, err error) {
	defer s.done(ctx, "DeleteMessage", time.Now(), &err)

	id, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "DeleteMessage")
	if err != nil {
		return resp, err
	}
	if r.Receipt == "" {
		return resp, field{name: "receipt"}.missing()
	}
	results, err := s.broker.Delete(ctx, id, []queue.Receipt{r.Receipt})
	if err != nil {
		return resp, err
	}
	return resp, results[0]
}

// DeleteMessagesRequest is DeleteMessage for 1 to 20 messages of one queue.
type DeleteMessagesRequest struct {
	QueueRef        string
	Receipts        []queue.Receipt // mandatory ("entries" in the API); nil is absent; an empty receipt fails its entry alone
	ConsumerGroupID *string
}

// DeleteMessagesResponse has as many entries as the request, in its order, and
// counts those that failed.
type DeleteMessagesResponse struct {
	ServerFailures int
	ClientFailures int
	Entries        []Failure
}

// DeleteMessages answers entry by entry; the error is for the request whole.
func (s *Service) DeleteMessages(ctx context.Context, r DeleteMessagesRequest) (resp DeleteMessagesResponse, err error) {
	defer s.done(ctx, "DeleteMessages", time.Now(), &err)

	id, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "DeleteMessages")
	if err != nil {
		return resp, err
	}
	if err := checkBatch(s.limits, "entries", r.Receipts); err != nil {
		return resp, err
	}
	results, err := s.broker.Delete(ctx, id, r.Receipts)
	if err != nil {
		return resp, err
	}
	resp.Entries = make([]Failure, len(results))
	for i, err := range results {
		if err != nil {
			resp.Entries[i] = s.failure(ctx, "DeleteMessages", err, &resp.ClientFailures, &resp.ServerFailures)
		}
	}
	return resp, nil
}
