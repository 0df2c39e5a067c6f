package visibility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/queue"
	"pgregory.net/rapid"
)

// advance fires everything due at now and gives the values in order.
func advance(w *Wheel[string], now queue.Instant) (fired []string) {
	for w.Advance(now, math.MaxInt, func(t *Timer[string]) { fired = append(fired, t.Value) }) {
	}
	return fired
}

func TestWheelExact(t *testing.T) {
	const start = queue.Instant(1_700_000_000_123)
	for _, after := range []time.Duration{
		0, time.Millisecond, 99 * time.Millisecond, 100 * time.Millisecond, 101 * time.Millisecond,
		time.Second, 30 * time.Second, 12 * time.Hour, 7 * 24 * time.Hour, 8*24*time.Hour + 3*time.Millisecond,
		1000 * 24 * time.Hour, 200 * 365 * 24 * time.Hour,
	} {
		t.Run(after.String(), func(t *testing.T) {
			w := NewWheel[string](start)
			timer := &Timer[string]{Value: "x"}
			w.Schedule(timer, start.Add(after))
			if after > 0 {
				if got := advance(w, start.Add(after)-1); got != nil {
					t.Fatal("fired a millisecond early")
				}
				if at, ok := w.Next(); !ok || at < start.Add(after) || at > start.Add(after+Tick) {
					t.Fatalf("Next() = %v, %v a millisecond before %v", at, ok, start.Add(after))
				}
			}
			if !timer.Scheduled() || w.Len() != 1 || timer.At() != start.Add(after) {
				t.Fatalf("Scheduled %v, Len %d, At %v before it fired", timer.Scheduled(), w.Len(), timer.At())
			}
			if got := advance(w, start.Add(after)); len(got) != 1 {
				t.Fatal("did not fire at its instant")
			}
			if timer.Scheduled() || w.Len() != 0 {
				t.Fatalf("Scheduled %v, Len %d after it fired", timer.Scheduled(), w.Len())
			}
			if at, ok := w.Next(); ok {
				t.Fatalf("Next() = %v with no timer", at)
			}
		})
	}
}

func TestWheelEdges(t *testing.T) {
	w := NewWheel[string](1000)
	for at, name := range map[queue.Instant]string{
		math.MinInt64: "a", -1: "b", 0: "c", 999: "d", 1000: "e", math.MaxInt64: "z",
	} {
		w.Schedule(&Timer[string]{Value: name}, at)
	}
	if at, ok := w.Next(); !ok || at > 1000 {
		t.Errorf("Next() = %d, %v with timers due", at, ok)
	}
	got := advance(w, 1000)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, got); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
	if got := advance(w, math.MaxInt64-1); got != nil {
		t.Errorf("fired %v before the end of time", got)
	}
	if got := advance(w, math.MaxInt64); len(got) != 1 {
		t.Error("the timer at the end of time did not fire")
	}
}

func TestWheelOrder(t *testing.T) {
	w := NewWheel[string](0)
	var want []string
	for i := range 3000 {
		name := fmt.Sprint(i)
		want = append(want, name)
		w.Schedule(&Timer[string]{Value: name}, queue.Instant(i/3*777))
	}
	if diff := cmp.Diff(want, advance(w, 1<<40)); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
}

// TestWheelFireSchedules makes fire do what it may: schedule itself for now,
// cancel one that is due as well, move another one.
func TestWheelFireSchedules(t *testing.T) {
	w := NewWheel[string](0)
	a, b, c, d := &Timer[string]{Value: "a"}, &Timer[string]{Value: "b"}, &Timer[string]{Value: "c"}, &Timer[string]{Value: "d"}
	w.Schedule(a, 10)
	w.Schedule(b, 10)
	w.Schedule(c, 20)
	w.Schedule(d, 20)
	var fired []string
	fire := func(t *Timer[string]) {
		fired = append(fired, t.Value)
		if t == a {
			w.Schedule(a, 10)
			w.Cancel(b)
			w.Schedule(c, 5000)
			w.Cancel(t)
			w.Schedule(a, 0)
		}
	}
	if !w.Advance(20, math.MaxInt, fire) {
		t.Error("Advance left a timer that is due and says there is none")
	}
	if diff := cmp.Diff([]string{"a", "d"}, fired); diff != "" {
		t.Errorf("first Advance (-want +got):\n%s", diff)
	}
	if at, ok := w.Next(); !ok || at > 20 {
		t.Errorf("Next() = %v, %v with a timer due", at, ok)
	}
	if w.Len() != 2 {
		t.Errorf("Len() = %d, want 2", w.Len())
	}
	w.Advance(4999, 1, fire)
	w.Cancel(a)
	if w.Advance(4999, 1, fire) {
		t.Error("Advance says that something is due after the last one was cancelled")
	}
	w.Advance(5000, 1, fire)
	if diff := cmp.Diff([]string{"a", "d", "a", "c"}, fired); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
}

// TestWheelBounded has very many timers due in one stretch and checks that no
// Advance does more than its share, moving them down included.
func TestWheelBounded(t *testing.T) {
	const n = 100_000
	w := NewWheel[int](0)
	timers := make([]Timer[int], n)
	for i := range timers {
		w.Schedule(&timers[i], 12*3600*1000+queue.Instant(i%200_000))
	}
	calls, fired := 0, 0
	for w.Advance(1<<40, 100, func(*Timer[int]) { fired++ }) {
		if calls++; calls > 10*n/100 {
			t.Fatal("Advance does not get anywhere")
		}
	}
	if fired != n {
		t.Fatalf("fired %d of %d", fired, n)
	}
	if calls < n/100-1 {
		t.Errorf("fired all in %d calls of at most 100", calls)
	}
	if w.Advance(1<<40, 0, nil) {
		t.Error("an empty wheel says there is more")
	}
}

// TestWheelJump lets a whole year pass, timer by timer and at once.
func TestWheelJump(t *testing.T) {
	const year = 365 * 24 * time.Hour
	w := NewWheel[int](0)
	began := time.Now()
	for i := range 1000 {
		w.Advance(queue.Instant(i)*queue.Instant(year.Milliseconds()), 1, nil)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a thousand empty years took %v", took)
	}
}

// TestWheelModel runs random calls beside a plain list.
func TestWheelModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := queue.Instant(rapid.Int64Range(0, 1<<45).Draw(t, "start"))
		w := NewWheel[int](now)
		timers := make([]Timer[int], 12)
		model := map[int]queue.Instant{} // those scheduled
		for i := range timers {
			timers[i].Value = i
		}
		pick := rapid.IntRange(0, len(timers)-1)
		length := rapid.Custom(func(t *rapid.T) queue.Instant {
			scale := rapid.SampledFrom([]int64{1, 3, 70, 200, 5000, 300_000, 43_200_000, 8 * 86_400_000, 1 << 40}).Draw(t, "scale")
			return queue.Instant(rapid.Int64Range(-scale/4, scale).Draw(t, "length"))
		})
		due := func() (n int) {
			for _, at := range model {
				if at <= now {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"schedule": func(t *rapid.T) {
				i, at := pick.Draw(t, "timer"), now+length.Draw(t, "after")
				w.Schedule(&timers[i], at)
				model[i] = at
			},
			"cancel": func(t *rapid.T) {
				i := pick.Draw(t, "timer")
				w.Cancel(&timers[i])
				delete(model, i)
			},
			"advance": func(t *rapid.T) {
				now += max(0, length.Draw(t, "pass"))
				limit := rapid.SampledFrom([]int{0, 1, 2, 100}).Draw(t, "max")
				again := rapid.SliceOfN(pick, 0, 3).Draw(t, "rescheduled by fire")
				fired, last := 0, queue.Instant(math.MinInt64)
				late := map[int]bool{}
				more := w.Advance(now, limit, func(timer *Timer[int]) {
					at, ok := model[timer.Value]
					if !ok || at > now || timer.At() != at || timer.Scheduled() || late[timer.Value] {
						t.Fatalf("fired timer %d, scheduled for %v (%v), at %v", timer.Value, at, ok, now)
					}
					delete(model, timer.Value)
					fired++
					if at < last && at > now {
						t.Fatalf("fired %v after %v", at, last)
					}
					last = at
					for _, i := range again { // once each, all from within the first fire
						at := now + length.Draw(t, "after")
						w.Schedule(&timers[i], at)
						model[i] = at
						late[i] = at <= now
					}
					again = nil
				})
				if fired > limit {
					t.Fatalf("fired %d, more than %d", fired, limit)
				}
				if left := due(); left > 0 && !more {
					t.Fatalf("%d are due, but Advance says there is none", left)
				} else if left > len(late) && limit == 100 {
					t.Fatalf("fired %d of at most %d, left %d that are due", fired, limit, left)
				} else if left == 0 && w.Advance(now, 100, func(*Timer[int]) { t.Fatal("fired with nothing due") }) {
					t.Fatal("there is no end of more with nothing due")
				}
			},
			"": func(t *rapid.T) {
				if w.Len() != len(model) {
					t.Fatalf("Len() = %d, want %d", w.Len(), len(model))
				}
				for i := range timers {
					if _, ok := model[i]; ok != timers[i].Scheduled() {
						t.Fatalf("timer %d: Scheduled() = %v", i, !ok)
					}
				}
				at, ok := w.Next()
				if ok != (len(model) > 0) {
					t.Fatalf("Next() says %v with %d timers", ok, len(model))
				}
				if !ok {
					return
				}
				first := queue.Instant(math.MaxInt64)
				for _, m := range model {
					first = min(first, m)
				}
				if first <= now && at > now || first > now && at >= first.Add(Tick) {
					t.Fatalf("Next() = %d, but the first is due at %d (now %d)", at, first, now)
				}
			},
		})
	})
}

// BenchmarkWheelLease is the life of most leases: scheduled 30 s ahead, gone
// soon after, among n others.
func BenchmarkWheelLease(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := NewWheel[int64](0)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			timers := make([]*Timer[int64], n)
			for i := range timers {
				timers[i] = new(Timer[int64])
			}
			runtime.ReadMemStats(&after)
			now := queue.Instant(0)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				w.Schedule(timers[i%n], now+30_000)
				w.Cancel(timers[(i+n-n/2)%n])
				i++
				if i%16 == 0 {
					now++
					w.Advance(now, 100, func(*Timer[int64]) {})
				}
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/timer")
		})
	}
}

// BenchmarkWheelLapse is the life of a lease that lapses: scheduled, moved
// down level by level, fired.
func BenchmarkWheelLapse(b *testing.B) {
	for _, span := range []time.Duration{time.Second, 30 * time.Second, 12 * time.Hour} {
		b.Run(span.String(), func(b *testing.B) {
			const n = 100_000
			w := NewWheel[int64](0)
			timers := make([]Timer[int64], n)
			random := rand.New(rand.NewPCG(1, 2))
			now := queue.Instant(0)
			b.ReportAllocs()
			left := 0
			fire := func(*Timer[int64]) { left-- }
			for i := 0; b.Loop(); i++ {
				if left == 0 {
					for j := range timers {
						w.Schedule(&timers[j], now+queue.Instant(random.Int64N(span.Milliseconds())))
					}
					left = n
				}
				before := left
				for left == before {
					if !w.Advance(now, 1, fire) {
						if at, ok := w.Next(); ok {
							now = at
						}
					}
				}
			}
		})
	}
}
