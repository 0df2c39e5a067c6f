package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenReadOnly opens the store in dir for reading alone: nothing in the folder
// changes, not even after a crash, and nothing is made there. It is for the
// caller to keep those out who would write meanwhile. Only what reads may be
// called, and Close.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	o = o.filled()
	disk := readOnly{o.FS}
	s := &Store{fs: disk, dir: dir, log: o.Logger}
	there, err := pebble.Peek(dir, disk)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !there.Exists:
		return nil, fmt.Errorf("open store: there is no store in %s", dir)
	case err != nil:
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if err := lookOver(disk, dir, there, true); err != nil {
		return nil, err
	}
	if err := s.open(o, disk, true); err != nil {
		return nil, err
	}
	format, found, err := s.get(storeKey("format"))
	switch {
	case err != nil:
	case !found:
		err = fmt.Errorf("open store: %s holds no store yet: its first start did not come to its end", dir)
	default:
		err = s.known(format)
	}
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// readOnly is a disk on which nothing can be changed, whatever Pebble tries.
type readOnly struct{ vfs.FS }

var errReadOnly = errors.New("the store is open for reading alone")

func (readOnly) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }
func (readOnly) Link(string, string) error                              { return errReadOnly }
func (readOnly) Remove(string) error                                    { return errReadOnly }
func (readOnly) RemoveAll(string) error                                 { return errReadOnly }
func (readOnly) Rename(string, string) error                            { return errReadOnly }
func (readOnly) MkdirAll(string, os.FileMode) error                     { return errReadOnly }
func (readOnly) Lock(string) (io.Closer, error)                         { return io.NopCloser(nil), nil } // would make a file

func (readOnly) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadOnly
}

func (readOnly) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadOnly
}

func (r readOnly) Unwrap() vfs.FS { return r.FS }
