package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// rpc is a client of t over gRPC, with one connection.
func (t *target) rpc() queuev1.QueueServiceClient {
	conn, err := grpc.NewClient(t.s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.b.Fatal(err)
	}
	t.b.Cleanup(func() { conn.Close() })
	return queuev1.NewQueueServiceClient(conn)
}

func entries(messages int) []*queuev1.PutMessagesDetailsEntry {
	out := make([]*queuev1.PutMessagesDetailsEntry, messages)
	for i := range out {
		out[i] = &queuev1.PutMessagesDetailsEntry{Content: []byte(content())}
	}
	return out
}

// fill publishes at least so many messages, over REST.
func (t *target) fill(messages int) {
	body := putBody(20)
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(messages))
	for range 32 {
		wg.Go(func() {
			for left.Add(-20) > -20 {
				if err := t.put(body); err != nil {
					t.b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkGRPCPublish(b *testing.B) {
	for _, c := range cells {
		b.Run(fmt.Sprintf("callers=%d/messages=%d", c.callers, c.messages), func(b *testing.B) {
			t := start(b)
			client := t.rpc()
			put := &queuev1.PutMessagesRequest{QueueId: "bench", PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: entries(c.messages)}}
			t.measure(b, c.callers, func(*atomic.Int64) (int, error) {
				_, err := client.PutMessages(b.Context(), put)
				return c.messages, err
			})
		})
	}
}

func BenchmarkGRPCConsume(b *testing.B) {
	for _, c := range cells {
		b.Run(fmt.Sprintf("callers=%d/messages=%d", c.callers, c.messages), func(b *testing.B) {
			t := start(b)
			client := t.rpc()
			t.fill(b.N + 2*c.callers*c.messages)
			wait, limit := int32(5), int32(c.messages)
			t.measure(b, c.callers, func(*atomic.Int64) (int, error) {
				got, err := client.GetMessages(b.Context(), &queuev1.GetMessagesRequest{QueueId: "bench", TimeoutInSeconds: &wait, Limit: &limit})
				messages := got.GetGetMessages().GetMessages()
				if err != nil || len(messages) == 0 {
					return 0, err
				}
				done := &queuev1.DeleteMessagesDetails{}
				for _, m := range messages {
					done.Entries = append(done.Entries, &queuev1.DeleteMessagesDetailsEntry{Receipt: &m.Receipt})
				}
				_, err = client.DeleteMessages(b.Context(), &queuev1.DeleteMessagesRequest{QueueId: "bench", DeleteMessagesDetails: done})
				return len(messages), err
			})
		})
	}
}

// BenchmarkStreamPublish has 64 batches in flight on each stream.
func BenchmarkStreamPublish(b *testing.B) {
	for _, c := range []struct{ streams, messages int }{{1, 1}, {8, 1}, {1, 20}, {8, 20}} {
		b.Run(fmt.Sprintf("streams=%d/messages=%d", c.streams, c.messages), func(b *testing.B) {
			t := start(b)
			client := t.rpc()
			batch := entries(c.messages)
			var runs atomic.Int64
			t.measure(b, c.streams, func(left *atomic.Int64) (int, error) {
				if runs.Add(1) > int64(c.streams) { // one stream each, once
					left.Store(0)
					return 0, nil
				}
				s, err := client.PublishMessages(b.Context())
				if err != nil {
					return 0, err
				}
				total := max(1, b.N/c.streams/c.messages)
				window := make(chan struct{}, 64)
				go func() {
					for i := range total {
						window <- struct{}{}
						r := &queuev1.PublishMessagesRequest{Number: uint64(i), Messages: batch}
						if i == 0 {
							r.QueueId = "bench"
						}
						if s.Send(r) != nil {
							return // Recv knows why
						}
					}
					s.CloseSend()
				}()
				for range total {
					r, err := s.Recv()
					if err != nil {
						return 0, err
					}
					if r.Error != nil {
						return 0, fmt.Errorf("%s: %s", r.Error.Code, r.Error.Message)
					}
					<-window
				}
				return total * c.messages, nil
			})
		})
	}
}

// BenchmarkStreamConsume grants a window of credit and acknowledges what comes.
func BenchmarkStreamConsume(b *testing.B) {
	for _, c := range []struct{ streams, window int }{{1, 1}, {1, 100}, {8, 100}, {1, 1000}} {
		b.Run(fmt.Sprintf("streams=%d/window=%d", c.streams, c.window), func(b *testing.B) {
			t := start(b)
			client := t.rpc()
			t.fill(b.N + 2*c.streams*c.window)
			var runs atomic.Int64
			t.measure(b, c.streams, func(left *atomic.Int64) (int, error) {
				if runs.Add(1) > int64(c.streams) { // one stream each, once
					left.Store(0)
					return 0, nil
				}
				return consumeStream(b.Context(), client, max(1, b.N/c.streams), c.window)
			})
		})
	}
}

// consumeStream settles total messages on one stream.
func consumeStream(ctx context.Context, client queuev1.QueueServiceClient, total, window int) (int, error) {
	s, err := client.ConsumeMessages(ctx)
	if err != nil {
		return 0, err
	}
	granted := min(total, window)
	subscribe := &queuev1.ConsumeSubscription{QueueId: "bench", Credit: int32(granted)}
	err = s.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: subscribe}})
	for settled := 0; settled < total && err == nil; {
		var r *queuev1.ConsumeMessagesResponse
		if r, err = s.Recv(); err != nil {
			break
		}
		for _, x := range r.Settled {
			if x.Error != nil {
				return 0, fmt.Errorf("%s: %s", x.Error.Code, x.Error.Message)
			}
			settled++
		}
		if len(r.Messages) > 0 {
			done := &queuev1.ConsumeSettlements{}
			for _, m := range r.Messages {
				done.Settlements = append(done.Settlements, &queuev1.Settlement{Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
			}
			err = s.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: done}})
		}
		if more := min(len(r.Messages), total-granted); more > 0 && err == nil {
			granted += more
			err = s.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: &queuev1.ConsumeCredit{Messages: int32(more)}}})
		}
	}
	if err != nil {
		return 0, err
	}
	return total, s.CloseSend()
}
