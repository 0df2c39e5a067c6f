package stomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// Options are the settings of a Server. The zero value works.
type Options struct {
	MessageBytes   int64 // most octets of a body, whichever its queue; 0: 512 KiB
	BytesPerSecond int64 // read from one connection, beyond it reading slows down; 0: no limit

	// TransactionBytes is how many octets one connection may have in transactions
	// that it has begun and not ended; 0: 8 MiB.
	TransactionBytes int64

	Strict     bool // refuse what OCI refuses
	AutoCreate bool // make a queue at the first SEND or SUBSCRIBE that names it

	Version string // of the program, for the header server; "": none

	// Observe is told of every frame that was refused before it became a request
	// of the service: the face, the command, the code; nil: nobody asks.
	Observe func(face, operation string, code queue.Code, seconds float64)

	Logger *slog.Logger // nil: none
}

// Limits of a session that no setting changes (STOMP reference, section 7).
const (
	signInTime    = 10 * time.Second
	signInBytes   = 16 << 10
	frameTime     = 60 * time.Second // and a second more for each KiB that has come
	writeTime     = 30 * time.Second // for some octets at least
	lingerTime    = 2 * time.Second
	lingerBytes   = 64 << 10
	subscriptions = 256
	receiptBytes  = 1024 // of a receipt header

	openTransactions   = 16
	transactionActions = 1024 // of each

	// A header line as it arrives: a property of the longest name and value, if
	// each octet of the value is spelled with two.
	lineBytes = 64 + 1 + 2*4096

	unsentBytes     = 1 << 20 // beyond it subscriptions take nothing
	unsentAnswers   = 2 << 20 // beyond it the reader stops
	unansweredCount = 1024    // beyond either the reader stops
	unansweredBytes = 2 << 20
)

// Server serves connections until it is shut down.
type Server struct {
	service *service.Service
	quirks  [quirkKinds]atomic.Int64 // frames that had them, by bit
	o       Options
	log     *slog.Logger

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]struct{}
	closed   bool
	sockets  int            // of conns, those over WebSocket
	wg       sync.WaitGroup // of conns
}

// New is a server over s.
func New(s *service.Service, o Options) *Server {
	o.MessageBytes = cmp.Or(o.MessageBytes, 512<<10)
	o.TransactionBytes = cmp.Or(o.TransactionBytes, 8<<20)
	if o.Observe == nil {
		o.Observe = func(string, string, queue.Code, float64) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{service: s, o: o, log: o.Logger, conns: make(map[*conn]struct{})}
}

// Serve accepts connections from l until Shutdown or Close, and then returns
// nil. With TLS, l does the handshakes, each at the first read.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listener = l
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return l.Close()
	}
	pause := time.Millisecond
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.isClosed() {
				return nil
			}
			if _, timeout := errors.AsType[net.Error](err); !timeout || errors.Is(err, net.ErrClosed) {
				return err
			}
			s.log.Error("accept a STOMP connection", "error", err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		c := newConn(s, nc)
		if !s.add(c) {
			nc.Close()
			return nil
		}
	}
}

// survive keeps a fault of one session from ending the others.
func (s *Server) survive(c *conn) {
	if p := recover(); p != nil {
		s.log.Error("panic", "session", c.session, "value", fmt.Sprint(p), "stack", string(debug.Stack()))
		c.cut()
	}
}

// add begins the session of c, unless no more are taken.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	if c.socket != nil {
		s.sockets++
	}
	s.wg.Go(func() { // under mu: whoever closes then waits for it
		defer s.remove(c)
		defer s.survive(c)
		c.serve()
	})
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.socket != nil {
		s.sockets--
	}
}

// WebSockets is how many sessions run over WebSocket now.
func (s *Server) WebSockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sockets
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Shutdown takes no more connections and ends all sessions: what has been read
// is finished and answered, then each is told by an ERROR that the server
// stops. It waits for them until ctx ends, and then returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end(func(c *conn) { c.interrupt(errStopping) })
	done := make(chan struct{})
	go func() { // ends with Close at the latest
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cuts all connections and waits for their sessions.
func (s *Server) Close() {
	s.end(func(c *conn) { c.cut() })
	s.wg.Wait()
}

func (s *Server) end(each func(*conn)) {
	s.mu.Lock()
	s.closed = true
	l := s.listener
	var conns []*conn
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	if l != nil {
		l.Close()
	}
	for _, c := range conns {
		each(c)
	}
}

var errStopping = queue.Errorf(queue.ServiceUnavailable, "the server is stopping; connect again")

// newSession is a name for one session, for the log of both sides.
func newSession() string { return fmt.Sprintf("%016x", rand.Uint64()) }
