package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// Failure is why an entry of a batch failed; the zero Failure is success.
type Failure struct {
	ErrorCode    int // the HTTP status the single call would have had: 404, 400 or 500
	ErrorMessage string
}

// Failed reports whether the entry failed.
func (f Failure) Failed() bool { return f.ErrorCode != 0 }

// failure is the result of an entry that failed with err, and counts it as the
// client's or ours.
func (s *Service) failure(ctx context.Context, operation string, err error, client, server *int) Failure {
	f := Failure{ErrorMessage: queue.MessageOf(err)}
	switch queue.CodeOf(err) {
	case queue.InvalidParameter, queue.MissingParameter:
		f.ErrorCode = 400
		*client++
	case queue.NotAuthorizedOrNotFound:
		f.ErrorCode = 404
		*client++
	default:
		f.ErrorCode = 500
		*server++
		s.logFault(ctx, operation, err)
	}
	return f
}
