//go:build !linux

package wire

import "testing"

// smallDisks needs Linux.
var smallDisks = map[string]func(*testing.T, int64) string{"none": func(t *testing.T, _ int64) string {
	t.Skip("a small file system is mounted on Linux only")
	return ""
}}
