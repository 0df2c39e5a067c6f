package codec

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// dataPlane are all messages that the RPCs of QueueService take and give.
func dataPlane(t testing.TB) (all []protoreflect.MessageType) {
	t.Helper()
	rpcs := queuev1.File_queue_v1_queue_service_proto.Services().ByName("QueueService").Methods()
	for i := range rpcs.Len() {
		for _, d := range []protoreflect.MessageDescriptor{rpcs.Get(i).Input(), rpcs.Get(i).Output()} {
			typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, typ)
		}
	}
	return all
}

// draw is a random message: every field may be set or not, to its zero value
// too, and there may be fields that nobody knows, but for those in a Timestamp:
// they are not kept.
func draw(t *rapid.T, m protoreflect.Message) {
	scalar := func(fd protoreflect.FieldDescriptor) protoreflect.Value {
		switch fd.Kind() {
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(rapid.StringN(0, 9, -1).Draw(t, "string"))
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
		case protoreflect.Int32Kind:
			return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "int32"))
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
		case protoreflect.Uint64Kind:
			return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "uint64"))
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 5).Draw(t, "enum")))
		}
		panic("no values of kind " + fd.Kind().String())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		n := rapid.IntRange(0, 3).Draw(t, string(fd.Name()))
		switch {
		case n == 0:
		case fd.IsMap():
			for range n {
				m.Mutable(fd).Map().Set(scalar(fd.MapKey()).MapKey(), scalar(fd.MapValue()))
			}
		case fd.IsList():
			for range n {
				if fd.Message() != nil {
					draw(t, m.Mutable(fd).List().AppendMutable().Message())
				} else {
					m.Mutable(fd).List().Append(scalar(fd))
				}
			}
		case fd.Message() != nil:
			draw(t, m.Mutable(fd).Message())
		default:
			m.Set(fd, scalar(fd))
		}
	}
	if _, ours := m.Interface().(message); ours && rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
		// Fields 1000 to 1003: a varint, 8 octets, a string, a group.
		m.SetUnknown([]byte("\xc0\x3e\x96\x01\xc9\x3e12345678\xd2\x3e\x02\xff\xfe\xdb\x3e\x08\x01\xdc\x3e"))
	}
}

// Both codecs understand one another: what one writes the other reads, and what
// neither knows is kept.
func TestParity(t *testing.T) {
	t.Parallel()
	ours, standard := New(), New().(codec).standard
	for _, typ := range dataPlane(t) {
		t.Run(string(typ.Descriptor().Name()), func(t *testing.T) {
			if _, ok := typ.Zero().Interface().(message); !ok {
				t.Fatal("has no methods of its own")
			}
			rapid.Check(t, func(t *rapid.T) {
				m := typ.New()
				draw(t, m)
				from, to := ours, standard
				if rapid.Bool().Draw(t, "other way") {
					from, to = to, from
				}
				data, err := from.Marshal(m.Interface())
				if err != nil {
					t.Fatal(err)
				}
				octets := data.Materialize()
				if n := proto.Size(m.Interface()); n != len(octets) {
					t.Fatalf("%d octets, the standard has %d", len(octets), n)
				}
				// In pieces, and over something that is there already.
				cut := rapid.IntRange(0, len(octets)).Draw(t, "cut")
				got := typ.New()
				draw(t, got)
				if err := to.Unmarshal(mem.BufferSlice{mem.SliceBuffer(octets[:cut]), mem.SliceBuffer(octets[cut:])}, got.Interface()); err != nil {
					t.Fatal(err)
				}
				data.Free()
				if !proto.Equal(m.Interface(), got.Interface()) {
					t.Fatalf("%v became %v", m, got)
				}
				// But for maps, which have no order, the octets are the same.
				if want, err := proto.Marshal(m.Interface()); err != nil || !hasMap(m) && !bytes.Equal(want, octets) {
					t.Fatalf("%x instead of %x, %v", octets, want, err)
				}
			})
		})
	}
}

// forget takes out of m what nobody knows in a Timestamp.
func forget(m protoreflect.Message) {
	if at, ok := m.Interface().(*timestamppb.Timestamp); ok {
		at.ProtoReflect().SetUnknown(nil)
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				forget(v.List().Get(i).Message())
			}
		default:
			forget(v.Message())
		}
		return true
	})
}

// hasMap reports whether a map of m has more than one entry.
func hasMap(m protoreflect.Message) (found bool) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			found = found || v.Map().Len() > 1
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				found = found || hasMap(v.List().Get(i).Message())
			}
		case fd.Message() != nil:
			found = found || hasMap(v.Message())
		}
		return !found
	})
	return found
}

// FuzzUnmarshal reads noise as every message of the data plane. What both
// codecs read they read alike, and ours refuses no more than a field of the
// wrong wire type, which the standard takes for one it does not know. What the
// standard alone refuses (see the package) is a message all the same.
func FuzzUnmarshal(f *testing.F) {
	all := dataPlane(f)
	for i, typ := range all {
		m := typ.New()
		fields := m.Descriptor().Fields()
		for j := range fields.Len() {
			switch fd := fields.Get(j); {
			case fd.IsMap():
			case fd.IsList() && fd.Message() != nil:
				m.Mutable(fd).List().AppendMutable()
			case fd.Message() != nil:
				m.Mutable(fd)
			}
		}
		octets, err := proto.Marshal(m.Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, octets)
	}
	for i, m := range []proto.Message{putRequest(2, 30), getResponse(2, 30)} {
		octets, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(3*i, octets)
	}
	f.Add(0, []byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Add(0, []byte("\x0b\x0b\x0b\x0b\x0b\x0c"))
	f.Add(0, []byte("\xe8\x00\x30")) // a field number that is longer than it need be
	f.Add(4, []byte("\xcb\x30\x24")) // a group that ends as another
	ours := New()
	f.Fuzz(func(t *testing.T, which int, octets []byte) {
		typ := all[uint(which)%uint(len(all))]
		before := bytes.Clone(octets)
		got, want := typ.New().Interface(), typ.New().Interface()
		err := ours.Unmarshal(mem.BufferSlice{mem.SliceBuffer(octets)}, got)
		wantErr := proto.Unmarshal(octets, want)
		forget(want.ProtoReflect())
		if !bytes.Equal(octets, before) {
			t.Fatal("the octets were changed")
		}
		switch {
		case err != nil && wantErr == nil && !strings.Contains(err.Error(), "wrong wireType"):
			t.Fatalf("%x: %v; the standard reads %v", octets, err, want)
		case err != nil:
			return
		}
		data, err := ours.Marshal(got)
		if err != nil {
			t.Fatalf("%x: %v", octets, err)
		}
		defer data.Free()
		if wantErr == nil {
			// By way of octets: ours keeps an unknown field as it is spelled.
			same := typ.New().Interface()
			if err := proto.Unmarshal(data.Materialize(), same); err != nil || !proto.Equal(same, want) {
				t.Fatalf("%x is %v (%v); the standard reads %v", octets, same, err, want)
			}
		}
		again := typ.New().Interface()
		if err := ours.Unmarshal(data, again); err != nil || again.(message).SizeVT() != data.Len() {
			t.Fatalf("%x is not read again: %v", octets, err)
		}
	})
}

// What is read owns its memory.
func TestUnmarshalOwnsItsMemory(t *testing.T) {
	t.Parallel()
	want := putRequest(3, 2000)
	octets, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []mem.BufferSlice{
		{mem.SliceBuffer(octets)},
		{mem.SliceBuffer(octets[:100]), mem.SliceBuffer(octets[100:])},
	} {
		got := &queuev1.PutMessagesRequest{}
		if err := New().Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		kept := bytes.Clone(octets)
		clear(octets)
		// The pool gives the buffer to the next reader, who overwrites it.
		for range 10 {
			b := mem.DefaultBufferPool().Get(len(octets))
			for i := range *b {
				(*b)[i] = 'x'
			}
			mem.DefaultBufferPool().Put(b)
		}
		if !proto.Equal(got, want) {
			t.Error("the message changed with the buffer")
		}
		copy(octets, kept)
	}
}

// A message of the control plane goes the standard way, and so does what is
// none at all.
func TestOtherMessages(t *testing.T) {
	t.Parallel()
	c := New()
	if c.Name() != "proto" {
		t.Error(c.Name())
	}
	want := &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{DisplayName: proto.String("q")}}
	if _, ok := any(want).(message); ok {
		t.Error("tags may be nested without end: see buf.gen.yaml")
	}
	data, err := c.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &queuev1.CreateQueueRequest{}
	if err := c.Unmarshal(data, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	if _, err := c.Marshal(7); err == nil {
		t.Error("7 is a message")
	}
	if err := c.Unmarshal(nil, new(int)); err == nil {
		t.Error("an int is a message")
	}
	if data, err := c.Marshal((*queuev1.PutMessagesRequest)(nil)); err != nil || data.Len() != 0 {
		t.Errorf("nil: %v %v", data, err)
	}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer("\x0a\x05q")}, &queuev1.PutMessagesRequest{}); err == nil || !strings.Contains(err.Error(), "PutMessagesRequest") {
		t.Errorf("cut short: %v", err)
	}
}

// echo answers a publish with what it was sent.
type echo struct {
	queuev1.UnimplementedQueueServiceServer
	got *queuev1.PutMessagesRequest
}

func (e *echo) PutMessages(_ context.Context, r *queuev1.PutMessagesRequest) (*queuev1.PutMessagesResponse, error) {
	e.got = r
	return &queuev1.PutMessagesResponse{PutMessages: &queuev1.PutMessages{Messages: []*queuev1.PutMessage{{Id: 1}}}}, nil
}

// Over a connection ours and the standard speak to one another.
func TestCall(t *testing.T) {
	t.Parallel()
	wire := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(grpc.ForceServerCodecV2(New()))
	e := &echo{}
	queuev1.RegisterQueueServiceServer(srv, e)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(wire) }()
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]grpc.CallOption{"standard": nil, "ours": {grpc.ForceCodecV2(New())}} {
		want := putRequest(20, 10_000)
		resp, err := queuev1.NewQueueServiceClient(conn).PutMessages(t.Context(), want, options...)
		if err != nil || resp.PutMessages.Messages[0].Id != 1 || !proto.Equal(e.got, want) {
			t.Errorf("%s: %v %v", name, resp, err)
		}
		_, err = queuev1.NewQueueServiceClient(conn).GetStats(t.Context(), &queuev1.GetStatsRequest{}, options...)
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
	conn.Close()
	srv.Stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
