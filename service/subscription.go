package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// SubscribeRequest is a standing get, from where GetMessagesRequest says.
type SubscribeRequest struct {
	QueueRef            string
	VisibilityInSeconds *int32  // 1 to 43200; absent: the message's, else the queue's
	ChannelFilter       *string // as of GetMessages
	ConsumerGroupID     *string // as of GetMessages
}

// Subscription is what a face takes messages from for a client that wants them
// as they come. It holds nothing: to end it, end the context of Next.
type Subscription struct {
	service *Service
	queue   queue.Queue
	get     broker.ReceiveRequest
}

// Subscribe checks form and rights of a standing get. A visibility of 0 is
// refused, since it would give the same message again and again.
func (s *Service) Subscribe(ctx context.Context, r SubscribeRequest) (sub *Subscription, err error) {
	from, err := s.findSource(ctx, r.QueueRef, r.ConsumerGroupID, mayConsume)
	if err != nil {
		return nil, err
	}
	f := field{name: "visibilityInSeconds"}
	if _, err := f.seconds(r.VisibilityInSeconds, queue.MinVisibility, queue.MaxVisibility, 0); err != nil {
		return nil, err
	}
	get, err := s.receive(&GetMessagesRequest{
		VisibilityInSeconds: r.VisibilityInSeconds,
		ChannelFilter:       r.ChannelFilter,
	}, &from)
	if err != nil {
		return nil, err
	}
	get.Wait = 24 * time.Hour
	u := &Subscription{service: s, queue: from.queue, get: get}
	return u, u.Alive(ctx)
}

// QueueID is the OCID of the queue.
func (u *Subscription) QueueID() queue.ID { return u.queue.ID }

// Alive is nil while the queue is there and its consumer group is enabled, and
// else the error of Next. Who takes nothing for a while asks here.
func (u *Subscription) Alive(ctx context.Context) error {
	q, _, err := u.service.find(ctx, string(u.queue.ID), mayConsume)
	if err != nil || !q.Has(queue.ConsumerGroups) || u.get.Group == queue.UnroutedGroup {
		return err
	}
	switch g, ok := u.service.broker.LookupGroup(q.ID, string(u.get.Group)); {
	case !ok || !g.Live():
		return unknownGroup(string(u.get.Group))
	case g.State != queue.Active:
		return queue.Errorf(queue.IncorrectState, "the consumer group is disabled; enable it before its messages are taken")
	}
	return nil
}

// Next waits until there is a message and gives up to most of them, 1 and up,
// of bytes octets together if bytes is not 0, but never less than one. It is
// one get: rates slow it down, and it waits where a get would be refused for
// want of room (for leases on the disk, for one more waiter).
//
// Errors: NotAuthorizedOrNotFound when the queue or its consumer group is
// deleted, IncorrectState when the group is disabled, ServiceUnavailable when the
// server stops, the error of ctx when that ends. What has been
// delivered then is taken back.
func (u *Subscription) Next(ctx context.Context, most int, bytes int64) (messages []queue.Delivery, err error) {
	s, began := u.service, time.Now()
	defer func() {
		if ctx.Err() == nil { // a wait that was given up is no request
			s.done(ctx, "GetMessages", began, &err)
		}
	}()
	number := s.number(u.queue.ID)
	if err := patiently(ctx, func() error { return s.rates.Get(number, time.Now()) }); err != nil {
		return nil, err
	}
	if err := patiently(ctx, func() error { return s.rates.EgressReady(number, time.Now()) }); err != nil {
		return nil, err
	}
	get := u.get
	get.Limit = most
	if bytes > 0 {
		get.MaxBytes = min(get.MaxBytes, bytes)
	}
	for len(messages) == 0 {
		if err := patiently(ctx, func() error { return u.receive(ctx, get, &messages) }); err != nil {
			return nil, err
		}
	}
	octets := int64(0)
	for i := range messages {
		octets += messages[i].Size()
	}
	if octets > 0 {
		s.rates.Egress(number, octets, time.Now())
	}
	return messages, nil
}

func (u *Subscription) receive(ctx context.Context, get broker.ReceiveRequest, messages *[]queue.Delivery) (err error) {
	*messages, err = u.service.broker.Receive(ctx, get)
	if queue.CodeOf(err) == queue.InsufficientStorage {
		return errRoom
	}
	return err
}

// errRoom stands for the want of room on the disk, which passes.
var errRoom = queue.Errorf(queue.ServiceUnavailable, "no room for leases on the disk")

// Release ends deliveries whose client is gone: the messages are visible at
// once, the deliveries stay counted, their receipts are dead. It never blocks
// and never fails.
func (s *Service) Release(receipts []queue.Receipt) { s.broker.Release(receipts) }

// QueueOf is the OCID of the queue that a receipt is of. InvalidParameter: not
// a receipt of ours; NotAuthorizedOrNotFound: the queue is gone.
func (s *Service) QueueOf(r queue.Receipt) (queue.ID, error) { return s.broker.QueueOf(r) }
