package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// doors bound the connections of several listeners. A connection beyond a bound is
// closed at once: a client is better told than kept waiting, and none can take
// the files that the store needs.
type doors struct {
	each      int64 // open connections of one listener
	perClient int64 // of one listener from one address
	all       int64 // of these listeners together
	open      atomic.Int64
	log       *slog.Logger
}

// spareFiles is how many open files are kept for the store and the process.
const spareFiles = 2048

// newDoors takes the limits, and what the system allows: a process without
// files left could not write its store.
func newDoors(each, perClient int64, log *slog.Logger) *doors {
	d := &doors{each: each, perClient: perClient, all: 1 << 40, log: log}
	if files, ok := openFiles(); ok {
		d.all = max(files-spareFiles, files/4)
	}
	return d
}

// listener is one door.
type listener struct {
	net.Listener
	face  string
	doors *doors

	count   atomic.Int64
	refused atomic.Int64

	mu       sync.Mutex
	byClient map[netip.Addr]int64
	told     time.Time // when a refusal was last logged
}

// listen opens the door of a face. Errors name the setting.
func (d *doors) listen(face, key, addr string) (*listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", key, addr, err)
	}
	return &listener{Listener: l, face: face, doors: d, byClient: make(map[netip.Addr]int64)}, nil
}

// Accept waits for a connection within the bounds.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientOf(c)
		if bound := l.enter(client); bound != "" {
			l.refuse(client, bound)
			c.Close()
			continue
		}
		return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(client) })}, nil
	}
}

// enter counts a connection, or names the bound that it would break.
func (l *listener) enter(client netip.Addr) (bound string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.count.Load() >= l.doors.each:
		return "limits.connections"
	case l.byClient[client] >= l.doors.perClient:
		return "limits.connections-per-client"
	case l.doors.open.Add(1) > l.doors.all:
		l.doors.open.Add(-1)
		return "open files of the process"
	}
	l.count.Add(1)
	l.byClient[client]++
	return ""
}

func (l *listener) leave(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doors.open.Add(-1)
	l.count.Add(-1)
	if l.byClient[client]--; l.byClient[client] == 0 {
		delete(l.byClient, client)
	}
}

// refuse logs a refusal, but not each of a flood.
func (l *listener) refuse(client netip.Addr, bound string) {
	n := l.refused.Add(1)
	l.mu.Lock()
	quiet := time.Since(l.told) < 10*time.Second
	if !quiet {
		l.told = time.Now()
	}
	l.mu.Unlock()
	if !quiet {
		l.doors.log.Warn("connection refused", "face", l.face, "client", client, "bound", bound, "refused", n)
	}
}

// clientOf is the address that connections are counted by. For IPv6 that is
// the /64, which one client has all of.
func clientOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	leave func()
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// SyscallConn is the socket, for those who must ask it what has arrived.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite closes the sending half, as net/http does before it hangs up.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
