package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// ListChannelsRequest asks for the named channels of a queue that hold
// messages; with "_dlq" behind the reference, those with dead letters.
type ListChannelsRequest struct {
	QueueRef        string
	ChannelFilter   *string // a channel, or a pattern with "*"; absent or empty: all
	ConsumerGroupID *string
	Limit           *int32  // 1 to 1000; absent: 100
	Page            *string // NextPage of the page before
}

// ListChannelsResponse is one page, in the order of the names.
type ListChannelsResponse struct {
	Items    []string
	NextPage string // "" on the last page
}

// ListChannels reads memory and never waits.
func (s *Service) ListChannels(ctx context.Context, r ListChannelsRequest) (resp ListChannelsResponse, err error) {
	defer s.done(ctx, "ListChannels", time.Now(), &err)

	q, dead, err := s.find(ctx, r.QueueRef, mayRead)
	if err != nil {
		return resp, err
	}
	if err := s.rates.Request(s.number(q.ID), "ListChannels", time.Now()); err != nil {
		return resp, err
	}
	if err := noGroup(r.ConsumerGroupID); err != nil {
		return resp, err
	}
	filter, err := channelFilter(r.ChannelFilter)
	if err != nil {
		return resp, err
	}
	limit, err := s.pageLimit(r.Limit)
	if err != nil {
		return resp, err
	}
	text, id := filter.String(), string(q.ID)
	if dead {
		id += queue.DeadSuffix
	}
	pages := pagesOf("ListChannels", &id, &text)
	after, err := pages.position(r.Page)
	if err != nil {
		return resp, err
	}
	resp.Items = s.broker.Channels(q.ID, "", dead, filter, after, limit+1)
	if len(resp.Items) > limit {
		resp.Items = resp.Items[:limit]
		resp.NextPage = pages.token(resp.Items[limit-1])
	}
	return resp, nil
}
