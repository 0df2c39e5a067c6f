//go:build !linux

package wire

import "testing"

func smallDisk(t *testing.T, _ int) string {
	t.Helper()
	t.Skip("small file systems are made on Linux only")
	return ""
}
