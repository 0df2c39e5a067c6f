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
	VisibilityInSeconds *int32  // mandatory, 0 to 43200
	ConsumerGroupID     *string // as of DeleteMessage
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

	from, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "UpdateMessage")
	if err != nil {
		return resp, err
	}
	entry := UpdateMessagesEntry{Receipt: r.Receipt, VisibilityInSeconds: r.VisibilityInSeconds}
	update, err := entry.read()
	if err != nil {
		return resp, err
	}
	results, err := s.broker.Update(ctx, from.queue.ID, from.group, []broker.VisibilityUpdate{update})
	if err != nil {
		return resp, err
	}
	one := &results[0]
	return UpdateMessageResponse{ID: one.ID, VisibleAfter: one.VisibleAfter}, one.Err
}

// VisibilityResult is the outcome of one entry as a stream has it: ID and
// VisibleAfter, or Err.
type VisibilityResult = broker.VisibilityResult

// StartUpdateMessages is UpdateMessages for a stream, with a number of entries
// that is the caller's to bound, whichever consumer group they are of. See
// StartPutMessages for then, and for when it waits. The error of an entry is in the results, of the request whole in the
// last one.
func (s *Service) StartUpdateMessages(ctx context.Context, ref string, entries []UpdateMessagesEntry, then func([]VisibilityResult, error)) {
	began, operation := time.Now(), "UpdateMessages"
	if len(entries) == 1 {
		operation = "UpdateMessage"
	}
	end := func(results []VisibilityResult, err error) {
		outcome := err
		if err == nil && len(results) == 1 {
			outcome = results[0].Err
		}
		s.done(ctx, operation, began, &outcome)
		then(results, err)
	}
	id, err := s.settleSoon(ctx, ref, operation)
	if err == nil {
		updates := make([]broker.VisibilityUpdate, len(entries))
		for i := range entries {
			var wrong error
			if updates[i], wrong = entries[i].read(); wrong != nil {
				updates[i].Err = wrong
			}
		}
		err = patiently(ctx, func() error { return s.broker.StartUpdate(id, queue.AnyGroup, updates, end) })
	}
	if err != nil {
		end(nil, err)
	}
}

// settleSoon is settle for a stream: a rate slows it down.
func (s *Service) settleSoon(ctx context.Context, ref, operation string) (queue.ID, error) {
	q, _, err := s.find(ctx, ref, mayConsume)
	if err != nil {
		return "", err
	}
	number := s.number(q.ID)
	return q.ID, patiently(ctx, func() error { return s.rates.Request(number, operation, time.Now()) })
}

// settle finds the live queue of an update or a delete, and the consumer group
// that its receipts must be of, and counts the request. The queue and its dead
// letter queue are the same here: the receipt knows in which of them its message
// is.
func (s *Service) settle(ctx context.Context, text string, group *string, operation string) (source, error) {
	q, ref, err := s.find(ctx, text, mayConsume)
	if err != nil {
		return source{}, err
	}
	if err := s.rates.Request(s.number(q.ID), operation, time.Now()); err != nil {
		return source{}, err
	}
	return s.source(q, ref, group)
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
	u.Receipt, u.OrOver = e.Receipt, e.OrOver
	u.Visibility, err = f.seconds(e.VisibilityInSeconds, 0, queue.MaxVisibility, 0)
	return u, err
}

// UpdateMessagesRequest is UpdateMessage for 1 to 20 messages of one queue.
type UpdateMessagesRequest struct {
	QueueRef        string
	Entries         []UpdateMessagesEntry // mandatory; nil is absent
	ConsumerGroupID *string               // as of DeleteMessage
}

// UpdateMessagesEntry is one message to update. What is missing or wrong in it
// fails this entry alone.
type UpdateMessagesEntry struct {
	Receipt             queue.Receipt // mandatory; "" is absent
	VisibilityInSeconds *int32        // mandatory, 0 to 43200

	// OrOver: a delivery whose visibility is over by itself, with no later one,
	// is a success that changes nothing. No unary operation has it.
	OrOver bool
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

	from, err := s.settle(ctx, r.QueueRef, r.ConsumerGroupID, "UpdateMessages")
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
	results, err := s.broker.Update(ctx, from.queue.ID, from.group, updates)
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
