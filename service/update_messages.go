package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// UpdateMessageRequest sets how long one delivered message stays hidden, from
// now on; 0 makes it visible at once.
type UpdateMessageRequest struct {
	QueueRef            string
	Receipt             queue.Receipt
	VisibilityInSeconds *int32 // mandatory, 0 to 43200
	ConsumerGroupID     *string
}

// UpdateMessageResponse is the message's id and when it becomes visible. The
// receipt stays the same.
type UpdateMessageResponse struct {
	ID           queue.MessageID
	VisibleAfter queue.Instant
}

// UpdateMessage works only while the lease of the receipt runs; later it is
// NotAuthorizedOrNotFound and the message stays as it is.
func (s *Service) UpdateMessage(ctx context.Context, r UpdateMessageRequest) (UpdateMessageResponse, error) {
	return UpdateMessageResponse{}, errSoon
}

// UpdateMessagesRequest is UpdateMessage for 1 to 20 messages of one queue.
type UpdateMessagesRequest struct {
	QueueRef        string
	Entries         []UpdateMessagesEntry // mandatory; nil is absent
	ConsumerGroupID *string
}

// UpdateMessagesEntry is one message to update. What is missing or wrong in it
// fails this entry alone.
type UpdateMessagesEntry struct {
	Receipt             queue.Receipt // mandatory; "" is absent
	VisibilityInSeconds *int32        // mandatory, 0 to 43200
}

// UpdateMessagesResponse has as many entries as the request, in its order, and
// counts those that failed.
type UpdateMessagesResponse struct {
	ServerFailures int
	ClientFailures int
	Entries        []UpdateMessagesResult
}

// UpdateMessagesResult is the outcome of one entry: ID and VisibleAfter, or a
// Failure.
type UpdateMessagesResult struct {
	ID           queue.MessageID
	VisibleAfter queue.Instant
	Failure
}

// Failure is why an entry of a batch failed; the zero Failure is success.
type Failure struct {
	ErrorCode    int // the HTTP status the single call would have had: 404, 400 or 500
	ErrorMessage string
}

// Failed reports whether the entry failed.
func (f Failure) Failed() bool { return f.ErrorCode != 0 }

// UpdateMessages answers entry by entry; the error is for the request whole.
func (s *Service) UpdateMessages(ctx context.Context, r UpdateMessagesRequest) (UpdateMessagesResponse, error) {
	return UpdateMessagesResponse{}, errSoon
}
