package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// The field cases that the engine can show by itself: reports of real faults
// in other queues, told anew. Each bears its number.

// FC-01: an extension that comes too late must not hide a free message.
func TestFC01LateExtension(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.put(id, "", "pallet 7731")
		r1 := x.get(ReceiveRequest{Queue: id, Visibility: 2 * time.Second})[0].Receipt
		time.Sleep(4 * time.Second)
		update := func(r queue.Receipt, d time.Duration) error {
			t.Helper()
			out, err := x.b.Update(t.Context(), id, queue.AnyGroup, []VisibilityUpdate{{Receipt: r, Visibility: d}})
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Err
		}
		stale := func(err error) {
			t.Helper()
			if queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
				t.Errorf("a late update: %v", err)
			}
		}
		stale(update(r1, time.Minute))
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 11, dead visible 0 in flight 0 bytes 0")
		got := x.get(ReceiveRequest{Queue: id, Visibility: 30 * time.Second})
		if len(got) != 1 || got[0].DeliveryCount != 2 || got[0].Receipt == r1 {
			t.Fatalf("got %+v", got)
		}
		r2 := got[0].Receipt
		stale(update(r1, 0))
		stale(update(r1, time.Minute))
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{r1}); err != nil || queue.CodeOf(errs[0]) != queue.NotAuthorizedOrNotFound {
			t.Errorf("a superseded delete: %v %v", errs, err)
		}
		if err := update(r2, 45*time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(44 * time.Second)
		x.want(id, "visible 0 in flight 1 delayed 0 bytes 11, dead visible 0 in flight 0 bytes 0")
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{r2}); err != nil || errs[0] != nil {
			t.Error(errs, err)
		}
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 0 in flight 0 bytes 0")
	})
}

// FC-03: a message that kills its worker reaches the dead letter queue by
// itself, once, through a crash too.
func TestFC03PoisonousMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer func() { x.shut() }()
		id := x.queue("xray-scan", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 3; q.Visibility = 2 * time.Second })
		published := x.put(id, "", "slide 40-B")
		for count := 1; count <= 3; count++ {
			// Three race for it, and none ever answers.
			var all []<-chan polled
			for range 3 {
				all = append(all, x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: -1, Wait: time.Second}))
			}
			seen := 0
			for _, done := range all {
				for _, d := range (<-done).out {
					if seen++; d.DeliveryCount != count {
						t.Errorf("delivery %d has count %d", count, d.DeliveryCount)
					}
				}
			}
			if seen != 1 {
				t.Errorf("delivery %d was made %d times", count, seen)
			}
			if count < 3 {
				time.Sleep(1200 * time.Millisecond)
			}
			if count == 2 {
				crashed := x.fs.Crash(0, rand.NewPCG(1, 1))
				x.close()
				x.fs, x.so.FS = crashed, crashed
				x.open()
			}
		}
		time.Sleep(5 * time.Second)
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 1 in flight 0 bytes 10")
		got := x.get(ReceiveRequest{Queue: id, Dead: true, Visibility: time.Minute})
		if len(got) != 1 || got[0].ID != published[0].ID || got[0].DeadLetter == nil ||
			got[0].DeadLetter.DeliveryCount != 3 || got[0].DeadLetter.Reason != queue.DeliveryCountReached {
			t.Errorf("got %+v", got)
		}
		if got := x.get(ReceiveRequest{Queue: id, Dead: true, Visibility: time.Minute}); len(got) != 0 {
			t.Errorf("it is there twice: %+v", got)
		}
	})
}

// FC-05: a poll whose client has gone must not take the next message.
func TestFC05GonePoll(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		var most atomic.Int64
		x.b.ObserveGroups(func(int, time.Duration) {
			m, _ := x.b.Stats(id, "", nil)
			most.Store(max(most.Load(), m.InFlight))
		})
		for _, n := range []int{1, 200} {
			ctx, cancel := context.WithCancel(t.Context())
			var gone []<-chan polled
			for range n {
				gone = append(gone, x.poll(ctx, ReceiveRequest{Queue: id, Visibility: 10 * time.Minute, Wait: 20 * time.Second}))
			}
			time.Sleep(3 * time.Second)
			go cancel() // at the very moment of the publish
			x.put(id, "", "door 12 open")
			second := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: 10 * time.Minute, Wait: 5 * time.Second})
			for _, done := range gone {
				if got := <-done; !errors.Is(got.err, context.Canceled) && len(got.out) > 0 {
					x.b.Undeliver([]queue.Receipt{got.out[0].Receipt}) // there is nobody to hand it to
				}
			}
			got := <-second
			if len(got.out) != 1 || got.out[0].DeliveryCount != 1 || got.after > time.Second {
				t.Fatalf("after %d dead polls: %+v", n, got)
			}
			x.waiters(0)
			if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got.out[0].Receipt}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
	})
}

// FC-07: a short-lived message expires on time behind a long-lived one.
func TestFC07ShortBehindLong(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		publish := func(body string, life time.Duration) {
			t.Helper()
			if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
				{Message: queue.Message{Body: []byte(body)}, Retention: life}}}); err != nil {
				t.Fatal(err)
			}
		}
		publish("A", time.Hour)
		publish("B", 10*time.Second)
		publish("C", time.Hour)
		time.Sleep(12 * time.Second)
		x.want(id, "visible 2 in flight 0 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
		if len(got) != 2 || string(got[0].Body) != "A" || string(got[1].Body) != "C" {
			t.Errorf("got %+v", got)
		}
		publish("D", 10*time.Second)
		d := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
		if len(d) != 1 || string(d[0].Body) != "D" {
			t.Fatalf("got %+v", d)
		}
		time.Sleep(12 * time.Second)
		x.want(id, "visible 0 in flight 2 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{d[0].Receipt}); err != nil || errs[0] != nil {
			t.Errorf("delete of what has expired: %v, %v", errs, err)
		}
		time.Sleep(time.Minute)
		for _, d := range x.get(ReceiveRequest{Queue: id, Visibility: time.Minute}) {
			if string(d.Body) == "D" {
				t.Error("D came after its end")
			}
		}
		x.want(id, "visible 0 in flight 2 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
	})
}

// FC-13, the counting part: a get finds the head of the queue from where it
// was, and looks at few rows however many were deleted before it.
// BenchmarkFC13Head has the time it takes.
func TestFC13HeadByCursor(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.close()
		x.o.WindowSize = 64
		x.open()
		hot, cold := only("hot"), only("cold")
		bodies := make([]string, 20)
		fill := func() {
			for range 200 {
				x.put(id, "hot", bodies...)
			}
		}
		fill()
		for range 400 {
			got := x.get(ReceiveRequest{Queue: id, Filter: hot, Visibility: time.Hour})
			if len(got) == 0 {
				break
			}
			x.deleteAll(id, got)
		}
		fill()
		x.put(id, "cold", "1", "2", "3", "4", "5")
		// With half a backlog waiting, the few in the other channel come soon
		// when no channel is named.
		seen := 0
		for gets := 0; seen < 5; gets++ {
			got := x.get(ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Hour})
			if len(got) != 1 || gets > 100 {
				t.Fatalf("get %d had %d; %d of the other channel", gets, len(got), seen)
			}
			if got[0].Channel == "cold" {
				seen++
			}
		}
		if got := x.get(ReceiveRequest{Queue: id, Filter: cold, Visibility: time.Hour}); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
		x.b.do(func(g *group) {
			for _, l := range g.b.lanes {
				if l.row.Key.Channel == "hot" && (l.row.Cursor < 4000 || l.fresh.len()+l.returned.len() > 2*64) {
					t.Errorf("the cursor is %d, %d and %d entries are in memory", l.row.Cursor, l.fresh.len(), l.returned.len())
				}
			}
		})
	})
}

func (x *bench) deleteAll(id queue.ID, got []queue.Delivery) {
	x.t.Helper()
	receipts := make([]queue.Receipt, len(got))
	for i := range got {
		receipts[i] = got[i].Receipt
	}
	errs, err := x.b.Delete(context.Background(), id, queue.AnyGroup, receipts)
	if err := errors.Join(append(errs, err)...); err != nil {
		x.t.Fatal(err)
	}
}

// FC-17 without groups: counts after expiry and after a lost client, sampled
// all the time, and through a restart.
func TestFC17Counts(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		ctx, stop := context.WithCancel(t.Context())
		sampled := make(chan int)
		sample := func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				m, d := x.b.Stats(id, "", nil)
				if min(m.Visible, m.InFlight, m.Delayed, m.Bytes, d.Visible, d.InFlight, d.Bytes) < 0 {
					t.Errorf("a negative count: %+v %+v", m, d)
				}
				time.Sleep(100 * time.Millisecond)
			}
			sampled <- n
		}
		go sample()
		publish := func(n int, life time.Duration) {
			for range n / 20 {
				r := PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 20)}
				for i := range r.Messages {
					r.Messages[i].Body, r.Messages[i].Retention = []byte("0123456789"), life
				}
				if _, err := x.b.Publish(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		publish(1000, 10*time.Second)
		publish(500, 24*time.Hour)
		took := 0
		for took < 100 {
			took += len(x.get(ReceiveRequest{Queue: id, Visibility: 3 * time.Second}))
		}
		time.Sleep(15 * time.Second)
		x.want(id, "visible 500 in flight 0 delayed 0 bytes 5000, dead visible 0 in flight 0 bytes 0")
		for _, q := range x.b.Snapshot().Queues {
			if n := q.Events[evExpired]; q.Queue.ID == id && n != 1000 {
				t.Errorf("%d are counted as expired", n)
			}
		}
		if _, err := takeCensus(x.s, true); err != nil {
			t.Error(err)
		}
		for {
			got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
			if len(got) == 0 {
				break
			}
			x.deleteAll(id, got)
		}
		stop()
		if n := <-sampled; n < 100 {
			t.Errorf("%d samples were taken", n)
		}
		const none = "visible 0 in flight 0 delayed 0 bytes 0, dead visible 0 in flight 0 bytes 0"
		x.want(id, none)
		x.close()
		x.open()
		x.want(id, none)
		if c, err := takeCensus(x.s, true); err != nil || len(c.messages) > 0 {
			t.Errorf("%d messages are on disk: %v", len(c.messages), err)
		}
	})
}

// FC-21: the wall clock jumps, while the broker runs.
func TestFC21WallJumps(t *testing.T) {
	jumps := map[string][]time.Duration{ // one a minute
		"back":                      {-2 * time.Hour},
		"forward, then mended":      {3 * time.Hour, -3 * time.Hour},
		"back, forward, then right": {-2 * time.Hour, 3 * time.Hour, -time.Hour},
	}
	for what, by := range jumps {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, w, j := clocked(t)
				defer x.shut()
				id := x.queue("dial-plan", func(q *queue.Queue) { q.Retention = time.Hour; q.DeadLetterDeliveryCount = 0 })
				for range by {
					w.jump(by[0])
					by = by[1:]
					began := time.Now()
					x.put(id, "a", "A")
					if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
						{Channel: "b", Delay: 30 * time.Second}, {Channel: "c", Retention: 120 * time.Second}}}); err != nil {
						t.Fatal(err)
					}
					a := x.get(ReceiveRequest{Queue: id, Filter: only("a"), Visibility: 20 * time.Second})
					if len(a) != 1 {
						t.Fatalf("got %d", len(a))
					}
					// An engine that is slowed down makes everything a twentieth
					// later, which is its documented way back.
					next := func(channel string, after time.Duration) queue.Delivery {
						t.Helper()
						got := x.get(ReceiveRequest{Queue: id, Filter: only(channel), Limit: 1, Visibility: time.Hour, Wait: 100 * time.Second})
						if len(got) != 1 {
							t.Fatalf("channel %s gave %d", channel, len(got))
						}
						between(t, "channel "+channel, time.Since(began), after, after+2*time.Second+after/19)
						return got[0]
					}
					x.deleteAll(id, []queue.Delivery{next("a", 20*time.Second)})
					x.deleteAll(id, []queue.Delivery{next("b", 30*time.Second)})
					x.put(id, "d", "D")
					x.deleteAll(id, x.get(ReceiveRequest{Queue: id, Filter: only("d"), Visibility: time.Minute}))
					time.Sleep(time.Minute - time.Since(began)%time.Minute)
					if c := x.get(ReceiveRequest{Queue: id, Filter: only("c"), Limit: 1, Visibility: 0}); len(c) != 1 {
						t.Error("C is gone early")
					}
				}
				if j.count("wall clock differs") == 0 || x.b.Snapshot().ClockJumps == 0 {
					t.Error("no word of the jump")
				}
			})
		})
	}
}

// FC-21 across a restart: deadlines may be judged by wall time, but no lease
// lasts longer than its visibility, ids rise, and nothing is lost.
func TestFC21WallJumpsAcrossRestart(t *testing.T) {
	for _, by := range []time.Duration{-2 * time.Hour, 3 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, w, _ := clocked(t)
				defer x.shut()
				id := x.queue("dial-plan", func(q *queue.Queue) { q.Retention = 6 * time.Hour; q.DeadLetterDeliveryCount = 0 })
				first := x.put(id, "a", "A")
				if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
					{Channel: "b", Delay: 30 * time.Second}}}); err != nil {
					t.Fatal(err)
				}
				x.get(ReceiveRequest{Queue: id, Filter: only("a"), Visibility: 20 * time.Second})
				x.close()
				w.jump(by)
				x.open()
				opened := time.Now()
				var later []queue.Published
				for _, channel := range []string{"a", "b"} {
					got := x.get(ReceiveRequest{Queue: id, Filter: only(channel), Limit: 1, Visibility: time.Hour, Wait: 50 * time.Second})
					if len(got) != 1 {
						t.Fatalf("channel %s gave %d", channel, len(got))
					}
					between(t, "channel "+channel, time.Since(opened), 0, 34*time.Second)
					later = append(later, x.put(id, "d", "D")...)
				}
				ids := []queue.MessageID{first[0].ID, later[0].ID, later[1].ID}
				if !slices.IsSorted(ids) || ids[1] == ids[2] {
					t.Errorf("ids are %v", ids)
				}
				x.want(id, "visible 2 in flight 2 delayed 0 bytes 3, dead visible 0 in flight 0 bytes 0")
			})
		})
	}
}

// BenchmarkFC13Head is the time a get takes where a hundred thousand messages
// have been published and deleted before it: with a hit, and on an empty
// channel beside it.
func BenchmarkFC13Head(b *testing.B) {
	br, id := onDisk(b)
	x := &bench{t: b, b: br}
	hot := only("hot")
	churn := func(n int) {
		for range n / 200 {
			m := make([]queue.NewMessage, 200)
			for i := range m {
				m[i].Channel, m[i].Body = "hot", make([]byte, 200)
			}
			if _, err := br.Publish(b.Context(), PublishRequest{Queue: id, Messages: m}); err != nil {
				b.Fatal(err)
			}
			got, err := br.Receive(b.Context(), ReceiveRequest{Queue: id, Filter: hot, Limit: 200, Visibility: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			x.deleteAll(id, got)
		}
	}
	measure := func(name, channel string) {
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				got, err := br.Receive(b.Context(), ReceiveRequest{Queue: id, Filter: only(channel), Limit: 1, Visibility: time.Hour})
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
				if len(got) > 0 {
					x.deleteAll(id, got)
					x.put(id, channel, "next")
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
	x.put(id, "hot", make([]string, 1000)...)
	measure("hit/before", "hot")
	measure("empty/before", "cold")
	churn(100_000)
	measure("hit/after", "hot")
	measure("empty/after", "cold")
}
