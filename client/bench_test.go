package client_test

import (
	"context"
	"sync"
	"testing"

	"github.com/queued-mq/queued/client"
	"github.com/queued-mq/queued/internal/queuetest"
)

// What a message costs from hand to hand, client and server in one process, on
// a disk that costs nothing.
func BenchmarkMessage(b *testing.B) {
	for name, o := range map[string]client.ConsumerOptions{
		"prefetch=16":  {Concurrency: 8},
		"prefetch=200": {Concurrency: 8, Prefetch: 200},
	} {
		b.Run(name, func(b *testing.B) {
			s := queuetest.Start(b)
			c, err := client.Dial(s.Target(), client.Options{DialOptions: s.DialOptions(), OnError: func(err error) { b.Error(err) }})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			if _, err := c.EnsureQueue(b.Context(), "q", client.QueueOptions{}); err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 1000)
			p := c.Publisher("q", client.PublisherOptions{})
			ahead := make(chan struct{}, 1000) // messages that are not handled
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var consuming sync.WaitGroup
			consuming.Go(func() {
				err := c.Consume(ctx, "q", func(context.Context, *client.Delivery) error { <-ahead; return nil }, o)
				if err != nil {
					b.Error(err)
				}
			})
			b.ReportAllocs()
			for b.Loop() {
				ahead <- struct{}{}
				p.Send(b.Context(), client.Message{Body: body})
			}
			if err := p.Flush(b.Context()); err != nil {
				b.Error(err)
			}
			for range cap(ahead) { // all are handled once there is room for so many
				ahead <- struct{}{}
			}
			cancel()
			consuming.Wait()
		})
	}
}
