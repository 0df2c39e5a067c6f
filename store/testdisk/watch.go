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
	return errorfs.Wrap(d.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
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
	}))
}
