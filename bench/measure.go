package bench

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// kind is what a latency is of.
type kind int

const (
	publishing kind = iota // from the instant meant to the answer: durable
	settling               // from the delete that was asked for to its answer: durable
	cycling                // from the asking for messages to the answer to their delete
	endToEnd               // from the instant meant to be published to being here
	kinds
)

// Latencies are kept from 1 µs to 10 minutes with three digits; what is beyond
// counts as 10 minutes.
const longest = int64(10 * time.Minute / time.Microsecond)

// recorder counts what happens in a run. Only what falls into the window is
// measured; the rest is counted for the sake of verification alone. It may be
// used by many goroutines.
type recorder struct {
	base     time.Time    // when the run began; instants are counted from it
	from, to atomic.Int64 // the window, ns

	published, consumed atomic.Uint64 // messages answered within the window
	publishes, settles  atomic.Uint64 // their operations
	missed              atomic.Uint64 // messages due within the window and not begun

	allPublished, allConsumed atomic.Uint64 // of the whole run
	duplicates                atomic.Uint64
	acked, seen               ledger // numbers that were published, that were received

	// Many goroutines record, so there are several of each.
	shards [8]struct {
		mu sync.Mutex
		h  [kinds]*hdrhistogram.Histogram
	}

	mu     sync.Mutex
	errors map[string]uint64
	first  map[string]string // what the first of each said
}

func newRecorder() *recorder {
	r := &recorder{base: time.Now(), errors: map[string]uint64{}, first: map[string]string{}}
	r.from.Store(math.MaxInt64)
	r.to.Store(math.MaxInt64)
	for i := range r.shards {
		for k := range r.shards[i].h {
			r.shards[i].h[k] = hdrhistogram.New(1, longest, 3)
		}
	}
	return r
}

// now is how old the run is.
func (r *recorder) now() time.Duration { return time.Since(r.base) }

// within reports whether an instant is in the window.
func (r *recorder) within(at time.Duration) bool {
	return int64(at) >= r.from.Load() && int64(at) < r.to.Load()
}

// latency records how long something took that began, or was meant to, at an
// instant of the window. That it ends behind the window does not matter: the
// slowest would be missing.
func (r *recorder) latency(worker int, k kind, began, ended time.Duration) {
	r.latencies(worker, k, began, ended, 1)
}

// latencies records that of n operations.
func (r *recorder) latencies(worker int, k kind, began, ended time.Duration, n int64) {
	if !r.within(began) {
		return
	}
	s := &r.shards[worker%len(r.shards)]
	us := min(max(int64((ended-began)/time.Microsecond), 1), longest)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.h[k].RecordValues(us, n) // it is in range
}

func (r *recorder) failed(err error) {
	code := codeOf(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errors[code]++; r.first[code] == "" {
		r.first[code] = err.Error()
	}
}

func (r *recorder) failures() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.errors {
		n += count
	}
	return n
}

// Latency is the distribution of one latency, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// distribution is that of a kind; nil without any.
func (r *recorder) distribution(k kind) *Latency {
	all := hdrhistogram.New(1, longest, 3)
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.h[k])
		s.mu.Unlock()
	}
	if all.TotalCount() == 0 {
		return nil
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return &Latency{
		Count: all.TotalCount(),
		P50:   ms(all.ValueAtQuantile(50)), P90: ms(all.ValueAtQuantile(90)), P99: ms(all.ValueAtQuantile(99)),
		P999: ms(all.ValueAtQuantile(99.9)), Max: ms(all.Max()),
	}
}

// unseen counts the numbers in l that are not in other.
func (l *ledger) unseen(other *ledger) (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	for i, page := range l.pages {
		if page == nil {
			continue
		}
		for j, word := range page {
			if i < len(other.pages) && other.pages[i] != nil {
				word &^= other.pages[i][j]
			}
			n += uint64(bits.OnesCount64(word))
		}
	}
	return n
}
