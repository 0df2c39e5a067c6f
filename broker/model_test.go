package broker

import (
	"flag"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestModel does things at random to a broker and to a plain model of it, and
// compares them after each (world_test.go). `-rapid.checks=N` and
// `-rapid.steps=N` make it longer; a failure prints the line that repeats it.
func TestModel(t *testing.T) {
	runs := checks(t, 80)
	t.Parallel()
	var mu sync.Mutex
	hits := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			w := newWorld(t, func(what string, n int) int {
				if n == 1 {
					return 0
				}
				return rapid.IntRange(0, n-1).Draw(t, what)
			})
			defer func() {
				w.shut()
				mu.Lock()
				defer mu.Unlock()
				for what, n := range w.hits {
					hits[what] += n
				}
			}()
			w.settings()
			w.start()
			for range 2 {
				w.createQueue()
			}
			t.Repeat(map[string]func(*rapid.T){"": func(*rapid.T) {}, "act": func(*rapid.T) {
				for range 4 {
					w.act(w.acts())
				}
			}})
			w.finish()
		})
	})
	for _, what := range slices.Sorted(maps.Keys(hits)) {
		t.Logf("%7d %s", hits[what], what)
	}
	if t.Failed() || runs < 80 {
		return // too few to meet everything
	}
	for _, what := range []string{
		"delivered", "lapsed", "due", "expired", "buried", "buried after the limit was lowered", "deleted",
		"deleted after its lease", "stale delete", "updated", "stale update", "undelivered", "purged", "queue deleted",
		"publish refused", "retry token honoured", "served by time", "a get for which something is read", "volleys",
		"for groups: 0", "for groups: 1", "for groups: 2", "for groups: 3", "a get from a group that does not serve", "deleted with its group",
		"group forgotten", "a receipt in another group", "released",
		"transactions", "transactions refused", "transactions of several queues",
		"switched on: state 0, dead false", "switched on: state 1, dead false", "switched on: state 2, dead false", "switched on: state 0, dead true",
		"fresh ones on disk only", "returned ones on disk only", "a lane not loaded", "parked ones", "dormant lanes",
	} {
		if hits[what] == 0 {
			t.Errorf("not one was met: %s", what)
		}
	}
}

// checks says how many runs rapid makes if the command line does not, a twentieth
// under the race detector. It must come before any test runs in parallel.
func checks(t *testing.T, n int) int {
	t.Helper()
	given := 0
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			given, _ = strconv.Atoi(f.Value.String())
		}
	})
	if given > 0 {
		return given
	}
	if underRace {
		n = max(1, n/20)
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	return n
}

// settings makes memory, limits and the like tight, or not.
func (w *world) settings() {
	w.o.WindowSize = pick(w, "window size", 8, 3, 0)
	w.o.WindowBytes = pick[int64](w, "window bytes", 0, 40*entryBytes, 1)
	w.o.BodyBytes = pick[int64](w, "body bytes", 0, 4000, 1)
	w.o.DeadLanes = pick(w, "dead lanes", 0, 1, 3)
	w.o.KeepUnrouted = w.roll("keep unrouted", 2) == 0
	w.limit.InFlightPerQueue = pick[int64](w, "in flight", 100_000, 7)
	w.limit.InFlightTotal = pick[int64](w, "in flight in all", 2_000_000, 10)
	w.limit.InFlightReservedPerQueue = pick[int64](w, "in flight reserved", 1, 0)
	w.limit.ChannelsPerQueue = pick[int64](w, "channels", 256, 3)
	w.limit.BytesPerQueue = pick[int64](w, "octets", 0, 1500)
	w.note("windows of %d, %d octets; bodies %d octets; dead lanes %d; in flight %d, %d, %d; channels %d; octets %d",
		w.o.WindowSize, w.o.WindowBytes, w.o.BodyBytes, w.o.DeadLanes, w.limit.InFlightPerQueue, w.limit.InFlightTotal,
		w.limit.InFlightReservedPerQueue, w.limit.ChannelsPerQueue, w.limit.BytesPerQueue)
}

// shut closes what is open, also after a failure.
func (w *world) shut() {
	if w.open {
		w.open = false
		w.b.Close()
		w.s.Close()
	}
}
