package store

import (
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// TestTornTail loses power at every write and sync of the log: what Commit
// acknowledged is there afterwards, what it did not is there whole or not at
// all.
func TestTornTail(t *testing.T) {
	disk := testdisk.New()
	var acknowledged atomic.Uint64
	type crash struct {
		disk         *testdisk.Disk
		acknowledged uint64
	}
	var crashes []crash
	seed := uint64(1)
	var mu sync.Mutex
	var watching atomic.Bool
	watched := &watchedDisk{FS: disk, before: func(name string) {
		if watching.Load() && path.Ext(name) == ".log" {
			mu.Lock()
			defer mu.Unlock()
			for _, unsynced := range []int{0, 50, 100} {
				seed++
				crashes = append(crashes, crash{disk.Crash(unsynced, rand.NewPCG(seed, 1)), acknowledged.Load()})
			}
		}
	}}
	s, err := Open("data", Options{FS: watched, MemtableBytes: 256 << 10, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// First until a log is written over an old one, which stands behind its end.
	var before, commits uint64
	for n := uint64(1); before == 0 || n <= commits; n++ {
		if n == 5000 {
			t.Fatal("no log is written over")
		}
		if before == 0 && watched.reused.Load() > 0 {
			before, commits = n, n+5
			watching.Store(true)
		}
		commit(t, s, putOne(n, 1500*int(n%8+1))) // over several blocks of the log
		acknowledged.Store(n)
	}
	watching.Store(false)
	want := dump(t, s)
	mu.Lock()
	defer mu.Unlock()
	if len(crashes) < 2*3*5 {
		t.Fatalf("%d crashes for %d commits: the log was not watched", len(crashes), commits)
	}
	unacknowledged := 0
	for _, c := range crashes {
		after := open(t, c.disk)
		l, err := after.Load()
		if err != nil {
			t.Fatal(err)
		}
		if l.State.Position < c.acknowledged || l.State.Position > c.acknowledged+1 {
			t.Fatalf("%d commits were acknowledged before the crash, %d are there", c.acknowledged, l.State.Position)
		}
		if l.State.Position > c.acknowledged {
			unacknowledged++
		}
		for n := before - 5; n <= l.State.Position; n++ {
			m, e, found, err := after.Message(1, queue.MessageID(n))
			if err != nil || !found || len(m.Body) != 1500*int(n%8+1) || int(e.Size) != len(m.Body) {
				t.Fatalf("message %d of %d: %v, %v, %d octets", n, l.State.Position, found, err, len(m.Body))
			}
		}
		if l.State.Position == commits {
			if diff := cmp.Diff(want, dump(t, after)); diff != "" {
				t.Fatalf("rows (-before the crash +after):\n%s", diff)
			}
		}
		closed(t, after)
	}
	if unacknowledged == 0 {
		t.Error("no crash left more than was acknowledged: they were all too early")
	}
}

// watchedDisk calls before, with its name, before a file is written or synced.
// (The files that errorfs gives out for ReuseForWrite are not watched, and
// those are the logs.)
type watchedDisk struct {
	vfs.FS
	before func(name string)
	reused atomic.Int64
}

func (d *watchedDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return &watchedFile{f, d, name}, err
}

func (d *watchedDisk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	d.reused.Add(1)
	f, err := d.FS.ReuseForWrite(from, to, c)
	return &watchedFile{f, d, to}, err
}

type watchedFile struct {
	vfs.File
	disk *watchedDisk
	name string
}

func (f *watchedFile) Write(b []byte) (int, error) {
	f.disk.before(f.name)
	return f.File.Write(b)
}

func (f *watchedFile) Sync() error {
	f.disk.before(f.name)
	return f.File.Sync()
}

func (f *watchedFile) SyncData() error {
	f.disk.before(f.name)
	return f.File.SyncData()
}

// TestWithoutSyncs: the control of the crash tests. A store that does not sync
// loses what it acknowledged, so a crash test that finds losses with it and
// none without it proves something.
func TestWithoutSyncs(t *testing.T) {
	disk := testdisk.New()
	s, err := Open("data", Options{FS: disk, WithoutSyncs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit(t, s, putOne(1, 100))
	after := open(t, disk.Crash(0, rand.NewPCG(1, 1)))
	if _, _, found, err := after.Message(1, 1); err != nil || found {
		t.Errorf("found %v, %v", found, err)
	}
}
