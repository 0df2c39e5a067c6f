package testdisk

import (
	"io/fs"
	"path"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Unreadable makes disks whose tables cannot be read while it is Broken. The
// zero value is whole.
type Unreadable struct {
	Broken atomic.Bool
	Hits   atomic.Int64 // reads that have failed
}

// Wrap is the disk with the fault.
func (u *Unreadable) Wrap(disk vfs.FS) vfs.FS {
	return errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if u.Broken.Load() && op.Kind == errorfs.OpFileReadAt && path.Ext(op.Path) == ".sst" {
			u.Hits.Add(1)
			return &fs.PathError{Op: "read", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
}
