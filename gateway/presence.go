package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"syscall"
	"time"
)

// That a client has gone its kernel tells ours, and ours tells us when somebody
// reads: the end of a connection and the frame that resets a stream lie in the
// socket until the goroutine that reads it gets its turn. A message that comes
// in between would go to nobody and be hidden for its whole visibility timeout.
// So before a poll is answered with messages the socket itself is asked.

type connKey struct{}

// withConn lets presence find the connection of a request.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	if c, ok := nc.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// presence reports false when the client of r is known to have gone. Over
// HTTP/2 and TLS it waits, catchUp at most, until what has arrived is read,
// since a reset of the stream or the end of the session may be among it; then
// the context of r has ended.
func presence(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return true // a listener of a test, or one that was not wrapped
	}
	if r.ProtoMajor < 2 && r.TLS == nil {
		var one [1]byte
		_, open := c.peek(one[:])
		return open
	}
	var some [4 << 10]byte
	was := c.read.Load()
	n, open := c.peek(some[:])
	for deadline := time.Now().Add(catchUp); open && c.handled.Load() < was+int64(n); {
		if r.Context().Err() != nil || time.Now().After(deadline) {
			break
		}
		time.Sleep(50 * time.Microsecond)
	}
	return open
}

const (
	// catchUp is how long the reader of a connection may take to get its turn.
	catchUp = 100 * time.Millisecond

	// polled is from when on a get has waited: a client that asked a moment
	// ago has hardly gone.
	polled = time.Millisecond
)

// Read reads, and notes how far all that was read has been handled: the reader
// of an HTTP/2 connection comes back when it is done with every frame it has.
func (c *conn) Read(p []byte) (int, error) {
	c.handled.Store(c.read.Load())
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// peek looks at what has arrived and has not been read yet. Open is false when
// the client has closed the connection, or its half of it, and nothing is left
// to read before that.
func (c *conn) peek(p []byte) (n int, open bool) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0, true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, true
	}
	open = true
	err = raw.Control(func(fd uintptr) { n, open = peekSocket(fd, p) })
	return n, open && err == nil // an error is that of a closed socket
}
