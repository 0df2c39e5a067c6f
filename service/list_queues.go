package service

import "context"

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
func (s *Service) ListQueues(ctx context.Context, r ListQueuesRequest) (ListQueuesResponse, error) {
	return ListQueuesResponse{}, errSoon
}
