package faces

import (
	"context"
	"errors"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// Streams is gRPC with the two streams: PublishMessages to publish, and
// ConsumeMessages to receive and settle.
var Streams = Face{
	Name: "streams",
	Dial: func(s *server.Server) Client {
		return &streamsClient{grpcConn: grpcConn{server: s}, consumers: map[subscription]*consumer{}}
	},
}

type streamsClient struct {
	grpcConn
	publisher queuev1.QueueService_PublishMessagesClient
	consumers map[subscription]*consumer
	number    uint64
	ctx       context.Context // of the streams
	cancel    context.CancelFunc
}

// subscription is what a stream is opened for.
type subscription struct {
	queue, channel string
	visibility     int
	group          string
}

// consumer is a ConsumeMessages stream.
type consumer struct {
	queuev1.QueueService_ConsumeMessagesClient
	heard chan *queuev1.ConsumeMessagesResponse // closed at the end
	err   error                                 // of the end
}

func (c *streamsClient) Drop() {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	c.publisher = nil
	clear(c.consumers)
	c.drop()
}

func (c *streamsClient) stub() (queuev1.QueueServiceClient, error) {
	stub, err := c.grpcConn.stub()
	if err == nil && c.cancel == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return stub, err
}

// Publish sends one batch and waits for its answer.
func (c *streamsClient) Publish(queue, token string, messages ...Message) ([]int64, error) {
	stub, err := c.stub()
	if err != nil {
		return nil, err
	}
	if c.publisher == nil {
		if c.publisher, err = stub.PublishMessages(c.ctx); err != nil {
			c.Drop()
			return nil, refusal(err)
		}
	}
	c.number++
	stalled := time.AfterFunc(rest.Timeout, c.cancel)
	defer stalled.Stop()
	// What fails here is told by Recv.
	_ = c.publisher.Send(&queuev1.PublishMessagesRequest{Number: c.number, QueueId: queue, RetryToken: text(token), Messages: grpcEntries(messages)})
	r, err := c.publisher.Recv()
	switch {
	case err != nil:
		c.publisher = nil
		if err = refusal(err); Code(err) == "" {
			c.Drop()
		}
		return nil, err
	case r.GetNumber() != c.number:
		return nil, errors.New("the answer to another batch")
	case r.GetError() != nil:
		return nil, &Refusal{r.GetError().GetCode(), r.GetError().GetMessage()}
	}
	return grpcIDs(r.GetMessages()), nil
}

// consumer is the stream for a subscription, opened if it must be.
func (c *streamsClient) consumer(s subscription) (*consumer, error) {
	stub, err := c.stub()
	if err != nil {
		return nil, err
	}
	if open := c.consumers[s]; open != nil {
		return open, nil
	}
	u, err := openConsumer(c.ctx, stub, s, 0)
	if err != nil {
		return nil, c.ended(s, err)
	}
	r, err := u.next(rest.Timeout)
	if err == nil && r.GetSubscribed().GetQueueId() == "" {
		err = errors.New("the first answer is not subscribed")
	}
	if err != nil {
		return nil, c.ended(s, err)
	}
	c.consumers[s] = u
	return u, nil
}

func openConsumer(ctx context.Context, stub queuev1.QueueServiceClient, s subscription, credit int32) (*consumer, error) {
	stream, err := stub.ConsumeMessages(ctx)
	if err != nil {
		return nil, refusal(err)
	}
	u := &consumer{QueueService_ConsumeMessagesClient: stream, heard: make(chan *queuev1.ConsumeMessagesResponse)}
	go func() {
		defer close(u.heard)
		for {
			r, err := stream.Recv()
			if err != nil {
				u.err = refusal(err)
				return
			}
			select {
			case u.heard <- r:
			case <-ctx.Done():
				u.err = ctx.Err()
				return
			}
		}
	}()
	// What fails here is told by Recv.
	_ = stream.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: &queuev1.ConsumeSubscription{
		QueueId: s.queue, ChannelFilter: text(s.channel), ConsumerGroupId: text(s.group), VisibilityInSeconds: number(s.visibility), Credit: credit,
	}}})
	return u, nil
}

// next is what the server says next.
func (u *consumer) next(wait time.Duration) (*queuev1.ConsumeMessagesResponse, error) {
	select {
	case r, ok := <-u.heard:
		if !ok {
			return nil, u.err
		}
		return r, nil
	case <-time.After(wait):
		return nil, errTooLate
	}
}

// ended forgets a stream that has ended, and all of them if nobody knows why.
func (c *streamsClient) ended(s subscription, err error) error {
	delete(c.consumers, s)
	if Code(err) == "" {
		c.Drop()
	}
	return err
}

// Receive grants credit, and takes back what is left of it.
func (c *streamsClient) Receive(queue string, w Want) ([]Delivery, error) {
	s := subscription{queue, w.Channel, w.Visibility, c.group}
	u, err := c.consumer(s)
	if err != nil {
		return nil, err
	}
	_ = u.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: &queuev1.ConsumeCredit{Messages: int32(w.limit())}}})
	var all []Delivery
	patience := w.first()
	for len(all) < w.limit() {
		r, err := u.next(patience)
		if errors.Is(err, errTooLate) {
			break
		}
		if err != nil {
			return all, c.ended(s, err)
		}
		all = append(all, grpcDeliveries(r.GetMessages())...)
		patience = grace
	}
	_ = u.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Drain{Drain: &queuev1.ConsumeDrain{}}})
	for {
		r, err := u.next(rest.Timeout)
		if err != nil {
			return all, c.ended(s, err)
		}
		all = append(all, grpcDeliveries(r.GetMessages())...)
		if r.GetDrained() {
			return all, nil
		}
	}
}

// Wait waits on a stream of its own and leaves by a reset of it.
func (c *streamsClient) Wait(queue string, w Want) (*Waiting, error) {
	stub, err := c.stub()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, rest.Timeout)
	u, err := openConsumer(ctx, stub, subscription{queue, w.Channel, w.Visibility, c.group}, int32(w.limit()))
	if err != nil {
		cancel()
		return nil, err
	}
	return waiting(cancel, func() ([]Delivery, error) {
		defer cancel()
		for until := time.Now().Add(w.For); ; {
			r, err := u.next(time.Until(until))
			if errors.Is(err, errTooLate) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			if got := grpcDeliveries(r.GetMessages()); len(got) > 0 {
				return got, nil
			}
		}
	}), nil
}

// settle says what to do with one message, on any stream of its queue.
func (c *streamsClient) settle(queue string, s *queuev1.Settlement) error {
	on := subscription{queue: queue, group: c.group}
	for open := range c.consumers {
		if open.queue == queue {
			on = open
			break
		}
	}
	u, err := c.consumer(on)
	if err != nil {
		return err
	}
	c.number++
	s.Number = c.number
	_ = u.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: &queuev1.ConsumeSettlements{Settlements: []*queuev1.Settlement{s}}}})
	r, err := u.next(rest.Timeout)
	if err != nil {
		return c.ended(on, err)
	}
	if len(r.GetSettled()) != 1 || r.GetSettled()[0].GetNumber() != c.number {
		return errors.New("not the result of the settlement: " + r.String())
	}
	if e := r.GetSettled()[0].GetError(); e != nil {
		return &Refusal{e.GetCode(), e.GetMessage()}
	}
	c.until = r.GetSettled()[0].GetVisibleAfter().AsTime()
	return nil
}

func (c *streamsClient) Extend(queue, receipt string, seconds int) error {
	return c.settle(queue, &queuev1.Settlement{Receipt: receipt, Action: queuev1.Settlement_EXTEND, VisibilityInSeconds: int32(seconds)})
}

func (c *streamsClient) Return(queue, receipt string, delay int) error {
	return c.settle(queue, &queuev1.Settlement{Receipt: receipt, Action: queuev1.Settlement_RETURN, VisibilityInSeconds: int32(delay)})
}

func (c *streamsClient) Delete(queue, receipt string) error {
	return c.settle(queue, &queuev1.Settlement{Receipt: receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
}
