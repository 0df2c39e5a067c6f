package service

import (
	"context"

	"github.com/queued-mq/queued/queue"
)

// Sweep forgets what is kept for a time only: deleted queues after 24 h, work
// requests after 7 days. One call is one bounded round; call it again and again
// (a minute apart is plenty). Readers do not depend on it: what is past its
// time is not shown even if it has not been swept yet.
func (s *Service) Sweep(ctx context.Context) error { return errSoon }

var errSoon = queue.Errorf(queue.MethodNotImplemented, "not built yet")
