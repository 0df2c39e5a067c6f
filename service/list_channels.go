package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// ListChannelsRequest asks for the named channels in which a consumer group of
// a queue has messages; with "_dlq" behind the reference, those with dead
// letters, with "_unrouted" those with what no group accepted.
type ListChannelsRequest struct {
	QueueRef        string
	ChannelFilter   *string // a channel, or a pattern with "*"; absent or empty: all
	ConsumerGroupID *string // absent or empty: the primary group
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

	q, ref, err := s.find(ctx, r.QueueRef, mayRead)
	if err != nil {
		return resp, err
	}
	if err := s.rates.Request(s.number(q.ID), "ListChannels", time.Now()); err != nil {
		return resp, err
	}
	from, err := s.source(q, ref, r.ConsumerGroupID)
	if err != nil {
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
	text, id, group := filter.String(), string(q.ID), string(from.group)
	if from.dead {
		id += queue.DeadSuffix
	}
	pages := pagesOf("ListChannels", &id, &group, &text)
	after, err := pages.position(r.Page)
	if err != nil {
		return resp, err
	}
	resp.Items = s.broker.Channels(q.ID, from.group, from.dead, filter, after, limit+1)
	if len(resp.Items) > limit {
		resp.Items = resp.Items[:limit]
		resp.NextPage = pages.token(resp.Items[limit-1])
	}
	return resp, nil
}
