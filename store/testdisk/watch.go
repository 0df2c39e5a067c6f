package testdisk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Step is one operation that changes a disk, or makes changes durable.
type Step struct {
	Path string
	Sync bool // of a file or a folder: what was written before stays
	Data bool // octets are written
}

// Watch is the disk as seen through a hook: before is called ahead of every
// operation that changes it, also from several goroutines at once. What it
// returns, if not nil, is the outcome of the operation, which is then not done.
//
// Between two calls nothing changes. So a Crash in every call, and one at the
// end, meets all states that a loss of power can leave behind.
func (d *Disk) Watch(before func(Step) error) vfs.FS {
	return &watched{errorfs.Wrap(d.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		step := Step{Path: op.Path}
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			step.Sync = true
		case errorfs.OpFileWrite, errorfs.OpFileWriteAt:
			step.Data = true
		case errorfs.OpFileClose, errorfs.OpFileFlush, errorfs.OpFilePreallocate, errorfs.OpLock:
			return nil // change nothing in memory
		default:
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
				return nil
			}
		}
		return before(step)
	})), before}
}

// watched is what errorfs makes of a disk, with an eye on files that are
// written over: errorfs gives those out as they are, and most logs are such.
type watched struct {
	*errorfs.FS
	before func(Step) error
}

func (w *watched) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(from, to, c) // calls before
	if err != nil {
		return nil, err
	}
	return &watchedFile{f, to, w.before}, nil
}

type watchedFile struct {
	vfs.File
	path   string
	before func(Step) error
}

func (f *watchedFile) Write(b []byte) (int, error) {
	if err := f.before(Step{Path: f.path, Data: true}); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *watchedFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.before(Step{Path: f.path, Data: true}); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f *watchedFile) Sync() error {
	if err := f.before(Step{Path: f.path, Sync: true}); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *watchedFile) SyncData() error {
	if err := f.before(Step{Path: f.path, Sync: true}); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *watchedFile) SyncTo(length int64) (bool, error) {
	if err := f.before(Step{Path: f.path, Sync: true}); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}
