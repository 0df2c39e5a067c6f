package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// serve runs h on a real port of this machine and gives its address.
func serve(t testing.TB, h http.Handler, o ServerOptions) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server(h, o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(Listener(l)) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// wire1 is one HTTP/1.1 connection by hand.
type wire1 struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *wire1 {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire1{t, c, bufio.NewReader(c)}
}

func (w *wire1) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		w.t.Fatal(err)
	}
}

// read is the next answer to a request of that method.
func (w *wire1) read(method string) answer {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.Header.Get("Date") == "" {
		w.t.Error("an answer without date")
	}
	a := answer{resp.StatusCode, resp.Header, string(body)}
	if resp.Close {
		a.header.Set("Connection", "close")
	}
	return a
}

// closed checks that the server has closed the connection.
func (w *wire1) closed() {
	w.t.Helper()
	if _, err := w.in.ReadByte(); err == nil {
		w.t.Error("the connection is still open")
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		w.t.Error("the connection is not closed in time")
	}
}

func TestKeepAliveAfterErrors(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{Loopback: true})
	h.queue("orders")
	c := dial(t, serve(t, h.handler, ServerOptions{}))
	for range 2 {
		for _, s := range []struct {
			method, rest string
			status       int
		}{
			{"GET", "/20210201/queues/orders/stats HTTP/1.1\nHost: localhost\n\n", 200},
			{"GET", "/20210201/queues/unknown/stats HTTP/1.1\nHost: localhost\n\n", 404},
			{"POST", "/20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 9\n\n{broken::", 400},
			{"POST", "/20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n1d\n{\"messages\":[{\"content\":\"x\"}]\n1\n}\n0\n\n", 200},
			{"POST", "/20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n", 400},
			{"POST", "/20210201/queues/orders/messages HTTP/1.1\nHost: evil.example\nContent-Length: 2\n\n{}", 403},
			{"HEAD", "/20210201/queues/orders/messages HTTP/1.1\nHost: localhost\n\n", 405},
			{"OPTIONS", "* HTTP/1.1\nHost: localhost\n\n", 404},
			{"DELETE", "/20210201/queues/orders/messages/x HTTP/1.1\nHost: localhost\nContent-Length: 5\n\nhello", 400},
			{"GET", "/20210201/queues/orders/messages?timeoutInSeconds=0&visibilityInSeconds=0 HTTP/1.1\nHost: localhost\n\n", 200},
		} {
			c.send(s.method + " " + s.rest)
			a := c.read(s.method)
			if a.status != s.status || a.header.Get("Opc-Request-Id") == "" || a.header.Get("Connection") == "close" {
				t.Fatalf("%s %s: %d %v %s", s.method, s.rest, a.status, a.header, a.body)
			}
			if s.method == "HEAD" && a.body != "" {
				t.Errorf("HEAD got %s", a.body)
			}
		}
	}
}

// Answers that net/http gives by itself have our shape.
func TestAnswersBeforeTheHandler(t *testing.T) {
	t.Parallel()
	addr := serve(t, newHouse(t, Options{Loopback: true}).handler, ServerOptions{HeaderBytes: 4 << 10})
	for _, tt := range []struct {
		request string
		status  int
		code    queue.Code
		text    string
	}{
		{"GET /20210201/queues/100% HTTP/1.1\nHost: localhost\n\n", 400, "CannotParseRequest", "percent-encoded"},
		{"GET /20210201/queues/%zz HTTP/1.1\nHost: localhost\n\n", 400, "CannotParseRequest", ""},
		{"GET /20210201/queues HTTP/1.1\n\n", 400, "CannotParseRequest", "missing required Host header"},
		{"GET /20210201/queues HTTP/1.1\nHost: a b\n\n", 400, "CannotParseRequest", "malformed Host header"},
		{"GET /20210201/queues HTTP/1.1\nHost: localhost\nBad Header: x\n\n", 400, "CannotParseRequest", ""},
		{"this is nonsense and no HTTP at all\n\n", 400, "CannotParseRequest", ""},
		{"GET / HTTP/1.1\nHost: localhost\nX: " + strings.Repeat("x", 16<<10) + "\n\n", 431, "InvalidParameter", "limits.header-bytes"},
		{"POST /20210201/queues HTTP/1.1\nHost: localhost\nExpect: miracles\nContent-Length: 2\n\n{}", 417, "InvalidParameter", "expect"},
		{"POST /20210201/queues HTTP/1.1\nHost: localhost\nTransfer-Encoding: gzip, chunked\n\n0\n\n", 501, "MethodNotImplemented", "transfer-encoding"},
		{"GET /20210201/queues HTTP/3.0\nHost: localhost\n\n", 505, "CannotParseRequest", "unsupported protocol version"},
	} {
		c := dial(t, addr)
		c.send(tt.request)
		a := c.read("GET")
		wantError(t, fmt.Sprintf("%.60q", tt.request), a, tt.status, tt.code, tt.text)
		if !strings.HasSuffix(a.body, `"}`) || a.header.Get("Connection") != "close" {
			t.Errorf("%.60q: %v %s", tt.request, a.header, a.body)
		}
		c.closed()
	}
}

func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{RequestBytes: 1 << 10})
	h.queue("orders")
	const most = 6<<10 + 64<<10
	addr := serve(t, h.handler, ServerOptions{})

	// What is announced is refused before it is sent; with 100-continue it never is.
	for _, expect := range []string{"", "Expect: 100-continue\n"} {
		c := dial(t, addr)
		c.send(fmt.Sprintf("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\n%sContent-Length: %d\n\n", expect, most+1))
		a := c.read("POST")
		wantError(t, "announced", a, 413, "PayloadTooLarge", fmt.Sprint(most))
		if a.header.Get("Connection") != "close" {
			t.Error("the connection stays open")
		}
	}
	// What is not announced is cut.
	c := dial(t, addr)
	go func() { // the server may close before all is written
		_, _ = io.WriteString(c, "POST /20210201/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 3 {
			_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", 32<<10, strings.Repeat(" ", 32<<10))
		}
	}()
	a := c.read("POST")
	wantError(t, "chunked", a, 413, "PayloadTooLarge", fmt.Sprint(most))
	if a.header.Get("Connection") != "close" {
		t.Error("the connection stays open")
	}
	// Just as much as fits is read.
	c = dial(t, addr)
	c.send(fmt.Sprintf("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nExpect: 100-continue\nContent-Length: %d\n\n", most))
	if line, err := c.in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err)
	}
	if _, err := c.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	body := `{"messages":[{"content":"x"}]}`
	c.send(body + strings.Repeat(" ", most-len(body)))
	if a := c.read("POST"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The time for an answer is none for what the next request on the connection
// is told before its own.
func TestContinueLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{WriteTimeout: 50 * time.Millisecond})
	h.queue("orders")
	c := dial(t, serve(t, h.handler, ServerOptions{}))
	for range 2 {
		c.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nExpect: 100-continue\nContent-Length: 30\n\n")
		if line, err := c.in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatal(line, err)
		}
		if _, err := c.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		c.send(`{"messages":[{"content":"x"}]}`)
		if a := c.read("POST"); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{BodyTimeout: 300 * time.Millisecond})
	h.queue("orders")
	addr := serve(t, h.handler, ServerOptions{})
	c := dial(t, addr)
	c.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 100\n\n{\"mess")
	a := c.read("POST")
	wantError(t, "slow", a, 400, "CannotParseRequest", "did not arrive within 300ms")
	c.closed()

	c = dial(t, addr)
	c.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\nzz\n")
	wantError(t, "bad chunk", c.read("POST"), 400, "CannotParseRequest", "did not arrive whole")

	// The deadline of a body is none for the poll of another request behind it.
	c = dial(t, addr)
	c.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}")
	c.read("POST")
	began := time.Now()
	c.send("GET /20210201/queues/orders/messages?timeoutInSeconds=1 HTTP/1.1\nHost: localhost\n\n")
	if a := c.read("GET"); a.status != 200 || a.body != `{"messages":[]}` || time.Since(began) < 900*time.Millisecond {
		t.Errorf("%d %s after %v", a.status, a.body, time.Since(began))
	}
}

func TestBudgetOfBodies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{PendingBytes: 1 << 10})
	h.queue("orders")
	addr := serve(t, h.handler, ServerOptions{})
	slow := dial(t, addr)
	slow.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\n" + strings.Repeat(" ", 900))
	g := h.handler.(*gateway)
	for g.pending.used.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	c := dial(t, addr)
	c.send("POST /20210201/queues/orders/messages HTTP/1.1\nHost: localhost\nContent-Length: 500\n\n" + strings.Repeat(" ", 500))
	a := c.read("POST")
	wantError(t, "over the budget", a, 503, "ServiceUnavailable", "limits.pending-bytes-total")
	if a.header.Get("Retry-After") != "1" {
		t.Error(a.header)
	}
	slow.send(strings.Repeat(" ", 100))
	wantError(t, "blank", slow.read("POST"), 400, "MissingParameter", "must be a JSON object")
	if n := g.pending.used.Load(); n != 0 {
		t.Errorf("%d octets are still counted", n)
	}
}

// HTTP/2 with prior knowledge, many requests on one connection.
func TestH2C(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{Loopback: true})
	h.queue("orders")
	addr := serve(t, h.handler, ServerOptions{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	do := func(method, path, body string) answer {
		r, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.ProtoMajor != 2 {
			t.Fatal(resp.Proto, err)
		}
		return answer{resp.StatusCode, resp.Header, string(b)}
	}
	if a := do("POST", basePath+"/queues/orders/messages", `{"messages":[{"content":"over h2"}]}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := do("GET", basePath+"/queues/orders/messages", ""); a.status != 200 || !strings.Contains(a.body, "over h2") {
		t.Errorf("%d %s", a.status, a.body)
	}
	wantError(t, "broken", do("POST", basePath+"/queues/orders/messages", "{"), 400, "CannotParseRequest", "")
	large := do("POST", basePath+"/queues/orders/messages", strings.Repeat(" ", 4<<20))
	wantError(t, "large", large, 413, "PayloadTooLarge", "")
}

// leaving is a service whose client leaves while it works.
type leaving struct {
	panicking
	left   func()
	undone atomic.Int32
}

func (l *leaving) GetMessages(ctx context.Context, _ service.GetMessagesRequest) (service.GetMessagesResponse, error) {
	if l.left != nil {
		l.left()
		<-ctx.Done()
	}
	return service.GetMessagesResponse{Messages: []queue.Delivery{{Receipt: "r"}}}, nil
}

func (l *leaving) Undeliver(m []queue.Delivery) { l.undone.Add(int32(len(m))) }

// A delivery whose client has gone is taken back, over HTTP/1.1 and HTTP/2.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s := &leaving{}
	g, err := newGateway(s, nil, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.handleHot(); err != nil {
		t.Fatal(err)
	}
	addr := serve(t, g, ServerOptions{})
	for i, h2 := range []bool{false, true} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
		ctx, leave := context.WithCancel(t.Context())
		s.left = leave
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+basePath+"/queues/q/messages", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(r); err == nil {
			resp.Body.Close()
			t.Error("the client got an answer")
		}
		for end := time.Now().Add(5 * time.Second); s.undone.Load() != int32(i+1); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("h2 %v: %d deliveries were taken back, want %d", h2, s.undone.Load(), i+1)
			}
		}
		client.CloseIdleConnections()
	}
	// Whose client stays, stays delivered.
	s.left = nil
	resp, err := http.Get("http://" + addr + basePath + "/queues/q/messages")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(b), `"receipt":"r"`) || s.undone.Load() != 2 {
		t.Errorf("%s %v, %d taken back", b, err, s.undone.Load())
	}
}

// A poll whose client has gone takes nothing, and its waiter is gone too: the
// next consumer gets the message at once, as a first delivery.
func TestGonePollTakesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.queue("doors")
	addr := serve(t, h.handler, ServerOptions{})
	waiters := func(want int64) {
		for end := time.Now().Add(10 * time.Second); h.broker.Snapshot().Waiters != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d polls wait, want %d", h.broker.Snapshot().Waiters, want)
			}
		}
	}
	const polls = 200
	var conns []net.Conn
	for range polls {
		c := dial(t, addr)
		c.send("GET /20210201/queues/doors/messages?timeoutInSeconds=20&visibilityInSeconds=600 HTTP/1.1\nHost: localhost\n\n")
		conns = append(conns, c)
	}
	waiters(polls)
	for _, c := range conns {
		c.Close()
	}
	waiters(0)
	h.put("doors", "door 12 open")
	a := ask(t, h.handler, "GET", basePath+"/queues/doors/messages?timeoutInSeconds=5", "")
	if !strings.Contains(a.body, `"content":"door 12 open"`) || !strings.Contains(a.body, `"deliveryCount":1,`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A connection survives a panic in a handler.
func TestPanicOnAConnection(t *testing.T) {
	t.Parallel()
	g, err := newGateway(&panicking{}, nil, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.handleHot(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, serve(t, g, ServerOptions{}))
	for range 3 {
		c.send("DELETE /20210201/queues/q/messages/r HTTP/1.1\nHost: localhost\n\n")
		wantError(t, "panic", c.read("DELETE"), 500, "InternalServerError", "internal error")
	}
}
