package stomp

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/store/testdisk"
)

// A peer that begins transactions and never ends them costs what the setting
// says, whatever it puts into them.
func TestOpenTransactionsAreBounded(t *testing.T) {
	const connections, most = 24, 1 << 20
	for name, send := range map[string]string{
		"small":      "SEND\ndestination:orders\ntransaction:$t\n\nx\x00",
		"large":      "SEND\ndestination:orders\ntransaction:$t\n\n" + strings.Repeat("x", 50_000) + "\x00",
		"properties": "SEND\ndestination:orders/c\ntransaction:$t\n" + strings.Repeat("k:v\n", 1) + manyHeaders(60) + "\nx\x00",
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, Options{TransactionBytes: most}, "orders")
			heap := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			var peers []*peer
			for range connections {
				p := h.connect("1.2")
				p.send("SEND\ndestination:orders\nreceipt:warm\n\nx^@")
				p.expect("RECEIPT")
				peers = append(peers, p)
			}
			before := heap()
			var full int64
			number := 0
			taken := func(p *peer) int64 { // when all that p has sent is taken in
				number++
				p.send(fmt.Sprintf("SEND\ndestination:orders\nreceipt:%d\n\nx^@", number))
				p.expect("RECEIPT")
				return h.held()
			}
			for _, p := range peers {
				for n := range openTransactions {
					p.send(fmt.Sprintf("BEGIN\ntransaction:%d\n\n^@", n))
				}
				begun := taken(p)
				p.send(strings.ReplaceAll(send, "$t", "0"))
				one := taken(p) - begun
				for n, room := 1, most-(begun+one-full); room >= one; room -= one {
					p.send(strings.ReplaceAll(send, "$t", fmt.Sprint(n/1000)))
					n++
				}
				full = taken(p)
			}
			if full < connections*most*9/10 {
				t.Fatalf("they hold %d octets", full)
			}
			if grown := int64(heap() - before); grown > full*5/4 {
				t.Errorf("%d octets are held, and %d are in use", full, grown)
			}
			for _, p := range peers {
				p.send("SEND\ndestination:orders\ntransaction:15\nreceipt:r\n\n" + strings.Repeat("x", 60_000) + "^@")
				p.fails(queue.LimitExceeded, "receipt-id:r")
			}
		})
	}
}

func manyHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d:%d\n", i, i)
	}
	return b.String()
}

// held is what all sessions count for open transactions. Their readers must be
// at rest: each has answered what it was sent.
func (h *house) held() (octets int64) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for c := range h.server.conns {
		c.mu.Lock() // orders what the reader did before it answered
		octets += c.octets
		c.mu.Unlock()
	}
	return octets
}

// What ends leaves nothing behind.
func TestEndedTransactionsAreForgotten(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		p.send("SUBSCRIBE\nid:1\ndestination:orders\nack:client\nvisibility:600\n\n^@")
		for i := range 100 {
			h.put("orders", "x")
			m := p.expect("MESSAGE")
			end := "COMMIT"
			if i%2 == 0 {
				end = "ABORT"
			}
			p.send(fmt.Sprintf("BEGIN\ntransaction:t%d\n\n^@SEND\ndestination:others\ntransaction:t%[1]d\n\nx^@ACK\nid:%[2]s\ntransaction:t%[1]d\n\n^@%[3]s\ntransaction:t%[1]d\nreceipt:r%[1]d\n\n^@",
				i, m.header["ack"], end))
			p.expect("RECEIPT", fmt.Sprintf("receipt-id:r%d", i))
			if end == "ABORT" {
				p.send(fmt.Sprintf("ACK\nid:%s\nreceipt:a%d\n\n^@", m.header["ack"], i))
				p.expect("RECEIPT")
			}
		}
		synctest.Wait()
		c := h.one()
		if len(c.open)+len(c.taken)+len(c.sent)+len(c.settling) > 0 || c.octets != 0 {
			t.Errorf("left: %v %v %v %v %d", c.open, c.taken, c.sent, c.settling, c.octets)
		}
		if main, _ := h.stats("orders"); !main.Empty() {
			t.Errorf("left: %+v", main)
		}
		if main, _ := h.stats("others"); main.Visible != 50 {
			t.Errorf("%+v", main)
		}
	}, "orders", "others")
}

// The RECEIPT of a COMMIT comes when the disk has it, and those of its SENDs
// before; the server may stop meanwhile.
func TestCommitIsAnsweredWhenItIsDurable(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		p.send("BEGIN\ntransaction:t\nreceipt:1\n\n^@")
		p.expect("RECEIPT", "receipt-id:1")
		slow := func(s testdisk.Step) {
			if s.Sync && strings.HasSuffix(s.Path, ".log") {
				time.Sleep(5 * time.Second)
			}
		}
		h.before.Store(&slow)
		began := time.Now()
		p.send("SEND\ndestination:orders\ntransaction:t\nreceipt:2\n\nx^@")
		p.expect("RECEIPT", "receipt-id:2")
		if took := time.Since(began); took != 0 {
			t.Errorf("a SEND that is taken in waits %v", took)
		}
		p.send("COMMIT\ntransaction:t\nreceipt:3\n\n^@")
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- h.server.Shutdown(context.Background()) }()
		p.expect("RECEIPT", "receipt-id:3")
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("COMMIT is answered after %v", took)
		}
		p.fails(queue.ServiceUnavailable)
		p.closed()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		h.before.Store(nil)
		if main, _ := h.stats("orders"); main.Visible != 1 {
			t.Errorf("%+v", main)
		}
	}, "orders")
}

// Each frame is one request of its API, counted when it comes, and so is COMMIT.
func TestTransactionsAreCounted(t *testing.T) {
	t.Parallel()
	l := limits.Unthrottled()
	l.BytesPerQueue = 100
	h := openWith(t, Options{}, &l, false, "orders")
	var mu sync.Mutex
	counts := make(map[string]int)
	observe := func(_, operation string, code queue.Code, _ float64) {
		mu.Lock()
		defer mu.Unlock()
		counts[strings.TrimSpace(operation+" "+string(code))]++
	}
	srv := New(service.New(h.broker, service.Options{Limits: &l, Observe: observe}), Options{Observe: observe})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	h.addr, h.wire = ln.Addr().String(), func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p := h.connect("1.2")
	h.put("orders", "x")
	p.send("SUBSCRIBE\nid:1\ndestination:orders\nack:client-individual\n\n^@")
	m := p.expect("MESSAGE")
	p.send("BEGIN\ntransaction:t\n\n^@SEND\ndestination:orders\ntransaction:t\n\nx^@ACK\nid:" + m.header["ack"] +
		"\ntransaction:t\n\n^@COMMIT\ntransaction:t\nreceipt:r\n\n^@")
	p.expect("RECEIPT")
	p.send("BEGIN\ntransaction:t\n\n^@SEND\ndestination:orders\ntransaction:t\n\n" + strings.Repeat("x", 101) + "^@COMMIT\ntransaction:t\nreceipt:s\n\n^@")
	for f := p.frame(); f.command != "ERROR"; f = p.frame() {
	}
	p = h.connect("1.2")
	p.send("BEGIN\ntransaction:t\n\n^@SEND\ndestination:none\ntransaction:t\n\nx^@")
	p.fails(queue.NotAuthorizedOrNotFound)
	p = h.connect("1.2")
	p.send("COMMIT\ntransaction:t\n\n^@")
	p.fails(queue.InvalidFrame)
	srv.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for what, want := range map[string]int{
		"PutMessages": 2, "DeleteMessage": 1, "Commit": 1, "Commit LimitExceeded": 1,
		"PutMessages NotAuthorizedOrNotFound": 1, "COMMIT InvalidFrame": 1, "SEND NotAuthorizedOrNotFound": 0,
	} {
		if counts[what] != want {
			t.Errorf("%s: %d, want %d", what, counts[what], want)
		}
	}
}
