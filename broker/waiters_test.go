package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// polled is the answer of a get that ran beside the test.
type polled struct {
	out   []queue.Delivery
	err   error
	after time.Duration
}

// poll starts a get in a goroutine of its own and waits until the core has it.
func (x *bench) poll(ctx context.Context, r ReceiveRequest) <-chan polled {
	if r.Limit == 0 {
		r.Limit = 1
	}
	done := make(chan polled, 1)
	began := time.Now()
	go func() {
		out, err := x.b.Receive(ctx, r)
		done <- polled{out, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// only is the filter of that text, "" for none.
func only(text string) channels.Filter {
	if text == "" {
		return channels.Filter{}
	}
	f, err := channels.ParseFilter(text)
	if err != nil {
		panic(err)
	}
	return f
}

// busy holds the core until the func it returns is called.
func (x *bench) busy() (free func()) {
	gate, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- x.b.Admin(context.Background(), func(*Tx) error { <-gate; return nil })
	}()
	synctest.Wait()
	return func() {
		close(gate)
		if err := <-done; err != nil {
			x.t.Error(err)
		}
	}
}

func (x *bench) waiters(want int64) {
	x.t.Helper()
	synctest.Wait()
	if got := x.b.Snapshot().Waiters; got != want {
		x.t.Errorf("%d waiters, want %d", got, want)
	}
	x.b.do(func(g *group) {
		n := 0
		for _, q := range g.b.queues {
			for _, w := range q.primary().wait {
				n += w.n
				if lines := len(w.lines); (w.n == 0) != (lines == 0) {
					x.t.Errorf("%d waiters stand in %d lines", w.n, lines)
				}
			}
		}
		if int64(n) != want || len(g.b.hasty) > 0 {
			x.t.Errorf("%d waiters stand in line, %d are in haste; want %d in all", n, len(g.b.hasty), want)
		}
	})
}

// untouched checks that the queue has one message, visible and never delivered.
func (x *bench) untouched(id queue.ID) {
	x.t.Helper()
	if m, _ := x.b.Stats(id, "", nil); m.InFlight != 0 || m.Visible != 1 {
		x.t.Errorf("stats are %+v, want one visible", m)
	}
	got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
	if len(got) != 1 || got[0].DeliveryCount != 1 {
		x.t.Errorf("got %+v, want a first delivery", got)
	}
}

// inBubble runs a test with a broker and a queue in a bubble.
func inBubble(t *testing.T, f func(t *testing.T, x *bench, id queue.ID)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		f(t, x, x.queue("orders", nil))
	})
}

func TestWaiterCancelledWhileItWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		ctx, cancel := context.WithCancel(t.Context())
		done := x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
		x.waiters(1)
		time.Sleep(3 * time.Second)
		cancel()
		if got := <-done; !errors.Is(got.err, context.Canceled) || got.after != 3*time.Second {
			t.Errorf("got %+v", got)
		}
		x.waiters(0)
		x.put(id, "", "a")
		x.untouched(id)
	})
}

func TestWaiterCancelledBeforeItAsks(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.put(id, "", "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := <-x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second}); !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %+v", got)
		}
		x.waiters(0)
		x.untouched(id)
	})
}

// The client goes while its request waits for its turn, both with a message
// there and without one.
func TestWaiterCancelledBeforeItsTurn(t *testing.T) {
	for _, there := range []bool{true, false} {
		for _, wait := range []time.Duration{0, 20 * time.Second} {
			t.Run(fmt.Sprint(there, wait), func(t *testing.T) {
				inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
					if there {
						x.put(id, "", "a")
					}
					free := x.busy()
					ctx, cancel := context.WithCancel(t.Context())
					done := x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: wait})
					cancel()
					free()
					if got := <-done; !errors.Is(got.err, context.Canceled) {
						t.Errorf("got %+v", got)
					}
					if !there {
						x.put(id, "", "a")
					}
					x.waiters(0)
					x.untouched(id)
				})
			})
		}
	}
}

// The client goes while its answer is on its way to the disk: the delivery is
// taken back, count and all, and its receipt is dead.
func TestWaiterCancelledWhileItIsServed(t *testing.T) {
	for _, hidden := range []time.Duration{time.Hour, 0} {
		t.Run(fmt.Sprint(hidden), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := testdisk.New()
				x := newBench(t, disk)
				defer x.shut()
				x.close()
				var atSync atomic.Pointer[func()]
				x.so.FS = disk.Watch(func(s testdisk.Step) error {
					if f := atSync.Load(); s.Sync && f != nil {
						(*f)()
					}
					return nil
				})
				x.open()
				id := x.queue("orders", nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := x.poll(ctx, ReceiveRequest{Queue: id, Visibility: hidden, Wait: 20 * time.Second})
				stop := func() { cancel() }
				atSync.Store(&stop)
				x.put(id, "", "a")
				atSync.Store(nil)
				if got := <-done; !errors.Is(got.err, context.Canceled) {
					t.Errorf("got %+v", got)
				}
				x.waiters(0)
				x.untouched(id)
			})
		})
	}
}

func TestWaiterDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		got := <-x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
		if !errors.Is(got.err, context.DeadlineExceeded) || got.after != 7*time.Second {
			t.Errorf("got %+v", got)
		}
		x.waiters(0)
		x.put(id, "", "a")
		x.untouched(id)
	})
}

func TestPollEndsAtItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		for _, wait := range []time.Duration{0, time.Millisecond, time.Second, 30 * time.Second} {
			if got := <-x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: wait}); got.err != nil || len(got.out) > 0 || got.after != wait {
				t.Errorf("a poll of %v: %+v", wait, got)
			}
		}
		x.waiters(0)
	})
}

// The poll ends at the very moment a message comes: either the poll has it or
// the queue, and nobody waits any more.
func TestPollEndsAsMessageComes(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
			done := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 5 * time.Second})
			time.Sleep(5 * time.Second)
			x.put(id, "", "a")
			got := <-done
			if got.err != nil || got.after != 5*time.Second {
				t.Errorf("got %+v", got)
			}
			x.waiters(0)
			if m, _ := x.b.Stats(id, "", nil); int(m.InFlight) != len(got.out) || m.Visible+m.InFlight != 1 {
				t.Errorf("the poll got %d, stats are %+v", len(got.out), m)
			}
		})
	}
}

func TestQueueDeletedUnderWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		var all []<-chan polled
		for i := range 6 {
			all = append(all, x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second,
				Dead: i%2 == 0, Filter: only([]string{"", "a", "a*"}[i/2])}))
		}
		x.waiters(6)
		time.Sleep(time.Second)
		if err := x.b.Admin(t.Context(), func(tx *Tx) error {
			q, _ := tx.Queue(id)
			q.State = queue.Deleted
			tx.PutQueue(q)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, done := range all {
			if got := <-done; queue.CodeOf(got.err) != queue.NotAuthorizedOrNotFound || got.after != time.Second {
				t.Errorf("got %+v", got)
			}
		}
		x.waiters(0)
	})
}

func TestDrainAnswersWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		dead := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Dead: true})
		main := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
		x.b.Drain()
		for _, done := range []<-chan polled{dead, main} {
			if got := <-done; got.err != nil || len(got.out) > 0 || got.after != 0 {
				t.Errorf("got %+v", got)
			}
		}
		x.waiters(0)
		x.put(id, "", "a") // still goes
		if got := <-x.poll(t.Context(), ReceiveRequest{Queue: id}); queue.CodeOf(got.err) != queue.ServiceUnavailable {
			t.Errorf("a get while draining: %+v", got)
		}
	})
}

// A closing broker answers whoever is still there.
func TestCloseUnderLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		var all []<-chan polled
		for range 10 {
			all = append(all, x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second}))
		}
		free := x.busy()
		late := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
		closed := make(chan error)
		go func() { closed <- x.b.Close() }()
		synctest.Wait()
		free()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		for _, done := range append(all, late) {
			got := <-done
			if len(got.out) > 0 || got.err != nil && queue.CodeOf(got.err) != queue.ServiceUnavailable || got.after != 0 {
				t.Errorf("got %+v", got)
			}
		}
		if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 1)}); queue.CodeOf(err) != queue.ServiceUnavailable {
			t.Errorf("publish after the close: %v", err)
		}
		x.s.Close()
	})
}

// Two hundred polls whose clients are gone, then one message: the next live
// get has it at once, as the first delivery (see also FC-05).
func TestManyDeadWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan polled
		for i := range 200 {
			all = append(all, x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second,
				Filter: only([]string{"", "a", "*"}[i%3])}))
		}
		x.waiters(200)
		var most atomic.Int64
		x.b.ObserveGroups(func(int, time.Duration) {
			m, _ := x.b.Stats(id, "", nil)
			most.Store(max(most.Load(), m.InFlight))
		})
		// No goroutine of theirs has run when the message comes.
		cancel()
		x.put(id, "a", "door 12 open")
		if m, _ := x.b.Stats(id, "", nil); m.InFlight != 0 || most.Load() != 0 {
			t.Errorf("stats are %+v, in flight were up to %d", m, most.Load())
		}
		got := <-x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 5 * time.Second})
		if len(got.out) != 1 || got.out[0].DeliveryCount != 1 || got.after != 0 {
			t.Errorf("got %+v", got)
		}
		for _, done := range all {
			if got := <-done; !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %+v", got)
			}
		}
		x.waiters(0)
	})
}

// One message wakes one waiter, the one that has waited longest, and those
// behind wait on.
func TestWaitersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		const n = 9
		var all []<-chan polled
		for i := range n {
			all = append(all, x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second,
				Filter: only([]string{"", "a", "a*"}[i%3])}))
		}
		for i := range n {
			time.Sleep(time.Second)
			x.put(id, "a", fmt.Sprint(i))
			if got := <-all[i]; len(got.out) != 1 || string(got.out[0].Body) != fmt.Sprint(i) || got.after != time.Duration(i+1)*time.Second {
				t.Errorf("waiter %d got %+v", i, got)
			}
			x.waiters(int64(n - i - 1))
		}
	})
}

// A batch is spread over the waiters in their order, each taking up to its
// limit; what no filter of theirs allows stays.
func TestBatchServesSeveralWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		two := x.poll(t.Context(), ReceiveRequest{Queue: id, Limit: 2, Visibility: time.Hour, Wait: 20 * time.Second})
		other := x.poll(t.Context(), ReceiveRequest{Queue: id, Limit: 20, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("b")})
		rest := x.poll(t.Context(), ReceiveRequest{Queue: id, Limit: 20, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("a")})
		x.put(id, "a", "1", "2", "3", "4", "5")
		bodies := func(p polled) (out []string) {
			for _, d := range p.out {
				out = append(out, string(d.Body))
			}
			return out
		}
		if got := bodies(<-two); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("the first got %q", got)
		}
		if got := bodies(<-rest); !slices.Equal(got, []string{"3", "4", "5"}) {
			t.Errorf("the third got %q", got)
		}
		x.waiters(1)
		x.put(id, "b", "6")
		if got := bodies(<-other); !slices.Equal(got, []string{"6"}) {
			t.Errorf("the second got %q", got)
		}
		x.waiters(0)
	})
}

// Those who wait for another channel, or for dead letters, do not stand in the
// way.
func TestWaitersOfOtherChannels(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 50 {
			x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only(fmt.Sprintf("other%d", i))})
		}
		x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("z*")})
		x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Dead: true})
		done := x.poll(ctx, ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second, Filter: only("mine")})
		x.put(id, "mine", "a")
		if got := <-done; len(got.out) != 1 || got.after != 0 {
			t.Errorf("got %+v", got)
		}
		x.put(id, "", "b") // no channel: none of these filters
		x.waiters(52)
		cancel()
		x.waiters(0)
		x.untouchedBy(id, "b")
	})
}

func (x *bench) untouchedBy(id queue.ID, body string) {
	x.t.Helper()
	got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
	if len(got) != 1 || got[0].DeliveryCount != 1 || string(got[0].Body) != body {
		x.t.Errorf("got %+v, want a first delivery of %s", got, body)
	}
}

// A get that comes when others wait stands behind them, also if it does not
// want to wait: a message that comes in the same group is for the first.
func TestNewGetsStandBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		first := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Wait: 20 * time.Second})
		free := x.busy()
		hasty := x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour})
		go x.put(id, "", "a")
		free()
		if got := <-first; len(got.out) != 1 {
			t.Errorf("the first got %+v", got)
		}
		if got := <-hasty; len(got.out) != 0 || got.err != nil || got.after != 0 {
			t.Errorf("the hasty one got %+v", got)
		}
		x.waiters(0)
	})
}

// A get that does not wait is answered in its own group, whatever else is in it.
func TestHastyGets(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.put(id, "a", "1", "2")
		free := x.busy()
		var all []<-chan polled
		for i := range 9 {
			all = append(all, x.poll(t.Context(), ReceiveRequest{Queue: id, Visibility: time.Hour, Filter: only([]string{"a", "b", "*"}[i%3])}))
		}
		free()
		took := 0
		for i, done := range all {
			got := <-done
			if got.err != nil || got.after != 0 || i%3 == 1 && len(got.out) > 0 {
				t.Errorf("get %d: %+v", i, got)
			}
			took += len(got.out)
		}
		if took != 2 {
			t.Errorf("%d were delivered", took)
		}
		x.waiters(0)
	})
}
