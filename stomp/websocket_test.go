package stomp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
)

// browse opens a session over WebSocket by hand.
func (h *house) browse(inBubble bool, change func(*browser)) (*peer, *browser) {
	h.t.Helper()
	h.overWebSocket(inBubble, change)
	p := h.connect("1.2")
	return p, p.net.(*browser)
}

// Each frame is a message of its own: of text if the client speaks text and
// the frame is UTF-8, else of octets.
func TestMessagesOfWebSocket(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	const octets = "\x00\xff\x01"
	for _, text := range []bool{true, false} {
		p, b := h.browse(false, func(b *browser) { b.text = text })
		h.put("orders", "žluť", octets, "a\x00b", strings.Repeat("l", 200<<10))
		p.send("SUBSCRIBE\ndestination:orders\nid:1\n\n^@")
		var bodies []string
		for range 4 {
			bodies = append(bodies, p.expect("MESSAGE").body)
		}
		p.send("DISCONNECT\nreceipt:d\n\n^@")
		p.expect("RECEIPT")
		p.closed()
		if bodies[0] != "žluť" || bodies[1] != octets || bodies[2] != "a\x00b" || len(bodies[3]) != 200<<10 {
			t.Errorf("%.200q", bodies)
		}
		want := []byte{textMessage, textMessage, binaryMessage, textMessage, textMessage, textMessage}
		if !text {
			want = slices.Repeat([]byte{binaryMessage}, 6)
		}
		if !slices.Equal(b.kinds, want) {
			t.Errorf("text %v: kinds %x", text, b.kinds)
		}
		for _, m := range b.said {
			if strings.IndexByte(m, '\x00') < 0 || !slices.Contains([]string{"CONNECTED", "MESSAGE", "RECEIPT"}, m[:strings.IndexByte(m, '\n')]) || !strings.HasSuffix(strings.TrimRight(m, "\n"), "\x00") {
				t.Errorf("a message that is not one frame: %.100q", m)
			}
		}
		if b.status != 1000 {
			t.Errorf("closed with %d", b.status)
		}
	}
	h.works()
}

// How messages are cut does not matter: a frame in many, many in one, in
// fragments, with empty ones between.
func TestCutsOfWebSocket(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func([]byte) []int{
		"one octet each":          func(p []byte) []int { return slices.Repeat([]int{1}, len(p)) },
		"a fragment each":         func(p []byte) []int { return slices.Repeat([]int{-1}, len(p)) },
		"three octets each":       func(p []byte) []int { return slices.Repeat([]int{3}, len(p)/3) },
		"messages and fragments":  func(p []byte) []int { return slices.Repeat([]int{-2, 1, 4, -1, -1}, len(p)/5) },
		"empty messages":          func(p []byte) []int { return slices.Repeat([]int{0, 7}, len(p)/7) },
		"empty fragments":         func(p []byte) []int { return []int{-0, -1, 0, 5} },
		"all frames in a message": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, Options{}, "orders")
			h.overWebSocket(false, func(b *browser) { b.cut = cut })
			p := h.dial()
			p.send("\n\nSTOMP\naccept-version:1.2,1.1\nhost:x\n\n^@\nSEND\ndestination:orders\nreceipt:1\ncontent-length:3\n\na^@c^@SEND\ndestination:orders\nreceipt:2\n\nžluť^@\n^@\nDISCONNECT\nreceipt:3\n\n^@\n")
			p.expect("CONNECTED", "version:1.2")
			for _, r := range []string{"1", "2", "3"} {
				p.expect("RECEIPT", "receipt-id:"+r)
			}
			p.closed()
			if got := h.get("orders"); len(got) != 2 || string(got[0].Body) != "a\x00c" || string(got[1].Body) != "žluť" {
				t.Errorf("%v", got)
			}
		})
	}
}

// What the client asks by its subprotocols says nothing about the version:
// CONNECT does.
func TestSubprotocols(t *testing.T) {
	t.Parallel()
	h := open(t, Options{})
	for _, tt := range []struct{ offered, chosen, accept, version string }{
		{"v12.stomp", "v12.stomp", "1.2,1.1", "1.2"},
		{"v12.stomp", "v12.stomp", "1.1", "1.1"},
		{"v10.stomp, v11.stomp", "v11.stomp", "1.0,1.2", "1.2"},
		{"mqtt,V10.STOMP", "V10.STOMP", "1.0", "1.0"},
		{"", "", "1.2", "1.2"},
	} {
		b, answer := h.shaken(t, tt.offered)
		if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Sec-Websocket-Protocol") != tt.chosen {
			t.Fatalf("%+v: %v", tt, answer)
		}
		p := &peer{t: t, net: b}
		p.send("CONNECT\naccept-version:" + tt.accept + "\nhost:x\n\n^@")
		p.expect("CONNECTED", "version:"+tt.version)
	}
}

// shaken is a connection after a handshake that offers so.
func (h *house) shaken(t *testing.T, offered string, headers ...string) (*browser, *http.Response) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.server.WebSocket(w, r); err != nil {
			http.Error(w, string(queue.CodeOf(err))+": "+queue.MessageOf(err), http.StatusBadRequest)
		}
	}))
	t.Cleanup(srv.Close)
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b := &browser{Conn: c, t: t}
	return b, b.shake(offered, headers...)
}

// What is no handshake is refused in words, and nothing is taken over.
func TestHandshakesRefused(t *testing.T) {
	t.Parallel()
	h := open(t, Options{})
	good := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"a plain GET":        {func(r *http.Request) { clear(r.Header) }, "upgrade: websocket"},
		"another upgrade":    {func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, "upgrade: websocket"},
		"no connection":      {func(r *http.Request) { r.Header.Del("Connection") }, "handshake is not complete"},
		"another version":    {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") }, "handshake is not complete"},
		"no key":             {func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") }, "handshake is not complete"},
		"a short key":        {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "c2hvcnQ=") }, "handshake is not complete"},
		"other subprotocols": {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "mqtt, v13.stomp") }, "v12.stomp, v11.stomp, v10.stomp"},
		"HTTP/2":             {func(r *http.Request) { r.ProtoMajor = 2 }, "HTTP/1.1"},
	} {
		r := httptest.NewRequest("GET", "/stomp", nil)
		for k, v := range good {
			r.Header.Set(k, v)
		}
		tt.change(r)
		w := httptest.NewRecorder()
		err := h.server.WebSocket(w, r)
		if queue.CodeOf(err) != queue.InvalidParameter || !strings.Contains(queue.MessageOf(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.Header()) > 0 || w.Body.Len() > 0 {
			t.Errorf("%s: something is written: %v", name, w)
		}
	}
	if n := h.server.WebSockets(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// The close frame says why.
func TestCloseStatus(t *testing.T) {
	t.Parallel()
	for what, status := range map[string]int{
		"DISCONNECT\n\n^@":                 1000,
		"NONSENSE\n\n^@":                   1002,
		"SEND\ndestination:nowhere\n\nx^@": 1008,
		"SEND\ndestination:orders\ncontent-length:99999999\n\n":            1009,
		"SEND\ndestination:orders\nreceipt:r\n\nx^@DISCONNECT\n\n^@":       1000,
		"SEND\ndestination:orders\nreceipt:r\n\nx^@ACK\n\n^@NONSENSE":      1002,
		"SUBSCRIBE\ndestination:orders\nid:1\n\n^@UNSUBSCRIBE\nid:2\n\n^@": 1002,
	} {
		h := open(t, Options{}, "orders")
		p, b := h.browse(false, nil)
		p.send(what)
		for b.status == 0 {
			if _, err := p.next(patient); err != nil && err != io.EOF {
				t.Fatal(what, err)
			}
		}
		if b.status != status {
			t.Errorf("%q: %d, want %d", what, b.status, status)
		}
		h.works()
	}
	h := open(t, Options{}, "orders")
	p, b := h.browse(false, nil)
	if err := h.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.fails(queue.ServiceUnavailable)
	if b.status != 1001 {
		t.Errorf("at a stop: %d", b.status)
	}
	if err := h.server.WebSocket(httptest.NewRecorder(), httptest.NewRequest("GET", "/stomp", nil)); queue.CodeOf(err) != queue.ServiceUnavailable {
		t.Error(err)
	}
}

// A client that says goodbye has been heard, and gets its goodbye.
func TestCloseByClient(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	p, b := h.browse(false, nil)
	p.send("SEND\ndestination:orders\n\nx^@")
	if err := b.frame(closeMessage, []byte{0x03, 0xe9}); err != nil {
		t.Fatal(err)
	}
	for b.status == 0 {
		if _, err := p.next(patient); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
	if b.status != 1001 {
		t.Errorf("closed with %d", b.status)
	}
	for h.server.WebSockets() > 0 {
		time.Sleep(time.Millisecond) // the session ends by itself
	}
	if got := h.get("orders"); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
	if strings.Contains(h.log.String(), "level=WARN") {
		t.Error(h.log.String())
	}
}

// Pings are answered while nothing is said, while much is said, and before
// anybody has signed in.
func TestPings(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	h.overWebSocket(false, nil)
	p := h.dial()
	b := p.net.(*browser)
	ponged := func(payload string) {
		t.Helper()
		for !slices.Contains(b.pongs, payload) {
			if b.parse() {
				continue
			}
			some := make([]byte, 4096)
			b.Conn.SetReadDeadline(time.Now().Add(patient))
			n, err := b.Conn.Read(some)
			if b.raw = append(b.raw, some[:n]...); err != nil {
				t.Fatal(err)
			}
		}
	}
	const ping = 0x89
	b.frame(ping, []byte("early"))
	ponged("early")
	b.frame(ping, nil)
	ponged("")
	b.frame(0x01, []byte("CONNECT\naccept-version:1.2\n")) // in the middle of a message
	b.frame(ping, []byte(strings.Repeat("p", 125)))
	ponged(strings.Repeat("p", 125))
	b.frame(pongMessage, []byte("not asked for"))
	b.frame(0x80, []byte("\n\x00"))
	p.expect("CONNECTED")
	p.send("SUBSCRIBE\ndestination:orders\nid:1\n\n^@")
	h.put("orders", strings.Repeat("x", 100<<10), strings.Repeat("y", 100<<10))
	b.frame(ping, []byte("between"))
	p.expect("MESSAGE")
	p.expect("MESSAGE")
	ponged("between")
}

// A peer that pings without end and reads nothing costs one answer, and is cut
// like any other that does not read.
func TestPingsUnread(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p, b := h.browse(true, nil)
		_ = p
		go func() {
			for b.frame(0x89, []byte(strings.Repeat("p", 125))) == nil {
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(2*writeTime + 3*lingerTime) // the last pong may have begun
		synctest.Wait()
		if n := h.server.WebSockets(); n != 0 {
			t.Errorf("%d sessions", n)
		}
		h.works()
	})
}

// What is no WebSocket, once the connection is one, ends it: unmasked frames,
// compressed ones, unknown opcodes, fragments out of turn.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	for name, fault := range map[string]func([]byte) []byte{
		"unmasked":               func(f []byte) []byte { return []byte{binaryMessage, 1, '\n'} },
		"compressed":             func(f []byte) []byte { f[0] |= 0x40; return f },
		"a reserved bit":         func(f []byte) []byte { f[0] |= 0x10; return f },
		"an unknown opcode":      func(f []byte) []byte { f[0] = 0x83; return f },
		"a continuation of none": func(f []byte) []byte { f[0] = 0x80; return f },
		"a ping in fragments":    func(f []byte) []byte { f[0] = 0x09; return f },
		"a length without end": func(f []byte) []byte {
			return append([]byte{binaryMessage, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, f...)
		},
		"a close frame of 1 octet": func(f []byte) []byte { return []byte{closeMessage, 0x81, 0, 0, 0, 0, 3} },
	} {
		p, b := h.browse(false, nil)
		b.fault = fault
		b.Write([]byte("SEND\ndestination:orders\n\nx\x00"))
		b.fault = nil
		for {
			if _, err := p.next(patient); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Errorf("%s: the connection stays open", name)
				}
				break
			}
		}
		if got := h.get("orders"); len(got) != 0 {
			t.Errorf("%s: %d messages", name, len(got))
		}
	}
	h.overWebSocket(false, nil)
	h.works()
}

// A message that comes slowly keeps the session alive, although nothing of it
// can be seen before its frame is complete.
func TestSlowMessageOfWebSocket(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		h.overWebSocket(true, nil)
		p := h.connect("1.2", "heart-beat:1000,0")
		b := p.net.(*browser)
		whole := []byte(nil)
		b.fault = func(f []byte) []byte { whole = f; return nil }
		b.Write([]byte("SEND\ndestination:orders\nreceipt:r\n\n" + strings.Repeat("x", 20) + "\x00"))
		b.fault = nil
		for len(whole) > 0 {
			n := min(8, len(whole))
			b.Conn.Write(whole[:n])
			whole = whole[n:]
			time.Sleep(2 * time.Second)
		}
		p.expect("RECEIPT", "receipt-id:r")
		time.Sleep(2 * time.Second)
		if f, err := p.next(2 * time.Second); err != nil || f.command != "ERROR" {
			t.Errorf("a silent peer: %v %v", f, err)
		}
	}, "orders")
}
