package grpcapi

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// dial is a client of both services, see connect.
func dial(t *testing.T) (queuev1.QueueAdminServiceClient, queuev1.QueueServiceClient) {
	t.Helper()
	c := connect(t)
	return queuev1.NewQueueAdminServiceClient(c), queuev1.NewQueueServiceClient(c)
}

// connect is a connection to a whole server in memory. The server uses our
// codec, the client the standard one.
func connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return connectWith(t, limits.Unthrottled(), Options{})
}

func connectWith(t *testing.T, l limits.Settings, o Options) *grpc.ClientConn {
	t.Helper()
	st, err := store.Open("data", store.Options{FS: testdisk.New(), QuietScheduler: true, MemtableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.Open(st, broker.Options{Limits: &l, Checked: true, KeepUnrouted: true})
	if err != nil {
		t.Fatal(err)
	}
	svc := service.New(b, service.Options{Limits: &l, KeepUnrouted: true})
	wire := bufconn.Listen(1 << 16)
	// The window stays as it is: gRPC would widen it by what it measures, and how
	// much a client can send that nobody reads would be chance.
	srv := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(64<<10))
	queuev1.RegisterQueueAdminServiceServer(srv, NewAdmin(svc))
	queuev1.RegisterQueueServiceServer(srv, NewData(svc, o))
	done := make(chan error, 1)
	go func() { done <- srv.Serve(wire) }()
	c, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, close := range []func() error{c.Close, func() error { srv.Stop(); return <-done }, b.Close, st.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// Over gRPC content is the octets, whatever content_encoding says.
func TestOctets(t *testing.T) {
	t.Parallel()
	admin, data := dial(t)
	made, err := admin.CreateQueue(t.Context(), &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{DisplayName: proto.String("orders")}})
	if err != nil {
		t.Fatal(err)
	}
	if made.WorkRequestId == "" || made.CreatedQueue.LifecycleState != queuev1.Queue_ACTIVE {
		t.Errorf("%v", made)
	}
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	contents := []string{"", all.String(), "AP8=", "plain"}
	put := &queuev1.PutMessagesRequest{QueueId: "orders", PutMessagesDetails: &queuev1.PutMessagesDetails{}}
	for _, c := range contents {
		put.PutMessagesDetails.Messages = append(put.PutMessagesDetails.Messages, &queuev1.PutMessagesDetailsEntry{
			Content: []byte(c), ContentEncoding: proto.String("base64"),
			Metadata: &queuev1.MessageMetadata{ChannelId: proto.String("c"), CustomProperties: map[string]string{"k": "v"}},
		})
	}
	if _, err := data.PutMessages(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	got, err := data.GetMessages(t.Context(), &queuev1.GetMessagesRequest{QueueId: "orders", TimeoutInSeconds: proto.Int32(0), ContentEncoding: proto.String("base64")})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range got.GetMessages.Messages {
		if string(m.Content) != contents[i] || m.ContentEncoding != nil || m.Metadata.GetChannelId() != "c" || len(m.Metadata.CustomProperties) != 1 {
			t.Errorf("message %d: %v", i, m)
		}
	}
	if len(got.GetMessages.Messages) != len(contents) {
		t.Errorf("%d messages", len(got.GetMessages.Messages))
	}
}

// Absent bodies and fields are named errors and break nothing.
func TestAbsent(t *testing.T) {
	t.Parallel()
	admin, data := dial(t)
	if _, err := admin.CreateQueue(t.Context(), &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{DisplayName: proto.String("q")}}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"CreateQueue": func() error { _, err := admin.CreateQueue(ctx, &queuev1.CreateQueueRequest{}); return err },
		"ChangeQueueCompartment": func() error {
			_, err := admin.ChangeQueueCompartment(ctx, &queuev1.ChangeQueueCompartmentRequest{QueueId: "q"})
			return err
		},
		"PurgeQueue":  func() error { _, err := admin.PurgeQueue(ctx, &queuev1.PurgeQueueRequest{QueueId: "q"}); return err },
		"PutMessages": func() error { _, err := data.PutMessages(ctx, &queuev1.PutMessagesRequest{QueueId: "q"}); return err },
		"UpdateMessage": func() error {
			_, err := data.UpdateMessage(ctx, &queuev1.UpdateMessageRequest{QueueId: "q", MessageReceipt: "AQEB"})
			return err
		},
		"UpdateMessages": func() error {
			_, err := data.UpdateMessages(ctx, &queuev1.UpdateMessagesRequest{QueueId: "q"})
			return err
		},
		"DeleteMessages": func() error {
			_, err := data.DeleteMessages(ctx, &queuev1.DeleteMessagesRequest{QueueId: "q"})
			return err
		},
		"unknown enum": func() error {
			_, err := admin.ListQueues(ctx, &queuev1.ListQueuesRequest{LifecycleState: queuev1.Queue_LifecycleState(99).Enum()})
			return err
		},
	} {
		st, _ := status.FromError(call())
		if reason := infoOf(st).GetReason(); st.Code() != codes.InvalidArgument || reason != "MissingParameter" && reason != "InvalidParameter" {
			t.Errorf("%s: %v, reason %q", name, st, reason)
		}
	}
	if _, err := admin.UpdateQueue(ctx, &queuev1.UpdateQueueRequest{QueueId: "q"}); err != nil {
		t.Errorf("an update of nothing: %v", err)
	}
}

// A call that is given up while it waits ends so, and takes nothing.
func TestCancel(t *testing.T) {
	t.Parallel()
	admin, data := dial(t)
	if _, err := admin.CreateQueue(t.Context(), &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{DisplayName: proto.String("q")}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := data.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "q"})
		done <- err
	}()
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	stats, err := data.GetStats(t.Context(), &queuev1.GetStatsRequest{QueueId: "q", ChannelId: proto.String("c")})
	if err != nil || stats.QueueStats.GetChannelId() != "c" || stats.QueueStats.Queue.VisibleMessages != 0 {
		t.Errorf("%v %v", stats, err)
	}
	channels, err := data.ListChannels(t.Context(), &queuev1.ListChannelsRequest{QueueId: "q"})
	if err != nil || len(channels.ChannelCollection.Items) != 0 || channels.NextPage != nil {
		t.Errorf("%v %v", channels, err)
	}
}
