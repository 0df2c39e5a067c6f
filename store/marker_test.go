package store

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/queued-mq/queued/store/testdisk"
)

// TestCrashWhileOpened loses power at every step of a start after a crash, with
// every name and block that was not synced surviving by chance, many times: the
// next start finds what was committed. Once a marker survived that named a list
// of tables whose name did not.
func TestCrashWhileOpened(t *testing.T) {
	disk := testdisk.New()
	s, err := Open("data", Options{FS: disk, MemtableBytes: 256 << 10, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	const commits = 20
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 20_000))
	}
	crashed := disk.Crash(0, rand.NewPCG(1, 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	var crashes []*testdisk.Disk
	opening, steps, markers := true, 0, 0
	watched := crashed.Watch(func(step testdisk.Step) error {
		mu.Lock()
		defer mu.Unlock()
		var percents []int
		if steps++; steps%4 == 0 {
			percents = []int{0, 50, 100}
		}
		if strings.HasPrefix(path.Base(step.Path), "marker.") || step.Sync && path.Base(step.Path) == "data" {
			markers++
			percents = append(percents, slices.Repeat([]int{50}, 20)...)
		}
		if opening {
			for _, percent := range percents {
				crashes = append(crashes, crashed.Crash(percent, rand.NewPCG(uint64(len(crashes)), 1)))
			}
		}
		return nil
	})
	again, err := Open("data", Options{FS: watched, MemtableBytes: 256 << 10, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	opening = false
	mu.Unlock()
	closed(t, again)
	if markers == 0 || len(crashes) < 100 {
		t.Fatalf("%d markers, %d crashes", markers, len(crashes))
	}
	failed := 0
	for i, c := range crashes {
		after, err := Open("data", Options{FS: c, MemtableBytes: 256 << 10, CacheBytes: 1 << 20, QuietScheduler: true})
		if err != nil {
			if failed++; failed < 5 {
				t.Errorf("crash %d of %d: %v", i+1, len(crashes), err)
			}
			continue
		}
		if l, err := after.Load(); err != nil || l.State.Position != commits {
			t.Errorf("crash %d of %d: %d commits of %d are there, %v", i+1, len(crashes), l.State.Position, commits, err)
		}
		closed(t, after)
	}
	if failed > 0 {
		t.Errorf("%d of %d crashes left a store that does not open", failed, len(crashes))
	}
}
