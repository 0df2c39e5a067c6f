package stomp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/bits"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// conn is one connection and its session.
type conn struct {
	server  *Server
	net     net.Conn
	socket  *socket // net, if it is a WebSocket
	session string
	log     *slog.Logger

	ctx    context.Context // of all requests; ends with the session
	cancel context.CancelFunc
	rest   context.Context // of what is left to do then; ends when the session is cut
	stop   context.CancelFunc

	// Of the reader.
	in      input
	dec     *frame.Decoder
	version frame.Version // V10 until CONNECTED
	known   map[string]bool
	quirks  quirks // of the frame under way
	said    quirks // that have been logged
	late    bool   // that acknowledgements are has been logged
	sends   gathered
	transactions

	over     chan struct{} // closed when the session is to end
	overOnce sync.Once

	mu       sync.Mutex
	cause    error // why the session is to end; nil: it goes on
	failing  bool  // a SEND has failed: nothing behind it is served
	failure  error // of a frame that was under way, which ended the session
	line     line
	out      output
	subs     map[string]*subscription // by their id
	sent     map[queue.Receipt]*delivery
	settled  recent
	settling map[queue.Receipt][]uint64        // under way, and the places of frames that wait for the outcome
	byName   map[queue.MessageID]queue.Receipt // settled by their message-id
	oddStale bool                              // a receipt of an ACK did not hold any more
	pumps    sync.WaitGroup                    // of subscriptions
	answered *sync.Cond                        // of mu: the line has become shorter, or the session has ended
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, net: nc, session: newSession(), version: frame.V10, over: make(chan struct{})}
	c.log = s.log.With("session", c.session)
	c.rest, c.stop = context.WithCancel(service.WithCaller(context.Background(),
		&service.Caller{Face: service.FaceSTOMP, RequestID: c.session}))
	c.ctx, c.cancel = context.WithCancel(c.rest)
	c.answered = sync.NewCond(&c.mu)
	c.out.wake = make(chan struct{}, 1)
	c.in = input{conn: c, until: time.Now().Add(signInTime)}
	if rate := s.o.BytesPerSecond; rate > 0 {
		c.in.limit(rate)
	}
	c.dec = frame.NewDecoder(&c.in, frame.Limits{Body: signInBytes, Frame: signInBytes})
	return c
}

// serve is the session, from the first octet to the last. Its goroutine is the
// reader.
func (c *conn) serve() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer c.server.survive(c)
		c.write()
	}()
	fed := make(chan struct{})
	if c.socket == nil {
		close(fed)
	} else {
		go func() {
			defer close(fed)
			defer c.server.survive(c)
			c.socket.feed()
		}()
	}
	err := c.read()
	c.publish()
	if c.lost(err) {
		c.net.Close()
	}
	c.conclude(err)
	<-written
	c.sayStale()
	c.cancel()
	c.pumps.Wait()
	c.stop()
	c.abandon()
	c.discard()
	c.net.Close()
	<-fed
}

// read reads and serves frames until one ends the session, or the connection
// ends. nil is a DISCONNECT.
func (c *conn) read() error {
	var f frame.Frame
	if err := c.next(&f); err != nil {
		return err
	}
	if err := c.connect(&f); err != nil {
		return c.refused(&f, err)
	}
	for {
		if err := c.next(&f); err != nil {
			return err
		}
		if f.Command != frame.Send {
			c.publish() // what came before it
		}
		if err := c.room(); err != nil {
			return err
		}
		c.sayStale()
		if err := c.frame(&f); err != nil {
			return c.refused(&f, err)
		}
		if c.quirks != 0 {
			c.sayQuirks()
		}
		if f.Command == frame.Disconnect {
			return nil
		}
	}
}

// next reads one frame, however often the reader is woken meanwhile.
func (c *conn) next(f *frame.Frame) error {
	for {
		err := c.dec.Next(f)
		if err == nil {
			c.in.done()
			c.quirks |= quirks(c.dec.Odd())
			return nil
		}
		if cause := c.ending(); cause != nil {
			return cause
		}
		if e, ok := errors.AsType[*frame.Error](err); ok {
			code, setting := queue.InvalidFrame, ""
			if e.TooLarge {
				code = queue.PayloadTooLarge
			}
			if e.Limit == "body" {
				setting = " (limits.message-bytes, limits.large-message-bytes)"
			}
			return &refusal{command: "frame", receipt: e.Receipt, asked: e.HasReceipt, err: queue.Errorf(code, "%s%s", e.Message, setting)}
		}
		if !errors.Is(err, errQuiet) {
			return err
		}
		c.dec.Idle()
		c.sends = gathered{} // it is empty: Read has handed over what was in it
	}
}

// frame serves one frame. An error ends the session.
func (c *conn) frame(f *frame.Frame) error {
	if receipt, asked := f.Get("receipt"); asked {
		if len(receipt) > receiptBytes {
			return invalid("receipt has %d octets; it may have %d", len(receipt), receiptBytes)
		}
		if !c.sayable(receipt) {
			return invalid("receipt has a CR in it, which STOMP %s cannot send back", c.version)
		}
	}
	name, named := f.Get("transaction")
	if named && c.server.o.Strict {
		return errTransactions
	}
	switch f.Command {
	case frame.Send:
		if named {
			return c.sendIn(f, name)
		}
		return c.send(f)
	case frame.Subscribe:
		return c.subscribe(f)
	case frame.Unsubscribe:
		return c.unsubscribe(f)
	case frame.Ack, frame.Nack:
		if named {
			return c.settleIn(f, name)
		}
		return c.settle(f)
	case frame.Begin, frame.Commit, frame.Abort:
		return c.transact(f, name)
	case frame.Disconnect:
		c.disconnect(f)
		return nil
	case frame.Connect, frame.Stomp:
		return invalid("the session is open: %s may be sent once", f.Command)
	case frame.Connected, frame.Message, frame.Receipt, frame.ServerError:
		return invalid("%s is a frame of the server", f.Command)
	}
	return invalid("%.32q is no command; commands are written in capitals", f.Command)
}

// sayable reports whether a value that has come as a header can go back as one:
// before 1.2 a CR may come, by itself, but there is no way to write one.
func (c *conn) sayable(value string) bool {
	return c.version == frame.V12 || strings.IndexByte(value, '\r') < 0
}

// disconnect takes its place in the line; behind it nothing is served, and
// nothing more is sent to subscriptions.
func (c *conn) disconnect(f *frame.Frame) {
	c.endSubscriptions()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.add(f, 0).last = true
	c.advance()
}

// conclude puts the end of the session into the line of answers, behind what
// was read before.
func (c *conn) conclude(err error) {
	var r *refusal
	switch {
	case err == nil: // DISCONNECT stands there already
		return
	case errors.As(err, &r):
		c.server.o.Observe(service.FaceSTOMP, r.command, queue.CodeOf(r.err), 0)
		c.log.Info("session ended by an error", "command", r.command, "code", queue.CodeOf(r.err), "error", queue.MessageOf(r.err))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		r = &refusal{} // as good as DISCONNECT
	case queue.CodeOf(err) != queue.InternalServerError:
		r = &refusal{err: err}
		if !errors.Is(err, errStopping) {
			c.log.Warn("session ended", "code", queue.CodeOf(err), "error", queue.MessageOf(err))
		}
	case err == errEnded:
		c.mu.Lock()
		err = c.failure
		c.mu.Unlock()
		c.log.Info("session ended by an error", "code", queue.CodeOf(err), "error", queue.MessageOf(err))
		r = &refusal{}
	default:
		c.log.Debug("connection lost", "error", err)
		r = &refusal{}
	}
	c.endSubscriptions()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.push(answer{receipt: r.receipt, asked: r.asked, err: r.err, versions: errors.Is(r.err, errVersion), done: true, last: true})
	c.advance()
}

// interrupt ends the session with an ERROR, from any goroutine; the first cause
// counts.
func (c *conn) interrupt(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
		c.wakeReader() // it says so, in its turn
		c.answered.Signal()
	}
}

// ending is why the session is to end, nil if it goes on.
func (c *conn) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	if c.out.ended && !c.out.broken {
		return errEnded
	}
	return nil
}

// lost reports whether err is that of a connection that carries nothing more.
func (c *conn) lost(err error) bool {
	if _, ok := errors.AsType[net.Error](err); !ok {
		return false
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// errEnded is the end of a session whose last frame is on its way already.
var errEnded = errors.New("the session has ended")

// cut ends the session without a word.
func (c *conn) cut() {
	c.net.Close()
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.broken = true
	c.end()
	c.answered.Signal()
}

// discard reads what the peer had sent when its session ended. Closing a
// socket with octets unread would throw away what was written last.
func (c *conn) discard() {
	c.net.SetReadDeadline(time.Now().Add(lingerTime))
	io.CopyN(io.Discard, c.net, lingerBytes)
}

// abandon gives back what the session leaves behind, when nothing of it runs
// any more.
func (c *conn) abandon() {
	c.mu.Lock()
	unsent := c.out.take()
	var release []queue.Receipt
	for r, d := range c.sent {
		if d.sub.release {
			release = append(release, r)
		}
	}
	c.sent = nil
	c.mu.Unlock()
	for i := range unsent {
		c.server.service.Undeliver(unsent[i].unwritten(0))
	}
	c.server.service.Release(release)
}

// sayStale logs it once if a receipt did not hold any more.
func (c *conn) sayStale() {
	c.mu.Lock()
	late := c.oddStale
	c.mu.Unlock()
	if late && !c.late {
		c.late = true
		c.log.Warn("an ACK or NACK came too late: the message was delivered again or moved meanwhile; give the subscription a longer visibility")
	}
}

// tooLate notes a receipt that did not hold any more; mu is held.
func (c *conn) tooLate() {
	c.oddStale = true // the reader logs it
	c.server.quirks[bits.TrailingZeros(ackLate)].Add(1)
}
