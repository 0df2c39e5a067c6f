package abuse

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// many is how many connections do the same at once.
const many = 16

const post = "POST /20210201/queues/prey/messages HTTP/1.1\r\nHost: localhost\r\n"

// TestREST is HTTP/1.1 in the clear; TestRESTOverTLS is the same rows with TLS.
func TestREST(t *testing.T) {
	t.Parallel()
	run(t, restRows("clear"))
}

func TestRESTOverTLS(t *testing.T) {
	t.Parallel()
	run(t, restRows("TLS"), certificate(t)...)
}

// restRows are the abuses of HTTP/1.1. Under TLS what net/http answers by itself
// is not in our shape, which the roadmap knows.
func restRows(over string) []row {
	code := func(name string) string {
		if over == "TLS" {
			return ""
		}
		return `"code":"` + name + `"`
	}
	return []row{
		{name: "it says nothing", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) { a.said(c) })
		}},
		{name: "half of the headers and no more", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Content-Le"))
				a.said(c)
			})
		}},
		{name: "headers octet by octet", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				n := a.drip(c, post, "X-A: b\r\n", 100*time.Millisecond)
				if n < 20 {
					a.Errorf("%d octets went", n)
				}
			})
		}},
		{name: "a body octet by octet", abuse: func(a *abuser) {
			// It has 30 s, which the tests of the gateway see the end of.
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Content-Length: 10000\r\n\r\n"))
				for range 20 {
					a.flood(c, 1, []byte(" "))
					time.Sleep(10 * time.Millisecond) // the abuse itself
				}
			})
		}},
		{name: "half of a body and no more", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Content-Length: 200000\r\n\r\n"+strings.Repeat(" ", 100_000)))
			})
		}},
		{name: "ten thousand headers", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				text := strings.Repeat("X-A: b\r\n", 10_000)
				a.flood(c, 1, []byte(post+text))
				a.must(c, "HTTP/1.1 431", code("InvalidParameter"))
			})
		}},
		{name: "a header of 64 MiB", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"X-A: "))
				a.flooded(c, 64, []byte(strings.Repeat("a", 1<<20)), 64<<10)
				a.hungUp(c, "HTTP/1.1 431")
			})
		}},
		{name: "a request line without end", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte("GET /"))
				a.flooded(c, 64, []byte(strings.Repeat("a", 1<<20)), 64<<10)
				a.hungUp(c, "HTTP/1.1 431")
			})
		}},
		{name: "a body of a tebibyte is announced", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Content-Length: "+strconv.Itoa(1<<40)+"\r\n\r\n"))
				a.must(c, "HTTP/1.1 413", `"code":"PayloadTooLarge"`, "limits.request-bytes")
			})
		}},
		{name: "a body of more than can be counted is announced", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Content-Length: 99999999999999999999\r\n\r\n"))
				a.must(c, "HTTP/1.1 400", code("CannotParseRequest"))
			})
		}},
		{name: "a chunk of more than can be counted", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"))
				a.must(c, "HTTP/1.1 400", `"code":"CannotParseRequest"`)
			})
		}},
		{name: "chunks without end", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Transfer-Encoding: chunked\r\n\r\n"))
				chunk := "100000\r\n" + strings.Repeat(" ", 1<<20) + "\r\n"
				a.flooded(c, 64, []byte(chunk), 3<<20)
				a.hungUp(c, "HTTP/1.1 413")
			})
		}, most: 256 << 20}, // limits.pending-bytes-total
		{name: "chunks of one octet with long extensions", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flood(c, 1, []byte(post+"Transfer-Encoding: chunked\r\n\r\n"))
				a.flooded(c, 20_000, []byte("1;"+strings.Repeat("x", 3000)+"\r\n \r\n"), 16<<10)
				a.hungUp(c, "HTTP/1.1 400")
			})
		}},
		{name: "answers that nobody reads", prey: 8, abuse: unreadAnswers, most: 256 << 20},
		{name: "requests without end, answers unread", abuse: func(a *abuser) {
			get := strings.Repeat("GET /20210201/queues HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
			a.each(a.s.REST, func(c net.Conn) {
				_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second)) // by then the pipes are full
				var err error
				for err == nil {
					_, err = c.Write([]byte(get))
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					a.Errorf("the server reads on, or has hung up: %v", err)
				}
			})
		}},
		{name: "noise", abuse: func(a *abuser) {
			a.each(a.s.REST, func(c net.Conn) {
				a.flooded(c, 16, []byte(strings.Repeat("\xff\x00\x80\r\n", 1000)), 1000)
				a.hungUp(c, "")
			})
		}},
	}
}

// each does the abuse on many connections at once, which stay open unless the
// server closes them.
func (a *abuser) each(addr string, f func(net.Conn)) {
	a.Helper()
	var wg sync.WaitGroup
	for range many {
		c := a.open(addr)
		wg.Go(func() {
			f(c)
			a.count.Add(1)
		})
	}
	wg.Wait()
}

// hungUp reads what the server has said before it hung up on one who was
// still writing. The reset that follows may take the answer with it; whatever
// is left of it begins so.
func (a *abuser) hungUp(c net.Conn, answer string) {
	a.Helper()
	said := a.said(c)
	if !strings.HasPrefix(said, answer) && said != "" {
		a.Errorf("the server said %.400q, not %q", said, answer)
	}
}

// unreadAnswers asks on every connection for messages of 2 MiB, again and
// again, and reads nothing. With a visibility of 0 eight messages are enough.
func unreadAnswers(a *abuser) {
	get := "GET /20210201/queues/prey/messages?limit=20&visibilityInSeconds=0&timeoutInSeconds=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
	a.each(a.s.REST, func(c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10) // the less is on its way in the system
		}
		a.flood(c, 20, []byte(get)) // 40 MiB, which no system holds on its way
		began := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, began); err != nil || string(began) != "HTTP/1.1 200" {
			a.Errorf("%q %v", began, err)
		}
	})
}
