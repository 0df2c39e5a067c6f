package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// onDisk is a broker over a real folder, with syncs.
func onDisk(b *testing.B) (*Broker, queue.ID) {
	s, err := store.Open(b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := limits.Unthrottled()
	br, err := Open(s, Options{Limits: &l})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { br.Close(); s.Close() })
	x := &bench{t: b, b: br}
	return br, x.queue("bench", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 0 })
}

func batchOf(n int) []queue.NewMessage {
	out := make([]queue.NewMessage, n)
	for i := range out {
		out[i].Body = make([]byte, 1024)
	}
	return out
}

// spread runs f b.N times over so many callers and reports messages a second
// and a sync.
func spread(b *testing.B, br *Broker, callers, batch int, f func(context.Context) error) {
	var groups atomic.Int64
	br.ObserveGroups(func(int, time.Duration) { groups.Add(1) })
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(context.Background()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	messages := float64(b.N * batch)
	b.ReportMetric(messages/time.Since(began).Seconds(), "msgs/s")
	b.ReportMetric(messages/float64(max(groups.Load(), 1)), "msgs/sync")
}

func BenchmarkPublish(b *testing.B) {
	for _, batch := range []int{1, 20} {
		for _, callers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("messages=%d/callers=%d", batch, callers), func(b *testing.B) {
				br, id := onDisk(b)
				spread(b, br, callers, batch, func(ctx context.Context) error {
					_, err := br.Publish(ctx, PublishRequest{Queue: id, Messages: batchOf(batch)})
					return err
				})
			})
		}
	}
}

func fill(b *testing.B, br *Broker, id queue.ID, n int) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range 64 {
		wg.Go(func() {
			for left.Add(-20) > -20 {
				if _, err := br.Publish(context.Background(), PublishRequest{Queue: id, Messages: batchOf(20)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkConsume receives and deletes from a backlog that is on disk.
func BenchmarkConsume(b *testing.B) {
	for _, batch := range []int{1, 20} {
		for _, callers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("messages=%d/callers=%d", batch, callers), func(b *testing.B) {
				br, id := onDisk(b)
				fill(b, br, id, b.N*batch+1000)
				spread(b, br, callers, batch, func(ctx context.Context) error {
					got, err := br.Receive(ctx, ReceiveRequest{Queue: id, Limit: batch, Visibility: time.Minute, Wait: 10 * time.Second})
					if err != nil || len(got) == 0 {
						return fmt.Errorf("received %d: %w", len(got), err)
					}
					receipts := make([]queue.Receipt, len(got))
					for i := range got {
						receipts[i] = got[i].Receipt
					}
					_, err = br.Delete(ctx, id, queue.AnyGroup, receipts)
					return err
				})
			})
		}
	}
}
