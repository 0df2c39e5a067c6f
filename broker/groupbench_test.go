package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

// BenchmarkRound publishes a message of 1 KiB, and receives and deletes it in
// every consumer group: in a queue without groups, and with so many.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{0, 1, 3, 10} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("groups=%d/callers=%d", n, callers), func(b *testing.B) {
				br, id := onDisk(b)
				groups := []queue.ID{""}
				if n > 0 {
					groups = (&bench{t: b, b: br}).groups(id, make([]string, n)...)
				}
				spread(b, br, callers, 1, func(ctx context.Context) error {
					if _, err := br.Publish(ctx, PublishRequest{Queue: id, Messages: batchOf(1)}); err != nil {
						return err
					}
					for _, group := range groups {
						got, err := br.Receive(ctx, ReceiveRequest{Queue: id, Group: group, Limit: 1, Visibility: time.Minute, Wait: 10 * time.Second})
						if err != nil || len(got) == 0 {
							return fmt.Errorf("received %d: %w", len(got), err)
						}
						if _, err := br.Delete(ctx, id, group, []queue.Receipt{got[0].Receipt}); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}
