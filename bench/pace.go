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
	if stop.Err() != nil && (early > 0 || !p.rec.within(meant) || int64(p.rec.now()-overtime) > p.rec.to.Load()) {
		return 0, false
	}
	if early > 0 {
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stop.Done():
			return 0, false
		}
	}
	p.next++
	return meant, true
}

// missed counts the operations that were due within the window and never begun.
func (p *pace) missed() (n uint64) {
	if p.interval == 0 {
		return 0
	}
	for k := p.next; int64(p.due(k)) < p.rec.to.Load(); k++ {
		if p.rec.within(p.due(k)) {
			n++
		}
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
