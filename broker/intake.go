package broker

import (
	"sync"

	"github.com/queued-mq/queued/queue"
)

// request is something to decide. It is decided once, in the core; when the
// group is durable the core calls then, or wakes the goroutine that waits.
type request struct {
	decide    func(*group) error
	publishes bool
	bytes     int64
	err       error
	then      func(error) // nil: somebody waits for done
	done      chan struct{}
}

// answer tells whoever asked that the group is durable.
func (r *request) answer() {
	if r.then != nil {
		r.then(r.err)
		return
	}
	close(r.done)
}

// fifo is what one queue has sent and the core has not taken: publishes apart
// from the rest, so that neither starves the other.
type fifo struct {
	lists [2][]*request
	bytes int64
	turn  int // whose turn it is
	in    bool
}

func (f *fifo) len() int { return len(f.lists[0]) + len(f.lists[1]) }

// kind is the list that r stands in.
func (r *request) kind() int {
	if r.publishes {
		return 0
	}
	return 1
}

func (f *fifo) push(r *request) {
	i := r.kind()
	f.lists[i] = append(f.lists[i], r)
	f.bytes += r.bytes
}

func (f *fifo) pop() *request {
	if len(f.lists[f.turn]) == 0 {
		f.turn = 1 - f.turn
	}
	list := f.lists[f.turn]
	r := list[0]
	list[0] = nil
	if f.lists[f.turn] = list[1:]; len(list) == 1 {
		f.lists[f.turn] = nil
	}
	f.bytes -= r.bytes
	f.turn = 1 - f.turn
	return r
}

// intake is everything that waits for the core. Whoever finds the core idle
// runs the next group itself; then the runner goes on as long as there is work.
type intake struct {
	mu       sync.Mutex
	busy     bool // a group is running, or the runner has been told to run
	closed   bool
	own      []func(*group) // of the core itself; never refused
	turns    []*fifo        // of queues that have something, in turn
	bytes    int64
	ownAfter chan struct{}
}

// Bounds of one group.
const (
	groupRequests = 512
	groupBytes    = 4 << 20
	groupOwn      = 64
)

var (
	// ErrClosing is the answer to all that comes after Close, and to gets after
	// Drain: ServiceUnavailable, and not because of too much work.
	ErrClosing = queue.Errorf(queue.ServiceUnavailable, "the server is stopping; try again elsewhere or later")
	errPanic   = queue.Errorf(queue.InternalServerError, "internal error")
)

// submit hands a request to the core and waits for its group to be durable.
func (b *Broker) submit(q *queueState, r *request) error {
	r.done = make(chan struct{})
	lead, err := b.accept(q, r)
	if err != nil {
		return err
	}
	if lead {
		b.lead()
	}
	<-r.done
	return r.err
}

// begin hands a request to the core and does not wait: then is called by the
// core. After an error it is not called.
func (b *Broker) begin(q *queueState, r *request, then func(error)) error {
	r.then = then
	lead, err := b.accept(q, r)
	if lead {
		b.run <- struct{}{}
	}
	return err
}

// accept puts a request into the FIFO of its queue. If lead, the core was idle
// and the caller must see to it that it runs.
func (b *Broker) accept(q *queueState, r *request) (lead bool, err error) {
	in := &b.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false, ErrClosing
	}
	f := &q.pending
	// Each kind has its own bound, so that a flood of publishes does not keep
	// out the deletes that would end it.
	if err := b.limits.CheckPending(len(f.lists[r.kind()]), f.bytes, r.bytes); err != nil {
		return false, err
	}
	if in.bytes+r.bytes > b.limits.PendingBytesTotal {
		return false, queue.Errorf(queue.ServiceUnavailable, "the server is overloaded: %d octets wait to be stored; try again, or raise limits.pending-bytes-total", in.bytes)
	}
	in.bytes += r.bytes
	f.push(r)
	if !f.in {
		f.in = true
		in.turns = append(in.turns, f)
	}
	lead, in.busy = !in.busy, true
	return lead, nil
}

// internal has the core run f in one of its next groups, before the requests
// of clients. It does not wait, and after the broker is closed it does nothing.
func (b *Broker) internal(f func(*group)) {
	in := &b.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	in.own = append(in.own, f)
	if !in.busy {
		in.busy = true
		b.run <- struct{}{}
	}
}

// do is internal, and waits until the group is durable. It reports whether f
// has run; false means the broker is closing.
func (b *Broker) do(f func(*group)) bool {
	done := make(chan struct{})
	b.internal(func(g *group) {
		f(g)
		g.after = append(g.after, func() { close(done) })
	})
	select {
	case <-done:
		return true
	case <-b.stopped:
		return false
	}
}

// lead runs one group in the goroutine of its first request, and leaves what
// has gathered meanwhile to the runner.
func (b *Broker) lead() {
	b.group()
	if b.more() {
		b.run <- struct{}{}
	}
}

// runner runs groups as long as there is something to decide.
func (b *Broker) runner() {
	for range b.run {
		for {
			b.group()
			if !b.more() {
				break
			}
		}
	}
}

// more reports whether something waits; if not, the core is idle.
func (b *Broker) more() bool {
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	if len(b.in.own) > 0 || len(b.in.turns) > 0 {
		return true
	}
	b.in.busy = false
	if b.in.ownAfter != nil {
		close(b.in.ownAfter)
		b.in.ownAfter = nil
	}
	return false
}

// collect takes the next group's share: what the core itself wants first, then
// one request of each queue in turn, publishes and others in turn.
func (b *Broker) collect(own []func(*group), requests []*request) ([]func(*group), []*request) {
	in := &b.in
	in.mu.Lock()
	defer in.mu.Unlock()
	n := min(len(in.own), groupOwn)
	own = append(own, in.own[:n]...)
	clear(in.own[:n])
	if in.own = in.own[n:]; len(in.own) == 0 {
		in.own = nil
	}
	var bytes int64
	for len(in.turns) > 0 && len(requests) < groupRequests && bytes < groupBytes {
		f := in.turns[0]
		r := f.pop()
		bytes += r.bytes
		requests = append(requests, r)
		in.turns = in.turns[1:]
		if f.in = f.len() > 0; f.in {
			in.turns = append(in.turns, f)
		}
	}
	in.bytes -= bytes
	return own, requests
}

// group runs one group: decide, store, answer.
func (b *Broker) group() {
	g := b.g
	g.reset()
	b.own, b.requests = b.collect(b.own[:0], b.requests[:0])
	g.now = b.clock.Now()
	b.state.Now = max(b.state.Now, g.now)
	g.now = b.state.Now
	for _, f := range b.own {
		g.mustNot(func() { f(g) }) // somebody of ours waits for it
	}
	for _, r := range b.requests {
		r.err = g.protect(func() error { return r.decide(g) })
	}
	for i := 0; i < len(g.lanes); i++ {
		g.lanes[i].of.setReady(g.lanes[i])
	}
	for i := 0; i < len(g.queues); i++ {
		if q := g.queues[i]; q.wake {
			g.mustNot(func() { g.attend(q) })
		}
	}
	g.mustNot(g.close)
	if !g.cs.Empty() {
		b.state.Position++
		g.cs.State = b.state
		b.commit(g)
	}
	g.publish()
	// Publishes are answered before the gets that they serve: who does both
	// on one connection is told first that it has published.
	for _, r := range b.requests {
		r.answer()
	}
	for _, f := range g.after {
		f()
	}
	clear(b.own)
	clear(b.requests)
	if at, ok := b.lapses.Next(); ok {
		b.lapser.wants(at)
	}
}

// protect runs one decision. A panic before it has changed anything is that
// request's own failure; after that the memory cannot be trusted, and the
// process ends.
func (g *group) protect(f func() error) (err error) {
	before := g.changes
	defer func() {
		if p := recover(); p != nil {
			if g.changes != before {
				g.b.crash(p)
			}
			g.b.logPanic(p)
			err = errPanic
		}
	}()
	return f()
}

// mustNot runs what belongs to all requests of the group: a panic ends the
// process.
func (g *group) mustNot(f func()) {
	defer func() {
		if p := recover(); p != nil {
			g.b.crash(p)
		}
	}()
	f()
}
