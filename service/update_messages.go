package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
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
func (s *Service) UpdateMessage(ctx context.Context, r UpdateMessageRequest) (resp UpdateMessageResponse, err error) {
	defer s.done(ctx, "UpdateMessage", time.Now(), &err)

	id, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "UpdateMessage")
	if err != nil {
		return resp, err
	}
	entry := UpdateMessagesEntry{Receipt: r.Receipt, VisibilityInSeconds: r.VisibilityInSeconds}
	update, err := entry.read()
	if err != nil {
		return resp, err
	}
	results, err := s.broker.Update(ctx, id, []broker.VisibilityUpdate{update})
	if err != nil {
		return resp, err
	}
	one := &results[0]
	return UpdateMessageResponse{ID: one.ID, VisibleAfter: one.VisibleAfter}, one.Err
}

// settle finds the live queue of an update or a delete and counts the request.
// The queue and its dead letter queue are the same here: the receipt knows in
// which of them its message is.
func (s *Service) settle(ctx context.Context, ref string, group *string, operation string) (queue.ID, error) {
	q, _, err := s.find(ctx, ref, mayConsume)
	if err != nil {
		return "", err
	}
	if err := s.rates.Request(s.number(q.ID), operation, time.Now()); err != nil {
		return "", err
	}
	return q.ID, noGroup(group)
}

// read checks the form of one update.
func (e *UpdateMessagesEntry) read() (u broker.VisibilityUpdate, err error) {
	if e.Receipt == "" {
		return u, field{name: "receipt"}.missing()
	}
	f := field{name: "visibilityInSeconds"}
	if e.VisibilityInSeconds == nil {
		return u, f.missing()
	}
	u.Receipt = e.Receipt
	u.Visibility, err = f.seconds(e.VisibilityInSeconds, 0, queue.MaxVisibility, 0)
	return u, err
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

// UpdateMessages answers entry by entry; the error is for the request whole.
func (s *Service) UpdateMessages(ctx context.Context, r UpdateMessagesRequest) (resp UpdateMessagesResponse, err error) {
	defer s.done(ctx, "UpdateMessages", time.Now(), &err)

	id, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "UpdateMessages")
	if err != nil {
		return resp, err
	}
	if err := checkBatch(s.limits, "entries", r.Entries); err != nil {
		return resp, err
	}
	updates := make([]broker.VisibilityUpdate, len(r.Entries))
	for i := range r.Entries {
		if updates[i], err = r.Entries[i].read(); err != nil {
			updates[i].Err = err
		}
	}
	results, err := s.broker.Update(ctx, id, updates)
	if err != nil {
		return resp, err
	}
	resp.Entries = make([]UpdateMessagesResult, len(results))
	for i := range results {
		one := &results[i]
		if one.Err == nil {
			resp.Entries[i] = UpdateMessagesResult{ID: one.ID, VisibleAfter: one.VisibleAfter}
			continue
		}
		resp.Entries[i].Failure = s.failure(ctx, "UpdateMessages", one.Err, &resp.ClientFailures, &resp.ServerFailures)
	}
	return resp, nil
}
