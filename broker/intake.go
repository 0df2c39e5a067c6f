package broker

import (
	"sync"

	"github.com/queued-mq/queued/queue"
)

// decision is what a request wants of the core.
type decision interface {
	// decide checks, then changes. Its error is the answer, and then it must
	// have changed nothing.
	decide(*group) error
}

// starter is whoever does not wait for the answer.
type starter interface {
	// answered is called by the core when the group is durable.
	answered(error)
}

// request is a decision in its turn. It is decided once, in the core; when the
// group is durable the core tells the starter, or wakes the goroutine that
// waits. It lies in the value that decides, so that one piece of memory is both.
type request struct {
	what      decision
	publishes bool
	bytes     int64
	err       error
	starter   starter // nil: somebody waits for done
	done      chan struct{}
	next      *request // in the list it stands in
}

// answer tells whoever asked that the group is durable.
func (r *request) answer() {
	if r.starter != nil {
		r.starter.answered(r.err)
		return
	}
	close(r.done)
}

// requests is a list of requests, first in, first out.
type requests struct {
	first, last *request
	n           int
}

func (l *requests) push(r *request) {
	if l.last != nil {
		l.last.next = r
	} else {
		l.first = r
	}
	l.last = r
	l.n++
}

func (l *requests) pop() *request {
	r := l.first
	if l.first = r.next; l.first == nil {
		l.last = nil
	}
	r.next = nil
	l.n--
	return r
}

// fifo is what one queue has sent and the core has not taken: publishes apart
// from the rest, so that neither starves the other.
type fifo struct {
	lists [2]requests
	bytes int64
	turn  int   // whose turn it is
	in    bool  // it stands in turns
	next  *fifo // in turns
}

func (f *fifo) len() int { return f.lists[0].n + f.lists[1].n }

// kind is the list that r stands in.
func (r *request) kind() int {
	if r.publishes {
		return 0
	}
	return 1
}

func (f *fifo) push(r *request) {
	f.lists[r.kind()].push(r)
	f.bytes += r.bytes
}

func (f *fifo) pop() *request {
	if f.lists[f.turn].n == 0 {
		f.turn = 1 - f.turn
	}
	r := f.lists[f.turn].pop()
	f.bytes -= r.bytes
	f.turn = 1 - f.turn
	return r
}

// turns is the queues that have sent something, in turn.
type turns struct{ first, last *fifo }

func (t *turns) push(f *fifo) {
	f.in = true
	if t.last != nil {
		t.last.next = f
	} else {
		t.first = f
	}
	t.last = f
}

func (t *turns) pop() *fifo {
	f := t.first
	if t.first = f.next; t.first == nil {
		t.last = nil
	}
	f.in, f.next = false, nil
	return f
}

// intake is everything that waits for the core. Whoever finds the core idle
// runs the next group itself; then the runner goes on as long as there is work.
type intake struct {
	mu       sync.Mutex
	busy     bool // a group is running, or the runner has been told to run
	closed   bool
	own      []func(*group) // of the core itself; never refused
	turns    turns
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

// begin hands a request to the core and does not wait: who is told by the core.
// After an error it is not.
func (b *Broker) begin(q *queueState, r *request, who starter) error {
	r.starter = who
	lead, err := b.accept(q, r)
	if lead {
		b.run <- struct{}{}
	}
	return err
}

// accept puts a request into the FIFO of its queue. If lead, the core was idle
// and the caller must see to it that it runs.
func (b *Broker) accept(q *queueState, r *request) (lead bool, err error) {
	if !r.publishes {
		q.pace.consumed()
	}
	in := &b.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false, ErrClosing
	}
	f := &q.pending
	// Each kind has its own bound, so that a flood of publishes does not keep
	// out the deletes that would end it.
	if err := b.limits.CheckPending(f.lists[r.kind()].n, f.bytes, r.bytes); err != nil {
		return false, err
	}
	if in.bytes+r.bytes > b.limits.PendingBytesTotal {
		return false, queue.Errorf(queue.ServiceUnavailable, "the server is overloaded: %d octets wait to be stored; try again, or raise limits.pending-bytes-total", in.bytes)
	}
	in.bytes += r.bytes
	f.push(r)
	if !f.in {
		in.turns.push(f)
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
	if len(b.in.own) > 0 || b.in.turns.first != nil {
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
	for in.turns.first != nil && len(requests) < groupRequests && bytes < groupBytes {
		f := in.turns.pop()
		r := f.pop()
		bytes += r.bytes
		requests = append(requests, r)
		if f.len() > 0 {
			in.turns.push(f)
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
		r.err = g.protect(func() error { return r.what.decide(g) })
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
	if !g.cs.Empty() || b.state.Message > g.cs.State.Message { // an id that was given out is never given again
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
