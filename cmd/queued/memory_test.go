package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// The collector is told the sum of what the settings allow, and what the
// environment says goes before it.
func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	c := Default()
	c.limitMemory()
	if got := debug.SetMemoryLimit(-1); got != 448<<20 {
		t.Errorf("the limit is %d by default", got)
	}
	c.MemtableBytes, c.BodyCacheBytes = 16<<20, 0
	if got := c.memoryLimit(); got != (64+64+64+3*16)<<20 {
		t.Errorf("the limit is %d with small tables", got)
	}
	c.WindowBytes = math.MaxInt64 - 1
	if got := c.memoryLimit(); got != math.MaxInt64 {
		t.Errorf("the limit is %d with windows of any size", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	debug.SetMemoryLimit(5 << 30)
	c.limitMemory()
	if got := debug.SetMemoryLimit(-1); got != 5<<30 {
		t.Errorf("the limit is %d though the environment has one", got)
	}
}
