//go:build unix

package gateway

import (
	"errors"
	"syscall"
)

func peekSocket(fd uintptr, p []byte) (n int, open bool) {
	n, _, err := syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case err == nil:
		return n, n > 0
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, true
	default:
		return 0, false // reset
	}
}
