//go:build unix

package server

import (
	"os"
	"syscall"
)

// lock waits until no other process has the file locked. Without a lock ok is
// false.
func lock(path string) (unlock func(), ok bool) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, false
	}
	return func() { f.Close() }, true
}
