package codec

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// putRequest publishes n messages of that size, each with a channel and a
// property.
func putRequest(n, size int) *queuev1.PutMessagesRequest {
	r := &queuev1.PutMessagesRequest{QueueId: "orders", PutMessagesDetails: &queuev1.PutMessagesDetails{}}
	for range n {
		r.PutMessagesDetails.Messages = append(r.PutMessagesDetails.Messages, &queuev1.PutMessagesDetailsEntry{
			Content:  bytes.Repeat([]byte{'b'}, size),
			Metadata: &queuev1.MessageMetadata{ChannelId: proto.String("eu"), CustomProperties: map[string]string{"kind": "order"}},
		})
	}
	return r
}

// getResponse delivers as many.
func getResponse(n, size int) *queuev1.GetMessagesResponse {
	r := &queuev1.GetMessagesResponse{GetMessages: &queuev1.GetMessages{}}
	at := &timestamppb.Timestamp{Seconds: 1_767_323_045, Nanos: 678_000_000}
	for i, m := range putRequest(n, size).PutMessagesDetails.Messages {
		r.GetMessages.Messages = append(r.GetMessages.Messages, &queuev1.GetMessage{
			Id: int64(1_000_000 + i), Content: m.Content, Receipt: strings.Repeat("r", 80), DeliveryCount: 1,
			VisibleAfter: at, ExpireAfter: at, CreatedAt: at, Metadata: m.Metadata,
		})
	}
	return r
}

// 20 messages of 1 KiB, by our codec and by that of gRPC.
func BenchmarkCodec(b *testing.B) {
	for _, message := range []proto.Message{putRequest(20, 1<<10), getResponse(20, 1<<10)} {
		name := string(message.ProtoReflect().Descriptor().Name())
		octets, err := proto.Marshal(message)
		if err != nil {
			b.Fatal(err)
		}
		for way, c := range map[string]encoding.CodecV2{"ours": New(), "standard": New().(codec).standard} {
			b.Run(name+"/marshal/"+way, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(octets)))
				for b.Loop() {
					data, err := c.Marshal(message)
					if err != nil {
						b.Fatal(err)
					}
					data.Free()
				}
			})
			b.Run(name+"/unmarshal/"+way, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(octets)))
				data := mem.BufferSlice{mem.SliceBuffer(octets)}
				for b.Loop() {
					if err := c.Unmarshal(data, message.ProtoReflect().New().Interface()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
