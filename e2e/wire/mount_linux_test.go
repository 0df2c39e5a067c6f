package wire

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisks makes folders on file systems of so many octets, each kind by its
// name: one in memory, and one on a block device, where the room for what was
// written may be looked for when it is synced only.
var smallDisks = map[string]func(*testing.T, int64) string{"tmpfs": tmpfs, "ext4": ext4}

func tmpfs(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("queued-e2e", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	unmount(t, dir)
	return dir
}

// ext4 lies in a file, through a loop device.
func ext4(t *testing.T, size int64) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	f, err := os.Create(image)
	if err == nil {
		err = f.Truncate(size)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-m", "0", image},
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a file system in a file needs mkfs.ext4, a loop device and the right to mount: %v: %v %s", command, err, out)
		}
	}
	unmount(t, dir)
	return dir
}

func unmount(t *testing.T, dir string) {
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
