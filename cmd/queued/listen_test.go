package main

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDoors: connections beyond a bound are closed at once, and room that is
// left is given to the next.
func TestDoors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		doors *doors
		bound string
	}{
		{"of a listener", &doors{each: 2, perClient: 9, all: 9}, "limits.connections"},
		{"of a client", &doors{each: 9, perClient: 2, all: 9}, "limits.connections-per-client"},
		{"of the process", &doors{each: 9, perClient: 9, all: 2}, "open files of the process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var logs safeBuffer
			d := tt.doors
			d.log = slog.New(slog.NewTextHandler(&logs, nil))
			l, err := d.listen("rest", "rest-addr", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			accepted := make(chan net.Conn, 9)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					accepted <- c
				}
			}()
			dial := func() net.Conn {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			dial()
			dial()
			first, second := <-accepted, <-accepted
			for range 3 {
				refused := dial()
				refused.SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := refused.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
					t.Errorf("a connection too many: %v", err)
				}
			}
			if n := l.count.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
			if n := l.refused.Load(); n != 3 {
				t.Errorf("%d refused, want 3", n)
			}
			if got := logs.String(); strings.Count(got, "connection refused") != 1 || !strings.Contains(got, tt.bound) {
				t.Errorf("the log says %q", got)
			}
			first.Close()
			first.Close() // counts once
			dial()
			third := <-accepted
			second.Close()
			third.Close()
			if n, all := l.count.Load(), d.open.Load(); n != 0 || all != 0 || len(l.byClient) != 0 {
				t.Errorf("%d connections, %d in all, %v by client", n, all, l.byClient)
			}
		})
	}
}

// A counted connection still is what those above look for in it: one that can
// close one half, and whose socket can be asked.
func TestDoorsKeepTheConnection(t *testing.T) {
	t.Parallel()
	d := newDoors(9, 9, slog.New(slog.DiscardHandler))
	l, err := d.listen("rest", "rest-addr", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		text := "bye"
		if raw, err := c.(syscall.Conn).SyscallConn(); err != nil {
			text = err.Error()
		} else if err := raw.Control(func(uintptr) {}); err != nil {
			text = err.Error()
		}
		_, _ = io.WriteString(c, text)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, err := io.ReadAll(c); err != nil || string(text) != "bye" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"10.1.2.3":         "10.1.2.3",
		"::ffff:10.1.2.3":  "10.1.2.3",
		"::1":              "::1",
		"2001:db8:1:2:3::": "2001:db8:1:2::",
	} {
		c := addrConn{remote: &net.TCPAddr{IP: net.ParseIP(addr), Port: 5}}
		if got := clientOf(c).String(); got != want {
			t.Errorf("clientOf(%s) = %s, want %s", addr, got, want)
		}
	}
	if got := clientOf(addrConn{remote: &net.UnixAddr{}}); got.IsValid() {
		t.Errorf("clientOf(unix) = %v", got)
	}
}

type addrConn struct {
	net.Conn
	remote net.Addr
}

func (c addrConn) RemoteAddr() net.Addr { return c.remote }
