package abuse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	connect = "CONNECT\naccept-version:1.2\nhost:queued\n\n\x00"
	send    = "SEND\ndestination:prey\n"
)

// TestSTOMP is the abuses of sessions.
func TestSTOMP(t *testing.T) {
	t.Parallel()
	// closed sends text and wants an ERROR with this in it, and the end.
	closed := func(name, text string, want ...string) row {
		return row{name: name, abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				a.flooded(c, 1, []byte(text), len(text))
				a.must(c, append(want, "ERROR\n")...)
			})
		}}
	}
	// endless sends head, and then piece again and again until it is cut off.
	endless := func(name, head, piece string, least int) row {
		return row{name: name, abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				a.flood(c, 1, []byte(head))
				a.flooded(c, 1000, []byte(strings.Repeat(piece, 64<<10/len(piece))), least)
				if said := a.said(c); said != "" && !strings.Contains(said, "ERROR\n") && !strings.HasPrefix(said, "CONNECTED\n") {
					a.Errorf("the server said %.300q", said)
				}
			})
		}}
	}
	run(t, []row{
		closed("it says nothing", "", "10 s"),
		closed("half of a CONNECT and no more", connect[:20], "10 s"),
		{name: "a CONNECT octet by octet", abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				if n := a.drip(c, connect[:len(connect)-2], "x-a:b\n", 100*time.Millisecond); n < 20 {
					a.Errorf("%d octets went", n)
				}
			})
		}},
		{name: "half of a SEND and no more", abuse: func(a *abuser) {
			// It has 60 s and more, which the exchanges of the face see the end of.
			a.each(a.s.STOMP, func(c net.Conn) {
				text := connect + send + "content-length:200000\n\n" + strings.Repeat("x", 100_000)
				a.flooded(c, 1, []byte(text), len(text))
			})
		}},
		{name: "a SEND octet by octet", abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				for _, b := range []byte(connect + send + "receipt:slow\n\nhello\x00") {
					a.flooded(c, 1, []byte{b}, 1)
					time.Sleep(10 * time.Millisecond) // the abuse itself
				}
				a.answered(c, "receipt-id:slow") // a client of little speed is a client
			})
		}},
		closed("a body of a tebibyte is announced", connect+send+"content-length:"+strconv.Itoa(1<<40)+"\n\n", "PayloadTooLarge", "limits.large-message-bytes"),
		closed("a body of more than can be counted is announced", connect+send+"content-length:99999999999999999999\n\n", "code:"),
		closed("a length below nothing", connect+send+"content-length:-1\n\n", "InvalidFrame"),
		closed("ten thousand headers", connect+send+strings.Repeat("a:b\n", 110), "PayloadTooLarge"),
		closed("a command that is none", connect+strings.Repeat("X", 40), "code:"),
		endless("headers without end", connect+send, "x-a:b\n", 400),
		endless("a header without end", connect+send+"x-a:", "a", 8<<10),
		endless("a body without end", connect+send+"\n", "x", 200<<10),
		endless("a command without end", connect, "X", 32),
		endless("headers of a CONNECT without end", "CONNECT\n", "x-a:b\n", 400),
		endless("noise", "", "\xff\x00\x80\n\n", 400),
		{name: "line ends without end", abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				a.flood(c, 1, []byte(connect))
				a.flooded(c, 100, []byte(strings.Repeat("\n", 64<<10)), 100*64<<10)
				a.flood(c, 1, []byte(send+"receipt:behind\n\nx\x00"))
				a.answered(c, "receipt-id:behind") // they are heart-beats, if many
			})
		}},
		{name: "subscriptions without end", abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				text := connect
				for i := range 300 {
					text += fmt.Sprintf("SUBSCRIBE\ndestination:prey\nid:%d\n\n\x00", i)
				}
				a.flooded(c, 1, []byte(text), len(text))
				a.must(c, "256")
			})
		}},
		{name: "messages that nobody reads", prey: many * 12, abuse: func(a *abuser) {
			a.each(a.s.STOMP, func(c net.Conn) {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) // the less is on its way in the system
				a.flood(c, 1, []byte(connect+"SUBSCRIBE\ndestination:prey\nid:1\nack:client\nprefetch-count:1000\n\n\x00"))
				a.answered(c, "MESSAGE\n")
			})
			// Who does not read is not leased to beyond a bound.
			if left, _ := a.s.Metric(`queued_queue_messages{queue="prey",state="visible"}`); left == 0 {
				a.Error("all messages are in flight, or the number of them is not told")
			}
		}},
		{name: "receipts that nobody reads", abuse: func(a *abuser) {
			frame := []byte(strings.Repeat(send+"receipt:"+strings.Repeat("r", 1000)+"\n\nx\x00", 50))
			a.each(a.s.STOMP, func(c net.Conn) {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				a.flood(c, 1, []byte(connect))
				_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // by then the pipes are full
				var err error
				for err == nil {
					_, err = c.Write(frame)
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					a.Errorf("the server reads on, or has hung up: %v", err)
				}
			})
		}, most: 256 << 20}, // what is published fills memtables and caches
	})
}

// answered reads until the server has said this.
func (a *abuser) answered(c net.Conn, want string) {
	a.Helper()
	_ = c.SetReadDeadline(time.Now().Add(waitFor))
	said, some := "", make([]byte, 1<<10)
	for !strings.Contains(said, want) {
		n, err := c.Read(some)
		if said += string(some[:n]); err != nil && err != io.EOF || n == 0 {
			a.Errorf("the server said %.300q, without %q: %v", said, want, err)
			return
		}
	}
}
