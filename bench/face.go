package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// message is one to publish. Its body is the caller's again when the operation
// is over.
type message struct {
	body    []byte
	channel string // "": none
}

// delivery is a message that was received.
type delivery struct {
	receipt string
	number  uint64
	meant   time.Duration // when it was meant to be published
	at      time.Time     // when it was here
}

// producer is a session that publishes. Many operations may be under way.
type producer interface {
	// publish returns when all messages are durable.
	publish(ctx context.Context, batch []message) error
	io.Closer
}

// consumer is a session that consumes. Many operations may be under way.
type consumer interface {
	// receive waits a second or so for messages, and has up to max of them.
	receive(ctx context.Context, max int) ([]delivery, error)
	// settle deletes messages and returns when that is durable.
	settle(ctx context.Context, batch []delivery) error
	io.Closer
}

// face is one way into the server.
type face interface {
	// producer and consumer open the session of this index to a queue. It ends
	// with ctx at the latest.
	producer(ctx context.Context, index int, queue string) (producer, error)
	consumer(ctx context.Context, index int, queue string) (consumer, error)
	io.Closer
}

// pollFor is how long receive waits for a message.
const pollFor = time.Second

// openFace is the face that o names.
func openFace(o *Options) (face, error) {
	switch o.Face {
	case "rest":
		return newREST(o), nil
	case "grpc":
		return newGRPC(o)
	case "streams":
		return newStreams(o)
	case "stomp":
		return &stompFace{o}, nil
	}
	return nil, fmt.Errorf("there is no face %q", o.Face)
}

// Refusal is what the server said no with.
type Refusal struct {
	Code    string // a named error
	Message string
	Broken  bool // and the session has ended
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// codeOf is the word that an error is counted by.
func codeOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "Timeout"
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "Canceled"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "ConnectionRefused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "ConnectionLost"
	case errors.Is(err, errNotOurs):
		return "ForeignMessage"
	}
	return "Other"
}

// link is a session that is opened again when it has broken.
type link[T io.Closer] struct {
	open func(ctx context.Context) (T, error)

	mu   sync.Mutex
	up   bool
	over bool
	now  T
	made int // counts the sessions
}

// use is the session, opened if need be, and which one it is.
func (l *link[T]) use(ctx context.Context) (session T, made int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return session, 0, net.ErrClosed
	}
	if !l.up {
		if l.now, err = l.open(ctx); err != nil {
			return session, 0, err
		}
		l.up = true
		l.made++
	}
	return l.now, l.made, nil
}

// broken gives a session up if err says that it is of no more use.
func (l *link[T]) broken(made int, err error) {
	if r, ok := errors.AsType[*Refusal](err); ok && !r.Broken {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up && l.made == made {
		l.up = false
		_ = l.now.Close() // it is broken
	}
}

func (l *link[T]) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.up {
		l.up = false
		_ = l.now.Close() // nothing is expected of it
	}
}

// base is an address as a URL without a path.
func base(addr string) string {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	return strings.TrimSuffix(addr, "/")
}

// channelNames are the names of the channels, or none.
func channelNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	return names
}
