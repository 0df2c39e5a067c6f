package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pace holds publishes to a queue back for a moment while its consumers are at
// work and fall behind. A message takes one request to come and two to go, a
// get and a delete; so of as many producers as consumers, each with one request
// at a time, the producers would bring twice what the consumers take, however
// fast the server is. Here a publish waits until consumers have made two
// requests for it, and never longer than paceMost.
//
// Publishes that are started and not waited for are not held: who sends them
// is slowed down by other means, and their consumers keep up by themselves
// (docs/decisions/0011).
type pace struct {
	behind atomic.Bool  // messages wait to be taken; the core says so
	held   atomic.Int64 // publishes that were held

	mu      sync.Mutex
	credit  int // requests of consumers that stand for no publish yet, paceCredit at most
	waiting []chan struct{}
	begun   time.Time // of the period
	count   int       // requests of consumers in it
	several bool      // there were paceSeveral in the period before
}

const (
	paceMost    = 25 * time.Millisecond // a publish is held, and a period lasts
	paceSeveral = 16                    // fewer requests in a period are not several consumers at work
	paceCredit  = 8
	paceWaiting = 256 // publishes held at a time; more go on, to where they are counted
)

// set tells whether messages wait. When none does any more, nobody is held.
func (p *pace) set(behind bool) {
	if was := p.behind.Swap(behind); !was || behind {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, turn := range p.waiting {
		close(turn)
	}
	p.waiting = nil
}

// consumed tells of a get, an update or a delete.
func (p *pace) consumed() {
	if !p.behind.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick(time.Now())
	p.count++
	p.credit++
	if p.credit >= 2 && len(p.waiting) > 0 {
		p.credit -= 2
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
	p.credit = min(p.credit, paceCredit)
}

// tick begins a new period when the last one is over; mu is held.
func (p *pace) tick(now time.Time) {
	if past := now.Sub(p.begun); past >= paceMost {
		p.several = p.count >= paceSeveral && past < 2*paceMost
		p.begun, p.count = now, 0
	}
}

// wait holds a publish, until its turn, for paceMost, or until ctx ends.
func (p *pace) wait(ctx context.Context) {
	if !p.behind.Load() {
		return
	}
	turn := p.join()
	if turn == nil {
		return
	}
	p.held.Add(1)
	t := time.NewTimer(paceMost)
	defer t.Stop()
	select {
	case <-turn:
		return
	case <-t.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, turn); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
}

// join takes a place among those that are held; nil: go on at once.
func (p *pace) join() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick(time.Now())
	switch {
	case !p.behind.Load(), !p.several, len(p.waiting) >= paceWaiting:
		return nil
	case p.credit >= 2 && len(p.waiting) == 0:
		p.credit -= 2
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	return turn
}
