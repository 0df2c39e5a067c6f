package bench

import (
	"context"
	"time"
)

// pace says when the operations of one worker are meant to begin. Without a
// rate that is whenever the one before is over. With a rate, operation k of
// worker w of n is due at (k·n + w)·interval, whatever became of those before;
// a worker that is late begins at once.
type pace struct {
	rec      *recorder
	interval time.Duration // between the operations of all workers; 0: no rate
	worker   int
	workers  int
	next     int // the number of the operation that is next
}

// due is when an operation is meant to begin.
func (p *pace) due(k int) time.Duration {
	return time.Duration(k*p.workers+p.worker) * p.interval
}

// overtime is how long behind the window operations are begun that were due
// within it. Without it a server that stands still at the end would go
// unnoticed.
const overtime = 5 * time.Second

// wait returns at the next operation's beginning, with the instant that was
// meant, or false when stop is done and nothing is overdue.
func (p *pace) wait(stop context.Context) (meant time.Duration, ok bool) {
	if p.interval == 0 {
		return p.rec.now(), stop.Err() == nil
	}
	meant = p.due(p.next)
	early := meant - p.rec.now()
	if stop.Err() != nil && (early > 0 || int64(meant) >= p.rec.to.Load() || int64(p.rec.now()-overtime) > p.rec.to.Load()) {
		return 0, false
	}
	if early > 0 {
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stop.Done():
			return p.wait(stop) // it may be due by now
		}
	}
	p.next++
	return meant, true
}

// missed counts the operations that were due within the window and never begun,
// and records the time that they waited in vain: it is less than what they would
// have taken, and more than nothing.
func (p *pace) missed() (n int64) {
	from, to := p.rec.from.Load(), p.rec.to.Load()
	if p.interval == 0 || to <= from {
		return 0
	}
	// The first operation that is due at an instant or later.
	at := func(instant int64) int64 {
		step := int64(p.interval) * int64(p.workers)
		return max(0, (instant-int64(p.due(0))+step-1)/step)
	}
	first := max(int64(p.next), at(from))
	n = max(at(to)-first, 0)
	now, stride := p.rec.now(), max(n/1000, 1) // a thousand say enough
	for k := int64(0); k < n; k += stride {
		meant := p.due(int(first + k))
		p.rec.latencies(p.worker, publishing, meant, now, min(stride, n-k))
	}
	return n
}

// pause waits before something is tried again, longer each time.
type pause time.Duration

const (
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

func (p *pause) wait(stop context.Context) {
	d := min(max(time.Duration(*p)*2, firstPause), longestPause)
	*p = pause(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop.Done():
	}
}
