package service

import (
	"context"
	"strconv"
	"time"

	"github.com/queued-mq/queued/queue"
)

// ListWorkRequestsRequest asks for work requests, newest first. Filters are
// exact.
type ListWorkRequestsRequest struct {
	CompartmentID *string
	WorkRequestID *string
	Limit         *int32  // 1 to 1000; absent: 100
	Page          *string // NextPage of the page before
}

// ListWorkRequestsResponse is one page.
type ListWorkRequestsResponse struct {
	Items    []queue.WorkRequest
	NextPage string // "" on the last page
}

// ListWorkRequests pages stably from the newest to the oldest that is kept.
func (s *Service) ListWorkRequests(ctx context.Context, r ListWorkRequestsRequest) (resp ListWorkRequestsResponse, err error) {
	defer s.done(ctx, "ListWorkRequests", time.Now(), &err)

	limit, err := s.pageLimit(r.Limit)
	if err != nil {
		return resp, err
	}
	pages := pagesOf("ListWorkRequests", r.CompartmentID, r.WorkRequestID)
	after, err := pages.position(r.Page)
	if err != nil {
		return resp, err
	}
	if !s.may(ctx, mayInspect, nil) {
		return resp, nil
	}
	now := s.broker.Now()
	wanted := func(w *queue.WorkRequest) bool {
		return (r.CompartmentID == nil || w.CompartmentID == *r.CompartmentID) &&
			(r.WorkRequestID == nil || w.ID == *r.WorkRequestID)
	}
	if r.WorkRequestID != nil { // one at most
		w, ok, err := s.broker.WorkRequest(*r.WorkRequestID)
		if ok && after == "" && wanted(&w) && !outlived(&w, now) {
			resp.Items = append(resp.Items, w)
		}
		return resp, err
	}
	for w, err := range s.broker.WorkRequests(after) {
		if err != nil {
			return ListWorkRequestsResponse{}, err
		}
		if outlived(&w, now) {
			break // and so are all behind it
		}
		if err := ctx.Err(); err != nil { // a rare filter may read far
			return ListWorkRequestsResponse{}, err
		}
		if !wanted(&w) {
			continue
		}
		if len(resp.Items) == limit {
			resp.NextPage = pages.token(resp.Items[limit-1].ID)
			break
		}
		resp.Items = append(resp.Items, w)
	}
	return resp, nil
}

// workAge is how long a work request is kept.
const workAge = 7 * 24 * time.Hour

// outlived reports whether w is no longer shown, swept already or not.
func outlived(w *queue.WorkRequest, now queue.Instant) bool { return now.Sub(w.AcceptedAt) >= workAge }

// workRequest finds one work request.
//
// Errors: NotAuthorizedOrNotFound.
func (s *Service) workRequest(ctx context.Context, id string, need permission) (queue.WorkRequest, error) {
	w, ok, err := s.broker.WorkRequest(id)
	if err != nil {
		return queue.WorkRequest{}, err
	}
	if !ok || outlived(&w, s.broker.Now()) || !s.may(ctx, need, nil) {
		return queue.WorkRequest{}, queue.Errorf(queue.NotAuthorizedOrNotFound, "work request %q is not known, or you may not see it", id)
	}
	return w, nil
}

// GetWorkRequestRequest asks for one work request.
type GetWorkRequestRequest struct {
	WorkRequestID string
}

// GetWorkRequestResponse is the work request.
type GetWorkRequestResponse struct {
	WorkRequest queue.WorkRequest
	RetryAfter  int // seconds to wait before asking again; 0, as always today: it is finished
}

// GetWorkRequest finds a work request for 7 days.
func (s *Service) GetWorkRequest(ctx context.Context, r GetWorkRequestRequest) (resp GetWorkRequestResponse, err error) {
	defer s.done(ctx, "GetWorkRequest", time.Now(), &err)

	resp.WorkRequest, err = s.workRequest(ctx, r.WorkRequestID, mayRead)
	return resp, err
}

// ListWorkRequestErrorsRequest asks for what went wrong in a work request.
type ListWorkRequestErrorsRequest struct {
	WorkRequestID string
	Limit         *int32  // 1 to 1000; absent: 100
	Page          *string // NextPage of the page before
}

// ListWorkRequestErrorsResponse is one page, oldest first.
type ListWorkRequestErrorsResponse struct {
	Items    []queue.WorkError
	NextPage string // "" on the last page
}

// ListWorkRequestErrors lists the errors of one work request.
func (s *Service) ListWorkRequestErrors(ctx context.Context, r ListWorkRequestErrorsRequest) (resp ListWorkRequestErrorsResponse, err error) {
	defer s.done(ctx, "ListWorkRequestErrors", time.Now(), &err)

	w, err := s.workRequest(ctx, r.WorkRequestID, mayInspect)
	if err != nil {
		return resp, err
	}
	pages := pagesOf("ListWorkRequestErrors", &r.WorkRequestID)
	resp.Items, resp.NextPage, err = pageOf(s, w.Errors, pages, r.Limit, r.Page)
	return resp, err
}

// ListWorkRequestLogsRequest asks for the log of a work request.
type ListWorkRequestLogsRequest struct {
	WorkRequestID string
	Limit         *int32  // 1 to 1000; absent: 100
	Page          *string // NextPage of the page before
}

// ListWorkRequestLogsResponse is one page, oldest first.
type ListWorkRequestLogsResponse struct {
	Items    []queue.WorkLog
	NextPage string // "" on the last page
}

// ListWorkRequestLogs lists the log of one work request.
func (s *Service) ListWorkRequestLogs(ctx context.Context, r ListWorkRequestLogsRequest) (resp ListWorkRequestLogsResponse, err error) {
	defer s.done(ctx, "ListWorkRequestLogs", time.Now(), &err)

	w, err := s.workRequest(ctx, r.WorkRequestID, mayInspect)
	if err != nil {
		return resp, err
	}
	pages := pagesOf("ListWorkRequestLogs", &r.WorkRequestID)
	resp.Items, resp.NextPage, err = pageOf(s, w.Logs, pages, r.Limit, r.Page)
	return resp, err
}

// pageOf is one page of a list that only grows at its end; a position is how
// many entries come before it.
func pageOf[T any](s *Service, all []T, pages pages, limit *int32, page *string) (items []T, next string, err error) {
	most, err := s.pageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	position, err := pages.position(page)
	if err != nil {
		return nil, "", err
	}
	from := 0
	if position != "" {
		if from, err = strconv.Atoi(position); err != nil || from < 0 {
			return nil, "", errPage
		}
	}
	items = all[min(from, len(all)):]
	if len(items) > most {
		items, next = items[:most], pages.token(strconv.Itoa(from+most))
	}
	return items, next, nil
}
