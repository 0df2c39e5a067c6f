package service

import (
	"context"

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
func (s *Service) DeleteMessage(ctx context.Context, r DeleteMessageRequest) (DeleteMessageResponse, error) {
	return DeleteMessageResponse{}, errSoon
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
func (s *Service) DeleteMessages(ctx context.Context, r DeleteMessagesRequest) (DeleteMessagesResponse, error) {
	return DeleteMessagesResponse{}, errSoon
}
