package stomp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// batch publishes by one request.
func (h *house) batch(name string, messages ...service.PutMessage) {
	h.t.Helper()
	if _, err := h.service.PutMessages(context.Background(), service.PutMessagesRequest{QueueRef: name, Messages: messages}); err != nil {
		h.t.Fatal(err)
	}
}

// large publishes n bodies of so many octets.
func (h *house) large(name string, n, octets int) {
	h.t.Helper()
	for range n {
		h.put(name, strings.Repeat("x", octets))
	}
}

// one is the only session there is.
func (h *house) one() *conn {
	h.t.Helper()
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for c := range h.server.conns {
		return c
	}
	h.t.Fatal("no session")
	return nil
}

func (h *house) sessions() int {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return len(h.server.conns)
}

func (c *conn) unsent() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.unsent
}

// A peer that does not read is not leased to beyond about 1 MiB, others are
// served meanwhile, and it goes on where it stopped.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		for i := range 50 {
			p.send(fmt.Sprintf("SUBSCRIBE\ndestination:orders\nid:%d\nack:client\nprefetch-count:100\n\n^@", i))
		}
		synctest.Wait()
		h.large("orders", 60, 100<<10)
		synctest.Wait()
		c := h.one()
		if n := c.unsent(); n < 1<<20 || n > 2<<20 {
			t.Errorf("%d octets are unsent", n)
		}
		if main, _ := h.stats("orders"); main.InFlight > 20 {
			t.Errorf("leased to it: %+v", main)
		}
		h.works()
		for range 60 {
			if f := p.expect("MESSAGE", "delivery-count:1"); len(f.body) != 100<<10 {
				t.Fatal(len(f.body))
			}
		}
	}, "orders")
}

// What a subscription gives back when it ends is room for the others.
func TestUnsubscribeMakesRoom(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\nprefetch-count:100\n\n^@")
		h.large("orders", 1, 100<<10)
		synctest.Wait() // the writer is at it, and comes no further
		h.large("orders", 40, 100<<10)
		synctest.Wait()
		p.send("SUBSCRIBE\ndestination:others\nid:2\nack:client\n\n^@")
		synctest.Wait()
		h.put("others", "x")
		synctest.Wait()
		p.send("UNSUBSCRIBE\nid:1\nreceipt:u\n\n^@")
		for receipt, message := false, false; !receipt || !message; {
			switch f := p.frame(); {
			case f.command == "RECEIPT":
				receipt = true
			case f.header["subscription"] == "2":
				message = true
			case receipt:
				t.Fatal("a MESSAGE behind the RECEIPT of UNSUBSCRIBE")
			}
		}
		p.silent()
		if main, _ := h.stats("orders"); main.Visible < 25 {
			t.Errorf("%+v", main)
		}
		h.works()
	}, "orders", "others")
}

// A rate holds up what is asked of the queue, not the writing: beats and
// receipts flow.
func TestRateDoesNotStopTheWriter(t *testing.T) {
	t.Parallel()
	l := limits.Unthrottled()
	l.RequestsPerSecond = 1
	inBubbleWith(t, Options{}, &l, func(h *house) {
		p := h.connect("1.2", "heart-beat:0,1000")
		for i := range 10 {
			p.send(fmt.Sprintf("SUBSCRIBE\ndestination:orders\nid:%d\nprefetch-count:1\n\n^@", i))
		}
		synctest.Wait()
		var messages []service.PutMessage
		for range 20 {
			messages = append(messages, service.PutMessage{Content: []byte("x")})
		}
		h.batch("orders", messages...)
		b := make([]byte, 64<<10)
		for began := time.Now(); time.Since(began) < 25*time.Second; {
			p.net.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := p.net.Read(b); err != nil {
				t.Fatalf("no octet for a second after %v: %v", time.Since(began), err)
			}
		}
		if main, _ := h.stats("orders"); !main.Empty() {
			t.Errorf("left: %+v", main)
		}
		h.works()
	}, "orders")
}

// Receipts for a peer that does not read them are bounded too: at some point
// nothing more is read from it.
func TestReceiptsNobodyReads(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		synctest.Wait()
		c := h.one()
		frame := []byte("SEND\ndestination:orders\nreceipt:" + strings.Repeat("\\\\", 1000) + "\n\nx\x00")
		p.net.SetWriteDeadline(time.Now().Add(20 * time.Second))
		var most int64
		for range 10_000 {
			if _, err := p.net.Write(frame); err != nil {
				break
			}
			most = max(most, c.unsent())
		}
		if most > 4<<20 {
			t.Errorf("%d octets of receipts wait", most)
		}
		h.works()
		time.Sleep(15 * time.Second) // the writer gives up
		synctest.Wait()
		if _, err := p.net.Write(frame); err == nil {
			t.Error("still open")
		}
	}, "orders")
}

// What waits for its answer counts with all its headers.
func TestUnansweredHeaders(t *testing.T) {
	t.Parallel()
	var l line
	f := frame.Frame{Command: frame.Send, Headers: []frame.Header{{Name: "receipt", Value: "r"}, {Name: "k", Value: strings.Repeat("x", 4096)}}}
	l.add(&f, 10)
	if l.bytes < 4096 {
		t.Errorf("%d octets", l.bytes)
	}
	l.pop()
	if l.bytes != 0 {
		t.Errorf("%d octets are left", l.bytes)
	}
}

// A peer that reads slowly is served at its pace, if only something moves.
func TestSlowButHonestReader(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2", "heart-beat:0,5000")
		h.large("orders", 1, 200<<10)
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\nvisibility:3600\n\n^@")
		b, got := make([]byte, 1<<10), 0
		for got < 200<<10 {
			time.Sleep(time.Second)
			p.net.SetReadDeadline(time.Time{})
			n, err := p.net.Read(b)
			if err != nil {
				t.Fatalf("after %d octets: %v", got, err)
			}
			got += n
		}
		h.works()
	}, "orders")
}

// What has lapsed frees the window wherever it stands in it.
func TestLapseBehindALongerOne(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		long, short := int32(3600), int32(2)
		h.batch("orders", service.PutMessage{Content: []byte("a"), VisibilityInSeconds: &long},
			service.PutMessage{Content: []byte("b"), VisibilityInSeconds: &short})
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client-individual\nprefetch-count:2\n\n^@")
		p.expect("MESSAGE")
		p.expect("MESSAGE")
		time.Sleep(3 * time.Second)
		if f := p.expect("MESSAGE", "delivery-count:2"); f.body != "b" {
			t.Errorf("%q", f.body)
		}
		h.works()
	}, "orders")
}

// A subscription to which a message comes again is not refused a cumulative
// ACK for the first time.
func TestCumulativeBehindARedelivery(t *testing.T) {
	t.Parallel()
	for _, prefetch := range []string{"2", "20"} {
		inBubble(t, Options{}, func(h *house) {
			p := h.connect("1.2")
			p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\nvisibility:10\nprefetch-count:" + prefetch + "\n\n^@")
			h.put("orders", "a")
			p.expect("MESSAGE")
			time.Sleep(5 * time.Second)
			h.put("orders", "b")
			b := p.expect("MESSAGE")
			time.Sleep(6 * time.Second)
			again := p.expect("MESSAGE", "delivery-count:2")
			p.send("ACK\nid:" + b.header["ack"] + "\nreceipt:b\n\n^@")
			p.expect("RECEIPT", "receipt-id:b")
			if main, _ := h.stats("orders"); main.InFlight != 1 || main.Visible != 0 {
				t.Errorf("%+v", main)
			}
			p.send("ACK\nid:" + again.header["ack"] + "\nreceipt:a\n\n^@")
			p.expect("RECEIPT", "receipt-id:a")
			if main, _ := h.stats("orders"); !main.Empty() {
				t.Errorf("%+v", main)
			}
			h.works()
		}, "orders")
	}
}

// A fault of ours in one session ends that one, with all that belongs to it.
func TestPanic(t *testing.T) {
	t.Parallel()
	o := Options{Observe: func(string, string, queue.Code, float64) { panic("a fault of ours") }}
	inBubble(t, o, func(h *house) {
		p := h.connect("1.2")
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\n\n^@")
		h.put("orders", "a")
		p.expect("MESSAGE")
		p.send("NONSENSE\n\n^@")
		if _, err := p.next(patient); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Error(err)
		}
		synctest.Wait()
		if left := h.sessions(); left != 0 || strings.Count(h.log.String(), "level=ERROR msg=panic") != 1 {
			t.Errorf("sessions are left, or no word: %d; %s", left, h.log)
		}
		h.put("orders", "b")
		synctest.Wait()
		if main, _ := h.stats("orders"); main.Visible != 1 {
			t.Errorf("it still takes messages: %+v", main)
		}
		h.works()
	}, "orders")
}

var _ net.Conn = (*end)(nil)
