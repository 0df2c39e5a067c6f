package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// Step is one request of a transaction, taken in and not yet done: a message to
// publish, or deliveries to end. The zero Step is none.
type Step struct {
	queue    queue.ID
	put      PutMessage
	receipts []queue.Receipt // nil: it publishes
	back     bool            // the messages are visible again instead of deleted
}

// Receipts are the deliveries that the step ends.
func (s *Step) Receipts() []queue.Receipt { return s.receipts }

// TakePut checks a message that is to be published by StartCommit, as PutMessages
// would: right, form, sizes. It is one request: rates slow it down here, and it
// is counted here, whatever becomes of its transaction.
func (s *Service) TakePut(ctx context.Context, ref string, put PutMessage) (step Step, err error) {
	defer s.done(ctx, "PutMessages", time.Now(), &err)

	q, err := s.findMain(ctx, ref, mayProduce, "nothing can be published to it")
	if err != nil {
		return step, err
	}
	number := s.number(q.ID)
	if err := patiently(ctx, func() error { return s.rates.Request(number, "PutMessages", time.Now()) }); err != nil {
		return step, err
	}
	var m queue.NewMessage
	if err := s.newMessage(&m, &put, 0, &q, false); err != nil {
		return step, err
	}
	if err := s.limits.CheckRequestBytes(m.Size(), q.Has(queue.LargeMessages)); err != nil {
		return step, err
	}
	if err := patiently(ctx, func() error { return s.rates.Ingress(number, m.Size(), time.Now()) }); err != nil {
		return step, err
	}
	return Step{queue: q.ID, put: put}, nil
}

// TakeSettlement does the same for deliveries of one queue that StartCommit is
// to end, by deleting their messages or, if back, by making them visible.
func (s *Service) TakeSettlement(ctx context.Context, ref string, receipts []queue.Receipt, back bool) (step Step, err error) {
	operation := "DeleteMessage"
	if back {
		operation = "UpdateMessage"
	}
	if len(receipts) > 1 {
		operation += "s"
	}
	defer s.done(ctx, operation, time.Now(), &err)

	id, err := s.settleSoon(ctx, ref, operation)
	if err != nil {
		return step, err
	}
	return Step{queue: id, receipts: receipts, back: back}, nil
}

// StartCommit does all steps or none, atomically; then is called once, when they
// are durable or refused. See StartPutMessages for by whom, and for when it
// waits. What can have changed since a step was taken is checked again: its
// queue and the right to it, what its queue allows, and whether the leases still
// run.
//
// The Error of one that cannot be done has that step's code, and says which of
// them it is.
func (s *Service) StartCommit(ctx context.Context, steps []Step, then func(error)) {
	began := time.Now()
	end := func(err error) {
		s.done(ctx, "Commit", began, &err)
		then(err)
	}
	var actions []broker.Action
	var of []int // the steps of the actions
	for i := range steps {
		had := len(actions)
		var err error
		if actions, err = s.actions(ctx, actions, &steps[i]); err != nil {
			end(ofStep(i, len(steps), err))
			return
		}
		for range len(actions) - had {
			of = append(of, i)
		}
	}
	told := func(_ []queue.Published, err error) {
		if named, ok := errors.AsType[*broker.ActionError](err); ok {
			err = ofStep(of[named.Action], len(steps), named.Err)
		}
		end(err)
	}
	if err := patiently(ctx, func() error { return s.broker.StartTransact(actions, told) }); err != nil {
		told(nil, err)
	}
}

// actions appends what a step comes to.
func (s *Service) actions(ctx context.Context, to []broker.Action, step *Step) ([]broker.Action, error) {
	if step.receipts != nil {
		if _, _, err := s.find(ctx, string(step.queue), mayConsume); err != nil {
			return to, err
		}
		for _, r := range step.receipts {
			to = append(to, broker.Action{Queue: step.queue, Receipt: r, Return: step.back})
		}
		return to, nil
	}
	q, _, err := s.find(ctx, string(step.queue), mayProduce)
	if err != nil {
		return to, err
	}
	m := new(queue.NewMessage)
	if err := s.newMessage(m, &step.put, 0, &q, false); err != nil {
		return to, err
	}
	return append(to, broker.Action{Queue: q.ID, Message: m}), nil
}

// ofStep says which of n steps could not be done.
func ofStep(i, n int, err error) error {
	e, ok := errors.AsType[*queue.Error](err)
	if !ok {
		return err
	}
	text := strings.TrimLeft(strings.TrimPrefix(e.Message, "messages[0]"), ".: ") // there is no list
	return queue.Errorf(e.Code, "action %d of the %d of the transaction could not be done: %s", i+1, n, text)
}
