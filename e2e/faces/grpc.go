package faces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// GRPC is gRPC, one call for each request.
var GRPC = Face{
	Name: "gRPC",
	Dial: func(s *server.Server) Client { return &grpcClient{grpcConn{server: s}} },
}

// grpcConn is a connection of gRPC.
type grpcConn struct {
	group  string
	server *server.Server
	conn   *grpc.ClientConn
	until  time.Time
}

func (c *grpcConn) Until() time.Time { return c.until }

// stub connects if it must. What it is used for is never tried again by
// gRPC once it may have been sent.
func (c *grpcConn) stub() (queuev1.QueueServiceClient, error) {
	if c.conn == nil {
		conn, err := grpc.NewClient("passthrough:///"+c.server.GRPC,
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		conn.Connect()
		for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
			if s == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, s) {
				conn.Close()
				return nil, fmt.Errorf("%w: the connection is in state %v", ErrNotSent, s)
			}
		}
		c.conn = conn
	}
	return queuev1.NewQueueServiceClient(c.conn), nil
}

func (c *grpcConn) drop() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// refusal is the error that the server named, or else err.
func refusal(err error) error {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return &Refusal{info.GetReason(), status.Convert(err).Message()}
		}
	}
	return err
}

func (c *grpcConn) As(group string) { c.group = group }

type grpcClient struct{ grpcConn }

func (c *grpcClient) Drop() { c.drop() }

// call runs f with a deadline.
func (c *grpcClient) call(f func(context.Context, queuev1.QueueServiceClient) error) error {
	stub, err := c.stub()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), rest.Timeout)
	defer cancel()
	if err = f(ctx, stub); err == nil {
		return nil
	}
	if err = refusal(err); Code(err) == "" {
		c.drop()
	}
	return err
}

// number is n, or nil for 0, which is none.
func number(n int) *int32 {
	if n == 0 {
		return nil
	}
	v := int32(n)
	return &v
}

// text is s, or nil for "", which is none.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func grpcEntries(messages []Message) []*queuev1.PutMessagesDetailsEntry {
	entries := make([]*queuev1.PutMessagesDetailsEntry, len(messages))
	for i, m := range messages {
		entries[i] = &queuev1.PutMessagesDetailsEntry{
			Content:             append([]byte{}, m.Body...), // empty is not absent
			Metadata:            &queuev1.MessageMetadata{ChannelId: text(m.Channel), CustomProperties: m.Properties},
			RetentionInSeconds:  number(m.Retention),
			DelayInSeconds:      number(m.Delay),
			VisibilityInSeconds: number(m.Visibility),
		}
	}
	return entries
}

func grpcIDs(messages []*queuev1.PutMessage) (ids []int64) {
	for _, m := range messages {
		ids = append(ids, m.GetId())
	}
	return ids
}

func grpcDeliveries(messages []*queuev1.GetMessage) (all []Delivery) {
	for _, m := range messages {
		d := Delivery{
			ID: m.GetId(), Receipt: m.GetReceipt(), Body: m.GetContent(), Count: int(m.GetDeliveryCount()),
			Channel: m.GetMetadata().GetChannelId(), Properties: m.GetMetadata().GetCustomProperties(),
			CreatedAt: m.GetCreatedAt().AsTime(), VisibleAfter: m.GetVisibleAfter().AsTime(), ExpireAfter: m.GetExpireAfter().AsTime(),
		}
		if dead := m.GetDeadLetter(); dead != nil {
			d.Dead = &Dead{dead.GetReason(), int(dead.GetDeliveryCount()), dead.GetAt().AsTime()}
		}
		all = append(all, d)
	}
	return all
}

func (c *grpcClient) Publish(queue, token string, messages ...Message) (ids []int64, err error) {
	err = c.call(func(ctx context.Context, stub queuev1.QueueServiceClient) error {
		r, err := stub.PutMessages(ctx, &queuev1.PutMessagesRequest{
			QueueId: queue, RetryToken: text(token), PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: grpcEntries(messages)},
		})
		ids = grpcIDs(r.GetPutMessages().GetMessages())
		return err
	})
	return ids, err
}

func (c *grpcClient) get(ctx context.Context, stub queuev1.QueueServiceClient, queue string, w Want) ([]Delivery, error) {
	limit, wait := int32(w.limit()), int32(w.For/time.Second)
	r, err := stub.GetMessages(ctx, &queuev1.GetMessagesRequest{
		QueueId: queue, Limit: &limit, TimeoutInSeconds: &wait, VisibilityInSeconds: number(w.Visibility), ChannelFilter: text(w.Channel), ConsumerGroupId: text(c.group),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return grpcDeliveries(r.GetGetMessages().GetMessages()), nil
}

func (c *grpcClient) Receive(queue string, w Want) (got []Delivery, err error) {
	err = c.call(func(ctx context.Context, stub queuev1.QueueServiceClient) (err error) {
		got, err = c.get(ctx, stub, queue, w)
		return err
	})
	return got, err
}

// Wait leaves by a reset of the call alone; the connection lives on.
func (c *grpcClient) Wait(queue string, w Want) (*Waiting, error) {
	stub, err := c.stub()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), rest.Timeout)
	return waiting(cancel, func() ([]Delivery, error) {
		defer cancel()
		return c.get(ctx, stub, queue, w)
	}), nil
}

func (c *grpcClient) Extend(queue, receipt string, seconds int) error {
	return c.call(func(ctx context.Context, stub queuev1.QueueServiceClient) error {
		n := int32(seconds)
		r, err := stub.UpdateMessage(ctx, &queuev1.UpdateMessageRequest{
			QueueId: queue, MessageReceipt: receipt, ConsumerGroupId: text(c.group), UpdateMessageDetails: &queuev1.UpdateMessageDetails{VisibilityInSeconds: &n},
		})
		c.until = r.GetUpdatedMessage().GetVisibleAfter().AsTime()
		return err
	})
}

func (c *grpcClient) Return(queue, receipt string, delay int) error {
	return c.Extend(queue, receipt, delay)
}

func (c *grpcClient) Delete(queue, receipt string) error {
	return c.call(func(ctx context.Context, stub queuev1.QueueServiceClient) error {
		_, err := stub.DeleteMessage(ctx, &queuev1.DeleteMessageRequest{QueueId: queue, MessageReceipt: receipt, ConsumerGroupId: text(c.group)})
		return err
	})
}

var errTooLate = errors.New("no answer came")
