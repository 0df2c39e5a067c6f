package service

import "context"

// ChangeQueueCompartmentRequest moves a queue to another compartment.
type ChangeQueueCompartmentRequest struct {
	QueueRef      string
	IfMatch       *string // an etag, or "*"
	CompartmentID *string // mandatory
}

// ChangeQueueCompartment changes who administers the queue, not its OCID and
// not its messages.
func (s *Service) ChangeQueueCompartment(ctx context.Context, r ChangeQueueCompartmentRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}
