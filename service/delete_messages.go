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
	ConsumerGroupID *string // of the receipt; absent or empty: the primary group
}

// DeleteMessageResponse is empty.
type DeleteMessageResponse struct{}

// DeleteMessage succeeds when the message is gone for good, also if it was
// gone before. NotAuthorizedOrNotFound: it has been delivered again or moved
// to the dead letter queue since, or is of another consumer group;
// InvalidParameter: not a receipt of ours.
func (s *Service) DeleteMessage(ctx context.Context, r DeleteMessageRequest) (resp DeleteMessageResponse, err error) {
	defer s.done(ctx, "DeleteMessage", time.Now(), &err)

	from, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "DeleteMessage")
	if err != nil {
		return resp, err
	}
	if r.Receipt == "" {
		return resp, field{name: "receipt"}.missing()
	}
	results, err := s.broker.Delete(ctx, from.queue.ID, from.group, []queue.Receipt{r.Receipt})
	if err != nil {
		return resp, err
	}
	return resp, results[0]
}

// StartDeleteMessages is DeleteMessages for a stream, with a number of receipts
// that is the caller's to bound, whichever consumer group they are of. See
// StartPutMessages for then, and for when it waits. The error of a receipt is in the results, of the request whole in the
// last one.
func (s *Service) StartDeleteMessages(ctx context.Context, ref string, receipts []queue.Receipt, then func([]error, error)) {
	began, operation := time.Now(), "DeleteMessages"
	if len(receipts) == 1 {
		operation = "DeleteMessage"
	}
	end := func(results []error, err error) {
		outcome := err
		if err == nil && len(results) == 1 {
			outcome = results[0]
		}
		s.done(ctx, operation, began, &outcome)
		then(results, err)
	}
	id, err := s.settleSoon(ctx, ref, operation)
	if err == nil {
		err = patiently(ctx, func() error { return s.broker.StartDelete(id, queue.AnyGroup, receipts, end) })
	}
	if err != nil {
		end(nil, err)
	}
}

// DeleteMessagesRequest is DeleteMessage for 1 to 20 messages of one queue.
type DeleteMessagesRequest struct {
	QueueRef        string
	Receipts        []queue.Receipt // mandatory ("entries" in the API); nil is absent; an empty receipt fails its entry alone
	ConsumerGroupID *string         // as of DeleteMessage
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

	from, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "DeleteMessages")
	if err != nil {
		return resp, err
	}
	if err := checkBatch(s.limits, "entries", r.Receipts); err != nil {
		return resp, err
	}
	results, err := s.broker.Delete(ctx, from.queue.ID, from.group, r.Receipts)
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
