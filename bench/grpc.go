package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// mostConns is how many connections the sessions of gRPC share.
const mostConns = 8

// grpcFace calls the methods of gRPC one by one.
type grpcFace struct {
	conns []*grpc.ClientConn
}

func newGRPC(o *Options) (*grpcFace, error) {
	f := &grpcFace{}
	for range min(mostConns, max(o.Producers, o.Consumers)) {
		conn, err := dialGRPC(o.GRPC)
		if err != nil {
			_ = f.Close() // it has done nothing yet
			return nil, err
		}
		f.conns = append(f.conns, conn)
	}
	return f, nil
}

func dialGRPC(addr string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.ForceCodecV2(codec.New())))
	if err != nil {
		return nil, fmt.Errorf("grpc %s: %w", addr, err)
	}
	return conn, nil
}

func (f *grpcFace) Close() error {
	for _, conn := range f.conns {
		_ = conn.Close() // nothing is expected of it
	}
	return nil
}

func (f *grpcFace) client(index int) queuev1.QueueServiceClient {
	return queuev1.NewQueueServiceClient(f.conns[index%len(f.conns)])
}

func (f *grpcFace) producer(_ context.Context, index int, queue string) (producer, error) {
	return &grpcSession{f.client(index), queue}, nil
}

func (f *grpcFace) consumer(_ context.Context, index int, queue string) (consumer, error) {
	return &grpcSession{f.client(index), queue}, nil
}

type grpcSession struct {
	client queuev1.QueueServiceClient
	queue  string
}

func (s *grpcSession) Close() error { return nil }

// entries are messages for a request.
func entries(batch []message) []*queuev1.PutMessagesDetailsEntry {
	all := make([]*queuev1.PutMessagesDetailsEntry, len(batch))
	for i := range batch {
		all[i] = &queuev1.PutMessagesDetailsEntry{Content: batch[i].body}
		if batch[i].channel != "" {
			all[i].Metadata = &queuev1.MessageMetadata{ChannelId: &batch[i].channel}
		}
	}
	return all
}

func (s *grpcSession) publish(ctx context.Context, batch []message) error {
	_, err := s.client.PutMessages(ctx, &queuev1.PutMessagesRequest{
		QueueId: s.queue, PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: entries(batch)}})
	return refused(err)
}

func (s *grpcSession) receive(ctx context.Context, max int) ([]delivery, error) {
	wait, limit := int32(pollFor/time.Second), int32(max)
	got, err := s.client.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: s.queue, TimeoutInSeconds: &wait, Limit: &limit})
	if err != nil {
		return nil, refused(err)
	}
	return deliveries(got.GetGetMessages().GetMessages())
}

// deliveries reads messages that came over gRPC.
func deliveries(messages []*queuev1.GetMessage) ([]delivery, error) {
	at := time.Now()
	all := make([]delivery, len(messages))
	for i, m := range messages {
		number, meant, err := readHead(m.Content)
		if err != nil {
			return nil, err
		}
		all[i] = delivery{receipt: m.Receipt, number: number, meant: meant, at: at}
	}
	return all, nil
}

func (s *grpcSession) settle(ctx context.Context, batch []delivery) error {
	details := &queuev1.DeleteMessagesDetails{Entries: make([]*queuev1.DeleteMessagesDetailsEntry, len(batch))}
	for i := range batch {
		details.Entries[i] = &queuev1.DeleteMessagesDetailsEntry{Receipt: &batch[i].receipt}
	}
	got, err := s.client.DeleteMessages(ctx, &queuev1.DeleteMessagesRequest{QueueId: s.queue, DeleteMessagesDetails: details})
	if err != nil {
		return refused(err)
	}
	for _, e := range got.GetDeleteMessagesResult().GetEntries() {
		if e.ErrorCode != nil {
			return &Refusal{Code: "Status" + strconv.Itoa(int(*e.ErrorCode)), Message: e.GetErrorMessage()}
		}
	}
	return nil
}

// refused gives an error of gRPC its name.
func refused(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return &Refusal{Code: info.Reason, Message: s.Message(), Broken: true}
		}
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %s", context.DeadlineExceeded, s.Message())
	case codes.Canceled:
		return fmt.Errorf("%w: %s", context.Canceled, s.Message())
	}
	return &Refusal{Code: s.Code().String(), Message: s.Message(), Broken: true}
}
