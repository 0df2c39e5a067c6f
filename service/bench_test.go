package service

import (
	"context"
	"testing"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// What the use case adds to the broker's own work: finding the queue, form,
// rates and reporting; with the limits of OCI, but so high that none is met.
func BenchmarkUseCase(b *testing.B) {
	l := limits.OCI()
	l.RequestsPerSecond, l.GetsPerSecond = 1<<30, 1<<30
	l.IngressBytesPerSecond, l.EgressBytesPerSecond = 1<<40, 1<<40
	st, err := store.Open("data", store.Options{FS: testdisk.New()})
	if err != nil {
		b.Fatal(err)
	}
	br, err := broker.Open(st, broker.Options{Limits: &l})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := br.Close(); err != nil {
			b.Error(err)
		}
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	}()
	s := New(br, Options{Limits: &l, Observe: func(_, _ string, _ queue.Code, _ float64) {}})
	ctx := WithCaller(context.Background(), &Caller{Face: FaceREST})
	made, err := s.CreateQueue(ctx, CreateQueueRequest{DisplayName: p("orders")})
	if err != nil {
		b.Fatal(err)
	}
	ref := string(made.ID)

	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.find(ctx, ref, mayConsume); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stats", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.GetStats(ctx, GetStatsRequest{QueueRef: ref}); err != nil {
				b.Fatal(err)
			}
		}
	})
	body := []byte("content")
	channel := "north"
	b.Run("put get delete", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.PutMessages(ctx, PutMessagesRequest{QueueRef: ref, Messages: []PutMessage{{Content: body, ChannelID: &channel}}})
			if err != nil {
				b.Fatal(err)
			}
			got, err := s.GetMessages(ctx, GetMessagesRequest{QueueRef: ref})
			if err != nil || len(got.Messages) != 1 {
				b.Fatal(len(got.Messages), err)
			}
			if _, err := s.DeleteMessage(ctx, DeleteMessageRequest{QueueRef: ref, Receipt: got.Messages[0].Receipt}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("the same of the broker alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := br.Publish(ctx, broker.PublishRequest{Queue: made.ID, Messages: []queue.NewMessage{{Message: queue.Message{Body: body}, Channel: channel}}})
			if err != nil {
				b.Fatal(err)
			}
			got, err := br.Receive(ctx, broker.ReceiveRequest{Queue: made.ID, Limit: 20, MaxBytes: 2 << 20, Visibility: -1})
			if err != nil || len(got) != 1 {
				b.Fatal(len(got), err)
			}
			if _, err := br.Delete(ctx, made.ID, queue.AnyGroup, []queue.Receipt{got[0].Receipt}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
