package grpcapi

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// receive reads what the client has to say. It does not wait for what it
// starts.
func (c *consumer) receive() {
	for c.room() {
		r, err := c.stream.Recv()
		if !c.enter() {
			return
		}
		if err != nil {
			c.received(err)
		} else if err := c.handle(r); err != nil {
			c.end(Status(err))
		}
		c.leave()
	}
}

// room waits until whatever comes next may be received; false means never.
func (c *consumer) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && c.owed+mostSettlements > mostOwed {
		c.changed.Wait()
	}
	return !c.ended
}

// handle does what r says. An error is a breach of the rules of the stream,
// which ends it.
func (c *consumer) handle(r *queuev1.ConsumeMessagesRequest) error {
	subscribe := r.GetSubscribe()
	switch {
	case r.GetRequest() == nil:
		return queue.Errorf(queue.InvalidParameter, "a request says nothing that is known here: set one of subscribe, credit, settle and drain")
	case subscribe == nil && c.subscription == nil:
		return queue.Errorf(queue.InvalidParameter, "the first request must be subscribe")
	case subscribe != nil && c.subscription != nil:
		return queue.Errorf(queue.InvalidParameter, "subscribe may be said once only: open another stream")
	case subscribe != nil:
		return c.subscribe(subscribe)
	case r.GetCredit() != nil:
		return c.grant(r.GetCredit().GetMessages())
	case r.GetSettle() != nil:
		return c.settle(r.GetSettle().GetSettlements())
	default:
		c.drain()
		return nil
	}
}

func (c *consumer) subscribe(r *queuev1.ConsumeSubscription) error {
	if err := checkText("queueId", r.GetQueueId(), "channelFilter", r.GetChannelFilter(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return err
	}
	if n := r.GetCredit(); n < 0 || n > mostCredit {
		return queue.Errorf(queue.InvalidParameter, "credit is %d; it must be 0 to %d", n, mostCredit)
	}
	s, err := c.service.Subscribe(c.ctx, service.SubscribeRequest{
		QueueRef:            r.GetQueueId(),
		VisibilityInSeconds: r.VisibilityInSeconds,
		ChannelFilter:       r.ChannelFilter,
		ConsumerGroupID:     r.ConsumerGroupId,
	})
	if err != nil {
		return err
	}
	named := string(s.QueueID())
	switch ref, err := queue.ParseRef(r.GetQueueId()); {
	case err != nil:
	case ref.Dead:
		named += queue.DeadSuffix
	case ref.Unrouted:
		named += queue.UnroutedSuffix
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscription, c.queue, c.credit = s, string(s.QueueID()), int(r.GetCredit())
	c.due.subscribed = named
	if !c.ended {
		c.looking = time.AfterFunc(lookEvery, c.look)
	}
	c.changed.Broadcast()
	return nil
}

// grant adds credit. Behind a drain that is not done it is kept apart: the
// drain must not take it back.
func (c *consumer) grant(messages int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	credit := &c.credit
	if c.drains > 0 {
		credit = &c.later
	}
	if messages < 1 || messages > mostCredit {
		return queue.Errorf(queue.InvalidParameter, "credit is %d; it must be 1 to %d", messages, mostCredit)
	}
	if sum := *credit + int(messages); sum > mostCredit {
		return queue.Errorf(queue.InvalidParameter, "credit is %d with what is left; it may not exceed %d", sum, mostCredit)
	}
	*credit += int(messages)
	c.changed.Broadcast()
	return nil
}

func (c *consumer) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drains++
	c.later = 0
	if c.giveBack != nil {
		c.giveBack()
	}
	c.changed.Broadcast()
}

// settle begins what is to be done with messages: all that become visible
// later or earlier in one step, and all that are deleted in one behind it, so
// that a receipt that is named twice is not extended after its end.
func (c *consumer) settle(all []*queuev1.Settlement) error {
	if n := len(all); n < 1 || n > mostSettlements {
		return queue.Errorf(queue.InvalidParameter, "settlements has %d items; it must have 1 to %d", n, mostSettlements)
	}
	c.mu.Lock()
	c.owed += len(all)
	c.mu.Unlock()

	var refused, updated, deleted outcome
	var updates []service.UpdateMessagesEntry
	var deletes []queue.Receipt
	for i, s := range all {
		switch err := checkSettlement(s); {
		case err != nil:
			refused.numbers, refused.errs = append(refused.numbers, s.GetNumber()), append(refused.errs, err)
		case s.GetAction() == queuev1.Settlement_ACKNOWLEDGE:
			if deletes == nil {
				deletes = make([]queue.Receipt, 0, len(all)-i)
				deleted.numbers = make([]uint64, 0, len(all)-i)
			}
			deletes, deleted.numbers = append(deletes, queue.Receipt(s.GetReceipt())), append(deleted.numbers, s.GetNumber())
		default:
			updates = append(updates, service.UpdateMessagesEntry{Receipt: queue.Receipt(s.GetReceipt()), VisibilityInSeconds: &s.VisibilityInSeconds})
			updated.numbers = append(updated.numbers, s.GetNumber())
		}
	}
	if len(refused.numbers) > 0 {
		c.settled(refused)
	}
	if len(updates) > 0 {
		c.service.StartUpdateMessages(c.ctx, c.queue, updates, func(results []service.VisibilityResult, err error) {
			updated.updates, updated.err = results, err
			c.settled(updated)
		})
	}
	if len(deletes) > 0 {
		c.service.StartDeleteMessages(c.ctx, c.queue, deletes, func(results []error, err error) {
			deleted.errs, deleted.err = results, err
			c.settled(deleted)
		})
	}
	return nil
}

// checkSettlement is why s cannot even be begun.
func checkSettlement(s *queuev1.Settlement) error {
	if s.GetReceipt() == "" {
		return queue.Errorf(queue.MissingParameter, "receipt is missing")
	}
	if err := checkText("receipt", s.GetReceipt()); err != nil {
		return err
	}
	visibility := s.GetVisibilityInSeconds()
	switch s.GetAction() {
	case queuev1.Settlement_ACTION_UNSPECIFIED:
		return queue.Errorf(queue.MissingParameter, "action is missing")
	case queuev1.Settlement_ACKNOWLEDGE:
		if visibility != 0 {
			return queue.Errorf(queue.InvalidParameter, "visibilityInSeconds is %d; for ACKNOWLEDGE it must be absent", visibility)
		}
	case queuev1.Settlement_EXTEND:
		if visibility == 0 {
			return queue.Errorf(queue.InvalidParameter, "visibilityInSeconds is 0, which would give the message back: say RETURN for that")
		}
	case queuev1.Settlement_RETURN:
	default:
		return queue.Errorf(queue.InvalidParameter, "action is %d; it must be ACKNOWLEDGE, EXTEND or RETURN", s.GetAction())
	}
	return nil
}

// outcome is what became of settlements that were done in one step.
type outcome struct {
	numbers []uint64
	errs    []error                    // of each, if they were refused or are deletes
	updates []service.VisibilityResult // of each, if they are updates
	err     error                      // of all of them
}

// settled takes down an outcome, whichever goroutine knows it.
func (c *consumer) settled(o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due.settled = append(c.due.settled, o)
	c.changed.Broadcast()
}

// results are outcomes for the wire.
func results(outcomes []outcome) []*queuev1.SettlementResult {
	n := 0
	for i := range outcomes {
		n += len(outcomes[i].numbers)
	}
	if n == 0 {
		return nil
	}
	all, out := make([]queuev1.SettlementResult, n), make([]*queuev1.SettlementResult, 0, n)
	for i := range outcomes {
		o := &outcomes[i]
		var stamps []timestamppb.Timestamp
		if o.err == nil {
			stamps = make([]timestamppb.Timestamp, len(o.updates))
		}
		for j, number := range o.numbers {
			r, err := &all[len(out)], o.err
			if err == nil && o.errs != nil {
				err = o.errs[j]
			}
			if err == nil && o.updates != nil {
				if err = o.updates[j].Err; err == nil {
					r.VisibleAfter = stamp(&stamps[j], o.updates[j].VisibleAfter)
				}
			}
			r.Number, r.Error = number, streamError(err)
			out = append(out, r)
		}
	}
	return out
}
