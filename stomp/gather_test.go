package stomp

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// gatherFrames is what TestChunksDoNotMatter makes its scripts of; the last
// ones end a session.
var gatherFrames = []string{
	"SEND\ndestination:orders\n\n$n\x00",
	"SEND\ndestination:orders\nreceipt:$n\n\n$n\x00",
	"SEND\ndestination:orders/north\nreceipt:$n\nk:v\n\n$n\x00",
	"SEND\ndestination:others\nreceipt:$n\ncontent-length:6\n\n$n\x00\n\x00\x00\r\n",
	"SEND\ndestination:made-$n\nreceipt:$n\n\n$n\x00",
	"SEND\ndestination:orders\nretention:20\ndelay:1\n\n$n\x00",
	"SEND\ndestination:others\nreceipt:$n\n\n$n " + strings.Repeat("z", 20<<10) + "\x00",
	"SEND\ndestination:orders\nreceipt:$n\n\n$n " + strings.Repeat("z", 63<<10) + "\x00",
	"SUBSCRIBE\nid:$n\ndestination:quiet\nreceipt:$n\n\n\x00\n",
	"\n\n", "\x00",
	"BEGIN\ntransaction:t$n\nreceipt:b$n\n\n\x00SEND\ndestination:orders\ntransaction:t$n\n\n$n\x00SEND\ndestination:orders\nreceipt:$n\n\n$n\x00COMMIT\ntransaction:t$n\nreceipt:c$n\n\n\x00",

	"SEND\ndestination:others\nreceipt:$n\nretention:1\n\n$n\x00", // the form
	"SEND\ndestination:orders_dlq\nreceipt:$n\n\n$n\x00",
	"SEND\ndestination:orders\ntransaction:t\nreceipt:$n\n\n$n\x00",
	"SEND\ndestination:orders\nreceipt:$n\n\n" + strings.Repeat("z", 101<<10) + "\x00",
	"UNSUBSCRIBE\nid:none\nreceipt:$n\n\n\x00",
	"ACK\nid:none\nreceipt:$n\n\n\x00",
	"COMMIT\ntransaction:t\nreceipt:$n\n\n\x00",
	"CONNECT\n\n\x00", "NONSENSE\nreceipt:$n\n\n\x00", "SEND\ndestination:orders\nno colon\n\nx\x00",
	"SEND\ndestination:orders\ncontent-length:1\n\n$n more\x00",
	"DISCONNECT\nreceipt:$n\n\n\x00",
	"SEND\ndestination:orders\n\nhalf", // and the end
}

const gatherEnds = 12 // from here on they end a session

// TestChunksDoNotMatter: however the octets of a session are cut into pieces,
// the same messages are stored in the same order, and the same is answered.
func TestChunksDoNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		var script strings.Builder
		frames := 0
		add := func(at int) {
			frames++
			script.WriteString(strings.ReplaceAll(gatherFrames[at], "$n", fmt.Sprintf("%03d", frames)))
		}
		for range r.IntN(8) {
			for at, n := r.IntN(gatherEnds), 1+r.IntN(5)*r.IntN(30); n > 0 && script.Len() < 300<<10; n-- {
				if add(at); r.IntN(9) == 0 {
					at = r.IntN(3)
				}
			}
		}
		if r.IntN(5) > 0 {
			add(gatherEnds + r.IntN(len(gatherFrames)-gatherEnds))
			for range r.IntN(4) {
				add(r.IntN(8)) // is not served any more
			}
		}
		text := script.String()
		cuts := map[string]func() int{
			"in pieces of a few octets":  func() int { return 1 + r.IntN(400) },
			"in pieces of some thousand": func() int { return 1 + r.IntN(30_000) },
		}
		if len(text) < 8<<10 {
			cuts["octet by octet"] = func() int { return 1 }
		}
		whole := playCut(t, text, func() int { return len(text) })
		for name, next := range cuts {
			if got := playCut(t, text, next); got != whole {
				t.Fatalf("seed %d: %.3000q %s gives\n%s\nand at once\n%s", seed, text, name, got, whole)
			}
		}
	}
}

// playCut plays a script to a new house, in pieces of the lengths that next
// says, each of which is served before the next comes. It tells what was
// answered and what is stored.
func playCut(t *testing.T, script string, next func() int) (outcome string) {
	var out strings.Builder
	l := limits.Unthrottled()
	l.MessageBytes = 100 << 10
	inBubbleWith(t, Options{AutoCreate: true, MessageBytes: 100 << 10}, &l, func(h *house) {
		p := h.connect("1.1")
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			for {
				f, err := p.next(time.Hour)
				if err != nil {
					fmt.Fprintf(&out, "%v\n", err)
					return
				}
				fmt.Fprintf(&out, "%s %s %s %s\n", f.command, f.header["receipt-id"], f.header["code"], f.body)
			}
		}()
		for len(script) > 0 {
			n := min(next(), len(script))
			if _, err := io.WriteString(p.net, script[:n]); err != nil {
				break // the session has ended
			}
			script = script[n:]
			synctest.Wait()
		}
		p.net.(*end).CloseWrite()
		<-heard
		time.Sleep(2 * time.Second) // what was delayed is due
		for _, q := range h.names() {
			fmt.Fprintf(&out, "in %s:", q)
			in := map[string]string{} // by channel: which comes first is by chance
			for got := h.get(q); len(got) > 0; got = h.get(q) {
				for _, m := range got {
					in[m.Channel] += fmt.Sprintf(" %q(%d) %v", m.Body[:min(10, len(m.Body))], len(m.Body), m.Properties)
				}
			}
			fmt.Fprintln(&out, in)
		}
		h.works()
	}, "orders", "others", "quiet")
	return out.String()
}

// names is the names of all queues.
func (h *house) names() (names []string) {
	for _, q := range h.broker.Snapshot().Queues {
		names = append(names, q.Queue.DisplayName)
	}
	return names
}

// A frame behind a SEND that is refused is not served, also if they arrive
// together, and also if SENDs before it are not stored yet: an ACK leaves its
// message where it is, a SUBSCRIBE takes nothing.
func TestBehindARefusedSend(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]string{
		"form":        "SEND\ndestination:orders\nretention:1\nreceipt:r\n\nx^@",
		"destination": "SEND\ndestination:orders_dlq\nreceipt:r\n\nx^@",
	} {
		for _, behind := range []string{
			"ACK\nid:$ack\n\n^@", "NACK\nid:$ack\n\n^@", "SUBSCRIBE\ndestination:others\nid:2\nack:client\n\n^@",
			"SEND\ndestination:others\n\nx^@", "SEND\ndestination:made\n\nx^@", "DISCONNECT\nreceipt:d\n\n^@", "NONSENSE\nreceipt:n\n\n^@",
		} {
			for _, before := range []string{"", "SEND\ndestination:orders\nreceipt:before\n\nbefore^@"} {
				t.Run(fmt.Sprintf("%s %v %.24q", name, before != "", behind), func(t *testing.T) {
					inBubble(t, Options{AutoCreate: true}, func(h *house) {
						h.put("orders", "a")
						h.put("others", "b")
						p := h.connect("1.2")
						p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client-individual\n\n^@")
						m := p.expect("MESSAGE")
						p.send(before + send + strings.ReplaceAll(behind, "$ack", m.header["ack"]))
						want := int64(1)
						if before != "" {
							p.expect("RECEIPT", "receipt-id:before")
							want = 2
						}
						f := p.frame()
						if f.command == "MESSAGE" { // of what was sent before
							f = p.frame()
						}
						if f.command != "ERROR" || f.header["receipt-id"] != "r" {
							t.Errorf("answered %v", f)
						}
						p.closed()
						if main, _ := h.stats("orders"); main.InFlight+main.Visible != want || main.InFlight < 1 {
							t.Errorf("orders has %+v", main)
						}
						if main, _ := h.stats("others"); main.Visible != 1 || main.InFlight != 0 {
							t.Errorf("others has %+v", main)
						}
						if all := h.names(); !slices.Equal(all, []string{"orders", "others"}) {
							t.Errorf("there are the queues %q", all)
						}
						h.works()
					}, "orders", "others")
				})
			}
		}
	}
}

// Of 10,000 SENDs without a receipt each that came completely is stored, in
// their order, whichever way the client leaves behind the last.
func TestManySendsThenTheEnd(t *testing.T) {
	t.Parallel()
	const n = 10_000
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "SEND\ndestination:orders\n\n%d\x00", i)
	}
	for name, leave := range map[string]func(*peer){
		"FIN":          func(p *peer) { p.net.Close() },
		"half a close": func(p *peer) { p.net.(*net.TCPConn).CloseWrite() },
		"half a frame": func(p *peer) { p.send("SEND\ndestination:orders\n\nhalf"); p.net.Close() },
		"a breach": func(p *peer) {
			p.send("SEND\nno colon\n\n^@SEND\ndestination:orders\n\nx^@")
			p.fails(queue.InvalidFrame)
		},
		"a wrong frame": func(p *peer) {
			p.send("BEGIN\n\n^@SEND\ndestination:orders\n\nx^@")
			p.fails(queue.InvalidFrame)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, Options{}, "orders")
			p := h.connect("1.2")
			if _, err := io.WriteString(p.net, all.String()); err != nil {
				t.Fatal(err)
			}
			leave(p)
			h.visible("orders", n)
			next := 0
			for got := h.get("orders"); len(got) > 0; got = h.get("orders") {
				for _, m := range got {
					if string(m.Body) != fmt.Sprint(next) {
						t.Fatalf("message %d is %q", next, m.Body)
					}
					next++
				}
			}
			if next != n {
				t.Errorf("%d are stored", next)
			}
		})
	}
}

// What SENDs were gathered in is given back when the session is idle.
func TestGatheredIsGivenBack(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		p.send(strings.Repeat("SEND\ndestination:orders\n\nx^@", 2*gatherMost))
		time.Sleep(idleTime + time.Second)
		synctest.Wait()
		c := h.one()
		if n := cap(c.sends.messages) + cap(c.sends.answers); n != 0 {
			t.Errorf("an idle session holds room for %d SENDs", n)
		}
		p.send("SEND\ndestination:orders\nreceipt:r\n\nx^@")
		p.expect("RECEIPT", "receipt-id:r")
	}, "orders")
}
