package main

import (
	"bytes"
	"context"
	"net"
	"testing"

	"google.golang.org/grpc/peer"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// A large answer is counted until gRPC lets go of its buffer, and has the
// octets that it has uncounted.
func TestHeldAnswer(t *testing.T) {
	t.Parallel()
	at := &unreadAddr{Addr: &net.TCPAddr{}}
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: at})
	answer := func(size int) *queuev1.GetMessagesResponse {
		return &queuev1.GetMessagesResponse{GetMessages: &queuev1.GetMessages{Messages: []*queuev1.GetMessage{{Content: make([]byte, size)}}}}
	}
	calls, c := &grpcCalls{}, unreadCodec{codec.New()}
	for _, size := range []int{0, 1000, largeAnswer, 2 << 20} {
		plain, err := codec.New().Marshal(answer(size))
		if err != nil {
			t.Fatal(err)
		}
		held, err := calls.hold(ctx, answer(size))
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		if size >= largeAnswer {
			want = int64(plain.Len())
		}
		if n := at.octets.Load(); n != want {
			t.Errorf("%d octets: %d are counted, want %d", size, n, want)
		}
		data, err := c.Marshal(held)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data.Materialize(), plain.Materialize()) {
			t.Errorf("%d octets: the answer is another", size)
		}
		if n := at.octets.Load(); n != want {
			t.Errorf("%d octets: %d are counted before the end, want %d", size, n, want)
		}
		data.Free()
		if n := at.octets.Load(); n != 0 {
			t.Errorf("%d octets: %d are counted behind the end", size, n)
		}
	}
	if held, err := calls.hold(context.Background(), answer(2<<20)); err != nil {
		t.Errorf("without a connection: %v, %v", held, err)
	}
}
