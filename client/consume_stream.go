package client

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

const (
	// mostSettlements is how many a server takes at once.
	mostSettlements = 100
	// mostAttempts is how often a settlement is tried that fails for reasons
	// that may pass. A stream that breaks is not an attempt.
	mostAttempts = 5
)

// settlement is what the server shall do with one message.
type settlement struct {
	d      *delivery
	action queuev1.Settlement_Action
	delay  time.Duration // of RETURN
	slot   bool          // it has a slot, to be freed when it is over

	number   uint64
	at       time.Time // when it was sent
	resent   bool      // an earlier stream broke before the answer
	attempts int
}

func (s *settlement) op() string {
	switch s.action {
	case queuev1.Settlement_ACKNOWLEDGE:
		return "acknowledge"
	case queuev1.Settlement_RETURN:
		return "return"
	}
	return "extend"
}

// settle puts s behind what is to be sent. The caller holds k.mu, and pokes
// when it has let go of it.
func (k *consumer) settle(s *settlement) {
	k.number++
	s.number = k.number
	k.outbox = append(k.outbox, s)
}

// once consumes over one stream until it ends; nil says that all is done.
// worked says whether the server took the subscription.
func (k *consumer) once() (worked bool, err error) {
	defer k.lost() // when the sender is over
	ctx, cancel := context.WithCancel(k.stream)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	s, err := k.client.messages.ConsumeMessages(ctx)
	if err != nil {
		return false, wrap(err)
	}
	subscribe := k.begin()
	sender.Go(func() {
		if s.Send(subscribe) == nil {
			k.send(ctx, s)
		}
	})
	for {
		resp, err := s.Recv()
		if errors.Is(err, io.EOF) {
			if k.finished() {
				return worked, nil
			}
			return worked, &Error{Code: ServiceUnavailable, Message: "the server has ended the stream"}
		}
		if err != nil {
			return worked, wrap(err)
		}
		worked = true
		if err := k.received(resp); err != nil {
			return worked, err
		}
	}
}

// begin is the first request of a new stream: credit for all that is not held.
func (k *consumer) begin() *queuev1.ConsumeMessagesRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live, k.drain, k.grant = true, drainNot, 0
	credit := k.o.Prefetch - len(k.held)
	if k.isStopping() {
		k.drain, credit = drainDone, 0
	}
	sub := &queuev1.ConsumeSubscription{QueueId: k.queue, Credit: int32(credit)}
	if k.o.Channel != "" {
		sub.ChannelFilter = &k.o.Channel
	}
	if k.o.Group != "" {
		sub.ConsumerGroupId = &k.o.Group
	}
	sub.VisibilityInSeconds = seconds(k.visibility)
	return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: sub}}
}

// lost takes back what has no answer, for the next stream: receipts do not
// belong to a stream. To acknowledge what is acknowledged already succeeds.
func (k *consumer) lost() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live = false
	var again []*settlement
	for _, s := range k.sent {
		if s.action == queuev1.Settlement_EXTEND {
			s.d.extend = nil // tried anew when it is looked at
			continue
		}
		s.resent = true
		again = append(again, s)
	}
	clear(k.sent)
	slices.SortFunc(again, func(a, b *settlement) int { return cmp.Compare(a.number, b.number) })
	k.outbox = append(again, k.outbox...)
}

// send sends what there is to say on one stream. When sending fails, the
// receiver gets to know why.
func (k *consumer) send(ctx context.Context, s queuev1.QueueService_ConsumeMessagesClient) {
	for {
		if request := k.next(); request != nil {
			if s.Send(request) != nil {
				return
			}
			continue
		}
		if k.finished() {
			_ = s.CloseSend()
			return
		}
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
	}
}

// next is the next request, nil if there is none.
func (k *consumer) next() *queuev1.ConsumeMessagesRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drain == drainDue {
		k.drain = drainSent
		return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Drain{Drain: &queuev1.ConsumeDrain{}}}
	}
	var some []*queuev1.Settlement
	now := time.Now()
	for len(k.outbox) > 0 && len(some) < mostSettlements {
		s := k.outbox[0]
		k.outbox[0] = nil
		k.outbox = k.outbox[1:]
		entry := &queuev1.Settlement{Number: s.number, Receipt: s.d.Receipt, Action: s.action}
		switch s.action {
		case queuev1.Settlement_EXTEND:
			if s.d.done || s.d.lost {
				s.d.extend = nil
				continue // too late, or no longer wanted
			}
			entry.VisibilityInSeconds = wholeSeconds(k.visibility)
		case queuev1.Settlement_RETURN:
			entry.VisibilityInSeconds = wholeSeconds(min(s.delay, mostDelay))
		}
		s.at = now
		k.sent[s.number] = s
		some = append(some, entry)
	}
	if len(some) > 0 {
		return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: &queuev1.ConsumeSettlements{Settlements: some}}}
	}
	// Not every message is worth a request of its own.
	if k.grant >= max(1, k.o.Prefetch/4) {
		credit := &queuev1.ConsumeCredit{Messages: int32(k.grant)}
		k.grant = 0
		return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: credit}}
	}
	return nil
}

// mostDelay is the longest that a message may be hidden.
const mostDelay = 12 * time.Hour

func (k *consumer) isStopping() bool {
	select {
	case <-k.stopping:
		return true
	default:
		return false
	}
}

// received takes one answer. An error ends the stream.
func (k *consumer) received(resp *queuev1.ConsumeMessagesResponse) error {
	var told []*DeliveryError
	defer func() {
		for _, e := range told {
			k.o.OnError(e)
		}
		k.poke()
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, m := range resp.Messages {
		d := &delivery{Delivery: deliveryOf(m), leased: now}
		if k.isStopping() {
			d.done = true
			k.settle(&settlement{d: d, action: queuev1.Settlement_RETURN})
			continue
		}
		select {
		case k.ready <- d:
			k.held[d] = struct{}{}
		default:
			return outOfStep("a delivery beyond the credit")
		}
	}
	for _, r := range resp.Settled {
		if s := k.sent[r.Number]; s != nil {
			delete(k.sent, r.Number)
			if err := k.result(s, answer(r.Error)); err != nil {
				told = append(told, err)
			}
		}
	}
	if resp.Drained && k.drain == drainSent {
		k.drain = drainDone
	}
	if len(k.held)+len(k.later) > 0 {
		select {
		case k.busy <- struct{}{}:
		default:
		}
	}
	return nil
}

// result is what became of s; it is what there is to report. The caller holds
// k.mu.
func (k *consumer) result(s *settlement, refused *Error) *DeliveryError {
	if s.action == queuev1.Settlement_EXTEND {
		s.d.extend = nil
		switch {
		case refused == nil:
			s.d.leased = s.at
		case !refused.Temporary():
			return k.lose(s.d, refused)
		}
		return nil
	}
	if refused != nil && refused.Temporary() && s.attempts < mostAttempts {
		s.attempts++
		k.later = append(k.later, s)
		return nil
	}
	if s.slot {
		<-k.slots
	}
	// The answer that was lost may have been a yes: then a second return fails.
	if refused == nil || s.resent && s.action == queuev1.Settlement_RETURN {
		return nil
	}
	return &DeliveryError{Message: &s.d.Delivery, Op: s.op(), Err: refused}
}

// lose ends the lease of d, and so the context of its handler. The caller holds
// k.mu.
func (k *consumer) lose(d *delivery, err error) *DeliveryError {
	if d.lost || d.done {
		return nil
	}
	d.lost = true
	if d.cancel != nil {
		d.cancel(ErrLeaseLost)
	}
	return &DeliveryError{Message: &d.Delivery, Op: "extend", Err: err}
}

// watch looks after what is held until over is closed.
func (k *consumer) watch(over <-chan struct{}) {
	tick := time.Second
	if k.visibility > 0 {
		tick = min(tick, k.visibility/8)
	}
	for {
		select {
		case <-k.busy:
		case <-over:
			return
		}
		for more := true; more; more = k.look() {
			timer := time.NewTimer(tick)
			select {
			case <-timer.C:
			case <-over:
				timer.Stop()
				return
			}
		}
	}
}

// look extends the leases that are a third over, ends those that are over, and
// sends again what failed. It is false when there is nothing to look after.
//
// It goes by the time since a delivery came or its last extension was sent,
// never by the server's clock, which may differ.
func (k *consumer) look() bool {
	var told []*DeliveryError
	k.mu.Lock()
	now := time.Now()
	for d := range k.held {
		age := now.Sub(d.leased)
		switch {
		case k.visibility == 0 || d.lost:
		case age >= k.visibility:
			if err := k.lose(d, ErrLeaseLost); err != nil {
				told = append(told, err)
			}
		case !k.o.NoExtend && d.extend == nil && age >= k.visibility/3:
			d.extend = &settlement{d: d, action: queuev1.Settlement_EXTEND}
			k.settle(d.extend)
		}
	}
	k.outbox = append(k.outbox, k.later...)
	k.later = nil
	more := len(k.held) > 0
	k.mu.Unlock()
	for _, e := range told {
		k.o.OnError(e)
	}
	k.poke()
	return more
}
