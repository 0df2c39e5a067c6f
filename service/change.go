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

	// run checks first and changes q through tx afterwards, and says for the
	// log what it did.
	run func(tx *broker.Tx, q queue.Queue) (changed queue.Queue, did string, err error)
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
		q, did, err := c.run(tx, q)
		if err != nil {
			return err
		}
		tx.PutWorkRequest(finished(work, c.operation, c.action, &q, did, tx.Now()))
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

// finished is the work request of an operation that is done: our operations
// are, when they are answered. It lists the queue first, since clients take
// the queue's id from there.
func finished(id string, op queue.OperationType, action queue.ActionType, q *queue.Queue, did string, now queue.Instant) queue.WorkRequest {
	return queue.WorkRequest{
		ID:            id,
		Operation:     op,
		Status:        queue.Succeeded,
		CompartmentID: q.CompartmentID,
		Resources: []queue.WorkResource{{
			EntityType: "queue",
			Action:     action,
			Identifier: string(q.ID),
			EntityURI:  "/20210201/queues/" + string(q.ID),
		}},
		Percent:    100,
		AcceptedAt: now,
		StartedAt:  now,
		FinishedAt: now,
		Logs:       []queue.WorkLog{{Message: did, At: now}},
	}
}
