package grpcapi

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// octets is a codec of octets that are a message already.
type octets struct{}

func (octets) Name() string { return "proto" }
func (octets) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (octets) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// mark stands where a string is to be spoiled. It is as long as what spoils it.
const mark, spoilt = "MARK", "a\xff\xc0z"

// marked calls do for every string that m can hold, with m holding the mark in
// it and nothing else, and the way to the field.
func marked(m protoreflect.Message, way string, do func(way string)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		at := way + "." + fd.JSONName()
		text := fd.Kind() == protoreflect.StringKind
		switch {
		case fd.IsMap():
			for _, kv := range [][2]string{{mark, "v"}, {"k", mark}} {
				m.Mutable(fd).Map().Set(protoreflect.ValueOfString(kv[0]).MapKey(), protoreflect.ValueOfString(kv[1]))
				do(at)
				m.Clear(fd)
			}
			continue
		case fd.IsList() && text:
			m.Mutable(fd).List().Append(protoreflect.ValueOfString(mark))
			do(at)
		case fd.IsList() && fd.Message() != nil:
			marked(m.Mutable(fd).List().AppendMutable().Message(), at, do)
		case fd.Message() != nil:
			marked(m.Mutable(fd).Message(), at, do)
		case text:
			m.Set(fd, protoreflect.ValueOfString(mark))
			do(at)
		}
		m.Clear(fd)
	}
}

// A string that is not UTF-8 is refused, by name in the data plane, wherever it
// stands; nothing of it is stored.
func TestNotText(t *testing.T) {
	t.Parallel()
	conn := connect(t)
	admin, data := queuev1.NewQueueAdminServiceClient(conn), queuev1.NewQueueServiceClient(conn)
	ctx := t.Context()
	if _, err := admin.CreateQueue(ctx, &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{DisplayName: proto.String("q")}}); err != nil {
		t.Fatal(err)
	}
	send := func(method string, m proto.Message) error {
		in, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		in = []byte(strings.Replace(string(in), mark, spoilt, 1))
		if proto.Unmarshal(in, m.ProtoReflect().New().Interface()) == nil {
			t.Fatalf("%s: %v was not spoilt", method, m)
		}
		var out []byte
		return conn.Invoke(ctx, method, in, &out, grpc.ForceCodecV2(octets{}))
	}
	fields := 0
	for method, m := range map[string]proto.Message{
		queuev1.QueueService_PutMessages_FullMethodName:    &queuev1.PutMessagesRequest{},
		queuev1.QueueService_GetMessages_FullMethodName:    &queuev1.GetMessagesRequest{},
		queuev1.QueueService_UpdateMessage_FullMethodName:  &queuev1.UpdateMessageRequest{},
		queuev1.QueueService_DeleteMessage_FullMethodName:  &queuev1.DeleteMessageRequest{},
		queuev1.QueueService_UpdateMessages_FullMethodName: &queuev1.UpdateMessagesRequest{},
		queuev1.QueueService_DeleteMessages_FullMethodName: &queuev1.DeleteMessagesRequest{},
		queuev1.QueueService_GetStats_FullMethodName:       &queuev1.GetStatsRequest{},
		queuev1.QueueService_ListChannels_FullMethodName:   &queuev1.ListChannelsRequest{},
	} {
		marked(m.ProtoReflect(), "", func(way string) {
			fields++
			st, _ := status.FromError(send(method, m))
			name := way[strings.LastIndex(way, ".")+1:]
			if st.Code() != codes.InvalidArgument || infoOf(st).GetReason() != "InvalidParameter" || !strings.Contains(st.Message(), name+" must be UTF-8") {
				t.Errorf("%s %s: %v", method, way, st)
			}
		})
	}
	if fields < 29 {
		t.Errorf("only %d fields were tried", fields)
	}
	if n := queuev1.File_queue_v1_queue_service_proto.Services().Get(0).Methods().Len(); n != 8+2 {
		t.Errorf("the data plane has %d RPCs: is the new one here, or a stream?", n)
	}

	// A message that would be published but for one string.
	for _, name := range []string{"channel", "name", "value"} {
		m := &queuev1.MessageMetadata{ChannelId: proto.String("c"), CustomProperties: map[string]string{"k": "v"}}
		switch name {
		case "channel":
			m.ChannelId = proto.String(mark)
		case "name":
			m.CustomProperties[mark] = "v"
		case "value":
			m.CustomProperties["k"] = mark
		}
		put := &queuev1.PutMessagesRequest{QueueId: "q", PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: []*queuev1.PutMessagesDetailsEntry{{Content: []byte("x"), Metadata: m}}}}
		if st, _ := status.FromError(send(queuev1.QueueService_PutMessages_FullMethodName, put)); infoOf(st).GetReason() != "InvalidParameter" {
			t.Errorf("%s: %v", name, st)
		}
	}

	// The control plane has the standard codec's answer.
	create := &queuev1.CreateQueueRequest{}
	for _, set := range []func(*queuev1.CreateQueueDetails){
		func(d *queuev1.CreateQueueDetails) { d.DisplayName = proto.String("p" + mark) },
		func(d *queuev1.CreateQueueDetails) { d.FreeformTags = map[string]string{"k": mark} },
	} {
		create.CreateQueueDetails = &queuev1.CreateQueueDetails{DisplayName: proto.String("p")}
		set(create.CreateQueueDetails)
		if err := send(queuev1.QueueAdminService_CreateQueue_FullMethodName, create); status.Code(err) != codes.Internal || !strings.Contains(fmt.Sprint(err), "UTF-8") {
			t.Errorf("CreateQueue: %v", err)
		}
	}
	stats, err := data.GetStats(ctx, &queuev1.GetStatsRequest{QueueId: "q"})
	if err != nil || stats.QueueStats.Queue.VisibleMessages != 0 {
		t.Errorf("%v %v", stats, err)
	}
	queues, err := admin.ListQueues(ctx, &queuev1.ListQueuesRequest{CompartmentId: proto.String("ocid1.tenancy.oc1..local")})
	if err != nil || len(queues.QueueCollection.Items) != 1 {
		t.Errorf("%v %v", queues, err)
	}
}
