package limits_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// allowed counts how many of n calls are let through.
func allowed(n int, call func() error) (ok int) {
	for range n {
		if call() == nil {
			ok++
		}
	}
	return ok
}

func TestRequestRate(t *testing.T) {
	s := limits.OCI()
	s.RequestsPerSecond, s.GetsPerSecond = 100, 10
	r := limits.NewRates(&s, 1000)
	put := func(at time.Duration) func() error {
		return func() error { return r.Request(1, "PutMessages", begin.Add(at)) }
	}
	for _, tt := range []struct {
		at   time.Duration
		want int
	}{{0, 100}, {0, 0}, {500 * time.Millisecond, 50}, {time.Second, 50}, {time.Hour, 100}} {
		if got := allowed(200, put(tt.at)); got != tt.want {
			t.Errorf("at %v: %d requests let through, want %d", tt.at, got, tt.want)
		}
	}
	check(t, "put", put(time.Hour)(), queue.TooManyRequests, "limits.requests-per-second")
	at := begin.Add(time.Hour)
	check(t, "another API", r.Request(1, "DeleteMessage", at), "", "")
	check(t, "another queue", r.Request(2, "PutMessages", at), "", "")
	if got := allowed(200, func() error { return r.Get(1, at) }); got != 10 {
		t.Errorf("%d gets let through, want 10", got)
	}
	check(t, "get", r.Get(1, at), queue.TooManyRequests, "limits.gets-per-second")
	r.Forget(1)
	check(t, "forgotten", r.Get(1, at), "", "")
	r.Forget(77)
}

// TestManyAPIs checks that made-up names cannot fill memory.
func TestManyAPIs(t *testing.T) {
	s := limits.OCI()
	r := limits.NewRates(&s, 1)
	n := 0
	for i := range 100 {
		n += allowed(2000, func() error { return r.Request(1, fmt.Sprint(i), begin) })
	}
	if n != 16*1000 {
		t.Errorf("%d requests let through, want 16 buckets of 1000", n)
	}
}

func TestIngress(t *testing.T) {
	s := limits.OCI()
	s.IngressBytesPerSecond = 1000 // below one request
	r := limits.NewRates(&s, 1000)
	const full = 1 << 20 // of a queue with LARGE_MESSAGES
	check(t, "a full request", r.Ingress(1, full, begin), "", "")
	check(t, "one octet more", r.Ingress(1, 1, begin), queue.TooManyRequests, "limits.ingress-bytes-per-second")
	check(t, "empty", r.Ingress(1, 0, begin), "", "")
	check(t, "a second later", r.Ingress(1, 1000, begin.Add(time.Second)), "", "")
	check(t, "more", r.Ingress(1, 1, begin.Add(time.Second)), queue.TooManyRequests, "limits.ingress-bytes-per-second")
	check(t, "another queue", r.Ingress(2, full, begin), "", "")

	s = limits.OCI()
	r = limits.NewRates(&s, 1000)
	if got := allowed(100, func() error { return r.Ingress(1, full, begin) }); got != 10 {
		t.Errorf("%d full requests at once, want 10 of 1 MiB in 10 MiB", got)
	}
}

func TestEgress(t *testing.T) {
	s := limits.OCI()
	r := limits.NewRates(&s, 1000)
	ready := func(at time.Duration) error { return r.EgressReady(1, begin.Add(at)) }
	check(t, "unused", ready(0), "", "")
	r.Egress(1, 10<<20, begin)
	check(t, "used up, no debt", ready(0), "", "")
	r.Egress(1, 25<<20, begin) // more than the bucket ever holds
	check(t, "in debt", ready(0), queue.TooManyRequests, "limits.egress-bytes-per-second")
	check(t, "still", ready(2499*time.Millisecond), queue.TooManyRequests, "limits.egress-bytes-per-second")
	check(t, "paid", ready(2501*time.Millisecond), "", "")
	r.Egress(1, 0, begin)
	check(t, "another queue", r.EgressReady(2, begin), "", "")
}

func TestUnlimited(t *testing.T) {
	s := limits.Unthrottled()
	r := limits.NewRates(&s, 10)
	for range 10_000 {
		for _, err := range []error{
			r.Request(1, "PutMessages", begin), r.Get(1, begin), r.Ingress(1, 1<<30, begin), r.EgressReady(1, begin),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		r.Egress(1, 1<<30, begin)
	}
	if r.Len() != 0 {
		t.Errorf("%d queues remembered without a rate", r.Len())
	}
}

func TestRatesMemory(t *testing.T) {
	s := limits.OCI()
	r := limits.NewRates(&s, 160)
	for i := range uint64(10_000) {
		if err := r.Get(i, begin); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Len(); got != 160 {
		t.Errorf("%d queues remembered, want 160", got)
	}

	// All are quiet for a while; those that come after let them go.
	r.Egress(9_999, 3600*10<<20, begin) // an hour of debt
	for i := range uint64(10_000) {
		r.Get(i%32, begin.Add(2*time.Minute))
	}
	if got := r.Len(); got > 33 {
		t.Errorf("%d queues remembered, want those in use and the one in debt", got)
	}
	check(t, "debt", r.EgressReady(9_999, begin.Add(2*time.Minute)), queue.TooManyRequests, "limits.egress-bytes-per-second")
}

// TestRatesBackwards has two callers whose clocks were read in another order
// than they arrive in.
func TestRatesBackwards(t *testing.T) {
	s := limits.OCI()
	r := limits.NewRates(&s, 10)
	n := 0
	for i := range 100_000 {
		n += allowed(1, func() error { return r.Get(1, begin.Add(time.Duration(i%2)*time.Second)) })
	}
	if n > 2000 {
		t.Errorf("%d gets let through in a second and a full bucket, want 2000", n)
	}
}

func TestRatesConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limits.OCI()
		r := limits.NewRates(&s, 64)
		var ok atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 100 {
					for q := range uint64(3) {
						if r.Request(q, "PutMessages", time.Now()) == nil {
							ok.Add(1)
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		wg.Wait() // 10 s of 50 clients, 10 requests a second each, on three queues
		if got := ok.Load(); got != 3*50*100 {
			t.Errorf("%d requests let through, want all 15000", got)
		}
	})
}

func BenchmarkRates(b *testing.B) {
	for _, profile := range limits.Profiles {
		b.Run(profile, func(b *testing.B) {
			s, _ := limits.Profile(profile)
			r := limits.NewRates(&s, 10_000)
			b.ReportAllocs()
			now := begin
			i := uint64(0)
			for b.Loop() {
				i++
				now = now.Add(10 * time.Microsecond)
				r.Request(i%100, "PutMessages", now)
				r.Ingress(i%100, 1024, now)
			}
		})
	}
}
