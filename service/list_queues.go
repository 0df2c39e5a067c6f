package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// ListQueuesRequest asks for the queues the caller may see. Filters are exact.
type ListQueuesRequest struct {
	CompartmentID  *string
	LifecycleState *string // in any case; without it, and without ID, deleted queues are left out
	DisplayName    *string
	ID             *string
	SortBy         *string // timeCreated (the default) or displayName
	SortOrder      *string // ASC or DESC; absent: newest first, names from A
	Limit          *int32  // 1 to 1000; absent: 100
	Page           *string // NextPage of the page before
}

// ListQueuesResponse is one page.
type ListQueuesResponse struct {
	Items    []Queue
	NextPage string // "" on the last page
}

// ListQueues pages stably: a queue that is there from the first page to the
// last is listed once, whatever is made or deleted meanwhile.
func (s *Service) ListQueues(ctx context.Context, r ListQueuesRequest) (resp ListQueuesResponse, err error) {
	defer s.done(ctx, "ListQueues", time.Now(), &err)

	l, err := s.listing("ListQueues", listed{r.SortBy, r.SortOrder, r.Limit, r.Page},
		r.CompartmentID, r.LifecycleState, r.DisplayName, r.ID)
	if err != nil {
		return resp, err
	}
	wanted, err := s.wantedQueues(ctx, &r)
	if err != nil {
		return resp, err
	}
	// Keys are sorted, not queues, which are large.
	queues := s.broker.Queues()
	for i := range queues {
		if q := &queues[i]; wanted(q) {
			l.add(place{createdAt: q.CreatedAt, id: q.ID, name: q.DisplayName, at: i})
		}
	}
	var found []place
	found, resp.NextPage = l.page()
	resp.Items = make([]Queue, len(found))
	for i, p := range found {
		resp.Items[i] = s.show(ctx, queues[p.at])
	}
	return resp, nil
}

// wantedQueues is the test of the request's filters and of the caller's rights.
func (s *Service) wantedQueues(ctx context.Context, r *ListQueuesRequest) (func(*queue.Queue) bool, error) {
	state, err := lifecycleState(r.LifecycleState)
	if err != nil {
		return nil, err
	}
	now := s.broker.Now()
	return func(q *queue.Queue) bool {
		switch {
		case state != "" && q.State != state,
			state == "" && r.ID == nil && q.State == queue.Deleted,
			r.ID != nil && string(q.ID) != *r.ID,
			r.DisplayName != nil && q.DisplayName != *r.DisplayName,
			r.CompartmentID != nil && q.CompartmentID != *r.CompartmentID:
			return false
		}
		return !forgotten(q, now) && s.may(ctx, mayInspect, q)
	}, nil
}
