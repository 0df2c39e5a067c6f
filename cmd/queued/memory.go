package main

import (
	"math"
	"os"
	"runtime/debug"
)

// restBytes is what the memory limit leaves for all that has no setting of its
// own: requests under way, connections, leases, code.
const restBytes = 64 << 20

// memoryLimit is the memory that the settings make room for. The collector
// works harder as the process nears it, which costs little here: most of the
// memory is tables and bodies, without pointers. It is no bound that anything
// is refused at.
func (c *Config) memoryLimit() int64 {
	sum := int64(restBytes)
	for _, part := range []int64{c.WindowBytes, c.BodyCacheBytes, c.BlockCacheBytes, c.MemtableBytes, c.MemtableBytes, c.MemtableBytes} {
		if sum > math.MaxInt64-part {
			return math.MaxInt64
		}
		sum += part
	}
	return sum
}

// limitMemory tells the collector, unless GOMEMLIMIT has told it already.
func (c *Config) limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(c.memoryLimit())
	}
}
