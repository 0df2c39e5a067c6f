package grpcapi

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/limits"
)

// streamHouse is a server with a queue "q" (and its dead letter queue) and its
// client, in a bubble.
type streamHouse struct {
	*testing.T
	admin queuev1.QueueAdminServiceClient
	data  queuev1.QueueServiceClient
	stop  context.CancelFunc // the server stops
	id    string             // of q
}

func inBubble(t *testing.T, l limits.Settings, test func(h *streamHouse)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		c := connectWith(t, l, Options{Stopping: stopping})
		h := &streamHouse{T: t, admin: queuev1.NewQueueAdminServiceClient(c), data: queuev1.NewQueueServiceClient(c), stop: stop}
		h.id = h.create("q", 3)
		test(h)
	})
}

func (h *streamHouse) create(name string, deliveries int32) string {
	h.Helper()
	made, err := h.admin.CreateQueue(h.Context(), &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{
		DisplayName: proto.String(name), DeadLetterQueueDeliveryCount: &deliveries, VisibilityInSeconds: proto.Int32(30),
	}})
	if err != nil {
		h.Fatal(err)
	}
	return made.CreatedQueue.Id
}

// put publishes messages of that many octets to q, up to 20 at once.
func (h *streamHouse) put(messages, octets int) {
	h.Helper()
	for ; messages > 0; messages -= 20 {
		entries := entriesOf(min(messages, 20), octets)
		for len(entries) > 0 {
			some := entries[:min(len(entries), max(1, (500<<10)/(octets+1)))]
			entries = entries[len(some):]
			if _, err := h.data.PutMessages(h.Context(), &queuev1.PutMessagesRequest{QueueId: "q", PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: some}}); err != nil {
				h.Fatal(err)
			}
		}
	}
}

func entriesOf(messages, octets int) []*queuev1.PutMessagesDetailsEntry {
	out := make([]*queuev1.PutMessagesDetailsEntry, messages)
	for i := range out {
		out[i] = &queuev1.PutMessagesDetailsEntry{Content: make([]byte, octets)}
	}
	return out
}

func (h *streamHouse) stats(name string) *queuev1.Stats {
	h.Helper()
	s, err := h.data.GetStats(h.Context(), &queuev1.GetStatsRequest{QueueId: name})
	if err != nil {
		h.Fatal(err)
	}
	return s.QueueStats.Queue
}

// wantEnd fails unless err ends a stream so, by the named error.
func wantEnd(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != code || infoOf(st).GetReason() != reason {
		t.Errorf("the stream ended with %v, reason %q; want %v, %q", err, infoOf(st).GetReason(), code, reason)
	}
}

func wantOK(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want OK", err)
	}
}

func (h *streamHouse) publish(ctx context.Context) queuev1.QueueService_PublishMessagesClient {
	h.Helper()
	s, err := h.data.PublishMessages(ctx, grpc.ForceCodecV2(codec.New())) // which lets any string through
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// Answers come in the order of the batches, whatever their queues and whether
// they fail; an empty queue_id is the one before.
func TestPublishOrder(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.create("other", 0)
		s := h.publish(h.Context())
		const batches = 1000
		go func() {
			for i := range uint64(batches) {
				r := &queuev1.PublishMessagesRequest{Number: i * 7, Messages: entriesOf(2, 10)}
				switch i % 10 {
				case 0:
					r.QueueId = "q"
				case 3:
					r.QueueId = "other"
				case 5:
					r.QueueId = "no-such-queue" // also of 6
				case 7:
					r.QueueId, r.Messages = "q", entriesOf(1, 300<<10)
				case 8:
					r.Messages = nil
				case 9:
					r.RetryToken = proto.String("\xff")
				}
				if err := s.Send(r); err != nil {
					h.Error(err)
				}
			}
			if err := s.CloseSend(); err != nil {
				h.Error(err)
			}
		}()
		want := map[uint64]string{5: "NotAuthorizedOrNotFound", 6: "NotAuthorizedOrNotFound", 7: "PayloadTooLarge", 8: "MissingParameter", 9: "InvalidParameter"}
		for i := range uint64(batches) {
			r, err := s.Recv()
			if err != nil {
				h.Fatal(i, err)
			}
			if r.Number != i*7 || r.Error.GetCode() != want[i%10] || (r.Error == nil) != (len(r.Messages) == 2) || r.Error != nil && r.Error.Message == "" {
				h.Fatalf("answer %d: %v", i, r)
			}
			for _, m := range r.Messages {
				if m.Id == 0 || m.ExpireAfter.AsTime().IsZero() {
					h.Fatalf("answer %d: %v", i, r)
				}
			}
		}
		_, err := s.Recv()
		wantOK(h.T, err)
		if q, other := h.stats("q").VisibleMessages, h.stats("other").VisibleMessages; q != 600 || other != 400 {
			h.Errorf("%d and %d messages are stored", q, other)
		}
	})
}

// A token sent again on the stream, or on another, stores nothing.
func TestPublishRetryToken(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		var first []*queuev1.PutMessage
		for range 2 {
			s := h.publish(h.Context())
			for i := range uint64(3) {
				if err := s.Send(&queuev1.PublishMessagesRequest{Number: i, QueueId: "q", Messages: entriesOf(2, 1), RetryToken: proto.String("token")}); err != nil {
					h.Fatal(err)
				}
			}
			for i := range uint64(3) {
				r, err := s.Recv()
				if err != nil || r.Error != nil || r.Number != i {
					h.Fatal(r, err)
				}
				if first == nil {
					first = r.Messages
				}
				if len(r.Messages) != 2 || r.Messages[0].Id != first[0].Id || r.Messages[1].Id != first[1].Id {
					h.Errorf("%v, first %v", r.Messages, first)
				}
			}
		}
		if n := h.stats("q").VisibleMessages; n != 2 {
			h.Errorf("%d messages are stored", n)
		}
	})
}

func TestPublishWithoutQueue(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		s := h.publish(h.Context())
		if err := s.Send(&queuev1.PublishMessagesRequest{Messages: entriesOf(1, 1)}); err != nil {
			h.Fatal(err)
		}
		_, err := s.Recv()
		wantEnd(h.T, err, codes.InvalidArgument, "MissingParameter")
	})
}

// A client that reads no answers is not read from any more, and nobody else
// notices. Its end ends it here.
func TestPublishUnread(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		ctx, cancel := context.WithCancel(h.Context())
		s := h.publish(ctx)
		sent := make(chan int)
		go func() {
			n := 0
			for ; n < 5000; n++ {
				if s.Send(&queuev1.PublishMessagesRequest{QueueId: "q", Messages: entriesOf(20, 1)}) != nil {
					break
				}
			}
			sent <- n
		}()
		synctest.Wait()
		// What is stored is 256 batches and those whose answers, of about 400
		// octets, the transport took on both sides.
		if n := h.stats("q").VisibleMessages / 20; n < mostBatches || n > mostBatches+1000 {
			h.Errorf("%d batches are stored", n)
		}
		other := h.publish(h.Context())
		if err := other.Send(&queuev1.PublishMessagesRequest{QueueId: "q", Messages: entriesOf(1, 1)}); err != nil {
			h.Fatal(err)
		}
		if r, err := other.Recv(); err != nil || r.Error != nil {
			h.Fatal(r, err)
		}
		cancel()
		if n := <-sent; n == 5000 {
			h.Error("all was sent: nothing held the client up")
		}
	})
}

// What a stopping server has received it answers.
func TestPublishStopping(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		s := h.publish(h.Context())
		for i := range uint64(100) {
			if err := s.Send(&queuev1.PublishMessagesRequest{Number: i, QueueId: "q", Messages: entriesOf(1, 1)}); err != nil {
				h.Fatal(err)
			}
		}
		synctest.Wait()
		idle := h.publish(h.Context()) // has said nothing at all
		synctest.Wait()
		h.stop()
		for i := range uint64(100) {
			if r, err := s.Recv(); err != nil || r.Number != i || r.Error != nil {
				h.Fatal(r, err)
			}
		}
		_, err := s.Recv()
		wantEnd(h.T, err, codes.Unavailable, "ServiceUnavailable")
		_, err = idle.Recv()
		wantEnd(h.T, err, codes.Unavailable, "ServiceUnavailable")
	})
}

// A batch that waits for its rate when the server stops is answered so, and is
// not stored.
func TestPublishStoppingAtARate(t *testing.T) {
	l := limits.Unthrottled()
	l.IngressBytesPerSecond = 600 << 10
	inBubble(t, l, func(h *streamHouse) {
		s := h.publish(h.Context())
		for range 4 {
			if err := s.Send(&queuev1.PublishMessagesRequest{QueueId: "q", Messages: entriesOf(2, 250<<10)}); err != nil {
				h.Fatal(err)
			}
		}
		synctest.Wait()
		h.stop()
		failed := 0
		for {
			r, err := s.Recv()
			if err != nil {
				wantEnd(h.T, err, codes.Unavailable, "ServiceUnavailable")
				break
			}
			if r.Error != nil {
				failed++
				if r.Error.Code != "ServiceUnavailable" || !strings.Contains(r.Error.Message, "stopping") {
					h.Errorf("%v", r.Error)
				}
			}
		}
		if failed != 1 {
			h.Errorf("%d batches have failed", failed)
		}
	})
}
