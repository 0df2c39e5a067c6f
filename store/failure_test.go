package store

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/queued-mq/queued/queue"
)

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
