//go:build unix && !solaris && !aix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dirLock keeps a data directory to one process. The kernel gives it up with
// the process, however that ends, so a file left behind locks nobody out.
type dirLock struct{ f *os.File }

// lockDir takes the lock of dir, an existing folder, and writes the pid into
// it. When another process has it, the error names that process.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data-dir: %w", err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		defer f.Close()
		return nil, inUse{dir, holder(f)}
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock data-dir %s: %w", dir, err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock data-dir %s: %w", dir, err)
	}
	return &dirLock{f}, nil
}

// holder is the process that has the lock, "another process" if it is not told.
func holder(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// lockToRead keeps others from writing in dir while it is read, and changes
// nothing there: a directory that no server has ever locked is not locked.
func lockToRead(dir string) (release func() error, err error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock data-dir: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, inUse{dir, holder(f)}
		}
		return nil, fmt.Errorf("lock data-dir %s: %w", dir, err)
	}
	return f.Close, nil
}

// release lets the next process in. The file stays: if it were removed, two
// processes could each hold a lock of that name.
func (l *dirLock) release() error {
	if err := errors.Join(l.f.Truncate(0), l.f.Close()); err != nil {
		return fmt.Errorf("unlock data-dir: %w", err)
	}
	return nil
}
