// Package stomp is a bare STOMP client for tests: one connection, frames as
// they are, and nothing behind the caller's back. It asks for no heart-beats.
//
//	c := stomp.Dial(t, s.STOMP)
//	c.Send("SEND", []byte("hello"), "destination", "orders", "receipt", "1")
//	f, err := c.Next(time.Second)
package stomp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
)

// Conn is a connection. It is for one goroutine at a time.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Frame is what the server sent.
type Frame struct {
	Command string
	Headers map[string]string // the first of each name counts
	Body    []byte
}

// Escape is how STOMP 1.2 spells a name or a value.
var Escape = strings.NewReplacer(`\`, `\\`, "\r", `\r`, "\n", `\n`, ":", `\c`).Replace

var unescape = strings.NewReplacer(`\\`, `\`, `\r`, "\r", `\n`, "\n", `\c`, ":").Replace

// Open connects to host:port and opens a session of STOMP 1.2.
func Open(addr string) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c := Over(nc)
	if _, err = io.WriteString(c, "CONNECT\naccept-version:1.2\nhost:queued\n\n\x00"); err == nil {
		var f *Frame
		if f, err = c.Next(10 * time.Second); err == nil && f.Command != "CONNECTED" {
			err = f.Refusal()
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// Over speaks over a connection that is there already, without a CONNECT.
func Over(c net.Conn) *Conn { return &Conn{Conn: c, r: bufio.NewReader(c)} }

// Dial is Open for a test, which fails if there is no session and closes it at
// its end.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Close closes the connection without a word.
func (c *Conn) Close() error { return rest.Close(c.Conn) }

// Reset ends the connection hard.
func (c *Conn) Reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Encode spells a frame; headers are names and values in turn. The body's
// content-length is always added, unless there is no body.
func Encode(command string, body []byte, headers ...string) []byte {
	var b bytes.Buffer
	b.WriteString(command)
	for i := 0; i < len(headers); i += 2 {
		fmt.Fprintf(&b, "\n%s:%s", Escape(headers[i]), Escape(headers[i+1]))
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "\ncontent-length:%d", len(body))
	}
	b.WriteString("\n\n")
	b.Write(body)
	b.WriteByte(0)
	return b.Bytes()
}

// Send writes a frame.
func (c *Conn) Send(command string, body []byte, headers ...string) error {
	_, err := c.Write(Encode(command, body, headers...))
	return err
}

// ErrQuiet is that no frame came in time.
var ErrQuiet = errors.New("no frame came")

// Next is the next frame, which must begin within wait.
func (c *Conn) Next(wait time.Duration) (*Frame, error) {
	_ = c.SetReadDeadline(time.Now().Add(wait)) // what fails here fails below
	for {
		b, err := c.r.ReadByte()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, ErrQuiet
		}
		if err != nil {
			return nil, err
		}
		if b != '\n' && b != '\r' {
			break
		}
	}
	_ = c.r.UnreadByte() // one was read
	_ = c.SetReadDeadline(time.Now().Add(rest.Timeout))
	return c.frame()
}

func (c *Conn) frame() (*Frame, error) {
	line := func() (string, error) {
		text, err := c.r.ReadString('\n')
		return strings.TrimSuffix(text, "\n"), err
	}
	command, err := line()
	if err != nil {
		return nil, err
	}
	f := &Frame{Command: command, Headers: map[string]string{}}
	for {
		text, err := line()
		if err != nil {
			return nil, err
		}
		if text == "" {
			break
		}
		name, value, found := strings.Cut(text, ":")
		if !found {
			return nil, fmt.Errorf("%s: header %q", command, text)
		}
		if name = unescape(name); command != "CONNECTED" {
			value = unescape(value)
		}
		if _, again := f.Headers[name]; !again {
			f.Headers[name] = value
		}
	}
	if length, found := f.Headers["content-length"]; found {
		n, err := strconv.Atoi(length)
		if err != nil {
			return nil, err
		}
		f.Body = make([]byte, n)
		if _, err := io.ReadFull(c.r, f.Body); err != nil {
			return nil, err
		}
		if end, err := c.r.ReadByte(); err != nil || end != 0 {
			return nil, fmt.Errorf("%s: behind the body stands %q: %v", command, end, err)
		}
		return f, nil
	}
	body, err := c.r.ReadBytes(0)
	f.Body = bytes.TrimSuffix(body, []byte{0})
	return f, err
}

// Refusal is an ERROR frame as an error.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refusal is f, an ERROR, as an error; any other frame is one that nobody
// wanted.
func (f *Frame) Refusal() error {
	if f.Command == "ERROR" {
		return &Refusal{f.Headers["code"], f.Headers["message"]}
	}
	return fmt.Errorf("a frame that nobody wants: %s %v", f.Command, f.Headers)
}
