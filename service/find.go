package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/queue"
)

// tombstoneAge is how long a deleted queue or consumer group is still readable. It is the life
// of a retry token, so that a token can tell that its queue is gone.
const tombstoneAge = 24 * time.Hour

// unknown is the one answer for a queue that is not there and for one the
// caller may not use.
func unknown(text string) error {
	return queue.Errorf(queue.NotAuthorizedOrNotFound, "queue %q is not known, or you may not use it so", text)
}

// find is the live queue that the text of a request names, and whether the
// text means its dead letter queue or what no consumer group accepted. Every
// use case finds its queue here or in findAny.
//
// Errors: NotAuthorizedOrNotFound; IncorrectState while it is being created.
func (s *Service) find(ctx context.Context, text string, need permission) (q queue.Queue, ref queue.Ref, err error) {
	q, ref, err = s.findAny(ctx, text, need)
	if err == nil && !q.Live() {
		err = notLive(text, &q)
	}
	return q, ref, err
}

// findAny is find that finds deleted queues too, by OCID, while they are kept.
func (s *Service) findAny(ctx context.Context, text string, need permission) (q queue.Queue, ref queue.Ref, err error) {
	ref, err = queue.ParseRef(text)
	if err != nil {
		return q, ref, err
	}
	q, ok := s.broker.Lookup(ref, nil) // all are visible, see may
	if !ok || forgotten(&q, s.broker.Now()) || !s.may(ctx, need, &q) {
		return queue.Queue{}, ref, unknown(text)
	}
	return q, ref, nil
}

// findMain is find for what belongs to the queue itself alone: it refuses
// "_dlq" and "_unrouted" with the advice given.
func (s *Service) findMain(ctx context.Context, text string, need permission, advice string) (queue.Queue, error) {
	q, ref, err := s.find(ctx, text, need)
	if err == nil {
		err = refuseOther(ref, advice)
	}
	return q, err
}

// refuseOther is why a text may not mean anything but the queue itself; nil if
// it does not.
func refuseOther(ref queue.Ref, advice string) error {
	switch {
	case ref.Dead:
		return queue.Errorf(queue.InvalidParameter, "%q behind a queue means its dead letter queue: %s", queue.DeadSuffix, advice)
	case ref.Unrouted:
		return queue.Errorf(queue.InvalidParameter, "%q behind a queue means what no consumer group accepted, which can be read and deleted only", queue.UnroutedSuffix)
	}
	return nil
}

// source is where messages are taken from: a consumer group of a queue, or its
// dead letter queue.
type source struct {
	queue queue.Queue
	group queue.ID // "": the primary one
	dead  bool
}

// findSource is find for what reads messages. The text group is the OCID or
// the display name of a consumer group, absent or empty for the primary one.
//
// Errors: those of find and of group, InvalidParameter, and
// NotAuthorizedOrNotFound for what no group accepted, where that is not kept.
func (s *Service) findSource(ctx context.Context, text string, group *string, need permission) (source, error) {
	q, ref, err := s.find(ctx, text, need)
	if err != nil {
		return source{}, err
	}
	return s.source(q, ref, group)
}

// source is findSource when the queue is found.
func (s *Service) source(q queue.Queue, ref queue.Ref, group *string) (from source, err error) {
	from = source{queue: q, dead: ref.Dead}
	if !ref.Unrouted {
		from.group, err = s.group(&q, group)
		return from, err
	}
	switch {
	case !s.keepUnrouted:
		return from, queue.Errorf(queue.NotAuthorizedOrNotFound, "what no consumer group accepts is not kept by this server (keep-unrouted)")
	case !q.Has(queue.ConsumerGroups):
		return from, queue.Errorf(queue.NotAuthorizedOrNotFound, "the queue does not have the capability %s, so there is nothing that no consumer group accepts", queue.ConsumerGroups)
	case given(group) != "":
		return from, field{name: "consumerGroupId"}.invalid("may not be given here: %q behind a queue means what no consumer group accepted", queue.UnroutedSuffix)
	}
	from.group = queue.UnroutedGroup
	return from, nil
}

// group is the live consumer group of q that text names, by OCID or display
// name; "", the primary one, if it is absent or empty.
//
// Errors: InvalidParameter if q has no groups, NotAuthorizedOrNotFound.
func (s *Service) group(q *queue.Queue, text *string) (queue.ID, error) {
	if given(text) == "" {
		return "", nil
	}
	if !q.Has(queue.ConsumerGroups) {
		return "", noGroups("consumerGroupId is given")
	}
	g, ok := s.broker.LookupGroup(q.ID, *text)
	if !ok || !g.Live() {
		return "", unknownGroup(*text)
	}
	return g.ID, nil
}

// noGroups refuses a consumer group of a queue that does not have the
// capability.
func noGroups(what string) error {
	return queue.Errorf(queue.InvalidParameter, "%s, but the queue does not have the capability %s", what, queue.ConsumerGroups)
}

// unknownGroup is the one answer for a group that is not there and for one the
// caller may not use.
func unknownGroup(text string) error {
	return queue.Errorf(queue.NotAuthorizedOrNotFound, "consumer group %q is not known, or you may not use it so", text)
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

// show is q as the API shows it to this caller.
func (s *Service) show(ctx context.Context, q queue.Queue) Queue {
	endpoint := s.publicURL
	if endpoint == "" {
		endpoint = CallerOf(ctx).BaseURL
	}
	return Queue{Queue: q, MessagesEndpoint: endpoint}
}
