package gateway

import (
	"bytes"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/queue"
)

// Listener wraps l so that the few answers which net/http gives by itself,
// before any handler is asked, have the shape of all others: an OCI error body
// and an opc-request-id. Those are the answers to requests that are no HTTP (a
// broken percent-encoding in the path among them), to headers over their bound,
// and to expectations, transfer encodings and versions of HTTP that are not
// served. net/http writes each of them in one piece and then closes the
// connection; everything else passes as it is.
//
// Wrap the plain listener, also below TLS, where it has no effect.
func Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, ids: newRequestIDs()}
}

type listener struct {
	net.Listener
	ids requestIDs
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, ids: l.ids}, nil
}

type conn struct {
	net.Conn
	ids requestIDs

	read    atomic.Int64 // octets that were read
	handled atomic.Int64 // and those of them that were handled; see Read

	unread atomic.Int64 // octets of answers over HTTP/2 that wait to be taken

	taken atomic.Bool // it is a WebSocket by now, and no HTTP any more
}

// CloseWrite closes the sending half, as net/http does before it drains.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

var (
	plainStart = []byte("HTTP/1.1 ")
	plainEnd   = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	notExpect  = []byte("HTTP/1.1 417 Expectation Failed\r\n")
)

// Write passes p on, or what p should have been.
func (c *conn) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, plainStart) || c.taken.Load() {
		return c.Conn.Write(p)
	}
	line, rest, _ := bytes.Cut(p, []byte("\r\n"))
	if !bytes.HasPrefix(rest, plainEnd[2:]) && !bytes.HasPrefix(p, notExpect) {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(c.answer(line)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// answer is our form of the answer with this status line.
func (c *conn) answer(line []byte) []byte {
	code, message := queue.CannotParseRequest, "the request is not valid HTTP; a path must be percent-encoded rightly, and a header may hold no control characters"
	switch status := string(line[len("HTTP/1.1 "):min(len(line), len("HTTP/1.1 400"))]); status {
	case "431":
		code, message = queue.InvalidParameter, "the headers of the request are too long (limits.header-bytes)"
	case "417":
		code, message = queue.InvalidParameter, "the header expect may only be 100-continue"
	case "501":
		code, message = queue.MethodNotImplemented, "the header transfer-encoding may only be chunked"
	}
	// The text of net/http behind the status repeats what the client sent.
	if status, text, ok := bytes.Cut(line, []byte(": ")); ok {
		line, message = status, message+" ("+clip(string(text))+")"
	}
	body := appendError(nil, code, message)
	b := append(bytes.Clone(line), "\r\nConnection: close\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\nContent-Type: application/json\r\nDate: "...)
	b = time.Now().UTC().AppendFormat(b, "Mon, 02 Jan 2006 15:04:05 GMT")
	b = append(b, "\r\nOpc-Request-Id: "...)
	b = append(b, c.ids.of(nil)...)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}
