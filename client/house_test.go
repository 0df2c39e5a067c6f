package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/client"
	"github.com/queued-mq/queued/internal/queuetest"
)

// house is a client of a whole server with a queue "q", in a bubble: the bubble
// fails if a goroutine is left, and if what waits would wait for ever.
type house struct {
	*testing.T
	server *queuetest.Server
	client *client.Client
	mu     sync.Mutex
	errs   []error // told to OnError
}

func inBubble(t *testing.T, test func(h *house)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &house{T: t, server: queuetest.Start(t)}
		c, err := client.Dial(h.server.Target(), client.Options{DialOptions: h.server.DialOptions(), OnError: h.told})
		if err != nil {
			t.Fatal(err)
		}
		h.client = c
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := c.EnsureQueue(t.Context(), "q", client.QueueOptions{Deliveries: -1}); err != nil {
			t.Fatal(err)
		}
		test(h)
	})
}

func (h *house) told(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

func (h *house) reports() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.errs
}

// put publishes n messages whose bodies are their numbers.
func (h *house) put(n int) {
	h.Helper()
	p := h.client.Publisher("q", client.PublisherOptions{})
	for i := range n {
		p.Send(h.Context(), client.Message{Body: fmt.Append(nil, i)})
	}
	if err := p.Close(); err != nil {
		h.Fatal(err)
	}
}

// stats are how many messages of q are visible, in flight and delayed.
func (h *house) stats() [3]int64 {
	h.Helper()
	s, err := h.client.Messages().GetStats(h.Context(), &queuev1.GetStatsRequest{QueueId: "q"})
	if err != nil {
		h.Fatal(err)
	}
	q := s.QueueStats.Queue
	return [3]int64{q.VisibleMessages, q.InFlightMessages, q.DelayedMessages}
}

func (h *house) wantStats(want [3]int64) {
	h.Helper()
	if got := h.stats(); got != want {
		h.Errorf("visible, in flight, delayed: %v, want %v", got, want)
	}
}

// start consumes q until stop, which waits and is the error of Consume.
func (h *house) start(handler client.Handler, o client.ConsumerOptions) (stop func() error) {
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan error, 1)
	go func() { done <- h.client.Consume(ctx, "q", handler, o) }()
	return func() error {
		cancel()
		return <-done
	}
}

// Many publishers and consumers, the connection cut again and again: every
// message is stored once, handled, and acknowledged.
func TestBrokenAgainAndAgain(t *testing.T) {
	inBubble(t, func(h *house) {
		const each, publishers = 400, 4
		p := h.client.Publisher("q", client.PublisherOptions{})
		var sending sync.WaitGroup
		for who := range publishers {
			sending.Go(func() {
				for i := range each {
					if _, err := p.Publish(h.Context(), client.Message{Body: fmt.Appendf(nil, "%d/%d", who, i)}); err != nil {
						h.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		var mu sync.Mutex
		seen := map[string]int{}
		stop := h.start(func(_ context.Context, m *client.Delivery) error {
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			seen[string(m.Body)]++
			return nil
		}, client.ConsumerOptions{Concurrency: 8, Prefetch: 64})
		for range 5 {
			time.Sleep(100 * time.Millisecond)
			if err := h.server.Break(); err != nil {
				h.Error(err)
			}
			time.Sleep(300 * time.Millisecond)
			h.server.Resume()
		}
		sending.Wait()
		time.Sleep(time.Minute) // what went down with a connection comes again
		if err := stop(); err != nil {
			h.Error(err)
		}
		if len(seen) != each*publishers {
			h.Errorf("%d messages were handled, want %d", len(seen), each*publishers)
		}
		h.wantStats([3]int64{})
		if len(h.reports()) == 0 {
			h.Error("nobody was told of the broken streams")
		}
		if err := p.Close(); err != nil {
			h.Error(err)
		}
	})
}

// A resend stores nothing twice.
func TestOnce(t *testing.T) {
	inBubble(t, func(h *house) {
		p := h.client.Publisher("q", client.PublisherOptions{})
		for i := range 500 {
			p.Send(h.Context(), client.Message{Body: fmt.Append(nil, i)})
			time.Sleep(time.Millisecond) // so that it is connected again now and then
			if i%100 == 99 {
				if err := h.server.Break(); err != nil {
					h.Error(err)
				}
				h.server.Resume()
			}
		}
		if err := p.Close(); err != nil {
			h.Error(err)
		}
		h.wantStats([3]int64{500, 0, 0})
		if _, err := p.Publish(h.Context(), client.Message{}); !errors.Is(err, client.ErrClosed) {
			h.Errorf("after Close: %v", err)
		}
	})
}

// Everything that a message can bear arrives.
func TestWhatAMessageBears(t *testing.T) {
	inBubble(t, func(h *house) {
		p := h.client.Publisher("q", client.PublisherOptions{})
		begin := time.Now()
		id, err := p.Publish(h.Context(), client.Message{
			Body: []byte("\x00\xff"), Channel: "c", Properties: map[string]string{"k": "v"},
			Delay: 1500 * time.Millisecond, Retention: time.Hour, Visibility: 5 * time.Second,
		})
		if err != nil {
			h.Fatal(err)
		}
		h.wantStats([3]int64{0, 0, 1})
		var got *client.Delivery
		stop := h.start(func(_ context.Context, m *client.Delivery) error { got = m; return nil }, client.ConsumerOptions{Channel: "c*"})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			h.Fatal(err)
		}
		if got == nil || got.ID != id || string(got.Body) != "\x00\xff" || got.Channel != "c" || got.Properties["k"] != "v" || got.Count != 1 ||
			!got.CreatedAt.Equal(begin) || !got.ExpiresAt.Equal(begin.Add(time.Hour)) || got.DeadLetter != nil || got.Receipt == "" {
			h.Errorf("%+v", got)
		}
		h.wantStats([3]int64{})
	})
}

// What the server refuses ends the message and nothing else, although it went
// in one batch with others.
func TestRefused(t *testing.T) {
	inBubble(t, func(h *house) {
		p := h.client.Publisher("q", client.PublisherOptions{})
		var all []*client.Pending
		for i := range 100 {
			m := client.Message{Body: fmt.Append(nil, i)}
			if i%10 == 5 {
				m.Channel = "no channel is called so"
			}
			all = append(all, p.Send(h.Context(), m))
		}
		for i, d := range all {
			_, err := d.Wait(h.Context())
			if code := client.CodeOf(err); (code == client.InvalidParameter) != (i%10 == 5) {
				h.Errorf("message %d: %v", i, err)
			}
		}
		if err := p.Flush(h.Context()); client.CodeOf(err) != client.InvalidParameter {
			h.Errorf("Flush: %v", err)
		}
		if err := p.Flush(h.Context()); err != nil {
			h.Errorf("the second Flush: %v", err)
		}
		h.wantStats([3]int64{90, 0, 0})
		for code, m := range map[client.Code]client.Message{
			client.PayloadTooLarge:  {Body: make([]byte, 1<<20)},
			client.InvalidParameter: {Properties: map[string]string{"k": "\xff"}},
		} {
			if _, err := p.Publish(h.Context(), m); client.CodeOf(err) != code {
				h.Errorf("%v, want %s", err, code)
			}
		}
		none := h.client.Publisher("none", client.PublisherOptions{})
		if _, err := none.Publish(h.Context(), client.Message{}); client.CodeOf(err) != client.NotAuthorizedOrNotFound {
			h.Errorf("a queue that is not there: %v", err)
		}
	})
}

// While a handler runs, its message stays hidden, and so do those that wait.
func TestExtension(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(3)
		var runs atomic.Int32
		stop := h.start(func(ctx context.Context, m *client.Delivery) error {
			runs.Add(1)
			select {
			case <-time.After(5 * time.Minute):
			case <-ctx.Done():
				h.Errorf("message %d: %v", m.ID, context.Cause(ctx))
			}
			if m.Count != 1 {
				h.Errorf("message %d: delivery %d", m.ID, m.Count)
			}
			return nil
		}, client.ConsumerOptions{Visibility: 2 * time.Second, Prefetch: 3})
		time.Sleep(14 * time.Minute)
		h.wantStats([3]int64{0, 1, 0})
		time.Sleep(2 * time.Minute)
		h.wantStats([3]int64{})
		if err := stop(); err != nil || runs.Load() != 3 || len(h.reports()) > 0 {
			h.Errorf("%v after %d runs, told %v", err, runs.Load(), h.reports())
		}
	})
}

// An error and a panic give the message back, after the delay for its count.
func TestFailingHandler(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(1)
		begin := time.Now()
		var at []time.Duration
		bad := errors.New("bad")
		stop := h.start(func(_ context.Context, m *client.Delivery) error {
			at = append(at, time.Since(begin))
			switch m.Count {
			case 1:
				return bad
			case 2:
				panic("worse")
			case 3:
				runtime.Goexit()
			}
			return nil
		}, client.ConsumerOptions{Concurrency: 2, ReturnDelay: func(m *client.Delivery, err error) time.Duration { return time.Duration(m.Count) * time.Minute }})
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			h.Error(err)
		}
		h.wantStats([3]int64{})
		if len(at) != 4 || at[1]-at[0] < time.Minute || at[1]-at[0] > 62*time.Second || at[2]-at[1] < 2*time.Minute || at[2]-at[1] > 122*time.Second {
			h.Errorf("handled at %v", at)
		}
		told := h.reports()
		if len(told) != 3 || !errors.Is(told[0], bad) {
			h.Fatalf("told %v", told)
		}
		if p, ok := errors.AsType[*client.PanicError](told[1]); !ok || p.Value != "worse" || len(p.Stack) == 0 {
			h.Errorf("told %v", told[1])
		}
		if d, ok := errors.AsType[*client.DeliveryError](told[1]); !ok || d.Op != "handle" || d.Message.Count != 2 {
			h.Errorf("told %v", told[1])
		}
	})
}

// At a stop running handlers finish, and what they have not begun is visible at
// once.
func TestStop(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(20)
		stop := h.start(func(ctx context.Context, m *client.Delivery) error {
			time.Sleep(10 * time.Second)
			return ctx.Err()
		}, client.ConsumerOptions{Concurrency: 2, Prefetch: 10})
		time.Sleep(time.Second)
		h.wantStats([3]int64{10, 10, 0})
		done := make(chan error, 1)
		begin := time.Now()
		go func() { done <- stop() }()
		time.Sleep(time.Second)
		h.wantStats([3]int64{18, 2, 0})
		if err := <-done; err != nil || time.Since(begin) > 10*time.Second {
			h.Errorf("%v after %v", err, time.Since(begin))
		}
		h.wantStats([3]int64{18, 0, 0})
		if told := h.reports(); len(told) > 0 {
			h.Errorf("told %v", told)
		}
	})
}

// A handler that does not finish is told so after StopTimeout.
func TestStopTimeout(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(1)
		stop := h.start(func(ctx context.Context, _ *client.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}, client.ConsumerOptions{StopTimeout: time.Minute})
		time.Sleep(time.Hour)
		begin := time.Now()
		if err := stop(); err != nil || time.Since(begin) < time.Minute || time.Since(begin) > 61*time.Second {
			h.Errorf("%v after %v", err, time.Since(begin))
		}
		h.wantStats([3]int64{1, 0, 0})
	})
}

// A stop does not wait for a server that is not there if there is nothing to
// settle, and not for ever if there is.
func TestStopWithoutServer(t *testing.T) {
	inBubble(t, func(h *house) {
		if err := h.server.Break(); err != nil {
			h.Fatal(err)
		}
		stop := h.start(func(context.Context, *client.Delivery) error { return nil }, client.ConsumerOptions{})
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := stop(); err != nil || time.Since(begin) > 0 {
			h.Errorf("%v after %v", err, time.Since(begin))
		}
		h.server.Resume()
		h.put(1)
		stop = h.start(func(context.Context, *client.Delivery) error {
			if err := h.server.Break(); err != nil {
				h.Error(err)
			}
			return nil
		}, client.ConsumerOptions{})
		time.Sleep(time.Minute)
		begin = time.Now()
		if err := stop(); !errors.Is(err, client.ErrUnsettled) || client.CodeOf(err) != client.ServiceUnavailable || time.Since(begin) > 10*time.Second {
			h.Errorf("%v after %v", err, time.Since(begin))
		}
		h.server.Resume()
	})
}

// Without extension the handler's context ends with the lease.
func TestLeaseEnds(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(1)
		stop := h.start(func(ctx context.Context, m *client.Delivery) error {
			begin := time.Now()
			if m.Count == 1 {
				<-ctx.Done()
				if context.Cause(ctx) != client.ErrLeaseLost || time.Since(begin) < 5*time.Second || time.Since(begin) > 6*time.Second {
					h.Errorf("%v after %v", context.Cause(ctx), time.Since(begin))
				}
				return ctx.Err()
			}
			return nil
		}, client.ConsumerOptions{NoExtend: true, Visibility: 5 * time.Second})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			h.Error(err)
		}
		h.wantStats([3]int64{})
	})
}

// A purge takes the message away from the handler that has it.
func TestLeaseIsTaken(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(1)
		lost := make(chan error, 1)
		stop := h.start(func(ctx context.Context, m *client.Delivery) error {
			<-ctx.Done()
			lost <- context.Cause(ctx)
			return ctx.Err()
		}, client.ConsumerOptions{})
		time.Sleep(time.Second)
		if _, err := h.client.Queues().PurgeQueue(h.Context(), &queuev1.PurgeQueueRequest{QueueId: "q", PurgeQueueDetails: &queuev1.PurgeQueueDetails{PurgeType: queuev1.PurgeQueueDetails_NORMAL.Enum()}}); err != nil {
			h.Fatal(err)
		}
		if err := <-lost; err != client.ErrLeaseLost {
			h.Error(err)
		}
		if err := stop(); err != nil {
			h.Error(err)
		}
	})
}

// What no new stream can mend ends Consume, and tells the handlers.
func TestConsumeEnds(t *testing.T) {
	inBubble(t, func(h *house) {
		handler := func(ctx context.Context, m *client.Delivery) error {
			<-ctx.Done()
			if client.CodeOf(context.Cause(ctx)) != client.NotAuthorizedOrNotFound {
				h.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil
		}
		if err := h.client.Consume(h.Context(), "none", handler, client.ConsumerOptions{}); client.CodeOf(err) != client.NotAuthorizedOrNotFound {
			h.Errorf("a queue that is not there: %v", err)
		}
		for _, o := range []client.ConsumerOptions{{Prefetch: 10001}, {Concurrency: -1}, {Visibility: -1}, {Visibility: 13 * time.Hour}, {Channel: "?"}} {
			if err := h.client.Consume(h.Context(), "q", handler, o); client.CodeOf(err) != client.InvalidParameter {
				h.Errorf("%+v: %v", o, err)
			}
		}
		h.put(1)
		done := make(chan error, 1)
		go func() { done <- h.client.Consume(h.Context(), "q", handler, client.ConsumerOptions{}) }()
		time.Sleep(time.Second)
		begin := time.Now()
		if _, err := h.client.Queues().DeleteQueue(h.Context(), &queuev1.DeleteQueueRequest{QueueId: "q"}); err != nil {
			h.Fatal(err)
		}
		if err := <-done; client.CodeOf(err) != client.NotAuthorizedOrNotFound || time.Since(begin) > 2*time.Second {
			h.Errorf("a deleted queue: %v after %v", err, time.Since(begin))
		}
		first, err := h.client.EnsureQueue(h.Context(), "q", client.QueueOptions{Deliveries: -1})
		if err != nil {
			h.Fatalf("a queue again: %v", err)
		}
		if second, err := h.client.EnsureQueue(h.Context(), "q", client.QueueOptions{}); err != nil || second != first {
			h.Errorf("%s, then %s, %v", first, second, err)
		}
	})
}

// Handlers go on while the stream is replaced, and settle on the next one.
func TestReconnect(t *testing.T) {
	inBubble(t, func(h *house) {
		h.put(4)
		var runs atomic.Int32
		stop := h.start(func(ctx context.Context, _ *client.Delivery) error {
			runs.Add(1)
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}, client.ConsumerOptions{Concurrency: 4, Visibility: 10 * time.Second})
		time.Sleep(5 * time.Second)
		if err := h.server.Break(); err != nil {
			h.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		h.server.Resume()
		time.Sleep(time.Minute)
		h.wantStats([3]int64{})
		if err := stop(); err != nil || runs.Load() != 4 {
			h.Errorf("%v after %d runs", err, runs.Load())
		}
	})
}

// Close ends everything that uses the client.
func TestCloseInUse(t *testing.T) {
	inBubble(t, func(h *house) {
		other, err := client.Dial(h.server.Target(), client.Options{DialOptions: h.server.DialOptions(), OnError: h.told})
		if err != nil {
			h.Fatal(err)
		}
		h.put(10)
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				done <- other.Consume(h.Context(), "q", func(context.Context, *client.Delivery) error { time.Sleep(time.Second); return nil }, client.ConsumerOptions{})
			}()
		}
		p := other.Publisher("q", client.PublisherOptions{})
		sent := p.Send(h.Context(), client.Message{Delay: time.Hour})
		time.Sleep(1500 * time.Millisecond)
		if err := errors.Join(other.Close(), other.Close()); err != nil {
			h.Error(err)
		}
		for range cap(done) {
			if err := <-done; err != client.ErrClosed {
				h.Error(err)
			}
		}
		if _, err := sent.Wait(h.Context()); err != nil {
			h.Error(err)
		}
		h.wantStats([3]int64{6, 0, 1})
		if err := other.Consume(h.Context(), "q", nil, client.ConsumerOptions{}); err != client.ErrClosed {
			h.Error(err)
		}
		if _, err := other.Publisher("q", client.PublisherOptions{}).Publish(h.Context(), client.Message{}); err != client.ErrClosed {
			h.Error(err)
		}
	})
}

// A publisher whose server is not there gives up at the end of the context, of
// the window's patience, and of CloseTimeout.
func TestPublishWithoutServer(t *testing.T) {
	inBubble(t, func(h *house) {
		if err := h.server.Break(); err != nil {
			h.Fatal(err)
		}
		p := h.client.Publisher("q", client.PublisherOptions{Window: 2})
		ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
		defer cancel()
		one := p.Send(ctx, client.Message{})
		if _, err := p.Publish(ctx, client.Message{}); !errors.Is(err, context.DeadlineExceeded) {
			h.Error(err)
		}
		begin := time.Now()
		if err := p.Close(); !errors.Is(err, client.ErrClosed) || time.Since(begin) != 10*time.Second {
			h.Errorf("%v after %v", err, time.Since(begin))
		}
		if _, err := one.Wait(h.Context()); !errors.Is(err, client.ErrClosed) {
			h.Error(err)
		}
		h.server.Resume()
	})
}
