// Package testdisk has disks in memory for tests: quick ones, and ones that
// lose power. Only tests import it.
package testdisk

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a file system in memory that remembers what was synced. It is what
// store.Options.FS takes.
type Disk struct{ *vfs.MemFS }

// New is an empty disk.
func New() *Disk { return &Disk{vfs.NewCrashableMem()} }

// Crash is the disk as a loss of power at this moment would leave it: what was
// synced is there, and of the rest every block with a chance of unsynced
// percent. The disk itself goes on.
func (d *Disk) Crash(unsynced int, random rand.Source) *Disk {
	return &Disk{d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(random)})}
}

// SetFree has the disk say that so many octets are left; before, it does not
// know.
func (d *Disk) SetFree(octets uint64) {
	d.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: octets, TotalBytes: 1 << 50})
}
