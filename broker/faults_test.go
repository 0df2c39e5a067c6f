package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// Each test here is a fault that was found once, in its smallest form.

// A message that is put into the cache of bodies twice counted twice and was
// taken off once, until the cache believed itself full while it was empty.
func TestBodiesCountedOnce(t *testing.T) {
	c := bodies{limit: 100_000, byID: make(map[queue.MessageID]*store.Message)}
	m := &store.Message{Message: queue.Message{Body: make([]byte, 800)}}
	for range 10 {
		for id := range queue.MessageID(50) {
			c.add(id, m)
			c.add(id, m)
		}
		for id := range queue.MessageID(50) {
			c.remove(id)
		}
	}
	if c.size != 0 || len(c.byID) != 0 {
		t.Errorf("an empty cache counts %d octets in %d bodies", c.size, len(c.byID))
	}
}

// More expired messages than the keeper reads at once, all of one instant and
// all held, were read again and again without end.
func TestHeldMessagesOfOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		id := x.queue("orders", func(q *queue.Queue) { q.Retention = time.Hour })
		const n = 2*keeperChunk + 20
		for range n / 20 {
			var r PublishRequest
			r.Queue = id
			for range 20 {
				r.Messages = append(r.Messages, queue.NewMessage{Retention: time.Minute})
			}
			// One that lives longer makes the others expire out of order.
			r.Messages[0].Retention = time.Hour
			if _, err := x.b.Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		x.close()
		time.Sleep(2 * time.Minute)
		x.open()
		time.Sleep(time.Second)
		x.put(id, "", "fresh") // the broker is alive
		got := 0
		for _, d := range append(x.get(ReceiveRequest{Queue: id, Visibility: time.Hour}), x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})...) {
			if d.ExpireAfter <= x.b.Now() {
				t.Errorf("message %d was delivered after its end", d.ID)
			}
			got++
		}
		if got == 0 {
			t.Error("nothing was delivered")
		}
		time.Sleep(6 * time.Minute) // over the grace
		m, _ := x.b.Stats(id, "", nil)
		if want := int64(n/20 + 1); m.Visible+m.InFlight != want {
			t.Errorf("%d messages are there, want %d", m.Visible+m.InFlight, want)
		}
	})
}

// A retry token that was used again after its 24 h was forgotten when the
// first use was swept.
func TestRetryTokenUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		id := x.queue("orders", nil)
		publish := func() queue.MessageID {
			t.Helper()
			out, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, RetryToken: "t",
				Messages: []queue.NewMessage{{Message: queue.Message{Body: []byte("a")}}}})
			if err != nil {
				t.Fatal(err)
			}
			return out[0].ID
		}
		first := publish()
		time.Sleep(23 * time.Hour)
		if again := publish(); again != first {
			t.Fatalf("a retry stored message %d beside %d", again, first)
		}
		time.Sleep(time.Hour + time.Second)
		second := publish()
		if second == first {
			t.Fatal("a token was honoured for more than 24 h")
		}
		for range 6 {
			time.Sleep(30 * time.Minute)
			if again := publish(); again != second {
				t.Fatalf("after %v a retry stored message %d beside %d", 30*time.Minute, again, second)
			}
		}
	})
}

// A purge that made room under the in-flight limit woke nobody.
func TestPurgeMakesRoomForWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		l := limits.Unthrottled()
		l.InFlightPerQueue, l.InFlightReservedPerQueue = 2, 1
		x.close()
		x.o.Limits = &l
		x.open()
		id := x.queue("orders", nil)
		x.put(id, "a", "1", "2")
		x.put(id, "b", "3")
		a, _ := channels.ParseFilter("a")
		if got := x.get(ReceiveRequest{Queue: id, Filter: a, Visibility: time.Hour}); len(got) != 2 {
			t.Fatalf("got %d", len(got))
		}
		done := make(chan time.Duration)
		began := time.Now()
		go func() {
			got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
			if len(got) != 1 {
				t.Errorf("the waiter got %d", len(got))
			}
			done <- time.Since(began)
		}()
		time.Sleep(time.Second)
		if err := x.b.Admin(t.Context(), func(tx *Tx) error {
			tx.Purge(id, "", queue.PurgeNormal, []string{"a"})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if after := <-done; after != time.Second {
			t.Errorf("the waiter was answered after %v", after)
		}
	})
}

// Room under the in-flight limit of the server, made in one queue, woke nobody
// who waited on another.
func TestRoomOfServerServesOtherQueues(t *testing.T) {
	for _, how := range []string{"delete", "lapse", "purge", "drop"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newBench(t, testdisk.New())
				defer x.shut()
				l := limits.Unthrottled()
				l.InFlightTotal, l.InFlightReservedPerQueue = 2, 0
				x.close()
				x.o.Limits = &l
				x.open()
				one, two := x.queue("one", nil), x.queue("two", nil)
				x.put(one, "", "1", "2")
				x.put(two, "", "3")
				got := x.get(ReceiveRequest{Queue: one, Visibility: 3 * time.Second})
				if len(got) != 2 {
					t.Fatalf("got %d", len(got))
				}
				done := make(chan time.Duration)
				began := time.Now()
				go func() {
					got := x.get(ReceiveRequest{Queue: two, Visibility: time.Hour, Wait: 20 * time.Second})
					if len(got) != 1 {
						t.Errorf("the waiter got %d", len(got))
					}
					done <- time.Since(began)
				}()
				time.Sleep(time.Second)
				var err error
				want := time.Second
				switch how {
				case "delete":
					_, err = x.b.Delete(t.Context(), one, queue.AnyGroup, []queue.Receipt{got[0].Receipt})
				case "lapse":
					want = 3 * time.Second
				case "purge":
					err = x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(one, "", queue.PurgeBoth, nil); return nil })
				case "drop":
					err = x.b.Admin(t.Context(), func(tx *Tx) error {
						q, _ := tx.Queue(one)
						q.State = queue.Deleted
						tx.PutQueue(q)
						tx.DropQueue(one)
						return nil
					})
				}
				if err != nil {
					t.Fatal(err)
				}
				if after := <-done; after < want || after > want+visibilityTick {
					t.Errorf("the waiter was answered after %v, want %v", after, want)
				}
			})
		})
	}
}

const visibilityTick = 100 * time.Millisecond

// Two deletes of one delivery in one group, with so many messages coming back
// in between that the window lost its end, deleted the message twice.
func TestDeletedTwiceInOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.o.WindowSize = 8
		x.close()
		x.open()
		id := x.queue("orders", nil)
		var bodies []string
		for i := range 20 {
			bodies = append(bodies, fmt.Sprint(i))
		}
		x.put(id, "", bodies...)
		got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})
		if len(got) == 8 {
			got = append(got, x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})...)
		}
		release := func(list []queue.Delivery) {
			var all []VisibilityUpdate
			for _, d := range list {
				all = append(all, VisibilityUpdate{Receipt: d.Receipt})
			}
			if _, err := x.b.Update(t.Context(), id, queue.AnyGroup, all); err != nil {
				t.Error(err)
			}
		}
		release(got[4:12]) // the window is full with these
		x.together(
			func() { x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got[11].Receipt}) },
			func() { release(got[:4]) },
			func() { x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got[11].Receipt}) },
		)
		time.Sleep(time.Second)
		m, _ := x.b.Stats(id, "", nil)
		if m.Visible+m.InFlight != 19 {
			t.Errorf("%d messages are left of 20, one was deleted", m.Visible+m.InFlight)
		}
	})
}

// When the engine adopted a lasting jump of the wall clock, timers slept on
// for as long as they had meant to.
func TestAdoptedJumpEndsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		x.o.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		x.o.ClockGrace = time.Minute
		x.open()
		id := x.queue("orders", nil)
		x.put(id, "", "a")
		if got := x.get(ReceiveRequest{Queue: id, Visibility: 2 * time.Hour}); len(got) != 1 {
			t.Fatalf("got %d", len(got))
		}
		if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{{Delay: 2 * time.Hour}}}); err != nil {
			t.Fatal(err)
		}
		ahead.Store(int64(3 * time.Hour))
		time.Sleep(59 * time.Second)
		x.want(id, "visible 0 in flight 1 delayed 1 bytes 1, dead visible 0 in flight 0 bytes 0")
		time.Sleep(4 * time.Second)
		x.want(id, "visible 2 in flight 0 delayed 0 bytes 1, dead visible 0 in flight 0 bytes 0")
	})
}

// A waiter whose client had gone was given a message as long as its goroutine
// had not run yet, and the next dead one after it had given it back.
func TestGoneClientTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		id := x.queue("orders", nil)
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			go x.b.Receive(ctx, ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Hour, Wait: 20 * time.Second})
		}
		synctest.Wait()
		// The clients go while the core is at work, so it decides first.
		if err := x.b.Admin(t.Context(), func(tx *Tx) error {
			q := tx.find(id)
			cancel()
			tx.g.put(q, &queue.NewMessage{})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if m, _ := x.b.Stats(id, "", nil); m.InFlight != 0 || m.Visible != 1 {
			t.Errorf("stats are %+v", m)
		}
		got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})
		if len(got) != 1 || got[0].DeliveryCount != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// The last delivery allowed was a peek, and the message had moved to the dead
// letter queue before its body was read: the answer came without it.
func TestLastPeekIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		x.o.BodyBytes = 1
		x.open()
		id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
		for range 100 {
			x.put(id, "", "a", "b")
			got := x.get(ReceiveRequest{Queue: id, Visibility: 0})
			if len(got) != 2 || string(got[0].Body) != "a" {
				t.Fatalf("got %+v", got)
			}
		}
		synctest.Wait()
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 200 in flight 0 bytes 200")
	})
}

// A get that waited for the read of a lane was forgotten when the lane was
// gone before the read came back.
func TestGetOfALaneThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		id := x.queue("orders", func(q *queue.Queue) { q.Retention = 10 * time.Second })
		x.put(id, "a", "x")
		x.close()
		x.open() // nothing is in memory now
		gate := make(chan struct{})
		x.b.reads.add(func() { <-gate })
		answered := make(chan int, 1)
		go func() {
			got, _ := x.b.Receive(context.Background(), ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Second})
			answered <- len(got)
		}()
		time.Sleep(15 * time.Second) // the message expires
		close(gate)
		synctest.Wait()
		select {
		case n := <-answered:
			if n != 0 {
				t.Errorf("got %d messages that had expired", n)
			}
		default:
			t.Fatal("the get is not answered")
		}
	})
}

// When the limit was lowered below what a great many messages had, a get set
// all of them aside in memory at once.
func TestLoweredLimitWithABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		x.o.WindowSize = 512
		x.open()
		id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 0 })
		const n = 5 * 1024
		for range n / 256 {
			x.put(id, "", make([]string, 256)...)
		}
		for took := 0; took < n; {
			took += len(x.get(ReceiveRequest{Queue: id, Limit: 1000, Visibility: time.Second}))
		}
		time.Sleep(2 * time.Second) // all have been delivered once
		x.limit(id, 1)
		most := 0
		x.b.ObserveGroups(func(int, time.Duration) { // in the core
			for _, l := range x.b.lanes {
				most = max(most, len(l.parked)+len(l.dying))
			}
		})
		if got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour}); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
		if most == 0 || most > x.o.WindowSize/2 {
			t.Errorf("%d messages were set aside in memory", most)
		}
		synctest.Wait()
		x.want(id, fmt.Sprintf("visible 0 in flight 0 delayed 0 bytes 0, dead visible %d in flight 0 bytes 0", n))
	})
}

// What is published behind a full window does not take the place of bodies
// that are soon given out.
func TestBodiesBehindTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		x.o.WindowSize = 64
		x.open()
		id := x.queue("orders", nil)
		const n = 200
		for i := range n {
			x.put(id, "", fmt.Sprint(i))
		}
		if got := len(x.b.bodies.byID); got != 64 {
			t.Errorf("%d bodies are kept for a window of 64", got)
		}
		next := 0
		for next < n {
			got := x.get(ReceiveRequest{Queue: id, Limit: 20, Visibility: time.Minute, Wait: time.Second})
			if len(got) == 0 {
				t.Fatalf("nothing comes after %d messages", next)
			}
			for _, m := range got {
				if string(m.Body) != fmt.Sprint(next) {
					t.Fatalf("message %d is %q", next, m.Body)
				}
				next++
			}
		}
	})
}
