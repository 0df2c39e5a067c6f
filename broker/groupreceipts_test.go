package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
)

// TestGoneInOneGroupDeadInAnother: a receipt of a message that its own group
// has let go of is good, whatever the others have made of the message since.
func TestGoneInOneGroupDeadInAnother(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		id := x.queue("q", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
		g := x.groups(id, "", "")
		x.send(id, "c", "", "one")
		_, receipts := x.take(ReceiveRequest{Queue: id, Group: g[0], Visibility: time.Hour})
		x.take(ReceiveRequest{Queue: id, Group: g[1], Visibility: time.Second})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := x.counts(id, g[1]), "0+0/0 dead 1+0/3"; got != want {
			t.Fatalf("the other group counts %s, want %s", got, want)
		}
		for range 2 { // the second time the lane is gone, and with it the name of the channel
			if errs, err := x.b.Delete(t.Context(), id, g[0], receipts); err != nil || errs[0] != nil {
				t.Errorf("%v, %v", errs, err)
			}
		}
		if got, want := x.counts(id, g[1]), "0+0/0 dead 1+0/3"; got != want {
			t.Errorf("the other group counts %s, want %s", got, want)
		}
	})
}
