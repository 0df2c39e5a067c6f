package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// tombstoneAge is how long a deleted queue is still readable. It is the life
// of a retry token, so that a token can tell that its queue is gone.
const tombstoneAge = 24 * time.Hour

// unknown is the one answer for a queue that is not there and for one the
// caller may not use.
func unknown(text string) error {
	return queue.Errorf(queue.NotAuthorizedOrNotFound, "queue %q is not known, or you may not use it so", text)
}

// find is the live queue that the text of a request names, and whether the
// text means its dead letter queue. Every use case finds its queue here or in
// findAny.
//
// Errors: NotAuthorizedOrNotFound; IncorrectState while it is being created.
func (s *Service) find(ctx context.Context, text string, need permission) (q queue.Queue, dead bool, err error) {
	q, dead, err = s.findAny(ctx, text, need)
	if err == nil && !q.Live() {
		err = notLive(text, &q)
	}
	return q, dead, err
}

// findAny is find that finds deleted queues too, by OCID, while they are kept.
func (s *Service) findAny(ctx context.Context, text string, need permission) (q queue.Queue, dead bool, err error) {
	ref, err := queue.ParseRef(text)
	if err != nil {
		return queue.Queue{}, false, err
	}
	q, ok := s.broker.Lookup(ref, nil) // all are visible, see may
	if !ok || forgotten(&q, s.broker.Now()) || !s.may(ctx, need, &q) {
		return queue.Queue{}, false, unknown(text)
	}
	return q, ref.Dead, nil
}

// findMain is find for what a dead letter queue does not have: it refuses
// "_dlq" with the advice given.
func (s *Service) findMain(ctx context.Context, text string, need permission, advice string) (queue.Queue, error) {
	q, dead, err := s.find(ctx, text, need)
	if err == nil && dead {
		err = refuseDead(advice)
	}
	return q, err
}

func refuseDead(advice string) error {
	return queue.Errorf(queue.InvalidParameter, "%q behind a queue means its dead letter queue: %s", queue.DeadSuffix, advice)
}

// notLive is why a queue that exists cannot be used now.
func notLive(text string, q *queue.Queue) error {
	switch q.State {
	case queue.Deleting, queue.Deleted:
		return unknown(text)
	default:
		return queue.Errorf(queue.IncorrectState, "queue %q is %s", text, q.State)
	}
}

// forgotten reports whether q was deleted so long ago that it is no longer
// shown, swept already or not.
func forgotten(q *queue.Queue, now queue.Instant) bool {
	return q.State == queue.Deleted && now.Sub(q.UpdatedAt) >= tombstoneAge
}

// noGroup refuses a consumer group: no queue has the capability yet.
func noGroup(group *string) error {
	if given(group) == "" {
		return nil
	}
	return queue.Errorf(queue.InvalidParameter, "consumerGroupId is given, but the queue does not have the capability %s", queue.ConsumerGroups)
}

// show is q as the API shows it to this caller.
func (s *Service) show(ctx context.Context, q queue.Queue) Queue {
	endpoint := s.publicURL
	if endpoint == "" {
		endpoint = CallerOf(ctx).BaseURL
	}
	return Queue{Queue: q, MessagesEndpoint: endpoint}
}
