package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// Sweep forgets what is kept for a time only: deleted queues and consumer
// groups after 24 h, work requests after 7 days. One call is one bounded round; call it again and again
// (a minute apart is plenty). Readers do not depend on it: what is past its
// time is not shown even if it has not been swept yet.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.sweepQueues(ctx); err != nil {
		return fmt.Errorf("sweep deleted queues: %w", err)
	}
	if err := s.sweepGroups(ctx); err != nil {
		return fmt.Errorf("sweep deleted consumer groups: %w", err)
	}
	if err := s.sweepWork(ctx); err != nil {
		return fmt.Errorf("sweep work requests: %w", err)
	}
	return nil
}

func (s *Service) sweepQueues(ctx context.Context) error {
	for ids := range slices.Chunk(expiredQueues(s.broker.Queues(), s.broker.Now()), sweepStep) {
		err := s.broker.Admin(ctx, func(tx *broker.Tx) error {
			for _, id := range ids {
				if q, ok := tx.Queue(id); ok && q.State == queue.Deleted {
					tx.DropQueue(id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			s.rates.Forget(s.number(id))
		}
	}
	return nil
}

// sweepGroups forgets deleted groups of queues that live; the others go with
// their queues.
func (s *Service) sweepGroups(ctx context.Context) error {
	now := s.broker.Now()
	old := slices.DeleteFunc(s.broker.Groups(), func(g queue.ConsumerGroup) bool { return !forgottenGroup(&g, now) })
	for some := range slices.Chunk(old, sweepStep) {
		err := s.broker.Admin(ctx, func(tx *broker.Tx) error {
			for _, g := range some {
				tx.DropGroup(g.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// sweepStep is how many things one durable step forgets, so that nobody
	// waits long for the core.
	sweepStep = 500

	// maxTombstones is how many deleted queues are kept even if their time is
	// not over: they live in memory, and creating and deleting queues in a
	// circle must not fill it. Beyond it the oldest go first.
	maxTombstones = 10_000

	workSweepEvery = time.Hour
	maxWorkSweep   = 10_000 // in one round
)

// sweepWork forgets old work requests. They are read newest first, so finding
// the old ones means passing all others; an hour more or less does not matter,
// and so that is done once in an hour.
func (s *Service) sweepWork(ctx context.Context) error {
	now := s.broker.Now()
	if last := queue.Instant(s.workSwept.Load()); last != 0 && now.Sub(last) < workSweepEvery {
		return nil
	}
	var old []queue.WorkRequest
	for w, err := range s.broker.WorkRequests("") {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if outlived(&w, now) {
			old = append(old, queue.WorkRequest{ID: w.ID, AcceptedAt: w.AcceptedAt})
		}
		if len(old) == maxWorkSweep {
			break
		}
	}
	for some := range slices.Chunk(old, sweepStep) {
		err := s.broker.Admin(ctx, func(tx *broker.Tx) error {
			for _, w := range some {
				tx.DropWorkRequest(w)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(old) < maxWorkSweep {
		s.workSwept.Store(int64(now))
	}
	return nil
}

// expiredQueues are the deleted queues to forget, longest deleted first.
func expiredQueues(queues []queue.Queue, now queue.Instant) []queue.ID {
	dead := slices.DeleteFunc(queues, func(q queue.Queue) bool { return q.State != queue.Deleted })
	slices.SortStableFunc(dead, func(a, b queue.Queue) int { return cmp.Compare(a.UpdatedAt, b.UpdatedAt) })
	var ids []queue.ID
	for i := range dead {
		if !forgotten(&dead[i], now) && len(dead)-i <= maxTombstones {
			break
		}
		ids = append(ids, dead[i].ID)
	}
	return ids
}
