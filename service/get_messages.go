package service

import (
	"context"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// GetMessagesRequest asks for messages of one channel of a queue or, with
// "_dlq" behind the reference, of its dead letter queue or, with "_unrouted", of
// what no consumer group accepted.
type GetMessagesRequest struct {
	QueueRef            string
	VisibilityInSeconds *int32  // 0 (peek) to 43200; absent: the message's, else the queue's
	TimeoutInSeconds    *int32  // how long to wait for a first message, 0 to 30; absent: the queue's
	Limit               *int32  // 1 to 20; absent: the default-get-limit of the server
	ChannelFilter       *string // a channel, or a pattern with "*"; absent or empty: any one channel
	ConsumerGroupID     *string // OCID or display name; absent or empty: the primary group
}

// GetMessagesResponse holds what was delivered; none is not an error.
type GetMessagesResponse struct {
	Messages []queue.Delivery
}

// GetMessages leases messages to the caller, each under a durable receipt. If
// no octet of an answer can be handed to the client, the face calls Undeliver.
func (s *Service) GetMessages(ctx context.Context, r GetMessagesRequest) (resp GetMessagesResponse, err error) {
	defer s.done(ctx, "GetMessages", time.Now(), &err)

	q, ref, err := s.find(ctx, r.QueueRef, mayConsume)
	if err != nil {
		return resp, err
	}
	if err := s.rates.Get(s.number(q.ID), time.Now()); err != nil {
		return resp, err
	}
	from, err := s.source(q, ref, r.ConsumerGroupID)
	if err != nil {
		return resp, err
	}
	get, err := s.receive(&r, &from)
	if err != nil {
		return resp, err
	}
	if err := s.rates.EgressReady(s.number(q.ID), time.Now()); err != nil {
		return resp, err
	}
	if resp.Messages, err = s.broker.Receive(ctx, get); err != nil {
		return resp, err
	}
	bytes := int64(0)
	for i := range resp.Messages {
		bytes += resp.Messages[i].Size()
	}
	if bytes > 0 {
		s.rates.Egress(s.number(q.ID), bytes, time.Now())
	}
	return resp, nil
}

// receive checks the form of a get from there.
func (s *Service) receive(r *GetMessagesRequest, from *source) (get broker.ReceiveRequest, err error) {
	q := &from.queue
	get.Queue, get.Group, get.Dead, get.MaxBytes = q.ID, from.group, from.dead, s.limits.ResponseBytes
	const asQueueSays = -1
	f := field{name: "visibilityInSeconds"}
	if get.Visibility, err = f.seconds(r.VisibilityInSeconds, 0, queue.MaxVisibility, asQueueSays); err != nil {
		return get, err
	}
	f = field{name: "timeoutInSeconds"}
	if get.Wait, err = f.seconds(r.TimeoutInSeconds, 0, queue.MaxPollingTimeout, q.PollingTimeout); err != nil {
		return get, err
	}
	most := int(s.limits.BatchMessages)
	get.Limit = min(s.getLimit, most)
	if r.Limit != nil {
		if get.Limit = int(*r.Limit); get.Limit < 1 || get.Limit > most {
			return get, field{name: "limit"}.invalid("is %d; it must be 1 to %d (limits.batch-messages)", get.Limit, most)
		}
	}
	get.Filter, err = channelFilter(r.ChannelFilter)
	return get, err
}

// channelFilter reads an optional filter; absent and empty both mean none.
func channelFilter(v *string) (channels.Filter, error) {
	if given(v) == "" {
		return channels.Filter{}, nil
	}
	return channels.ParseFilter(*v)
}

// Undeliver takes back deliveries of which no octet has left: they are visible
// again and were not counted. It never blocks and never fails.
func (s *Service) Undeliver(messages []queue.Delivery) {
	if len(messages) == 0 {
		return
	}
	receipts := make([]queue.Receipt, len(messages))
	for i := range messages {
		receipts[i] = messages[i].Receipt
	}
	s.broker.Undeliver(receipts)
}
