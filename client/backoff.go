package client

import (
	"math/rand/v2"
	"time"
)

// A stream and the connection below it pause each on its own, so that a server
// that is back may wait for both.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// backoff is how long to wait before a stream is tried again. The zero value
// begins.
type backoff struct{ last time.Duration }

// next doubles the pause, and spreads it so that the clients of a server that
// comes back do not arrive together.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstPause), longestPause)
	return b.last/2 + rand.N(b.last)
}

// reset is called when a stream has worked.
func (b *backoff) reset() { b.last = 0 }
