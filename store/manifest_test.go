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

// TestCrashWhileManifestBeginsAnew has the list of tables begun anew again and
// again while the store is in use, and loses power at every step of that: the
// list stays short, and the next start finds what was acknowledged.
func TestCrashWhileManifestBeginsAnew(t *testing.T) {
	const most = 512
	disk := testdisk.New()
	var mu sync.Mutex
	type crash struct {
		disk         *testdisk.Disk
		acknowledged uint64
	}
	var crashes []crash
	var acknowledged uint64
	watching, markers := false, 0
	watched := disk.Watch(func(step testdisk.Step) error {
		name := path.Base(step.Path)
		marker, list := strings.HasPrefix(name, "marker.manifest."), strings.HasPrefix(name, "MANIFEST-")
		mu.Lock()
		defer mu.Unlock()
		if !watching || !marker && !list && !(step.Sync && name == "data") {
			return nil
		}
		// Between a new marker and the sync of the folder, by chance, many times;
		// the list that is only written on has torn ends of its own elsewhere
		// (TestDamagedManifest).
		percents := []int{50}
		if marker {
			markers++
		}
		if marker || step.Sync && !list {
			percents = append(slices.Repeat([]int{50}, 10), 0, 100)
		}
		for _, percent := range percents {
			crashes = append(crashes, crash{disk.Crash(percent, rand.NewPCG(uint64(len(crashes)), 1)), acknowledged})
		}
		return nil
	})
	s, err := Open("data", Options{FS: watched, MemtableBytes: 256 << 10, ManifestBytes: most, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	watching = true
	mu.Unlock()
	const commits = 25
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 100))
		mu.Lock()
		acknowledged = n
		mu.Unlock()
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
		for name, text := range files(t, disk, "data") {
			if strings.HasPrefix(name, "MANIFEST-") && len(text) > 3*most {
				t.Fatalf("after %d flushes %s has %d octets", n, name, len(text))
			}
		}
	}
	mu.Lock()
	watching = false
	mu.Unlock()
	closed(t, s)
	if markers < 3 {
		t.Fatalf("the list was begun anew %d times", markers)
	}
	for i, c := range crashes {
		after, err := Open("data", Options{FS: c.disk, MemtableBytes: 256 << 10, CacheBytes: 1 << 20, QuietScheduler: true})
		if err != nil {
			t.Fatalf("crash %d of %d: %v", i+1, len(crashes), err)
		}
		if l, err := after.Load(); err != nil || l.State.Position < c.acknowledged || l.State.Position > c.acknowledged+1 {
			t.Errorf("crash %d of %d: %d commits of %d are there, %v", i+1, len(crashes), l.State.Position, c.acknowledged, err)
		}
		closed(t, after)
	}
	t.Logf("%d crashes, %d steps of markers", len(crashes), markers)
}
