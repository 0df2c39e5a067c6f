package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// merger merges nothing: no row is ever merged. Its name stands in the options
// that Pebble writes beside the tables, and so tells our folders from those of
// others before anything in them is touched. Pebble refuses to open a folder
// that names another one.
var merger = &pebble.Merger{Name: "queued", Merge: pebble.DefaultMerger.Merge}

// prepareFolder makes the folder of the store, or looks at the one there is:
// the database of somebody else is refused, and so is a damaged one, and nothing
// in it is changed. synced is whether every commit was.
func prepareFolder(disk vfs.FS, dir string, synced bool) error {
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	there, err := pebble.Peek(dir, disk)
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	if !there.Exists {
		return syncParents(disk, dir)
	}
	return lookOver(disk, dir, there, synced)
}

// lookOver refuses a folder that is not ours or is damaged.
func lookOver(disk vfs.FS, dir string, there *pebble.DBDesc, synced bool) error {
	if there.OptionsFilename == "" {
		return nil // a first start that did not come to its end
	}
	options, err := readFile(disk, there.OptionsFilename)
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	if !bytes.Contains(options, []byte("\n  merger="+merger.Name+"\n")) {
		return notOurs(dir)
	}
	if err = checkManifest(disk, there.ManifestFilename); err == nil && synced {
		err = checkLog(disk, dir)
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return nil
}

func notOurs(dir string) error {
	return fmt.Errorf("open store: %s holds a database that is not a store of queued", dir)
}

func readFile(disk vfs.FS, path string) ([]byte, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// syncParents makes the folder itself durable, whoever made it: a loss of
// power must not take a new folder away with all that was stored in it.
func syncParents(disk vfs.FS, dir string) error {
	for parent := disk.PathDir(dir); ; parent = disk.PathDir(parent) {
		err := syncFolder(disk, parent)
		switch {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL):
			// Not one that we can have made.
		case err != nil:
			return fmt.Errorf("open store: %w", err)
		}
		if disk.PathDir(parent) == parent {
			return nil
		}
	}
}

func syncFolder(disk vfs.FS, path string) error {
	f, err := disk.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
