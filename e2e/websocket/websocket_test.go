// Package websocket tests STOMP over WebSocket on the real binary, with a client
// library that knows nothing of STOMP.
package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/e2e/stomp"
)

var offered = []string{"v12.stomp", "v11.stomp", "v10.stomp"}

// dial opens a WebSocket at the REST address of s.
func dial(s *server.Server, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rest.Timeout)
	defer cancel()
	if o == nil {
		o = &websocket.DialOptions{}
	}
	if o.Subprotocols == nil {
		o.Subprotocols = offered
	}
	o.CompressionMode = websocket.CompressionContextTakeover // it is not to be taken
	return websocket.Dial(ctx, strings.Replace(s.REST, "http", "ws", 1)+"/stomp", o)
}

// open opens a session whose frames go out as messages of a kind.
func open(t *testing.T, s *server.Server, kind websocket.MessageType, o *websocket.DialOptions) *stomp.Conn {
	t.Helper()
	ws, answer, err := dial(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if ws.Subprotocol() != "v12.stomp" || answer.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Fatalf("the handshake is answered %v", answer.Header)
	}
	c := stomp.Over(websocket.NetConn(context.Background(), ws, kind))
	t.Cleanup(func() { c.Close() })
	if err := c.Send("CONNECT", nil, "accept-version", "1.2,1.1", "host", "here"); err != nil {
		t.Fatal(err)
	}
	want(t, c, "CONNECTED")
	return c
}

func want(t *testing.T, c *stomp.Conn, command string, headers ...string) *stomp.Frame {
	t.Helper()
	f, err := c.Next(rest.Timeout)
	if err != nil {
		t.Fatalf("no %s: %v", command, err)
	}
	if f.Command != command {
		t.Fatalf("got %s %v %q, want %s", f.Command, f.Headers, f.Body, command)
	}
	for i := 0; i < len(headers); i += 2 {
		if f.Headers[headers[i]] != headers[i+1] {
			t.Fatalf("%s has %v, want %q", command, f.Headers, headers)
		}
	}
	return f
}

// exchange sends, receives and settles.
func exchange(t *testing.T, c *stomp.Conn, queue string, body []byte) {
	t.Helper()
	for _, err := range []error{
		c.Send("SUBSCRIBE", nil, "destination", queue, "id", "1", "ack", "client-individual"),
		c.Send("SEND", body, "destination", queue, "receipt", "s"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want(t, c, "RECEIPT", "receipt-id", "s")
	m := want(t, c, "MESSAGE", "subscription", "1")
	if string(m.Body) != string(body) {
		t.Fatalf("%d octets came, %d were sent", len(m.Body), len(body))
	}
	if err := c.Send("ACK", nil, "id", m.Headers["ack"], "receipt", "a"); err != nil {
		t.Fatal(err)
	}
	want(t, c, "RECEIPT", "receipt-id", "a")
}

func TestSession(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	octets := make([]byte, 250<<10)
	for i := range octets {
		octets[i] = byte(i * 7)
	}
	for kind, body := range map[websocket.MessageType][]byte{websocket.MessageText: []byte("žluť"), websocket.MessageBinary: octets} {
		c := open(t, s, kind, nil)
		exchange(t, c, "orders", body)
		if err := c.Send("DISCONNECT", nil, "receipt", "d"); err != nil {
			t.Fatal(err)
		}
		want(t, c, "RECEIPT", "receipt-id", "d")
		if f, err := c.Next(rest.Timeout); !errors.Is(err, io.EOF) { // a close frame of 1000
			t.Errorf("behind DISCONNECT: %v %v", f, err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := writeCert(cert, key); err != nil {
		t.Fatal(err)
	}
	s := server.Start(t, "--create-queue", "orders", "--tls-cert", cert, "--tls-key", key)
	s.REST = strings.Replace(s.REST, "http://", "https://", 1)
	secure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(secure.CloseIdleConnections)
	o := &websocket.DialOptions{HTTPClient: &http.Client{Transport: secure}}
	exchange(t, open(t, s, websocket.MessageBinary, o), "orders", []byte("secret"))

	// Over HTTP/2 there is none, and that is said.
	h2 := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(h2.CloseIdleConnections)
	resp, err := (&http.Client{Transport: h2}).Get(s.REST + "/stomp")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "HTTP/1.1") {
		t.Errorf("%s %s: %s", resp.Proto, resp.Status, text)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{
		Args: []string{"--create-queue", "orders", "--public-url", "https://mq.example"},
		Env:  []string{"QUEUED_STOMP_WEBSOCKET_ORIGINS=https://app.example;http://localhost:3000"},
	})
	for origin, allowed := range map[string]bool{
		"": true, s.REST: true, "https://mq.example": true, "https://app.example": true, "http://localhost:3000": true,
		"https://evil.example": false, "null": false, "http://app.example": false, "http://localhost": false,
	} {
		o := &websocket.DialOptions{HTTPHeader: http.Header{}}
		if origin != "" {
			o.HTTPHeader.Set("Origin", origin)
		}
		ws, answer, err := dial(s, o)
		if allowed {
			if err != nil {
				t.Errorf("origin %q: %v", origin, err)
				continue
			}
			ws.CloseNow()
			continue
		}
		if err == nil {
			t.Errorf("origin %q is let in", origin)
			ws.CloseNow()
		} else if answer == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("origin %q: %v", origin, err)
		}
	}
}

// The limits of connections count WebSockets, and the metrics tell them apart.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{
		Args: []string{"--create-queue", "orders"},
		Env:  []string{"QUEUED_LIMITS_CONNECTIONS_PER_CLIENT=3"},
	})
	for range 3 {
		open(t, s, websocket.MessageBinary, nil)
	}
	if metric(t, s, `queued_connections{face="websocket"}`) != "3" || metric(t, s, `queued_connections{face="rest"}`) != "0" {
		t.Error(metric(t, s, `queued_connections{face="websocket"}`), metric(t, s, `queued_connections{face="rest"}`))
	}
	if ws, _, err := dial(s, nil); err == nil {
		ws.CloseNow()
		t.Error("a fourth connection is let in")
	}
}

func metric(t *testing.T, s *server.Server, name string) string {
	t.Helper()
	resp, err := http.Get(s.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return "none"
}

// A stop is told to sessions over WebSocket too, and does not wait for them.
func TestStop(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := open(t, s, websocket.MessageText, nil)
	if err := c.Send("SEND", []byte("x"), "destination", "orders", "receipt", "s"); err != nil {
		t.Fatal(err)
	}
	want(t, c, "RECEIPT", "receipt-id", "s")
	s.Stop()
	want(t, c, "ERROR", "code", "ServiceUnavailable")
	if f, err := c.Next(rest.Timeout); !errors.Is(err, io.EOF) { // a close frame of 1001
		t.Errorf("behind the ERROR: %v %v", f, err)
	}
	s.Restart()
	c = open(t, s, websocket.MessageText, nil)
	if err := c.Send("SUBSCRIBE", nil, "destination", "orders", "id", "1"); err != nil {
		t.Fatal(err)
	}
	if m := want(t, c, "MESSAGE"); string(m.Body) != "x" {
		t.Errorf("%q", m.Body)
	}
}

// A subscriber that reads nothing costs a bounded amount and slows down nobody.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "slow", "--create-queue", "quick", "--limits-profile", "unthrottled")
	deaf := open(t, s, websocket.MessageBinary, nil)
	if err := deaf.Send("SUBSCRIBE", nil, "destination", "slow", "id", "1", "ack", "client", "prefetch-count", "10000"); err != nil {
		t.Fatal(err)
	}
	feeder := open(t, s, websocket.MessageBinary, nil)
	body := make([]byte, 200<<10)
	const most = 100 // 20 MB
	for i := range most {
		if err := feeder.Send("SEND", body, "destination", "slow", "receipt", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		want(t, feeder, "RECEIPT")
	}
	other := open(t, s, websocket.MessageBinary, nil)
	for range 20 {
		exchange(t, other, "quick", []byte("quick"))
		if err := other.Send("UNSUBSCRIBE", nil, "id", "1", "receipt", "u"); err != nil {
			t.Fatal(err)
		}
		want(t, other, "RECEIPT", "receipt-id", "u")
	}
	// What the sockets of this machine swallow is some MiB; the rest is leased to
	// nobody.
	if n := metric(t, s, `queued_queue_messages{queue="slow",state="visible"}`); n == "0" || n == "none" {
		t.Errorf("%s messages are left to others", n)
	}
	// It reads at last, and all comes.
	for range most {
		want(t, deaf, "MESSAGE")
	}
}
