package stomp

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/queued-mq/queued/queue"
)

// Subprotocols are the names of STOMP over WebSocket, the best first. They say
// which versions a client can speak; which one is spoken, CONNECT decides.
var subprotocols = []string{"v12.stomp", "v11.stomp", "v10.stomp"}

// WebSocket makes a session of a request that asks for a WebSocket. The caller
// has checked that its origin may do so. After an error nothing has been
// written, and the request is to be answered with it; else the connection is
// the server's own.
func (s *Server) WebSocket(w http.ResponseWriter, r *http.Request) error {
	if s.isClosed() {
		return errStopping
	}
	if err := checkUpgrade(r); err != nil {
		return err
	}
	h := &handshake{to: w, header: http.Header{}, socket: newSocket()}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols,
		InsecureSkipVerify: true, // the caller has
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     h.socket.pinged,
		OnPongReceived:     h.socket.ponged,
	})
	switch {
	case h.refused:
		return queue.Errorf(queue.InvalidParameter, "the WebSocket handshake is not complete: it needs a GET with connection: upgrade, sec-websocket-version: 13 and one sec-websocket-key of 16 octets in base64")
	case err != nil && h.socket.under == nil:
		return fmt.Errorf("take over a connection for a WebSocket: %w", err)
	case err != nil:
		h.socket.under.Close()
		return nil
	}
	h.socket.ws = ws
	ws.SetReadLimit(-1) // frames have limits of their own, and nothing else is kept
	c := newConn(s, h.socket)
	c.socket = h.socket
	h.socket.wake, h.socket.slow = c.out.poke, c.in.slowDown
	if !s.add(c) {
		h.socket.closeWith(websocket.StatusGoingAway)
		h.socket.Close()
	}
	return nil
}

// checkUpgrade refuses what is no handshake for STOMP, in words that help.
func checkUpgrade(r *http.Request) error {
	if r.ProtoMajor != 1 {
		return queue.Errorf(queue.InvalidParameter, "STOMP over WebSocket is served over HTTP/1.1; WebSockets over HTTP/2 are not")
	}
	if !slices.Contains(tokens(r.Header["Upgrade"]), "websocket") {
		return queue.Errorf(queue.InvalidParameter, "this path speaks STOMP over WebSocket; ask with the header upgrade: websocket")
	}
	offered := tokens(r.Header["Sec-Websocket-Protocol"])
	ours := func(name string) bool { return slices.Contains(subprotocols, name) }
	if len(offered) > 0 && !slices.ContainsFunc(offered, ours) {
		return queue.Errorf(queue.InvalidParameter, "none of the subprotocols offered is spoken here, which are %s", strings.Join(subprotocols, ", "))
	}
	return nil
}

// tokens are the words of a header that is a list, in lower case.
func tokens(lines []string) (words []string) {
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			if word = strings.ToLower(strings.Trim(word, " \t")); word != "" {
				words = append(words, word)
			}
		}
	}
	return words
}

// handshake is the http.ResponseWriter that the library writes to: an answer
// that accepts passes, one that refuses is left to the caller.
type handshake struct {
	to      http.ResponseWriter
	header  http.Header
	refused bool
	socket  *socket
}

func (h *handshake) Header() http.Header { return h.header }

func (h *handshake) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		h.refused = true
		return
	}
	maps.Copy(h.to.Header(), h.header)
	h.to.WriteHeader(status)
}

func (h *handshake) Write(b []byte) (int, error) { return len(b), nil } // of a refusal

// Hijack puts the socket below the library: what that writes is written in its
// turn, and every octet that comes is noticed.
func (h *handshake) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.to).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.socket.under = nc
	lower := lower{nc, h.socket}
	// The library writes control frames alone, of 127 octets at most.
	return lower, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(lower, 256)), nil
}

// lower is the connection as the library sees it.
type lower struct {
	net.Conn
	socket *socket
}

func (l lower) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.socket.heardNow()
	}
	return n, err
}

// Write writes one control frame, which is a close frame: pongs are ours.
func (l lower) Write(p []byte) (int, error) {
	s := l.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said {
		return len(p), nil // goodbye, before
	}
	s.said = true
	return writeSome(l.Conn, p)
}

// closeStatus is what the close frame says of the end of a session.
func closeStatus(failure error) websocket.StatusCode {
	if failure == nil {
		return websocket.StatusNormalClosure
	}
	switch queue.CodeOf(failure) {
	case queue.InvalidFrame:
		return websocket.StatusProtocolError
	case queue.PayloadTooLarge:
		return websocket.StatusMessageTooBig
	case queue.ServiceUnavailable:
		return websocket.StatusGoingAway
	case queue.InternalServerError:
		return websocket.StatusInternalError
	}
	return websocket.StatusPolicyViolation
}
