package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// putOne is the nth commit of a store that gets one message after the other.
func putOne(n uint64, octets int) *ChangeSet {
	body := make([]byte, octets)
	for i := range body { // not to be compressed away
		body[i] = byte(rand.Uint32())
	}
	e := Entry{ID: queue.MessageID(n), ExpireAfter: exampleAt, Size: uint32(octets)}
	return &ChangeSet{
		State:   State{Position: n, Message: e.ID},
		Effects: []Effect{{Kind: Put, Lane: 1, Entry: e, Message: &Message{Message: queue.Message{Body: body}, ExpireAfter: exampleAt}}},
		Lanes:   []Lane{{ID: 1, Key: LaneKey{Queue: 1}, Fresh: int64(n), Bytes: int64(n) * int64(octets)}},
	}
}

// mortal is what a process does that Fatal has ended: the goroutine that
// called it stops for good, and others learn of it.
func mortal() (fatal func(error), died <-chan error) {
	ch := make(chan error, 1)
	return func(err error) {
		select {
		case ch <- err:
		default:
		}
		select {}
	}, ch
}

// until waits for Fatal, or for f to end without it, which is the error that
// returned is.
func until(t *testing.T, died <-chan error, f func() error) (fatal, returned error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-died:
		return err, nil
	case err := <-done:
		return nil, err
	case <-time.After(20 * time.Second):
		t.Fatal("neither an end nor a fatal error")
		return nil, nil
	}
}

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

// flip is a copy of the disk in which one bit of a file is wrong.
func flip(t testing.TB, disk vfs.FS, file string, offset int) *vfs.MemFS {
	t.Helper()
	out := vfs.NewMem()
	if _, err := vfs.Clone(disk, out, "data", "data"); err != nil {
		t.Fatal(err)
	}
	b, err := readFile(out, out.PathJoin("data", file))
	if err != nil {
		t.Fatal(err)
	}
	b[offset] ^= 0x10
	write(t, out, out.PathJoin("data", file), b)
	return out
}

// newest is the last file of a kind: their names rise.
func newest(t testing.TB, all map[string]string, pattern string) string {
	t.Helper()
	var out string
	for name := range all {
		if ok, _ := path.Match(pattern, name); ok {
			out = max(out, name)
		}
	}
	if out == "" {
		t.Fatalf("no %s among %v", pattern, slices.Sorted(maps.Keys(all)))
	}
	return out
}

// TestDamagedLog: one wrong bit in the log stops Open with an error that names
// the file, and nothing is changed. Only in the last block it cannot be told
// from a torn tail: what was stored before it is there, and nothing that was
// stored behind it.
func TestDamagedLog(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	const commits = 60
	ends := []int{0} // of each commit
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 4000))
		all := files(t, disk, "data")
		ends = append(ends, len(all[newest(t, all, "*.log")]))
	}
	closed(t, s)
	all := files(t, disk, "data")
	log := newest(t, all, "*.log")
	lastBlock := ends[commits] / blockLen * blockLen
	var refused, torn int
	for offset := 7; offset < len(all[log]); offset += 2999 {
		damaged := flip(t, disk, log, offset)
		before := files(t, damaged, "data")
		s, err := Open("data", Options{FS: damaged})
		if err == nil {
			torn++
			intact, _ := slices.BinarySearch(ends, offset+1)
			l, err := s.Load()
			if err != nil || l.State.Position != uint64(intact-1) || offset < lastBlock-4096 {
				t.Errorf("offset %d of %d: %d commits are there, %d were stored before it, %v", offset, len(all[log]), l.State.Position, intact-1, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		refused++
		if !strings.Contains(err.Error(), log) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, log, err)
		}
		if diff := cmp.Diff(before, files(t, damaged, "data")); diff != "" {
			t.Errorf("offset %d: the folder has changed:\n%s", offset, diff)
		}
	}
	if refused < 60 || torn == 0 || torn > 12 {
		t.Errorf("%d offsets refused, %d taken for a torn tail", refused, torn)
	}
}

// TestDamagedOldLog: a log that another one came after was ended in order, so
// nothing wrong in it is a torn tail.
func TestDamagedOldLog(t *testing.T) {
	disk := vfs.NewMem()
	release := make(chan struct{})
	var blocked atomic.Bool
	slow := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if blocked.Load() && op.Kind == errorfs.OpCreate && path.Ext(op.Path) == ".sst" {
			<-release
		}
		return nil
	}))
	s, err := Open("data", Options{FS: slow, MemtableBytes: 1 << 20, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	// The memtable is full and cannot be written yet: there are two logs.
	blocked.Store(true)
	old, n := newest(t, files(t, disk, "data"), "*.log"), uint64(0)
	for newest(t, files(t, disk, "data"), "*.log") == old {
		n++
		commit(t, s, putOne(n, 4000))
	}
	both := vfs.NewMem()
	if _, err := vfs.Clone(disk, both, "data", "data"); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := files(t, both, "data")
	for _, back := range []int{100, 5000, 50_000} {
		damaged := flip(t, both, old, len(before[old])-back)
		_, err := Open("data", Options{FS: damaged})
		if err == nil || !strings.Contains(err.Error(), old) {
			t.Errorf("%d octets before its end: %v", back, err)
		}
		now := files(t, damaged, "data")
		now[old] = before[old]
		untouched(t, before, now)
	}
	whole := open(t, both)
	if l, err := whole.Load(); err != nil || l.State.Position != n {
		t.Errorf("undamaged: %d commits of %d, %v", l.State.Position, n, err)
	}
}

// TestDamagedTable: one wrong bit in a table stops the store, when it is
// opened or when the place is read, and names the file; nothing is deleted.
func TestDamagedTable(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	const commits = 100
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 1000))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	all := files(t, disk, "data")
	table := newest(t, all, "*.sst")
	for offset := 11; offset < len(all[table]); offset += len(all[table]) / 12 {
		damaged := flip(t, disk, table, offset)
		before := files(t, damaged, "data")[table]
		fatal, died := mortal()
		stopped, returned := until(t, died, func() error {
			s, err := Open("data", Options{FS: damaged, Fatal: fatal, QuietScheduler: true})
			if err != nil {
				return err
			}
			found, _, err := s.ScanMessages(1, 0, 1000, 1<<30, false)
			if err == nil && len(found) == commits {
				return s.Close() // the bit is of no account
			}
			if err == nil {
				t.Errorf("offset %d: %d messages of %d, and no error", offset, len(found), commits)
			}
			return err
		})
		err := stopped
		if err == nil {
			err = returned
		}
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(table, ".sst")) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, table, err)
		}
		// Other files may go, as at any start.
		if b, err := readFile(damaged, damaged.PathJoin("data", table)); err != nil || string(b) != before {
			t.Errorf("offset %d: the table has changed: %v", offset, err)
		}
	}
}

// TestDamagedManifest: the list of the tables is guarded in the same way.
// Pebble alone would take damage in it for its end, open the store as it was
// long ago or empty, and delete the tables that came later.
func TestDamagedManifest(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	last, manifest := 0, ""
	const commits = 5
	for n := uint64(1); n <= commits; n++ {
		all := files(t, disk, "data")
		manifest = newest(t, all, "MANIFEST-*")
		last = len(all[manifest])
		commit(t, s, putOne(n, 1000))
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	all := files(t, disk, "data")
	if err := checkManifest(disk, "data/"+manifest); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for offset := 0; offset < last; offset += 3 {
		damaged := flip(t, disk, manifest, offset)
		before := files(t, damaged, "data")
		s, err := Open("data", Options{FS: damaged})
		if err == nil {
			t.Errorf("offset %d of %d: opened", offset, len(all[manifest]))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		refused++
		if !strings.Contains(err.Error(), manifest) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, manifest, err)
		}
		if diff := cmp.Diff(before, files(t, damaged, "data")); diff != "" {
			t.Errorf("offset %d: the folder has changed:\n%s", offset, diff)
		}
	}
	if refused < 50 {
		t.Errorf("%d offsets were tried", refused)
	}
	// A torn end is no damage: it was never synced.
	for length := last + 1; length < len(all[manifest]); length++ {
		torn := vfs.NewMem()
		write(t, torn, "data/"+manifest, []byte(all[manifest][:length]))
		if err := checkManifest(torn, "data/"+manifest); err != nil {
			t.Errorf("the first %d of %d octets: %v", length, len(all[manifest]), err)
		}
	}
}

// TestLongManifest: records that go over several blocks.
func TestLongManifest(t *testing.T) {
	disk := vfs.NewMem()
	var b bytes.Buffer
	w := record.NewWriter(&b)
	var begins []int
	for _, n := range []int{10, 40_000, 5, 100_000, 32_740, 1, 32_768 - 7, 70_000, 3} {
		r, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Write(bytes.Repeat([]byte{7}, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		begins = append(begins, b.Len())
	}
	check := func(b []byte) error {
		write(t, disk, "m", b)
		return checkManifest(disk, "m")
	}
	if err := check(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	last := begins[len(begins)-2]
	for i := 0; i < last; i += 4999 {
		wrong := bytes.Clone(b.Bytes())
		wrong[i] ^= 4
		if err := check(wrong); err == nil && wrong[i] != 4 { // a flip in padding does no harm
			t.Errorf("a wrong bit at %d of %d was not seen", i, len(wrong))
		}
		// A write that was cut short leaves the beginning of a record, or
		// zeroes in the middle of one.
		if err := check(b.Bytes()[:i]); err != nil {
			t.Errorf("the first %d octets: %v", i, err)
		}
	}
	// The last record but one in three blocks: its second was not written.
	torn := bytes.Clone(b.Bytes()[:last])
	clear(torn[last-40_000 : last-39_000])
	if err := check(torn); err != nil {
		t.Errorf("a hole in the last record: %v", err)
	}
}

func write(t testing.TB, disk vfs.FS, path string, b []byte) {
	t.Helper()
	if err := disk.MkdirAll(disk.PathDir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b)) // in a race build the disk spoils what it was given
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFailedWrite: an error of the disk while the log is written or synced
// ends the process: Fatal is called, and Commit never says that it succeeded.
func TestFailedWrite(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kinds []errorfs.OpKind
		err   error
	}{
		{"write", []errorfs.OpKind{errorfs.OpFileWrite}, syscall.EIO},
		{"sync", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}, syscall.EIO},
		{"full disk without ballast", []errorfs.OpKind{errorfs.OpFileWrite}, syscall.ENOSPC},
		{"full disk at the sync", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}, syscall.ENOSPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			var broken atomic.Bool
			var hits atomic.Int64
			faulty := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				// A rule of errorfs would not do: its * stops at a slash.
				if broken.Load() && path.Ext(op.Path) == ".log" && slices.Contains(tt.kinds, op.Kind) {
					hits.Add(1)
					return &fs.PathError{Op: tt.name, Path: op.Path, Err: tt.err}
				}
				return nil
			}))
			fatal, died := mortal()
			s, err := Open("data", Options{FS: faulty, Fatal: fatal, MemtableBytes: 1 << 20, QuietScheduler: true})
			if err != nil {
				t.Fatal(err)
			}
			commit(t, s, putOne(1, 100))
			broken.Store(true)
			stopped, returned := until(t, died, func() error {
				if err := s.Commit(putOne(2, 100)); err != nil {
					return err
				}
				return errors.New("commit said that it succeeded")
			})
			if stopped == nil || !errors.Is(stopped, tt.err) && !strings.Contains(stopped.Error(), tt.err.Error()) {
				t.Errorf("fatal %v, returned %v, want a fatal %v", stopped, returned, tt.err)
			}
			if hits.Load() == 0 {
				t.Error("the fault was not hit")
			}
			// What was acknowledged before is there.
			after := open(t, disk.CrashClone(vfs.CrashCloneCfg{}))
			if _, _, found, err := after.Message(1, 1); err != nil || !found {
				t.Errorf("message 1 after the crash: %v, %v", found, err)
			}
		})
	}
}

// TestFailedTable: an error of the disk while a table is written loses
// nothing; the log has it all, and the table is written again.
func TestFailedTable(t *testing.T) {
	disk := vfs.NewMem()
	var broken atomic.Bool
	var hits atomic.Int64
	faulty := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && path.Ext(op.Path) == ".sst" && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemove {
			hits.Add(1)
			broken.Store(false)
			return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
	s, err := Open("data", Options{FS: faulty, MemtableBytes: 1 << 20, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, putOne(1, 100))
	broken.Store(true)
	_ = s.db.Flush() // may tell of the fault
	if hits.Load() == 0 {
		t.Error("the fault was not hit")
	}
	commit(t, s, putOne(2, 100))
	if err := s.db.Flush(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, disk)
	for n := range queue.MessageID(2) {
		if _, _, found, err := again.Message(1, n+1); err != nil || !found {
			t.Errorf("message %d: %v, %v", n+1, found, err)
		}
	}
}

// TestUnreadableRow: a row that no version of ours wrote is an error of the
// read that meets it, and tells which row.
func TestUnreadableRow(t *testing.T) {
	s := open(t, nil)
	commit(t, s, exampleChangeSet())
	spoil := func(key []byte) {
		if err := s.db.Set(key, []byte{99}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	spoil(rowKey(nil, kindMessage, 7, 1))
	spoil(rowKey(nil, kindReturned, 7, 6))
	spoil(rowKey(nil, kindLease, 7, 3))
	spoil(laneKey(nil, LaneKey{Queue: 3, Channel: "eu"}))
	spoil(queueKey(nil, 3))
	spoil(workKey(nil, exampleAt, "wr.1"))
	spoil(tokenKey(nil, "publish/3", "abc"))
	for name, read := range map[string]func() error{
		"Message":      func() error { _, _, _, err := s.Message(7, 1); return err },
		"ScanMessages": func() error { _, _, err := s.ScanMessages(7, 0, 10, 1<<20, true); return err },
		"Returned":     func() error { _, _, err := s.Returned(7, 6); return err },
		"ScanReturned": func() error { _, _, err := s.ScanReturned(7, 0, 10); return err },
		"Leases":       func() error { return s.Leases(func(LaneID, Lease) error { return nil }) },
		"Lanes":        func() error { return s.Lanes(func(Lane) error { return nil }) },
		"Lane":         func() error { _, _, err := s.Lane(LaneKey{Queue: 3, Channel: "eu"}); return err },
		"Load":         func() error { _, err := s.Load(); return err },
		"WorkRequest":  func() error { _, _, err := s.WorkRequest("wr.1"); return err },
		"WorkRequests": func() error {
			for _, err := range s.WorkRequests("") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"RetryToken": func() error { _, _, err := s.RetryToken("publish/3", "abc"); return err },
	} {
		if err := read(); err == nil {
			t.Errorf("%s read a spoilt row", name)
		}
	}
	if err := s.db.Set(stateKey, []byte{1, 2}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "state row is damaged") {
		t.Errorf("Load read a spoilt state: %v", err)
	}
}

// smallDisk is a disk with so much room, as far as one folder goes.
type smallDisk struct {
	*vfs.MemFS
	size atomic.Int64
	full atomic.Int64 // writes that were refused
}

func (d *smallDisk) used() int64 {
	var n int64
	names, _ := d.MemFS.List("data")
	for _, name := range names {
		if f, err := d.MemFS.Stat(d.PathJoin("data", name)); err == nil {
			n += f.Size()
		}
	}
	return n
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := uint64(max(d.size.Load()-d.used(), 0))
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: uint64(d.size.Load())}, nil
}

func (d *smallDisk) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &smallFile{f, d}, nil
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(d.MemFS.Create(name, c))
}

func (d *smallDisk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(d.MemFS.ReuseForWrite(from, to, c))
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f *smallFile) Write(b []byte) (int, error) {
	if f.disk.used()+int64(len(b)) > f.disk.size.Load() {
		f.disk.full.Add(1)
		return 0, &fs.PathError{Op: "write", Path: "data", Err: syscall.ENOSPC}
	}
	return f.File.Write(b)
}

func (d *smallDisk) has(t *testing.T, name string) bool {
	_, err := d.Stat(d.PathJoin("data", name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// TestBallast: the file is made while there is room, given up when a write
// finds the disk full, so that the write succeeds, and made again when there
// is room again.
func TestBallast(t *testing.T) {
	const ballast = 512 << 10
	disk := &smallDisk{MemFS: vfs.NewMem()}
	disk.size.Store(8 << 20)
	o := Options{FS: disk, BallastBytes: ballast, MemtableBytes: 64 << 20, QuietScheduler: true}
	s, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := disk.Stat("data/ballast"); err != nil || f.Size() != ballast {
		t.Fatalf("ballast after the first start: %v, %v", f, err)
	}
	free, ok, err := s.FreeBytes()
	if err != nil || !ok || int64(free) != disk.size.Load()-disk.used() {
		t.Errorf("%d octets free, %v, %v; used are %d of %d", free, ok, err, disk.used(), disk.size.Load())
	}

	n := fill(t, s, disk)
	if disk.has(t, "ballast") {
		t.Error("the disk was full, and the ballast is still there")
	}
	// There is room now for what frees space.
	for range 20 {
		n++
		commit(t, s, putOne(n, 4000))
	}
	if w := s.Written(); w < int64(n)*4000 {
		t.Errorf("%d octets written by %d commits of 4000", w, n)
	}
	// Not enough room: nothing happens, and it is no error.
	if err := s.RestoreBallast(ballast); err != nil || disk.has(t, "ballast") {
		t.Errorf("restored on a full disk, %v", err)
	}
	// More room: it is made again, once.
	disk.size.Store(64 << 20)
	for range 2 {
		if err := s.RestoreBallast(ballast); err != nil || !disk.has(t, "ballast") {
			t.Errorf("not restored with room again, %v", err)
		}
	}
	if err := s.RestoreBallast(0); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.db.Flush(), s.Close()); err != nil {
		t.Fatal(err)
	}

	// A start that finds hardly any room gives it up, and the next does not
	// make it.
	for _, left := range []int64{ballast / 2, 3 * ballast} {
		disk.size.Store(disk.used() + left)
		if s, err = Open("data", o); err != nil {
			t.Fatal(err)
		}
		if disk.has(t, "ballast") {
			t.Errorf("there after a start with %d octets left", left)
		}
		if l, err := s.Load(); err != nil || l.State.Position != n {
			t.Errorf("%d commits of %d are there, %v", l.State.Position, n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fill commits until a write finds the disk full, and reports how many.
func fill(t *testing.T, s *Store, disk *smallDisk) uint64 {
	t.Helper()
	for n := uint64(1); n < 20_000; n++ {
		if commit(t, s, putOne(n, 4000)); disk.full.Load() > 0 {
			return n
		}
	}
	t.Fatal("the disk does not fill")
	return 0
}

// TestNoRoomToOpen: a start replays the log into a table, and Pebble waits for
// ever where that does not fit. Ours ends and says why; once there is room it
// finds everything.
func TestNoRoomToOpen(t *testing.T) {
	disk := &smallDisk{MemFS: vfs.NewMem()}
	disk.size.Store(4 << 20)
	s, err := Open("data", Options{FS: disk, BallastBytes: 1 << 20, MemtableBytes: 64 << 20, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	n := fill(t, s, disk)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied := vfs.NewMem()
	if _, err := vfs.Clone(disk.MemFS, copied, "data", "data"); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	fatal, died := mortal()
	disk.full.Store(0)
	stopped, returned := until(t, died, func() error {
		_, err := Open("data", Options{FS: disk, Fatal: fatal, QuietScheduler: true, Logger: textLogger(&log)})
		return err
	})
	if stopped == nil || !errors.Is(stopped, syscall.ENOSPC) || !strings.Contains(stopped.Error(), "no room on the disk to open the store") {
		t.Errorf("fatal %v, returned %v", stopped, returned)
	}
	if disk.full.Load() == 0 {
		t.Error("the disk was not full")
	}
	after := open(t, copied)
	if l, err := after.Load(); err != nil || l.State.Position != n {
		t.Errorf("%d commits of %d are there, %v", l.State.Position, n, err)
	}
}

// TestBackgroundFailures are logged, but not as often as they are repeated.
func TestBackgroundFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &logger{log: textLogger(&log), fatal: func(err error) { panic(err) }}
		for range 1000 {
			l.background(syscall.ENOSPC)
		}
		time.Sleep(often)
		l.background(syscall.EIO)
		if got := strings.Count(log.String(), "\n"); got != 2 || !strings.Contains(log.String(), "failures=1000") {
			t.Errorf("%d lines:\n%s", got, log.String())
		}
	})
}

// TestShortBallast: a ballast that a crash cut short is made whole.
func TestShortBallast(t *testing.T) {
	disk := &smallDisk{MemFS: vfs.NewMem()}
	disk.size.Store(8 << 20)
	if err := disk.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create("data/ballast", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open("data", Options{FS: disk, BallastBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f, err := disk.Stat("data/ballast"); err != nil || f.Size() != 1<<20 {
		t.Errorf("the ballast is %v, %v", f, err)
	}
}

// TestBallastThatCannotBeMade leaves no part of it behind.
func TestBallastThatCannotBeMade(t *testing.T) {
	disk := &smallDisk{MemFS: vfs.NewMem()}
	disk.size.Store(8 << 20)
	hits := 0
	faulty := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && path.Base(op.Path) == "ballast" {
			hits++
			return syscall.EIO
		}
		return nil
	}))
	_, err := Open("data", Options{FS: faulty, BallastBytes: 1 << 20})
	if err == nil || !errors.Is(err, syscall.EIO) || hits == 0 {
		t.Errorf("error %v after %d hits", err, hits)
	}
	if disk.has(t, "ballast") {
		t.Error("part of it was left behind")
	}
}

// TestNoDiskUsage: where free space cannot be known there is no ballast.
func TestNoDiskUsage(t *testing.T) {
	disk := vfs.NewMem()
	s, err := Open("data", Options{FS: disk, BallastBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, ok, err := s.FreeBytes(); ok || err != nil {
		t.Errorf("free space is known: %v, %v", ok, err)
	}
	if _, err := disk.Stat("data/ballast"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a ballast: %v", err)
	}
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

// TestLogged: Pebble's words go to the logger, and its fatal ones to Fatal,
// which does not come back.
func TestLogged(t *testing.T) {
	var log bytes.Buffer
	stop := fmt.Errorf("stop")
	l := &logger{log: textLogger(&log), fatal: func(err error) { panic(stop) }}
	func() {
		defer func() {
			if p := recover(); p != stop {
				t.Errorf("recovered %v", p)
			}
		}()
		l.Fatalf("bad %s", "table")
	}()
	l.fatal = func(error) {}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a Fatal that returns was let go on")
			}
		}()
		l.Fatalf("bad %s", "table")
	}()
	l.Errorf("worse %d", 1)
	l.Infof("fine")
	for _, want := range []string{"bad table", "worse 1", "level=ERROR", "fine"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell %q:\n%s", want, log.String())
		}
	}
}
