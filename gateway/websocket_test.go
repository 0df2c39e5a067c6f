package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

// Who may open a WebSocket: programs, pages of the server's own and of the
// origins that are listed, and nobody else.
func TestWebSocketOrigins(t *testing.T) {
	t.Parallel()
	asked := 0
	h := newHouse(t, Options{Loopback: true, PublicURL: "https://mq.example", SocketOrigins: []string{"https://App.example", "http://dev.example:3000"},
		WebSocket: func(http.ResponseWriter, *http.Request) error {
			asked++
			return queue.Errorf(queue.InvalidParameter, "was asked")
		}})
	for _, headers := range [][]string{
		{}, {"sec-fetch-site: none"}, {"sec-fetch-site: same-origin", "origin: http://localhost:8080"}, {"origin: https://mq.example"},
		{"origin: https://app.example"}, {"origin: https://APP.example:443", "sec-fetch-site: cross-site"}, {"origin: http://dev.example:3000", "sec-fetch-site: cross-site"},
		{"host: mq.example", "origin: https://app.example"},
	} {
		was := asked
		wantError(t, strings.Join(headers, ", "), ask(t, h.handler, "GET", "/stomp", "", headers...), http.StatusBadRequest, "InvalidParameter", "was asked")
		if asked != was+1 {
			t.Errorf("%v: asked %d times", headers, asked-was)
		}
	}
	was := asked
	for _, headers := range [][]string{
		{"sec-fetch-site: cross-site"}, {"origin: null"}, {"origin: "}, {"origin: https://evil.example"}, {"origin: http://app.example"}, {"origin: https://app.example:8443"},
		{"origin: https://app.example.evil.example"}, {"origin: https://xapp.example"}, {"origin: http://dev.example"}, {"origin: https://dev.example:3000"},
		{"origin: https://app.example", "origin: https://evil.example"}, {"host: evil.example", "origin: https://app.example"}, {"host: evil.example"},
		{"origin: app.example"}, {"origin: ftp://app.example"}, {"origin: file://"},
	} {
		for _, method := range []string{"GET", "POST"} {
			wantError(t, method+" "+strings.Join(headers, ", "), ask(t, h.handler, method, "http://localhost/stomp", "", headers...), http.StatusForbidden, "NotAuthorized", "")
		}
	}
	for _, method := range []string{"POST", "PUT", "HEAD", "OPTIONS"} {
		a := ask(t, h.handler, method, "http://localhost/stomp", "")
		wantError(t, method, a, http.StatusMethodNotAllowed, "MethodNotAllowed", "only GET")
		if a.header.Get("Allow") != "GET" {
			t.Errorf("%s: allow %q", method, a.header.Get("Allow"))
		}
	}
	if asked != was {
		t.Error("a request that is refused came through")
	}
	// The listed origins may open a WebSocket, and nothing else.
	wantError(t, "REST", ask(t, h.handler, "GET", basePath+"/queues", "", "origin: https://app.example"), http.StatusForbidden, "NotAuthorized", "")
	wantError(t, "another path", ask(t, h.handler, "GET", "/stomp/", ""), http.StatusNotFound, "NotFound", "")
	wantError(t, "none", ask(t, newHouse(t, Options{}).handler, "GET", "/stomp", ""), http.StatusNotFound, "NotFound", "")
}

// Once the connection is taken over every octet passes as it is, also one that
// looks like an answer of net/http.
func TestWebSocketOctets(t *testing.T) {
	t.Parallel()
	const text = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	h := newHouse(t, Options{WebSocket: func(w http.ResponseWriter, _ *http.Request) error {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.WriteString(c, text)
		return err
	}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := Server(h.handler, ServerOptions{})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(Listener(ln)) }()
	t.Cleanup(func() { srv.Close(); <-served })
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /stomp HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != text || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
