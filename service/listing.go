package service

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/queued-mq/queued/queue"
)

// listed is how a request wants its list of queues or consumer groups.
type listed struct {
	sortBy    *string
	sortOrder *string
	limit     *int32
	page      *string
}

// listing is one page of such a list in the making. A page goes on behind the
// place of the last one, so what is there from the first page to the last is
// listed once.
type listing struct {
	limit    int
	order    order
	pages    pages
	begun    bool // there was a page before
	after    place
	selected []place
}

// listing begins a page. The token of a page holds for the operation, the order
// and these filters alone.
func (s *Service) listing(operation string, r listed, filters ...*string) (*listing, error) {
	limit, err := s.pageLimit(r.limit)
	if err != nil {
		return nil, err
	}
	order, err := parseOrder(r.sortBy, r.sortOrder)
	if err != nil {
		return nil, err
	}
	bound := order.String()
	l := &listing{limit: limit, order: order, pages: pagesOf(operation, append(filters, &bound)...)}
	position, err := l.pages.position(r.page)
	if err != nil {
		return nil, err
	}
	l.begun = position != ""
	l.after, err = parsePlace(position)
	return l, err
}

// add offers what is wanted; what stood on an earlier page is passed over.
func (l *listing) add(p place) {
	if !l.begun || l.order.compare(p, l.after) > 0 {
		l.selected = append(l.selected, p)
	}
}

// page is the page in its order, and the token of the next one, "" if there is
// none.
func (l *listing) page() (found []place, next string) {
	slices.SortFunc(l.selected, l.order.compare)
	if len(l.selected) > l.limit {
		l.selected = l.selected[:l.limit]
		next = l.pages.token(l.selected[l.limit-1].String())
	}
	return l.selected, next
}

// lifecycleState reads an optional state; "" is none.
func lifecycleState(v *string) (queue.LifecycleState, error) {
	return enum("lifecycleState", v, "", queue.Creating, queue.Updating, queue.Active,
		queue.Deleting, queue.Deleted, queue.Failed, queue.Inactive)
}

// order is how such a list is sorted. The id decides between equals, so no two
// places are ever equal.
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
