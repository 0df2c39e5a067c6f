package service

import "context"

// DeleteQueueRequest deletes a queue with all its messages.
type DeleteQueueRequest struct {
	QueueRef string
	IfMatch  *string // an etag, or "*"
}

// DeleteQueue ends the queue, its open polls and its messages at once.
func (s *Service) DeleteQueue(ctx context.Context, r DeleteQueueRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}
