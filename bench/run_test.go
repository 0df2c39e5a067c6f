package bench

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func options(shape string) Options {
	o := Defaults()
	o.Shape, o.Producers, o.Consumers, o.Batch, o.Size = shape, 1, 2, 1, 64
	o.Warmup, o.Duration = time.Second, 10*time.Second
	return o
}

// TestOpenLoop has a server that stands still for two seconds while an
// operation is due every 100 ms. All that were due meanwhile waited, and the
// latencies say so; without a rate only one operation waits.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate    float64
		slow    int // operations of a second and more
		publish int64
	}{
		{10, 11, 100}, // due at 0, 0.1, … 1.0 s of the two seconds
		{0, 1, 8001},
	} {
		synctest.Test(t, func(t *testing.T) {
			var began time.Time
			stalled := false
			f := &fake{publishing: func(int) error {
				time.Sleep(time.Millisecond)
				if !stalled && time.Since(began) >= 5*time.Second {
					stalled = true
					time.Sleep(2*time.Second - time.Millisecond)
				}
				return nil
			}}
			o := options("publish")
			o.Rate = tt.rate
			began = time.Now()
			var slow int64
			p := f.measure(t, t.Context(), o, func(r *run) {
				r.publish(t.Context())
				for i := range r.rec.shards {
					for _, b := range r.rec.shards[i].h[publishing].Distribution() {
						if b.From >= 990_000 {
							slow += b.Count
						}
					}
				}
			})
			if slow != int64(tt.slow) {
				t.Errorf("rate %v: %d operations took a second, want %d", tt.rate, slow, tt.slow)
			}
			if p.Publish.Count < tt.publish-1 || p.Publish.Count > tt.publish+1 || p.Missed != 0 {
				t.Errorf("rate %v: %d operations, %d missed, want %d", tt.rate, p.Publish.Count, p.Missed, tt.publish)
			}
			if p.Publish.Max < 1999 || p.Publish.Max > 2002 {
				t.Errorf("rate %v: the longest took %v ms", tt.rate, p.Publish.Max)
			}
			if (p.Publish.P90 > 1000) != (tt.rate > 0) {
				t.Errorf("rate %v: p90 is %v ms", tt.rate, p.Publish.P90)
			}
		})
	}
}

// TestStallAtTheEnd has a server that stands still when the time is over:
// what was due is begun all the same.
func TestStallAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fake{publishing: func(int) error {
			time.Sleep(time.Millisecond)
			if late := 12*time.Second - time.Since(began); late > 0 && late < 2*time.Second {
				time.Sleep(late)
			}
			return nil
		}}
		o := options("publish")
		o.Rate = 10
		p := f.measure(t, t.Context(), o, func(r *run) { r.publish(t.Context()) })
		if p.Publish.Count != 100 || p.Missed != 0 || p.Publish.Max < 1800 {
			t.Errorf("%d operations, %d missed, max %v ms; want 100, 0, nearly 2 s", p.Publish.Count, p.Missed, p.Publish.Max)
		}
	})
}

// TestMissed asks for ten times of what the server can do.
func TestMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{publishing: func(int) error { time.Sleep(999 * time.Millisecond); return nil }}
		o := options("publish")
		o.Rate = 10
		p := f.measure(t, t.Context(), o, func(r *run) { r.publish(t.Context()) })
		// Of 160 in 16 s it did 17, and with the warmup's 10 they were the first.
		if p.Missed != 93 || p.Publish.Count != 100 {
			t.Errorf("%d operations count, %d were missed; want 100 and 93", p.Publish.Count, p.Missed)
		}
		if p.Publish.P50 < 9000 {
			t.Errorf("p50 is %v ms: those that were missed had waited longer", p.Publish.P50)
		}
		if p.Published.Messages != 10 {
			t.Errorf("%d published within ten seconds, want 10", p.Published.Messages)
		}
		if !strings.Contains(strings.Join(p.Notes, "\n"), "the rate was not reached") {
			t.Errorf("notes %q", p.Notes)
		}
	})
}

// TestVerify loses messages and delivers some twice.
func TestVerify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			publishing: func(n int) error { time.Sleep(time.Millisecond); return nil },
			drop:       func(n uint64) bool { return n == 20 || n == 5 },
			twice:      func(n uint64) bool { return n == 3 },
		}
		o := options("drain")
		o.Messages, o.Duration = 50, time.Second
		var err error
		p := f.measure(t, t.Context(), o, func(r *run) { err = r.drain(t.Context()) })
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Verified; *v.Lost != 2 || v.Left != 2 || v.Duplicates != 1 || v.Published < 50 {
			t.Errorf("%+v, lost %d; want 2 lost, 1 duplicate", v, *v.Lost)
		}
		if !strings.Contains(strings.Join(p.Notes, "\n"), "2 MESSAGES ARE LOST") {
			t.Errorf("notes %q", p.Notes)
		}
		if p.Consumed.Messages == 0 || p.Publish != nil || p.EndToEnd != nil {
			t.Errorf("%+v", p)
		}
	})
}

// TestLeft publishes and consumes nothing: all is left and nothing lost.
func TestLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{publishing: func(int) error { time.Sleep(time.Millisecond); return nil }}
		p := f.measure(t, t.Context(), options("publish"), func(r *run) { r.publish(t.Context()) })
		if v := p.Verified; v.Left != v.Published || *v.Lost != 0 || v.Published < 10_000 {
			t.Errorf("%+v", v)
		}
	})
}

// TestErrorsAreCounted refuses every tenth publish.
func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{publishing: func(n int) error {
			time.Sleep(10 * time.Millisecond)
			switch {
			case n%10 == 9:
				return errFull
			case n == 5:
				return errOther
			}
			return nil
		}}
		p := f.measure(t, t.Context(), options("steady"), func(r *run) { r.steady(t.Context()) })
		if p.Errors["TooManyRequests"] < 50 || p.Errors["Other"] != 1 {
			t.Errorf("errors %v", p.Errors)
		}
		if !strings.Contains(strings.Join(p.Notes, "\n"), "TooManyRequests is a limit of the server") {
			t.Errorf("notes %q", p.Notes)
		}
		if *p.Verified.Lost != 0 || p.Verified.Left != 0 || p.EndToEnd == nil || p.Settle == nil {
			t.Errorf("%+v", p)
		}
	})
}

// TestInterrupted ends a run before its time, and one during its warmup.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{4 * time.Second, 500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			f := &fake{publishing: func(int) error { time.Sleep(time.Millisecond); return nil }}
			p := f.measure(t, ctx, options("steady"), func(r *run) { r.steady(ctx) })
			want := max(after-time.Second, 0).Seconds()
			if !p.Interrupted || p.Seconds < want || p.Seconds > want+0.01 {
				t.Errorf("after %v: %v seconds, interrupted %v", after, p.Seconds, p.Interrupted)
			}
		})
	}
}

// TestDeadServer answers nothing; the run is cut.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hard, cut := context.WithCancel(t.Context())
		defer cut()
		f := &fake{publishing: func(int) error { <-hard.Done(); return hard.Err() }}
		r := newRun(options("publish"), f, f, hard, cut)
		r.queues = []string{"q"}
		r.o.Admin = ""
		began := time.Now()
		r.publish(t.Context())
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff(map[string]uint64{"Canceled": 1}, r.report(t.Context()).Errors); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}
