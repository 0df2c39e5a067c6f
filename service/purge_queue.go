package service

import "context"

// PurgeQueueRequest removes the messages a queue holds now.
type PurgeQueueRequest struct {
	QueueRef        string
	IfMatch         *string  // an etag, or "*"
	PurgeType       *string  // mandatory: NORMAL, DLQ or BOTH, in any case
	ChannelIDs      []string // these channels alone, to 256; nil or empty: the whole queue
	ConsumerGroupID *string  // absent or empty: the primary group; "all": every group
}

// PurgeQueue removes messages, those in flight included; they are neither
// delivered nor counted from the answer on.
func (s *Service) PurgeQueue(ctx context.Context, r PurgeQueueRequest) (WorkRequestResponse, error) {
	return WorkRequestResponse{}, errSoon
}
