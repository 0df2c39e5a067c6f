package broker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// At the in-flight limit gets wait, and are served in their order as room
// comes, by whatever makes it.
func TestWaitersAtTheInFlightLimit(t *testing.T) {
	for _, how := range []string{"delete", "release", "lapse", "purge", "undeliver", "expiry", "dead"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newBench(t, testdisk.New())
				defer x.shut()
				x.close()
				l := limits.Unthrottled()
				l.InFlightPerQueue, l.InFlightReservedPerQueue = 2, 1
				x.o.Limits = &l
				x.open()
				id := x.queue("orders", func(q *queue.Queue) { q.Retention = time.Hour; q.DeadLetterDeliveryCount = 1 })
				if how != "dead" && how != "release" && how != "lapse" {
					x.limit(id, 0)
				}
				if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
					{Channel: "held", Retention: time.Hour}, {Channel: "held", Retention: 10 * time.Second}}}); err != nil {
					t.Fatal(err)
				}
				hidden := time.Hour
				if how == "lapse" || how == "dead" {
					hidden = 10 * time.Second
				}
				held := x.get(ReceiveRequest{Queue: id, Visibility: hidden, Filter: only("held")})
				if len(held) != 2 {
					t.Fatalf("got %d", len(held))
				}
				x.put(id, "free", "1", "2", "3")
				if got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour}); len(got) != 0 {
					t.Fatalf("got %d over the limit", len(got))
				}
				first := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("free")})
				second := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("free")})
				peek := x.get(ReceiveRequest{Queue: id, Dead: true}) // needs no room
				if len(peek) != 0 {
					t.Errorf("got %d dead ones", len(peek))
				}
				x.waiters(2)
				time.Sleep(time.Second)
				want := time.Second
				switch how {
				case "delete":
					x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{held[0].Receipt})
				case "release":
					x.limit(id, 0)
					x.b.Update(t.Context(), id, queue.AnyGroup, []VisibilityUpdate{{Receipt: held[0].Receipt}})
				case "lapse":
					x.limit(id, 0)
					want = 10 * time.Second
				case "dead":
					want = 10 * time.Second
				case "purge":
					if err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, "", queue.PurgeNormal, []string{"held"}); return nil }); err != nil {
						t.Fatal(err)
					}
				case "undeliver":
					x.b.Undeliver([]queue.Receipt{held[0].Receipt})
				case "expiry":
					want = 10 * time.Second
				}
				if got := <-first; len(got.out) != 1 || string(got.out[0].Body) != "1" || got.after < want || got.after > want+visibilityTick {
					t.Errorf("the first got %+v, want it after %v", got, want)
				}
				synctest.Wait()
				both := how == "lapse" || how == "dead" || how == "purge"
				select {
				case got := <-second:
					if !both || len(got.out) != 1 || string(got.out[0].Body) != "2" {
						t.Errorf("the second got %+v", got)
					}
				default:
					if both {
						t.Error("the second still waits")
					}
				}
				if in := x.b.Snapshot().InFlight; in != 2 {
					t.Errorf("%d are in flight", in)
				}
			})
		})
	}
}

// limit sets the number of deliveries.
func (x *bench) limit(id queue.ID, n int) {
	x.t.Helper()
	if err := x.b.Admin(context.Background(), func(tx *Tx) error {
		q, _ := tx.Queue(id)
		q.DeadLetterDeliveryCount = n
		tx.PutQueue(q)
		return nil
	}); err != nil {
		x.t.Fatal(err)
	}
}

// Polls over their bound are refused at once, and a poll that ends makes room.
func TestTooManyPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		l := limits.Unthrottled()
		l.OpenPollsPerQueue, l.OpenPollsTotal = 2, 3
		x.o.Limits = &l
		x.open()
		one, two := x.queue("one", nil), x.queue("two", nil)
		ask := func(id queue.ID, dead bool) <-chan polled {
			return x.poll(t.Context(), ReceiveRequest{Queue: id, Dead: dead, Visibility: time.Hour, Wait: 5 * time.Second})
		}
		refused := func(done <-chan polled) {
			t.Helper()
			select {
			case got := <-done:
				if queue.CodeOf(got.err) != queue.ServiceUnavailable {
					t.Errorf("got %+v", got)
				}
			default:
				t.Error("it waits")
			}
		}
		ask(one, false)
		ask(one, true)
		refused(ask(one, false))
		ask(two, false)
		refused(ask(two, false))
		if got := x.get(ReceiveRequest{Queue: one, Visibility: time.Hour}); len(got) != 0 { // does not wait
			t.Errorf("got %d", len(got))
		}
		x.waiters(3)
		time.Sleep(5 * time.Second)
		x.waiters(0)
		ask(two, false)
		x.waiters(1)
		time.Sleep(5 * time.Second)
	})
}

// A waiter with a pattern that has found nothing is not asked again before a
// lane changes; one that could have been served, but for the in-flight limit
// and a waiter before it, is.
func TestWaiterWithPatternAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		l := limits.Unthrottled()
		l.InFlightPerQueue, l.InFlightReservedPerQueue = 1, 1
		x.o.Limits = &l
		x.open()
		id := x.queue("orders", nil)
		x.put(id, "x", "held")
		held := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		before := x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("a*")})
		behind := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("*a")})
		x.put(id, "other", "1") // both are asked, and neither takes it
		x.put(id, "a", "2")
		cancel()
		<-before
		x.waiters(1)
		x.deleteAll(id, held)
		if got := <-behind; len(got.out) != 1 || string(got.out[0].Body) != "2" || got.after != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// BenchmarkPatternWaiters publishes to a queue with many channels, on which
// others wait, each with a pattern of its own that fits none of them.
func BenchmarkPatternWaiters(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := newBench(b, testdisk.New())
			defer x.shut()
			id := x.queue("orders", nil)
			for i := range 200 {
				x.put(id, fmt.Sprintf("ready%d", i), "x")
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for i := range n {
				go x.b.Receive(ctx, ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Hour, Wait: time.Hour, Filter: only(fmt.Sprintf("no*%d*e", i))})
			}
			for x.b.Snapshot().Waiters < int64(n) {
				time.Sleep(time.Millisecond)
			}
			for b.Loop() {
				x.put(id, "ready1", "y")
			}
		})
	}
}
