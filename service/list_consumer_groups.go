package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// ListConsumerGroupsRequest asks for the groups the caller may see. Filters
// are exact and all optional.
type ListConsumerGroupsRequest struct {
	LifecycleState *string // in any case; without it, and without ID, deleted groups are left out
	DisplayName    *string
	ID             *string
	QueueID        *string // OCID, or the display name of a live queue
	SortBy         *string // timeCreated (the default) or displayName
	SortOrder      *string // ASC or DESC; absent: newest first, names from A
	Limit          *int32  // 1 to 1000; absent: 100
	Page           *string // NextPage of the page before
}

// ListConsumerGroupsResponse is one page.
type ListConsumerGroupsResponse struct {
	Items    []queue.ConsumerGroup
	NextPage string // "" on the last page
}

// ListConsumerGroups pages stably: a group that is there from the first page to
// the last is listed once, whatever is made or deleted meanwhile.
func (s *Service) ListConsumerGroups(ctx context.Context, r ListConsumerGroupsRequest) (resp ListConsumerGroupsResponse, err error) {
	defer s.done(ctx, "ListConsumerGroups", time.Now(), &err)

	l, err := s.listing("ListConsumerGroups", listed{r.SortBy, r.SortOrder, r.Limit, r.Page},
		r.LifecycleState, r.DisplayName, r.ID, r.QueueID)
	if err != nil {
		return resp, err
	}
	wanted, err := s.wantedGroups(ctx, &r)
	if err != nil {
		return resp, err
	}
	groups := s.broker.Groups()
	for i := range groups {
		if g := &groups[i]; wanted(g) {
			l.add(place{createdAt: g.CreatedAt, id: g.ID, name: g.DisplayName, at: i})
		}
	}
	var found []place
	found, resp.NextPage = l.page()
	resp.Items = make([]queue.ConsumerGroup, len(found))
	for i, p := range found {
		resp.Items[i] = groups[p.at]
	}
	return resp, nil
}

// wantedGroups is the test of the request's filters and of the caller's rights.
func (s *Service) wantedGroups(ctx context.Context, r *ListConsumerGroupsRequest) (func(*queue.ConsumerGroup) bool, error) {
	state, err := lifecycleState(r.LifecycleState)
	if err != nil {
		return nil, err
	}
	var of queue.ID
	if r.QueueID != nil {
		of = queue.ID(*r.QueueID)
		if q, ref, err := s.findAny(ctx, *r.QueueID, mayInspect); err == nil && !ref.Dead && !ref.Unrouted {
			of = q.ID
		}
	}
	now := s.broker.Now()
	return func(g *queue.ConsumerGroup) bool {
		switch {
		case state != "" && g.State != state,
			state == "" && r.ID == nil && g.State == queue.Deleted,
			r.ID != nil && string(g.ID) != *r.ID,
			r.DisplayName != nil && g.DisplayName != *r.DisplayName,
			r.QueueID != nil && g.QueueID != of,
			forgottenGroup(g, now):
			return false
		}
		_, may := s.queueOf(ctx, g, mayInspect)
		return may
	}, nil
}
