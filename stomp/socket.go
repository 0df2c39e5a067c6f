package stomp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// socket is a WebSocket as the session sees it: a stream of octets. The library
// reads, for it knows what a peer may not do. It is given all the time it wants,
// since it cannot go on after a time-out; the session waits at the end of a
// pipe, where it can be woken at any moment:
//
//	connection ─► library ─► feed ─►│pipe│─► Read, with deadlines
//
// We write: each STOMP frame is one message, many of them go out in one write,
// and when a write fails it is known which of them have left. Pings are answered
// by the writer, in its turn, and only the last one.
type socket struct {
	under net.Conn
	ws    *websocket.Conn
	out   net.Conn                  // of the pipe, the session's end
	in    net.Conn                  // and the end of the feed
	wake  func()                    // the writer of the session
	slow  func(n int) time.Duration // waits as the rate of the session wants it for so many octets

	at   atomic.Int64 // when the last octet came
	text atomic.Bool  // the client speaks in text messages
	end  error        // why nothing more comes; set before in is closed

	pingMu sync.Mutex
	ping   []byte // to be answered; nil: none is

	mu    sync.Mutex // held for whole frames of WebSocket
	said  bool       // a close frame has been sent: nothing may follow
	buf   []byte
	marks []mark
}

// mark is the end of a STOMP frame: in the octets that are written, and in those
// that the session knows.
type mark struct{ wire, plain int }

// Opcodes, with the bit that says: the frame is the whole message.
const (
	textMessage   = 0x81
	binaryMessage = 0x82
	closeMessage  = 0x88
	pongMessage   = 0x8a
)

func newSocket() *socket {
	s := new(socket)
	s.out, s.in = net.Pipe()
	return s
}

var feeds = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// feed hands on what comes, until nothing does any more.
func (s *socket) feed() {
	s.end = s.pass()
	s.in.Close()
}

func (s *socket) pass() error {
	for first := true; ; first = false {
		kind, r, err := s.ws.Reader(context.Background())
		if err != nil {
			return err
		}
		if first {
			s.text.Store(kind == websocket.MessageText)
		}
		if err := s.message(r); err != nil {
			return err
		}
	}
}

// message hands on one message. The session takes it when it likes; meanwhile
// nothing is read.
func (s *socket) message(r io.Reader) error {
	b := feeds.Get().(*[16 << 10]byte)
	defer feeds.Put(b)
	for {
		n, err := r.Read(b[:])
		if n > 0 {
			if _, err := s.in.Write(b[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Read is part of net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err == io.EOF && websocket.CloseStatus(s.end) < 0 && !errors.Is(s.end, io.EOF) {
		err = s.end
	}
	return n, err
}

func (s *socket) heardNow() { s.at.Store(time.Now().UnixNano()) }

// heard is when the last octet came, if only the begin of something.
func (s *socket) heard() time.Time { return time.Unix(0, s.at.Load()) }

// pinged notes a ping of the peer. What a peer that pings without end and reads
// nothing costs is one answer.
func (s *socket) pinged(_ context.Context, payload []byte) bool {
	s.pingMu.Lock()
	s.ping = append(make([]byte, 0, len(payload)), payload...)
	s.pingMu.Unlock()
	s.wake()
	s.slow(len(payload) + controlHeader)
	return false
}

// ponged notes a pong, which nobody has asked for.
func (s *socket) ponged(_ context.Context, payload []byte) { s.slow(len(payload) + controlHeader) }

// controlHeader is the octets before the payload of a client's control frame.
const controlHeader = 6

// pong answers the last ping, if there is one.
func (s *socket) pong() error {
	s.pingMu.Lock()
	payload := s.ping
	s.ping = nil
	s.pingMu.Unlock()
	if payload == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said {
		return net.ErrClosed
	}
	_, err := writeSome(s.under, append(appendHeader(nil, pongMessage, len(payload)), payload...))
	return err
}

// closeWith says goodbye.
func (s *socket) closeWith(status websocket.StatusCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said {
		return
	}
	s.said = true
	_, _ = writeSome(s.under, binary.BigEndian.AppendUint16(appendHeader(nil, closeMessage, 2), uint16(status)))
}

// appendHeader begins a frame of WebSocket.
func appendHeader(dst []byte, kind byte, n int) []byte {
	switch {
	case n < 126:
		return append(dst, kind, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, kind, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, kind, 127), uint64(n))
}

// kind is how data is said: as the client speaks itself, as far as text can say
// it.
func (s *socket) kind(data []byte) byte {
	if s.text.Load() && utf8.Valid(data) {
		return textMessage
	}
	return binaryMessage
}

// Write sends one message.
func (s *socket) Write(p []byte) (int, error) {
	return s.writeAll([]*chunk{{data: p, ends: []int{len(p)}}})
}

// writeAll sends each frame in the chunks as a message, and says how many octets
// of the chunks have gone. Of a frame that has gone in part that is one.
func (s *socket) writeAll(todo []*chunk) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said {
		return 0, net.ErrClosed
	}
	defer func() {
		if cap(s.buf) > 2*piece {
			s.buf = nil
		}
		s.buf, s.marks = s.buf[:0], s.marks[:0]
	}()
	flush := func(last []byte) bool { // what is in buf, and last behind it
		sent, e := writeSome(s.under, s.buf)
		if e == nil && len(last) > 0 {
			var m int
			m, e = writeSome(s.under, last)
			sent += m
		}
		begun := 0
		for _, m := range s.marks {
			if m.wire > sent {
				if sent > begun {
					n++
				}
				break
			}
			n += m.plain
			begun = m.wire
		}
		err, s.buf, s.marks = e, s.buf[:0], s.marks[:0]
		return e == nil
	}
	for _, k := range todo {
		from := 0
		for _, to := range k.ends {
			data := k.data[from:to]
			from = to
			s.buf = appendHeader(s.buf, s.kind(data), len(data))
			s.marks = append(s.marks, mark{len(s.buf) + len(data), len(data)})
			if len(data) >= piece/2 {
				if !flush(data) {
					return n, err
				}
				continue
			}
			if s.buf = append(s.buf, data...); len(s.buf) >= piece && !flush(nil) {
				return n, err
			}
		}
	}
	flush(nil)
	return n, err
}

// idle gives back memory, unless something is being written.
func (s *socket) idle() {
	if s.mu.TryLock() {
		s.buf, s.marks = nil, nil
		s.mu.Unlock()
	}
}

// Close ends the connection, whatever is under way.
func (s *socket) Close() error {
	err := s.under.Close()
	s.in.Close()
	s.out.Close()
	_ = s.ws.CloseNow() // the library's own books
	return err
}

// SetReadDeadline is part of net.Conn.
func (s *socket) SetReadDeadline(t time.Time) error { return s.out.SetReadDeadline(t) }

// SetWriteDeadline has no effect: each write has a time of its own.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is part of net.Conn.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// LocalAddr is part of net.Conn.
func (s *socket) LocalAddr() net.Addr { return s.under.LocalAddr() }

// RemoteAddr is part of net.Conn.
func (s *socket) RemoteAddr() net.Addr { return s.under.RemoteAddr() }
