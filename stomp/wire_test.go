package stomp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// wires is a listener whose connections are pieces of memory, for bubbles:
// real sockets do not let fake time advance.
type wires struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newWires() *wires { return &wires{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wires) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wires) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wires) Addr() net.Addr { return address{} }

// dial is both ends of a new connection, each direction of which holds so many
// octets that nobody has read.
func (w *wires) dial(room int) (client, served *end) {
	a, b := &direction{room: room, changed: make(chan struct{})}, &direction{room: room, changed: make(chan struct{})}
	client, served = &end{in: a, out: b}, &end{in: b, out: a}
	client.reads.done, client.writes.done = make(chan struct{}), make(chan struct{})
	served.reads.done, served.writes.done = make(chan struct{}), make(chan struct{})
	w.conns <- served
	return client, served
}

// direction is the octets on their way from one end to the other.
type direction struct {
	mu      sync.Mutex
	buf     []byte
	room    int
	ended   bool          // the writer has said all
	broken  bool          // the reader is gone
	changed chan struct{} // closed at every change
}

func (d *direction) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.changed)
	d.changed = make(chan struct{})
}

// end is one end of a connection.
type end struct {
	in, out       *direction
	reads, writes limit
}

func (e *end) Read(p []byte) (int, error) {
	d := e.in
	for {
		late := e.reads.wait()
		select {
		case <-late:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		d.mu.Lock()
		changed := d.changed
		switch {
		case d.broken:
			d.mu.Unlock()
			return 0, net.ErrClosed
		case len(d.buf) > 0:
			n := copy(p, d.buf)
			d.buf = d.buf[n:]
			close(d.changed)
			d.changed = make(chan struct{})
			d.mu.Unlock()
			return n, nil
		case d.ended:
			d.mu.Unlock()
			return 0, io.EOF
		}
		d.mu.Unlock()
		select {
		case <-changed:
		case <-late:
		}
	}
}

func (e *end) Write(p []byte) (n int, err error) {
	d := e.out
	for {
		late := e.writes.wait()
		select {
		case <-late:
			return n, os.ErrDeadlineExceeded
		default:
		}
		d.mu.Lock()
		changed := d.changed
		if d.broken || d.ended {
			d.mu.Unlock()
			return n, &net.OpError{Op: "write", Err: io.ErrClosedPipe}
		}
		if some := min(len(p), d.room-len(d.buf)); some > 0 {
			d.buf = append(d.buf, p[:some]...)
			n, p = n+some, p[some:]
			close(d.changed)
			d.changed = make(chan struct{})
			changed = d.changed
		}
		d.mu.Unlock()
		if len(p) == 0 {
			return n, nil
		}
		select {
		case <-changed:
		case <-late:
		}
	}
}

func (e *end) CloseWrite() error { e.out.change(func() { e.out.ended = true }); return nil }

func (e *end) Close() error {
	e.in.change(func() { e.in.broken = true })
	e.out.change(func() { e.out.ended = true })
	e.reads.set(time.Time{})
	e.writes.set(time.Time{})
	return nil
}

func (e *end) LocalAddr() net.Addr                { return address{} }
func (e *end) RemoteAddr() net.Addr               { return address{} }
func (e *end) SetReadDeadline(t time.Time) error  { e.reads.set(t); return nil }
func (e *end) SetWriteDeadline(t time.Time) error { e.writes.set(t); return nil }
func (e *end) SetDeadline(t time.Time) error      { e.reads.set(t); e.writes.set(t); return nil }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }

// limit is a deadline; done is closed when it is over.
type limit struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{}
}

func (l *limit) set(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && !l.timer.Stop() {
		<-l.done
	}
	l.timer = nil
	over := false
	select {
	case <-l.done:
		over = true
	default:
	}
	if t.IsZero() {
		if over {
			l.done = make(chan struct{})
		}
		return
	}
	if wait := time.Until(t); wait > 0 {
		if over {
			l.done = make(chan struct{})
		}
		done := l.done
		l.timer = time.AfterFunc(wait, func() { close(done) })
		return
	}
	if !over {
		close(l.done)
	}
}

func (l *limit) wait() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}
