package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// GetStatsRequest asks for the counters of a consumer group of a queue or of
// one channel of it.
type GetStatsRequest struct {
	QueueRef        string
	ChannelID       *string // absent or empty: the whole queue
	ConsumerGroupID *string // absent or empty: the primary group
}

// GetStatsResponse holds the exact counters of the applied state. Asked
// through "_dlq", Queue is the dead letter queue itself and DLQ, which has no
// dead letter queue of its own, is zero; so it is for "_unrouted".
type GetStatsResponse struct {
	Queue           queue.Stats
	DLQ             queue.Stats
	ChannelID       *string // as asked; nil for the whole queue
	ConsumerGroupID *string // as asked
}

// GetStats reads memory and never waits. A channel that holds nothing counts
// zero.
func (s *Service) GetStats(ctx context.Context, r GetStatsRequest) (resp GetStatsResponse, err error) {
	defer s.done(ctx, "GetStats", time.Now(), &err)

	q, ref, err := s.find(ctx, r.QueueRef, mayRead)
	if err != nil {
		return resp, err
	}
	if err := s.rates.Request(s.number(q.ID), "GetStats", time.Now()); err != nil {
		return resp, err
	}
	from, err := s.source(q, ref, r.ConsumerGroupID)
	if err != nil {
		return resp, err
	}
	channel := r.ChannelID
	if given(channel) == "" {
		channel = nil
	} else if err := channels.Validate(*channel); err != nil {
		return resp, err
	}
	resp.ChannelID, resp.ConsumerGroupID = channel, r.ConsumerGroupID
	resp.Queue, resp.DLQ = s.broker.Stats(q.ID, from.group, channel)
	if from.dead {
		resp.Queue, resp.DLQ = resp.DLQ, queue.Stats{}
	}
	return resp, nil
}
