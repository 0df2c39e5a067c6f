package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// pipe is the server's end of a connection and the client's.
func pipe(t *testing.T) (*conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	c, err := Listener(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*conn), client.(*net.TCPConn)
}

func requestOn(c net.Conn, major int) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.ProtoMajor = major
	return r.WithContext(withConn(r.Context(), c))
}

// TestPresence: nobody has read the end of the connection, and it is known.
func TestPresence(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"closed":      func(c *net.TCPConn) { c.Close() },
		"half closed": func(c *net.TCPConn) { _ = c.CloseWrite() },
		"reset":       func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
	} {
		for _, major := range []int{1, 2} {
			c, client := pipe(t)
			r := requestOn(c, major)
			if !presence(r) {
				t.Errorf("%s, HTTP/%d: gone before it went", name, major)
			}
			leave(client)
			for deadline := time.Now().Add(5 * time.Second); presence(r); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) { // the packet takes its time
					t.Fatalf("%s, HTTP/%d: present after it went", name, major)
				}
			}
		}
	}
	if !presence(httptest.NewRequest("GET", "/", nil)) {
		t.Error("without a connection to ask, the client is gone")
	}
}

// TestPresenceCatchesUp: over HTTP/2 what has arrived is waited for until the
// reader has handled it, but not for ever. Over HTTP/1.1 it is the next
// request, and nobody waits.
func TestPresenceCatchesUp(t *testing.T) {
	c, client := pipe(t)
	if _, err := client.Write([]byte("frame")); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 5; n, _ = c.peek(make([]byte, 8)) {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	if !presence(requestOn(c, 1)) || !presence(requestOn(c, 2)) {
		t.Error("gone, with something to read")
	}
	if took := time.Since(began); took < catchUp || took > time.Second {
		t.Errorf("waited %v for a reader that never came, want %v", took, catchUp)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := requestOn(c, 2)
	r = r.WithContext(context.WithValue(ctx, connKey{}, c))
	go func() {
		b := make([]byte, 8)
		if n, err := c.Read(b); n != 5 || err != nil {
			t.Errorf("read %d octets, %v", n, err)
		}
		cancel() // what the frame says
		_, _ = c.Read(b)
	}()
	if !presence(r) || ctx.Err() == nil {
		t.Errorf("present (%v) before the frame was handled", ctx.Err())
	}
}
