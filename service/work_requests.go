package service

import (
	"context"

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
func (s *Service) ListWorkRequests(ctx context.Context, r ListWorkRequestsRequest) (ListWorkRequestsResponse, error) {
	return ListWorkRequestsResponse{}, errSoon
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
func (s *Service) GetWorkRequest(ctx context.Context, r GetWorkRequestRequest) (GetWorkRequestResponse, error) {
	return GetWorkRequestResponse{}, errSoon
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
func (s *Service) ListWorkRequestErrors(ctx context.Context, r ListWorkRequestErrorsRequest) (ListWorkRequestErrorsResponse, error) {
	return ListWorkRequestErrorsResponse{}, errSoon
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
func (s *Service) ListWorkRequestLogs(ctx context.Context, r ListWorkRequestLogsRequest) (ListWorkRequestLogsResponse, error) {
	return ListWorkRequestLogsResponse{}, errSoon
}
