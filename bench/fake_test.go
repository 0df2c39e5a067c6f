package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// fake is a server in memory, of one queue, that stands still and errs as it
// is told to.
type fake struct {
	publishing func(n int) error // before publish n is done
	drop       func(number uint64) bool
	twice      func(number uint64) bool

	mu        sync.Mutex
	publishes int
	queue     []delivery
	inFlight  int
}

func (f *fake) producer(context.Context, int, string) (producer, error) { return f, nil }
func (f *fake) consumer(context.Context, int, string) (consumer, error) { return f, nil }
func (f *fake) Close() error                                            { return nil }

func (f *fake) publish(_ context.Context, batch []message) error {
	f.mu.Lock()
	n := f.publishes
	f.publishes++
	f.mu.Unlock()
	if f.publishing != nil {
		if err := f.publishing(n); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range batch {
		number, meant, err := readHead(m.body)
		if err != nil {
			return err
		}
		d := delivery{receipt: "r", number: number, meant: meant}
		if f.drop == nil || !f.drop(number) {
			f.queue = append(f.queue, d)
		}
		if f.twice != nil && f.twice(number) {
			f.queue = append(f.queue, d)
		}
	}
	return nil
}

func (f *fake) receive(_ context.Context, max int) ([]delivery, error) {
	f.mu.Lock()
	got := slices.Clone(f.queue[:min(max, len(f.queue))])
	f.queue = f.queue[len(got):]
	f.inFlight += len(got)
	f.mu.Unlock()
	if len(got) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for i := range got {
		got[i].at = time.Now()
	}
	return got, nil
}

func (f *fake) settle(_ context.Context, batch []delivery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight -= len(batch)
	return nil
}

func (f *fake) createQueue(context.Context, string) error { return nil }
func (f *fake) deleteQueue(context.Context, string) error { return nil }

func (f *fake) stored(context.Context, string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.queue) + f.inFlight), nil
}

// measure runs a shape against the fake; o need not name addresses.
func (f *fake) measure(t *testing.T, ctx context.Context, o Options, shape func(*run)) *Report {
	t.Helper()
	hard, cut := context.WithCancel(t.Context())
	defer cut()
	o.Admin = ""
	r := newRun(o, f, f, hard, cut)
	if err := r.makeQueues(ctx); err != nil {
		t.Fatal(err)
	}
	shape(r)
	return r.report(ctx)
}

var errFull = &Refusal{Code: "TooManyRequests", Message: "more than 1 request a second (limits.requests-per-second)"}

var errOther = errors.New("something else")
