package broker

import (
	"log/slog"
	"sync"
	"time"

	"github.com/queued-mq/queued/queue"
)

// clock is the engine's time. It begins at the later of the wall clock and the
// last instant that was stored, and goes on by the monotonic clock, so a step
// of the wall clock moves nothing at once: a visibility timeout of 30 s lasts
// 30 s. A difference that lasts is adopted after the grace if the wall is
// ahead, and slewed away at a twentieth of real time if it is behind, so that
// the engine's time never falls.
type clock struct {
	wall  func() time.Time
	grace time.Duration
	log   *slog.Logger

	mu      sync.Mutex
	base    time.Duration // engine time at since, since the epoch
	since   time.Time     // has a monotonic reading
	pace    time.Duration // +1: a slew part faster than real time, -1: slower
	ahead   time.Time     // since when the wall has been ahead; zero: it is not
	jumping bool          // a difference has been logged
	jumps   int64
	diff    time.Duration
}

// drift is how far the wall clock may be off before it counts as a jump;
// smaller differences are followed by slewing, both ways.
const drift = time.Second

// tolerance is a difference that is not worth a slew.
const tolerance = 50 * time.Millisecond

// slew is the part of real time by which a difference shrinks.
const slew = 20

func newClock(wall func() time.Time, last queue.Instant, grace time.Duration, log *slog.Logger) *clock {
	c := &clock{wall: wall, grace: grace, log: log, since: time.Now()}
	c.base = max(time.Duration(wall().UnixNano()), time.Duration(last)*time.Millisecond)
	return c
}

// Now is the engine's time; it never falls.
func (c *clock) Now() queue.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now(time.Now())
}

func (c *clock) now(t time.Time) queue.Instant {
	return queue.Instant(c.at(t) / time.Millisecond)
}

func (c *clock) at(t time.Time) time.Duration {
	passed := t.Sub(c.since)
	return c.base + passed + c.pace*(passed/slew)
}

// check compares the engine's time with the wall, once every second or so. It
// reports whether the engine's time has leapt, which timers must be told of.
func (c *clock) check() (leapt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	c.base, c.since, c.pace = c.at(t), t, 0
	wall := time.Duration(c.wall().UnixNano())
	c.diff = wall - c.base

	if c.diff < drift {
		c.ahead = time.Time{}
	} else if c.ahead.IsZero() {
		c.ahead = t
	}
	if jumping := c.diff >= drift || c.diff <= -drift; jumping != c.jumping {
		if c.jumping = jumping; jumping {
			c.jumps++
			c.log.Warn("wall clock differs from engine time", "difference", c.diff, "grace", c.grace)
		} else {
			c.log.Info("wall clock agrees with engine time again")
		}
	}
	switch {
	case c.diff >= drift && t.Sub(c.ahead) >= c.grace:
		c.log.Warn("wall clock adopted", "difference", c.diff)
		c.base = wall
		leapt = true
	case c.diff >= drift: // wait out the grace
	case c.diff > tolerance:
		c.pace = 1
	case c.diff < -tolerance: // slower, never back
		c.pace = -1
	}
	return leapt
}

// difference is how far the wall was ahead at the last check, and how many
// jumps there were.
func (c *clock) difference() (time.Duration, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.diff, c.jumps
}
