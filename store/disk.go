package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The ballast is a file that holds space back: Pebble does not come out of a
// full disk by itself, so the file is given up when the disk runs full, and at
// a start that finds no room, so that deletes and the compaction that frees
// their space can be written.

const ballastName = "ballast"

func (s *Store) ballastPath() string { return s.fs.PathJoin(s.dir, ballastName) }

// prepareBallast makes the file if there is room for it four times over, and
// gives it up if there is none at all.
func (s *Store) prepareBallast(size int64) error {
	if size <= 0 {
		return nil
	}
	if f, err := s.fs.Stat(s.ballastPath()); err == nil && f.Size() >= size {
		s.ballast.Store(true)
	} else if err == nil { // a crash cut it short, or more is wanted now
		if err := s.fs.Remove(s.ballastPath()); err != nil {
			return fmt.Errorf("remove a short ballast: %w", err)
		}
	}
	usage, err := s.fs.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	switch {
	case s.ballast.Load() && usage.AvailBytes < uint64(size):
		s.releaseBallast()
		return nil
	case s.ballast.Load() || usage.AvailBytes < 4*uint64(size):
		return nil
	}
	return s.makeBallast(size)
}

func (s *Store) makeBallast(size int64) error {
	f, err := s.fs.Create(s.ballastPath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("make ballast: %w", err)
	}
	block := make([]byte, 1<<20)
	for n := int64(0); n < size && err == nil; n += int64(len(block)) {
		_, err = f.Write(block[:min(int64(len(block)), size-n)])
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = s.fs.Remove(s.ballastPath())
		return fmt.Errorf("make ballast: %w", err)
	}
	s.ballast.Store(true)
	return nil
}

// releaseBallast gives the space up; it is called when a write found the disk
// full, and must be quick.
func (s *Store) releaseBallast() {
	if !s.ballast.CompareAndSwap(true, false) {
		return
	}
	if err := s.fs.Remove(s.ballastPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("release ballast", "error", err)
		return
	}
	s.log.Warn("disk full: ballast released")
}

// RestoreBallast makes the file again when there is room for it four times
// over; without a ballast size or with the file in place it does nothing.
func (s *Store) RestoreBallast(size int64) error {
	if size <= 0 || s.ballast.Load() {
		return nil
	}
	return s.prepareBallast(size)
}

// FreeBytes is the room left on the disk of the store; ok is false where that
// cannot be known (a file system in memory).
func (s *Store) FreeBytes() (free uint64, ok bool, err error) {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read free space: %w", err)
	}
	return usage.AvailBytes, true, nil
}

// Written is how many octets commits have put into the log so far.
func (s *Store) Written() int64 { return s.wrote.Load() }

// TableBytes is how many octets the tables hold, deleted messages that no
// compaction has removed yet among them.
func (s *Store) TableBytes() int64 { return s.db.Metrics().Total().TablesSize }

// Metrics is Pebble's own view, for the metrics endpoint.
func (s *Store) Metrics() *pebble.Metrics { return s.db.Metrics() }
