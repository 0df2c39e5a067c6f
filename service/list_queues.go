package service

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
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

	limit, err := s.pageLimit(r.Limit)
	if err != nil {
		return resp, err
	}
	order, err := parseOrder(r.SortBy, r.SortOrder)
	if err != nil {
		return resp, err
	}
	wanted, err := s.wantedQueues(ctx, &r)
	if err != nil {
		return resp, err
	}
	bound := order.String()
	pages := pagesOf("ListQueues", r.CompartmentID, r.LifecycleState, r.DisplayName, r.ID, &bound)
	position, err := pages.position(r.Page)
	if err != nil {
		return resp, err
	}
	after, err := parsePlace(position)
	if err != nil {
		return resp, err
	}

	// Keys are sorted, not queues, which are large.
	queues := s.broker.Queues()
	var found []place
	for i := range queues {
		p := place{createdAt: queues[i].CreatedAt, id: queues[i].ID, name: queues[i].DisplayName, at: i}
		if wanted(&queues[i]) && (position == "" || order.compare(p, after) > 0) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, order.compare)
	if len(found) > limit {
		found = found[:limit]
		resp.NextPage = pages.token(found[limit-1].String())
	}
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

// lifecycleState reads an optional state; "" is none.
func lifecycleState(v *string) (queue.LifecycleState, error) {
	return enum("lifecycleState", v, "", queue.Creating, queue.Updating, queue.Active,
		queue.Deleting, queue.Deleted, queue.Failed, queue.Inactive)
}

// order is how a list of queues or consumer groups is sorted. The id decides between equals, so
// no two places are ever equal.
type order struct{ byName, descending bool }

// parseOrder reads sortBy and sortOrder; the direction that is natural for the
// field is the default.
func parseOrder(sortBy, sortOrder *string) (order, error) {
	by, err := enum("sortBy", sortBy, "timeCreated", "timeCreated", "displayName")
	if err != nil {
		return order{}, err
	}
	o := order{byName: by == "displayName"}
	natural := "DESC"
	if o.byName {
		natural = "ASC"
	}
	direction, err := enum("sortOrder", sortOrder, natural, "ASC", "DESC")
	o.descending = direction == "DESC"
	return o, err
}

func (o order) String() string {
	return strconv.FormatBool(o.byName) + strconv.FormatBool(o.descending)
}

func (o order) compare(a, b place) int {
	var c int
	if o.byName {
		c = strings.Compare(a.name, b.name)
	} else {
		c = cmp.Compare(a.createdAt, b.createdAt)
	}
	c = cmp.Or(c, cmp.Compare(a.id, b.id))
	if o.descending {
		return -c
	}
	return c
}

// place is where a queue or a consumer group stands in a list, whatever its
// order.
type place struct {
	createdAt queue.Instant
	id        queue.ID
	name      string
	at        int // index while a page is made; no part of the place
}

// String is the place as parsePlace reads it.
func (p place) String() string {
	return strconv.FormatInt(int64(p.createdAt), 10) + " " + string(p.id) + " " + p.name
}

// parsePlace reads a place out of a page token; "" is the zero place.
func parsePlace(text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	created, rest, _ := strings.Cut(text, " ")
	id, name, ok := strings.Cut(rest, " ")
	ms, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !ok {
		return place{}, errPage
	}
	return place{createdAt: queue.Instant(ms), id: queue.ID(id), name: name}, nil
}
