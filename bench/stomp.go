package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stompFace speaks STOMP 1.2. It is a client that does no more than it must:
// frames are written ahead, and of what comes only what is needed is looked
// at. Every SEND and every ACK asks for a receipt.
type stompFace struct{ o *Options }

func (f *stompFace) Close() error { return nil }

func (f *stompFace) producer(ctx context.Context, _ int, queue string) (producer, error) {
	return f.open(ctx, queue, false)
}

func (f *stompFace) consumer(ctx context.Context, _ int, queue string) (consumer, error) {
	return f.open(ctx, queue, true)
}

// stompSession is one connection.
type stompSession struct {
	conn    net.Conn
	r       *bufio.Reader
	queue   string
	inbox   *inbox
	readers sync.WaitGroup
	forget  func() bool // that the session ends with its context

	writing sync.Mutex // taken before mu
	out     []byte     // what is being written

	mu      sync.Mutex
	waiting []*stompAnswer // operations in the order of their frames, which is that of the receipts
	failed  error
}

// stompAnswer is an operation that waits for its receipts.
type stompAnswer struct {
	left int // receipts that are to come
	done chan error
}

func (f *stompFace) open(ctx context.Context, queue string, consume bool) (*stompSession, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", f.o.STOMP)
	if err != nil {
		return nil, err
	}
	s := &stompSession{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), queue: queue, inbox: newInbox()}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	hello := "CONNECT\naccept-version:1.2\nhost:queued\n\n\x00"
	if consume {
		hello += fmt.Sprintf("SUBSCRIBE\nid:0\ndestination:%s\nack:client-individual\nprefetch-count:%d\n\n\x00", queue, f.o.window())
	}
	if _, err = io.WriteString(conn, hello); err == nil {
		var in stompFrame
		if in, err = s.frame(); err == nil && in.command != "CONNECTED" {
			err = fmt.Errorf("CONNECT is answered %s", in.command)
		}
	}
	if err != nil {
		_ = conn.Close() // it is of no use
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	s.forget = context.AfterFunc(ctx, func() { _ = conn.Close() }) // it is to end
	s.readers.Go(s.read)
	return s, nil
}

func (s *stompSession) Close() error {
	s.forget()
	err := s.conn.Close()
	s.readers.Wait()
	return err
}

// stompFrame is what matters of a frame that came.
type stompFrame struct {
	command, ack string
	head         []byte // of the body; good until the next frame
}

// frame reads a frame; an ERROR is an error.
func (s *stompSession) frame() (f stompFrame, err error) {
	line := []byte{}
	for len(line) == 0 { // heart-beats, and ends of lines behind frames
		if line, err = s.line(); err != nil {
			return f, err
		}
	}
	switch string(line) { // no memory for the usual ones
	case "MESSAGE":
		f.command = "MESSAGE"
	case "RECEIPT":
		f.command = "RECEIPT"
	default:
		f.command = string(line)
	}
	length, code, text := -1, "", ""
	for {
		if line, err = s.line(); err != nil {
			return f, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "ack":
			f.ack = string(value)
		case "content-length":
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return f, fmt.Errorf("content-length %q", value)
			}
		case "code":
			code = string(value)
		case "message":
			text = string(value)
		}
	}
	switch {
	case f.command == "ERROR":
		return f, &Refusal{Code: code, Message: strings.ReplaceAll(text, `\c`, ":"), Broken: true}
	case length < 0:
		if _, err = s.r.ReadSlice(0); err != nil {
			return f, err
		}
	case f.command == "MESSAGE":
		head, err := s.r.Peek(min(length, headBytes))
		if err != nil {
			return f, err
		}
		f.head = append(f.head, head...)
		fallthrough
	default:
		if _, err := s.r.Discard(length + 1); err != nil {
			return f, err
		}
	}
	return f, nil
}

// line is a line without its end, good until the next is read.
func (s *stompSession) line() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

func (s *stompSession) read() {
	for {
		f, err := s.frame()
		if err == nil {
			switch f.command {
			case "RECEIPT":
				s.receipt()
			case "MESSAGE":
				d := delivery{receipt: f.ack, at: time.Now()}
				if d.number, d.meant, err = readHead(f.head); err == nil {
					s.inbox.put(d)
				}
			default:
				err = errors.New("a frame that nobody wants: " + f.command)
			}
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// receipt gives the oldest operation one of its receipts.
func (s *stompSession) receipt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return
	}
	first := s.waiting[0]
	if first.left--; first.left == 0 {
		s.waiting = s.waiting[1:]
		first.done <- nil
	}
}

// fail ends all operations, now and later.
func (s *stompSession) fail(err error) {
	s.inbox.fail(err)
	_ = s.conn.Close() // a writer must not wait for a reader that is no more
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	for _, a := range s.waiting {
		a.done <- err
	}
	s.waiting = nil
}

// send writes frames that ask for so many receipts, and waits for these.
func (s *stompSession) send(ctx context.Context, receipts int, frames func(to []byte) []byte) error {
	a := &stompAnswer{left: receipts, done: make(chan error, 1)}
	if err := s.write(a, frames); err != nil {
		return err
	}
	return await(ctx, a.done)
}

func (s *stompSession) write(a *stompAnswer, frames func(to []byte) []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.out = frames(s.out[:0])
	s.mu.Lock()
	if s.failed != nil {
		s.mu.Unlock()
		return s.failed
	}
	s.waiting = append(s.waiting, a)
	s.mu.Unlock()
	if _, err := s.conn.Write(s.out); err != nil {
		// The reader knows why, if there is still an ERROR to be read.
		_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	return nil
}

func (s *stompSession) publish(ctx context.Context, batch []message) error {
	return s.send(ctx, len(batch), func(to []byte) []byte {
		for _, m := range batch {
			to = append(to, "SEND\ndestination:"...)
			to = append(to, s.queue...)
			if m.channel != "" {
				to = append(to, '/')
				to = append(to, m.channel...)
			}
			to = append(to, "\nreceipt:s\ncontent-length:"...)
			to = strconv.AppendInt(to, int64(len(m.body)), 10)
			to = append(to, "\n\n"...)
			to = append(to, m.body...)
			to = append(to, 0)
		}
		return to
	})
}

func (s *stompSession) receive(ctx context.Context, max int) ([]delivery, error) {
	return s.inbox.take(ctx, max)
}

func (s *stompSession) settle(ctx context.Context, batch []delivery) error {
	return s.send(ctx, len(batch), func(to []byte) []byte {
		for _, d := range batch {
			to = append(to, "ACK\nreceipt:a\nid:"...)
			to = append(to, d.receipt...)
			to = append(to, "\n\n\x00"...)
		}
		return to
	})
}
