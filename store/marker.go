package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markersLast is a disk on which a marker is made only when the names of all
// files in its folder are durable.
//
// A marker is an empty file whose name says which list of tables counts. Pebble
// syncs the content of a new list, makes the marker, and then syncs the folder
// with the names of both at once. A file system that keeps no order among names
// may lose power with the marker there and the list not, and the store does not
// open any more (cockroachdb/pebble#5825; Pebble does this itself from #5915 on).
type markersLast struct{ vfs.FS }

func (d markersLast) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(d.PathBase(name), "marker.") {
		if err := syncFolder(d.FS, d.PathDir(name)); err != nil {
			return nil, fmt.Errorf("sync the folder of %s: %w", name, err)
		}
	}
	return d.FS.Create(name, c)
}

func (d markersLast) Unwrap() vfs.FS { return d.FS }
