package store

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

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
