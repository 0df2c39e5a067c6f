package broker

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// wall is a wall clock that can be set; it goes on by itself.
type wall struct {
	mu  sync.Mutex
	off time.Duration
}

func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.off)
}

// jump moves it by d.
func (w *wall) jump(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off += d
}

// journal is what was logged.
type journal struct {
	mu sync.Mutex
	b  strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.b.String(), text)
}

// clocked is a bench with a wall clock and a journal.
func clocked(t *testing.T) (*bench, *wall, *journal) {
	w, j := &wall{}, &journal{}
	x := newBench(t, testdisk.New())
	x.close()
	x.o.Wall, x.o.Logger, x.o.ClockGrace = w.Now, slog.New(slog.NewTextHandler(j, nil)), 5*time.Minute
	x.open()
	return x, w, j
}

// ahead is how far the engine's time is ahead of real time.
func ahead(x *bench) time.Duration { return x.b.Now().Sub(queue.InstantOf(time.Now())) }

// between checks that a length lies between two, both included.
func between(t *testing.T, what string, d, lo, hi time.Duration) {
	t.Helper()
	if d < lo || d > hi {
		t.Errorf("%s is %v, want %v to %v", what, d, lo, hi)
	}
}

// A jump forward moves nothing until it has lasted for the grace; then the
// engine's time is the wall's.
func TestWallJumpsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w, j := clocked(t)
		defer x.shut()
		w.jump(3 * time.Hour)
		time.Sleep(5*time.Minute - time.Second)
		between(t, "before the grace is over", ahead(x), 0, 0)
		if off, jumps := x.b.clock.difference(); jumps != 1 || off != 3*time.Hour {
			t.Errorf("the clock tells of %d jumps, %v", jumps, off)
		}
		if n := j.count("wall clock differs"); n != 1 {
			t.Errorf("%d lines tell of the jump", n)
		}
		time.Sleep(4 * time.Second)
		between(t, "after the grace", ahead(x), 3*time.Hour, 3*time.Hour)
		if n := j.count("wall clock adopted"); n != 1 {
			t.Errorf("%d lines tell that it was adopted", n)
		}
	})
}

// A jump forward that is mended within the grace has never been; the next one
// has a grace of its own.
func TestWallJumpsForwardAndIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w, j := clocked(t)
		defer x.shut()
		for range 3 {
			w.jump(3 * time.Hour)
			time.Sleep(4 * time.Minute)
			w.jump(-3 * time.Hour)
			time.Sleep(4 * time.Minute)
		}
		between(t, "after it was mended", ahead(x), 0, 0)
		if off, jumps := x.b.clock.difference(); jumps != 3 || off != 0 {
			t.Errorf("the clock tells of %d jumps, %v", jumps, off)
		}
		if n := j.count("wall clock agrees"); n != 3 {
			t.Errorf("%d lines tell that it agrees again", n)
		}
	})
}

// A jump back slows the engine's time by a twentieth until the wall has caught
// up; it never falls.
func TestWallJumpsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, w, j := clocked(t)
		defer x.shut()
		w.jump(-2 * time.Minute)
		last, began := x.b.Now(), time.Now()
		for ahead(x)+2*time.Minute > tolerance {
			time.Sleep(777 * time.Millisecond)
			now := x.b.Now()
			between(t, "a step of the engine", now.Sub(last), 777*time.Millisecond*19/20-2*time.Millisecond, 778*time.Millisecond)
			last = now
			if time.Since(began) > time.Hour {
				t.Fatalf("after an hour the engine is still %v ahead", ahead(x)+2*time.Minute)
			}
		}
		between(t, "how long it took", time.Since(began), 39*time.Minute, 41*time.Minute)
		time.Sleep(time.Minute)
		between(t, "the difference left", ahead(x)+2*time.Minute, -tolerance, tolerance)
		if n := j.count("wall clock agrees"); n != 1 {
			t.Errorf("%d lines tell that it agrees again", n)
		}
	})
}

// Small differences are followed both ways and are no jump.
func TestWallDrifts(t *testing.T) {
	for _, d := range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond, 30 * time.Millisecond} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, w, j := clocked(t)
				defer x.shut()
				w.jump(d)
				time.Sleep(30 * time.Second)
				between(t, "the difference left", ahead(x)-d, -tolerance, tolerance)
				if _, jumps := x.b.clock.difference(); jumps != 0 || j.count("wall clock") != 0 {
					t.Errorf("%d jumps are told of", jumps)
				}
			})
		})
	}
}

// Whatever the wall does, and through restarts, the engine's time never falls,
// runs at its own pace, and leaps only when a jump forward has lasted.
func TestEngineTimeNeverFalls(t *testing.T) {
	checks(t, 80)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			w := &wall{}
			c := newClock(w.Now, 0, time.Minute, slog.New(slog.DiscardHandler))
			last, real := c.Now(), time.Now()
			var ahead time.Duration // how long the wall has been ahead without a break
			step := func(leap bool) {
				now, passed := c.Now(), time.Since(real)
				moved := now.Sub(last)
				if slowest := passed - passed/slew; moved < slowest-time.Millisecond-slowest%time.Millisecond {
					t.Fatalf("the engine moved %v in %v", moved, passed)
				}
				if fastest := passed + passed/slew; !leap && moved > fastest+time.Millisecond {
					t.Fatalf("the engine leapt %v in %v", moved, passed)
				}
				last, real = now, time.Now()
			}
			t.Repeat(map[string]func(*rapid.T){
				"jump": func(t *rapid.T) {
					w.jump(time.Duration(rapid.Int64Range(-int64(24*time.Hour), int64(24*time.Hour)).Draw(t, "by")))
				},
				"drift": func(t *rapid.T) {
					w.jump(time.Duration(rapid.Int64Range(-int64(2*time.Second), int64(2*time.Second)).Draw(t, "by")))
				},
				"run": func(t *rapid.T) {
					for range rapid.IntRange(1, 100).Draw(t, "seconds") {
						time.Sleep(time.Second)
						step(false)
						off := time.Duration(w.Now().UnixNano()) - time.Duration(c.Now())*time.Millisecond
						if off < drift-time.Millisecond {
							ahead = 0
						} else {
							ahead += time.Second
						}
						if leapt := c.check(); leapt && ahead < time.Minute {
							t.Fatalf("a jump was adopted after %v", ahead)
						} else if leapt {
							ahead = 0
							step(true)
						} else if ahead > time.Minute+2*time.Second {
							t.Fatalf("the wall has been ahead for %v", ahead)
						}
						step(false)
					}
				},
				"restart": func(t *rapid.T) {
					stored := c.Now()
					time.Sleep(time.Duration(rapid.IntRange(0, 3600).Draw(t, "down")) * time.Second)
					c = newClock(w.Now, stored, time.Minute, slog.New(slog.DiscardHandler))
					if c.Now() < stored {
						t.Fatalf("the engine fell from %s to %s", stored, c.Now())
					}
					if at := queue.InstantOf(w.Now()); at > stored && c.Now() != at {
						t.Fatalf("the engine began at %s, the wall said %s", c.Now(), at)
					}
					last, real, ahead = c.Now(), time.Now(), 0
				},
			})
		})
	})
}

// What expired while the server was down is kept for the grace and not given
// out; then it goes, and what has no end yet is not touched.
func TestHoldAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _, _ := clocked(t)
		defer x.shut()
		id := x.queue("orders", func(q *queue.Queue) { q.Retention = time.Hour; q.DeadLetterDeliveryCount = 1 })
		if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
			{Message: queue.Message{Body: []byte("short")}, Retention: time.Minute},
			{Message: queue.Message{Body: []byte("long")}},
			{Message: queue.Message{Body: []byte("out of order")}, Retention: 2 * time.Minute},
			{Message: queue.Message{Body: []byte("delayed")}, Retention: time.Minute, Delay: 30 * time.Second},
			{Message: queue.Message{Body: []byte("dead")}, Channel: "d", Retention: time.Minute},
			{Message: queue.Message{Body: []byte("in flight")}, Channel: "f", Retention: time.Minute},
		}}); err != nil {
			t.Fatal(err)
		}
		if got := x.get(ReceiveRequest{Queue: id, Filter: only("d")}); len(got) != 1 {
			t.Fatalf("got %+v", got)
		}
		flying := x.get(ReceiveRequest{Queue: id, Filter: only("f"), Visibility: 90 * time.Second})
		if len(flying) != 1 {
			t.Fatalf("got %+v", flying)
		}
		synctest.Wait()
		x.want(id, "visible 3 in flight 1 delayed 1 bytes 37, dead visible 1 in flight 0 bytes 4")
		x.close()
		time.Sleep(10 * time.Minute)
		x.open()
		opened := time.Now()
		for time.Since(opened) < 5*time.Minute-time.Second {
			time.Sleep(time.Second)
			x.want(id, "visible 5 in flight 0 delayed 0 bytes 37, dead visible 1 in flight 0 bytes 4")
			for _, d := range x.get(ReceiveRequest{Queue: id, Visibility: time.Second}) {
				if string(d.Body) != "long" {
					t.Errorf("delivered %q, which had expired", d.Body)
				}
				x.b.Undeliver([]queue.Receipt{d.Receipt})
			}
			synctest.Wait()
		}
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{flying[0].Receipt}); err != nil || errs[0] != nil {
			t.Errorf("a held message is not deleted: %v, %v", errs, err)
		}
		time.Sleep(2 * time.Second)
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 4, dead visible 1 in flight 0 bytes 4")
		if _, err := takeCensus(x.s, true); err != nil {
			t.Error(err)
		}
	})
}

// A restart within the grace does not end it, as when somebody has set the
// clock right and starts the server again.
func TestHoldThroughRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _, _ := clocked(t)
		defer x.shut()
		id := x.queue("orders", func(q *queue.Queue) { q.Retention = time.Hour })
		if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{
			{Retention: time.Minute}, {}, {Retention: 2 * time.Minute}}}); err != nil {
			t.Fatal(err)
		}
		x.close()
		time.Sleep(10 * time.Minute)
		for range 3 {
			x.open()
			time.Sleep(4 * time.Minute)
			x.put(id, "", "a")
			if m, _ := x.b.Stats(id, "", nil); m.Visible < 4 {
				t.Errorf("stats are %+v within the grace", m)
			}
			x.close()
		}
		x.open()
		time.Sleep(5*time.Minute + time.Second)
		x.want(id, "visible 4 in flight 0 delayed 0 bytes 3, dead visible 0 in flight 0 bytes 0")
	})
}

// The keeper reads delayed messages from where it was, and misses none that
// come while it works.
func TestDelaysOfEveryLength(t *testing.T) {
	checks(t, 80)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			disk := testdisk.New()
			s, err := store.Open("data", store.Options{FS: disk, QuietScheduler: true, MemtableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(s, Options{Checked: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { b.Close(); s.Close() }()
			q := queue.Queue{ID: "q", CompartmentID: "c", DisplayName: "q", State: queue.Active, Retention: time.Hour, Visibility: time.Hour}
			if err := b.Admin(t.Context(), func(tx *Tx) error { tx.PutQueue(q); return nil }); err != nil {
				t.Fatal(err)
			}
			due := map[queue.MessageID]queue.Instant{}
			for range rapid.IntRange(1, 40).Draw(t, "publishes") {
				time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond)
				r := PublishRequest{Queue: q.ID, Messages: make([]queue.NewMessage, rapid.IntRange(1, 20).Draw(t, "messages"))}
				for i := range r.Messages {
					r.Messages[i].Delay = time.Duration(rapid.IntRange(1, 3000).Draw(t, "delay")) * time.Millisecond
				}
				out, err := b.Publish(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				for i, p := range out {
					due[p.ID] = queue.InstantOf(time.Now()).Add(r.Messages[i].Delay)
				}
			}
			for len(due) > 0 {
				got, err := b.Receive(t.Context(), ReceiveRequest{Queue: q.ID, Limit: 20, Visibility: time.Hour, Wait: 10 * time.Second})
				if err != nil || len(got) == 0 {
					t.Fatalf("got %d, %v; %d are missing", len(got), err, len(due))
				}
				for _, d := range got {
					if at := due[d.ID]; b.Now() < at {
						t.Fatalf("message %d came at %s, it is due at %s", d.ID, b.Now(), at)
					}
					delete(due, d.ID)
				}
			}
		})
	})
}
