package service

import (
	"context"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// change is one operation of the control plane on a queue that exists.
type change struct {
	operation queue.OperationType
	need      permission
	ref       string
	ifMatch   *string
	noDead    string // advice to who names the dead letter queue
	action    queue.ActionType

	// run checks first and changes q through tx afterwards.
	run func(tx *broker.Tx, q queue.Queue) (changed, error)
}

// changed is what a change has done.
type changed struct {
	queue queue.Queue           // as it is now
	made  []queue.ConsumerGroup // groups that were made with it
	did   string                // for the log
}

// apply runs c and records it as a finished work request, in one durable step.
//
// Errors: NotAuthorizedOrNotFound, IncorrectState, NoEtagMatch,
// InvalidParameter for a dead letter queue, and those of run.
func (s *Service) apply(ctx context.Context, c change) (resp WorkRequestResponse, err error) {
	found, err := s.findMain(ctx, c.ref, c.need, c.noDead)
	if err != nil {
		return resp, err
	}
	work, err := s.ocids.workRequest()
	if err != nil {
		return resp, err
	}
	err = s.broker.Admin(ctx, func(tx *broker.Tx) error {
		q, ok := tx.Queue(found.ID) // as it is by now
		if !ok {
			return unknown(c.ref)
		}
		if !q.Live() {
			return notLive(c.ref, &q)
		}
		if err := checkMatch(c.ifMatch, q.Version); err != nil {
			return err
		}
		done, err := c.run(tx, q)
		if err != nil {
			return err
		}
		tx.PutWorkRequest(finished(work, c.operation, c.action, &done, tx.Now()))
		return nil
	})
	if err != nil {
		return resp, err
	}
	return WorkRequestResponse{WorkRequestID: work}, nil
}

// put stores the changed queue with the instant of the change.
func put(tx *broker.Tx, q queue.Queue) queue.Queue {
	q.UpdatedAt = tx.Now()
	tx.PutQueue(q)
	return q
}

// finished is the work request of an operation on a queue that is done: our
// operations are, when they are answered. It lists the queue first, since
// clients take the queue's id from there.
func finished(id string, op queue.OperationType, action queue.ActionType, done *changed, now queue.Instant) queue.WorkRequest {
	resources := []queue.WorkResource{{
		EntityType: "queue",
		Action:     action,
		Identifier: string(done.queue.ID),
		EntityURI:  "/20210201/queues/" + string(done.queue.ID),
	}}
	for _, g := range done.made {
		resources = append(resources, groupResource(g.ID, queue.ActionCreated))
	}
	return succeeded(id, op, done.queue.CompartmentID, resources, done.did, now)
}

// groupResource is a consumer group in a work request.
func groupResource(id queue.ID, action queue.ActionType) queue.WorkResource {
	return queue.WorkResource{
		EntityType: "consumergroup",
		Action:     action,
		Identifier: string(id),
		EntityURI:  "/20210201/consumerGroups/" + string(id),
	}
}

func succeeded(id string, op queue.OperationType, compartment string, resources []queue.WorkResource, did string, now queue.Instant) queue.WorkRequest {
	return queue.WorkRequest{
		ID:            id,
		Operation:     op,
		Status:        queue.Succeeded,
		CompartmentID: compartment,
		Resources:     resources,
		Percent:       100,
		AcceptedAt:    now,
		StartedAt:     now,
		FinishedAt:    now,
		Logs:          []queue.WorkLog{{Message: did, At: now}},
	}
}
