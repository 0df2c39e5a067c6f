package stomp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is the client's side of a WebSocket, by hand: what is written goes
// out as messages, what comes in is read as one stream.
type browser struct {
	net.Conn
	t     testing.TB
	text  bool                // messages are of text
	cut   func([]byte) []int  // where a write is cut: n octets of the next message each, negative: a fragment; nil: one message
	fault func([]byte) []byte // what is done to each frame

	mu     sync.Mutex // of what is written
	raw    []byte     // read, and no whole frame yet
	left   []byte     // of what the last frames said
	kinds  []byte     // the opcodes of data messages
	said   []string   // the data messages
	pongs  []string
	status int // of the server's close frame; 0: none has come
}

// overWebSocket has h dial WebSockets from now on, made ready by change.
func (h *house) overWebSocket(inBubble bool, change func(*browser)) {
	h.t.Helper()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.server.WebSocket(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})}
	var ln net.Listener
	var dial func() net.Conn
	if inBubble {
		w := newWires()
		ln, dial = w, func() net.Conn { c, _ := w.dial(64 << 10); return c }
	} else {
		var err error
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			h.t.Fatal(err)
		}
		dial = func() net.Conn {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				h.t.Fatal(err)
			}
			return c
		}
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(ln)
	}()
	h.t.Cleanup(func() { srv.Close(); <-served })
	h.wire = func() net.Conn {
		b := &browser{Conn: dial(), t: h.t}
		if change != nil {
			change(b)
		}
		if answer := b.shake("v12.stomp, v11.stomp, v10.stomp"); answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Sec-Websocket-Protocol") != "v12.stomp" {
			h.t.Fatal(answer)
		}
		return b
	}
}

// shake does the handshake, and is its answer.
func (b *browser) shake(protocols string, headers ...string) *http.Response {
	b.t.Helper()
	request := "GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
	if protocols != "" {
		request += "Sec-WebSocket-Protocol: " + protocols + "\r\n"
	}
	if _, err := io.WriteString(b.Conn, request+strings.Join(append(headers, ""), "\r\n")+"\r\n"); err != nil {
		b.t.Fatal(err)
	}
	b.Conn.SetReadDeadline(time.Now().Add(patient))
	r := bufio.NewReaderSize(b.Conn, 16)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.raw, _ = r.Peek(r.Buffered())
	b.raw = bytes.Clone(b.raw)
	if answer.Header.Get("Sec-Websocket-Extensions") != "" {
		b.t.Errorf("compression: %v", answer.Header)
	}
	return answer
}

// frame writes one frame of WebSocket.
func (b *browser) frame(kind byte, payload []byte) error {
	frame := appendHeader(nil, kind, len(payload))
	frame[1] |= 0x80
	mask := [4]byte{0x12, 0xfe, 0x7a, byte(len(payload))}
	frame = append(frame, mask[:]...)
	for i, c := range payload {
		frame = append(frame, c^mask[i%4])
	}
	if b.fault != nil {
		frame = b.fault(frame)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.Conn.Write(frame)
	return err
}

func (b *browser) Write(p []byte) (int, error) {
	kind := byte(binaryMessage)
	if b.text {
		kind = textMessage
	}
	cuts := []int{len(p)}
	if b.cut != nil {
		cuts = b.cut(p)
	}
	rest, begun := p, false
	for _, n := range cuts {
		k, fragment := kind, n < 0
		if fragment {
			n, k = -n, k&0x7f
		}
		if begun {
			k &= 0x80
		}
		n = min(n, len(rest))
		if err := b.frame(k, rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest, begun = rest[n:], fragment
	}
	if begun {
		if err := b.frame(0x80, rest); err != nil {
			return len(p) - len(rest), err
		}
	} else if len(rest) > 0 {
		if err := b.frame(kind, rest); err != nil {
			return len(p) - len(rest), err
		}
	}
	return len(p), nil
}

func (b *browser) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		if b.parse() {
			continue
		}
		if b.status != 0 {
			return 0, io.EOF
		}
		some := make([]byte, 32<<10)
		n, err := b.Conn.Read(some)
		b.raw = append(b.raw, some[:n]...)
		if n == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// parse takes one frame out of raw, if it is there.
func (b *browser) parse() bool {
	r := b.raw
	if len(r) < 2 || b.status != 0 {
		return false
	}
	n, head := int(r[1]), 2
	switch {
	case n == 126 && len(r) >= 4:
		n, head = int(binary.BigEndian.Uint16(r[2:])), 4
	case n == 127 && len(r) >= 10:
		n, head = int(binary.BigEndian.Uint64(r[2:])), 10
	case n >= 126:
		return false
	}
	if len(r) < head+n {
		return false
	}
	payload := r[head : head+n]
	b.raw = r[head+n:]
	switch r[0] {
	case textMessage, binaryMessage:
		b.kinds, b.said = append(b.kinds, r[0]), append(b.said, string(payload))
		b.left = append(b.left, payload...)
	case pongMessage:
		b.pongs = append(b.pongs, string(payload))
	case closeMessage:
		b.status = int(binary.BigEndian.Uint16(payload))
		b.frame(closeMessage, payload[:2])
	default:
		b.t.Errorf("a frame of the server: % x", r[:head])
	}
	return true
}

// CloseWrite closes the half of the connection below, without a word of
// WebSocket.
func (b *browser) CloseWrite() error { return b.Conn.(interface{ CloseWrite() error }).CloseWrite() }
