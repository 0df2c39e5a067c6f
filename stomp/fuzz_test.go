package stomp

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
)

// fragments are what a random session is made of; each octet of the input is
// one of them. $a and $b are what the last messages were named by.
var fragments = []string{
	"SEND\ndestination:orders\nreceipt:$n\n\nbody\x00", "SEND\ndestination:orders/ch\nk:v\n\n\x00", "SEND\ndestination:others\ncontent-length:4\n\na\x00b\n\x00",
	"SEND\ndestination:orders\ndelay:1\nretention:20\n\nx\x00", "SEND\ndestination:orders\n\n" + strings.Repeat("z", 3000) + "\x00", "SEND\n\nx\x00", "SEND\ndestination:nowhere\nreceipt:$n\n\nx\x00",
	"SUBSCRIBE\ndestination:orders\nid:1\nack:client\nreceipt:$n\n\n\x00", "SUBSCRIBE\ndestination:orders\nid:2\nack:client-individual\nprefetch-count:3\nvisibility:2\n\n\x00",
	"SUBSCRIBE\ndestination:others\nid:3\n\n\x00", "SUBSCRIBE\ndestination:orders_dlq\nid:4\nack:client-individual\n\n\x00", "SUBSCRIBE\ndestination:orders/*\nid:5\nack:client\nrelease-on-close:true\n\n\x00",
	"UNSUBSCRIBE\nid:1\nreceipt:$n\n\n\x00", "UNSUBSCRIBE\nid:2\n\n\x00", "UNSUBSCRIBE\nid:3\n\n\x00", "UNSUBSCRIBE\nid:5\nreceipt:$n\n\n\x00",
	"ACK\nid:$a\nmessage-id:$a\nreceipt:$n\n\n\x00", "ACK\nid:$a\nmessage-id:$a\n\n\x00", "ACK\nid:$b\nmessage-id:$b\n\n\x00", "ACK\nid:$m\nmessage-id:$a\n\n\x00", "ACK\nid:$b\nmessage-id:$b\nreceipt:$n\n\n\x00",
	"NACK\nid:$a\nmessage-id:$a\n\n\x00", "NACK\nid:$b\nmessage-id:$b\nreceipt:$n\n\n\x00",
	"BEGIN\ntransaction:t\n\n\x00", "DISCONNECT\nreceipt:$n\n\n\x00", "DISCONNECT\n\n\x00", "CONNECT\n\n\x00", "NONSENSE\nreceipt:$n\n\n\x00",
	"\n", "\r\n", "\x00", "\r", ":", "\\", "SEND", "\n\n", "receipt:r\n", "content-length:7\n", "destination:orders\n", "\xff", "x", "id:$a\n",
	"!1s", "!3s", "!1ms", "!half", "!put", "!get",
	"SEND\ndestination:others\ntransaction:t\n\nx\x00", "ACK\nid:$a\nmessage-id:$a\ntransaction:t\n\n\x00", "NACK\nid:$b\nmessage-id:$b\ntransaction:t\n\n\x00",
	"COMMIT\ntransaction:t\nreceipt:$n\n\n\x00", "ABORT\ntransaction:t\n\n\x00", "BEGIN\ntransaction:u\n\n\x00", "ACK\nid:$b\nmessage-id:$b\ntransaction:u\n\n\x00", "COMMIT\ntransaction:u\n\n\x00",
}

// Whatever a client says: the server does not panic, nothing is answered
// twice, another connection works, and the counters of the store are right at
// the end. Programs of an odd length are said over WebSocket.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 7, 0, 16, 16, 12, 24})
	f.Add([]byte{7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 42, 16, 17, 18, 21, 22, 43, 12, 13, 24})
	f.Add([]byte{8, 46, 46, 43, 17, 16, 43, 21, 43, 21, 47, 18, 45})
	f.Add([]byte{11, 46, 44, 46, 44, 15, 17, 16})
	f.Add([]byte{8, 46, 46, 23, 48, 49, 50, 51, 43, 23, 49, 52, 16, 24})
	f.Add([]byte{7, 46, 46, 46, 23, 49, 53, 54, 48, 12, 51, 55, 24})
	f.Add([]byte{34, 28, 38, 36, 35, 40, 30, 26})
	f.Fuzz(func(t *testing.T, program []byte) {
		version := []string{"1.2", "1.1", "1.0"}[len(program)%3]
		synctest.Test(t, func(t *testing.T) { fuzzed(t, version, len(program)%2 == 1, program[:min(len(program), 64)]) })
	})
}

func fuzzed(t *testing.T, version string, overWebSocket bool, program []byte) {
	l := limits.Unthrottled()
	h := openWith(t, Options{}, &l, true, "orders", "others")
	if overWebSocket {
		// The program cuts the messages too: an octet is how long a piece is, and
		// every other piece is a fragment.
		h.overWebSocket(true, func(b *browser) {
			b.text = len(program)%4 == 1
			at := 0
			b.cut = func(p []byte) (cuts []int) {
				for n := 0; n < len(p); at++ {
					one := 1 + int(program[at%len(program)])
					n += one
					if at%2 == 1 {
						one = -one
					}
					cuts = append(cuts, one)
				}
				return cuts
			}
		})
	}
	p := h.connect(version)
	var mu sync.Mutex
	a, b, id := "none", "none", "0"
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for {
			f, err := p.next(time.Hour)
			if err != nil {
				return
			}
			switch f.command {
			case "MESSAGE":
				mu.Lock()
				b, a, id = a, f.header["message-id"], f.header["message-id"]
				if ack, ok := f.header["ack"]; ok {
					a = ack
				}
				mu.Unlock()
			case "ERROR":
				if f.header["code"] == "InternalServerError" {
					t.Errorf("%v", f)
				}
			case "RECEIPT":
			default:
				t.Errorf("%v", f)
			}
		}
	}()
	for i, octet := range program {
		text := fragments[int(octet)%len(fragments)]
		switch text {
		case "!1s", "!3s", "!1ms":
			time.Sleep(duration(text[1:]))
			continue
		case "!half":
			if i > len(program)/2 {
				p.net.(interface{ CloseWrite() error }).CloseWrite()
			}
			continue
		case "!put":
			h.put("orders", "put")
			continue
		case "!get":
			h.get("orders")
			continue
		}
		mu.Lock()
		text = strings.NewReplacer("$a", a, "$b", b, "$m", id, "$n", fmt.Sprint(i)).Replace(text)
		mu.Unlock()
		if _, err := io.WriteString(p.net, text); err != nil {
			break
		}
		if octet >= 128 { // or all in one read
			synctest.Wait()
		}
	}
	synctest.Wait()
	p.net.Close()
	<-heard
	if bytes.Contains([]byte(h.log.String()), []byte("msg=panic")) {
		t.Error(h.log.String())
	}
	h.works()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if n := h.broker.Snapshot().Waiters; n != 0 {
		t.Errorf("%d wait", n)
	}
	if left := h.sessions(); left != 0 {
		t.Errorf("%d sessions are left", left)
	}
}
