package backlog

import (
	"fmt"
	"os"
	"testing"
)

// Read is how many octets a process has read since it began, from files and
// sockets, out of the machine's cache or not.
func Read(t testing.TB, pid int) (n int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d\n", &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}
