package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
)

// maxGroupTombstones is how many deleted groups of one queue are kept even if
// their time is not over: they lie in the row of the queue, which each change
// writes whole. Beyond it the oldest go first.
const maxGroupTombstones = 100

// groupState is the state of a group that is made enabled or not; absent is
// enabled.
func groupState(enabled *bool) queue.LifecycleState {
	if enabled != nil && !*enabled {
		return queue.Inactive
	}
	return queue.Active
}

// checkGroup checks the settings of a group. As gives the name under which the
// request has a setting; nil: its own.
//
// Errors: InvalidParameter.
func checkGroup(g *queue.ConsumerGroup, as func(name string) string) error {
	err := g.Validate()
	if err == nil {
		_, err = filter.Parse(g.Filter)
	}
	if e, ok := errors.AsType[*queue.Error](err); ok && as != nil {
		if n := strings.IndexAny(e.Message, " :"); n > 0 {
			return queue.Errorf(e.Code, "%s%s", as(e.Message[:n]), e.Message[n:])
		}
	}
	return err
}

// checkName checks that no other live group of the queue bears the name of g,
// whatever the case of its letters.
func checkName(tx *broker.Tx, g *queue.ConsumerGroup) error {
	for _, other := range tx.Groups(g.QueueID) {
		if other.Live() && other.ID != g.ID && other.Named(g.DisplayName) {
			return queue.Errorf(queue.NotAuthorizedOrResourceAlreadyExists, "a consumer group of the queue bears the displayName %q already", other.DisplayName)
		}
	}
	return nil
}

// findGroup is the consumer group that text names, by OCID or by display name,
// with its queue. Deleted ones are found by OCID while they are kept.
//
// Errors: NotAuthorizedOrNotFound; Conflict for a name that live groups of
// several queues bear.
func (s *Service) findGroup(ctx context.Context, text string, need permission) (g queue.ConsumerGroup, q queue.Queue, err error) {
	g, ok := s.broker.FindGroup(queue.ID(text))
	if ok {
		q, ok = s.queueOf(ctx, &g, need)
	} else {
		for _, other := range s.broker.Groups() {
			if !other.Live() || !other.Named(text) {
				continue
			}
			its, mine := s.queueOf(ctx, &other, need)
			if mine && ok {
				return g, q, queue.Errorf(queue.Conflict, "groups of several queues bear the displayName %q; name the group by its OCID", text)
			}
			if mine {
				g, q, ok = other, its, true
			}
		}
	}
	if !ok || forgottenGroup(&g, s.broker.Now()) {
		return g, q, unknownGroup(text)
	}
	return g, q, nil
}

// queueOf is the queue of a group, and whether the caller may do this to it.
func (s *Service) queueOf(ctx context.Context, g *queue.ConsumerGroup, need permission) (queue.Queue, bool) {
	q, ok := s.broker.Lookup(queue.Ref{ID: g.QueueID}, nil)
	return q, ok && s.may(ctx, need, &q)
}

// forgottenGroup is forgotten for a consumer group.
func forgottenGroup(g *queue.ConsumerGroup, now queue.Instant) bool {
	return g.State == queue.Deleted && now.Sub(g.UpdatedAt) >= tombstoneAge
}

// groupChange is one operation of the control plane on a consumer group that
// exists.
type groupChange struct {
	operation queue.OperationType
	ref       string
	ifMatch   *string
	action    queue.ActionType

	// run checks first and changes g through tx afterwards, and says for the log
	// what it did.
	run func(tx *broker.Tx, g queue.ConsumerGroup) (did string, err error)
}

// applyGroup runs c and records it as a finished work request, in one durable
// step.
//
// Errors: those of findGroup, NoEtagMatch, and those of run.
func (s *Service) applyGroup(ctx context.Context, c groupChange) (resp WorkRequestResponse, err error) {
	found, _, err := s.findGroup(ctx, c.ref, mayUpdate)
	if err != nil {
		return resp, err
	}
	work, err := s.ocids.workRequest()
	if err != nil {
		return resp, err
	}
	err = s.broker.Admin(ctx, func(tx *broker.Tx) error {
		g, ok := tx.Group(found.ID) // as it is by now
		q, there := tx.Queue(found.QueueID)
		if !ok || !g.Live() || !there || !q.Live() {
			return unknownGroup(c.ref)
		}
		if err := checkMatch(c.ifMatch, g.Version); err != nil {
			return err
		}
		did, err := c.run(tx, g)
		if err != nil {
			return err
		}
		resources := []queue.WorkResource{groupResource(g.ID, c.action)}
		tx.PutWorkRequest(succeeded(work, c.operation, q.CompartmentID, resources, did, tx.Now()))
		return nil
	})
	if err != nil {
		return resp, err
	}
	return WorkRequestResponse{WorkRequestID: work}, nil
}

// putGroup stores the changed group with the instant of the change.
func putGroup(tx *broker.Tx, g queue.ConsumerGroup) {
	g.UpdatedAt = tx.Now()
	tx.PutGroup(g)
}

// dropOldGroups forgets the deleted groups of a queue that are too many.
func dropOldGroups(tx *broker.Tx, id queue.ID) {
	dead := slices.DeleteFunc(tx.Groups(id), func(g queue.ConsumerGroup) bool { return g.State != queue.Deleted })
	slices.SortStableFunc(dead, func(a, b queue.ConsumerGroup) int { return cmp.Compare(a.UpdatedAt, b.UpdatedAt) })
	for i := range len(dead) - maxGroupTombstones {
		tx.DropGroup(dead[i].ID)
	}
}
