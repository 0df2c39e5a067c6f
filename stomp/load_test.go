package stomp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// Everything that is received completely is stored, however the client leaves
// (STOMP reference, 8#12).
func TestSendsAndClose(t *testing.T) {
	t.Parallel()
	sends := func(h *house, receipt string) {
		p := h.connect("1.2")
		var all bytes.Buffer
		for i := range 10_000 {
			fmt.Fprintf(&all, "SEND\ndestination:orders\n%s\n%d\x00", receipt, i)
		}
		if _, err := p.net.Write(all.Bytes()); err != nil {
			t.Fatal(err)
		}
		p.net.Close()
		h.visible("orders", 10_000)
		h.works()
	}
	sends(open(t, Options{}, "orders"), "")
	// With receipts that cannot be written any more. Over a real socket the
	// client's own kernel throws away what it has not sent yet.
	inBubble(t, Options{}, func(h *house) {
		sends(h, "receipt:r\n")
	}, "orders")
}

// visible waits until so many messages are visible.
func (h *house) visible(name string, n int64) {
	h.t.Helper()
	var main queue.Stats
	for range 2000 {
		if main, _ = h.stats(name); int64(main.Visible) == n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	h.t.Fatalf("%+v, want %d visible", main, n)
}

// Answers leave in the order of the frames, those of the core among those that
// need no core, over several queues; each frame has exactly one.
func TestOrderOfReceipts(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "a", "b", "c")
	p := h.connect("1.2")
	var all strings.Builder
	const n = 2000
	for i := range n {
		queue := []string{"a", "b", "c"}[i%3]
		switch i % 7 {
		case 3:
			fmt.Fprintf(&all, "SUBSCRIBE\ndestination:%s\nid:s\nack:client\nreceipt:%d\n\n\x00", queue, i)
		case 4:
			fmt.Fprintf(&all, "UNSUBSCRIBE\nid:s\nreceipt:%d\n\n\x00", i)
		default:
			fmt.Fprintf(&all, "SEND\ndestination:%s\nreceipt:%d\n\nx\x00", queue, i)
		}
	}
	go io.WriteString(p.net, all.String())
	for i := 0; i < n; {
		f := p.frame()
		if f.command == "MESSAGE" {
			continue
		}
		if f.command != "RECEIPT" || f.header["receipt-id"] != fmt.Sprint(i) {
			t.Fatalf("at %d: %v", i, f)
		}
		i++
	}
	h.works()
}

// Cut in two at any octet, the same octets are the same messages (FC-09).
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	const session = "CONNECT\naccept-version:1.2\n\n\x00" +
		"SEND\ndestination:orders\ncontent-length:9\n\nab\x00cd\x00ef\x00\x00\n\r\n\n\nSEND\r\ndestination:orders\r\n\r\nplain\x00" +
		"SEND\ndestination:orders\ncontent-length:0\nreceipt:r\\c1\n\n\x00\n"
	want := "ab\x00cd\x00ef\x00|plain||"
	inBubble(t, Options{}, func(h *house) {
		for at := range len(session) {
			p := h.dial()
			p.send(session[:at])
			synctest.Wait()
			p.send(session[at:])
			p.expect("CONNECTED")
			p.expect("RECEIPT", "receipt-id:r\\c1")
			got := ""
			for _, m := range h.get("orders") {
				got += string(m.Body) + "|"
			}
			if got != want {
				t.Fatalf("cut at %d: %q", at, got)
			}
			p.net.Close()
		}
		h.works()
	}, "orders")
}

// Octets in, the same octets out, in both directions (FC-19).
func TestOctets(t *testing.T) {
	t.Parallel()
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	bodies := []string{string(all), "\r\n\r\n", "&quot; <tag> \\c \\n \\\\", "\xed\xa0\x80", "\ufffe", "😀", "\xff\xfe\x00", "שלום", ""}
	for _, version := range []string{"1.0", "1.1", "1.2"} {
		h := open(t, Options{}, "in", "out")
		p := h.connect(version)
		for _, body := range bodies {
			p.send(fmt.Sprintf("SEND\ndestination:in\nreceipt:%x\ncontent-length:%d\n\n", body, len(body)))
			if _, err := io.WriteString(p.net, body+"\x00"); err != nil {
				t.Fatal(err)
			}
			p.expect("RECEIPT")
			if got := h.get("in"); len(got) != 1 || string(got[0].Body) != body {
				t.Errorf("%s: sent %q, got %v", version, body, got)
			}
			h.put("out", body)
		}
		p.send("SUBSCRIBE\ndestination:out\nid:1\n\n^@")
		for _, body := range bodies {
			if f := p.expect("MESSAGE"); f.body != body || f.header["content-length"] != fmt.Sprint(len(body)) {
				t.Errorf("%s: put %q, got %q", version, body, f.body)
			}
		}
		h.works()
	}
}

// A writer that gets nowhere for 30 s ends the session: what was sent stays
// hidden, what was not written goes back and is not counted.
func TestWriterGivesUp(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		h.large("orders", 20, 30<<10)
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\nvisibility:3600\nprefetch-count:20\n\n^@")
		time.Sleep(29 * time.Second)
		if main, _ := h.stats("orders"); main.Visible != 0 {
			t.Errorf("%+v", main)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		main, _ := h.stats("orders")
		if main.InFlight < 2 || main.InFlight > 3 { // 64 KiB of them are on the way
			t.Errorf("%+v", main)
		}
		n := 0
		for got := h.get("orders"); len(got) > 0; got = h.get("orders") {
			for _, m := range got {
				if n++; m.DeliveryCount != 1 {
					t.Errorf("counted: %+v", m.DeliveryCount)
				}
			}
		}
		if n != 20-int(main.InFlight) {
			t.Errorf("%d came back, %+v", n, main)
		}
		h.works()
	}, "orders")
}

// In mode auto what has been written is gone then, what has not is there, and
// what was cut in its midst comes again by itself.
func TestWriterGivesUpAuto(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		h.large("orders", 20, 30<<10)
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nvisibility:60\nprefetch-count:20\n\n^@")
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if main, _ := h.stats("orders"); main.Visible != 17 || main.InFlight != 1 {
			t.Errorf("%+v", main)
		}
		time.Sleep(time.Minute)
		if main, _ := h.stats("orders"); main.Visible != 18 {
			t.Errorf("%+v", main)
		}
		h.works()
	}, "orders")
}

// stomp-bytes-per-second slows the reading down: no time-out and no heart-beat
// ends the session, and our beats go on.
func TestBytesPerSecond(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{BytesPerSecond: 64 << 10}, func(h *house) {
		p := h.connect("1.2", "heart-beat:1000,1000")
		began := time.Now()
		written := make(chan error, 1)
		go func() {
			body := strings.Repeat("x", 200<<10)
			for range 40 { // 8 MB
				if _, err := fmt.Fprintf(p.net, "SEND\ndestination:orders\ncontent-length:%d\n\n%s\x00", len(body), body); err != nil {
					written <- err
					return
				}
			}
			_, err := io.WriteString(p.net, "SEND\ndestination:orders\nreceipt:r\n\nx\x00")
			written <- err
		}()
		last, beats := time.Now(), 0
		for b := make([]byte, 1024); ; {
			p.net.SetReadDeadline(time.Now().Add(time.Minute))
			n, err := p.net.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if time.Since(last) > time.Second {
				t.Errorf("no beat for %v", time.Since(last))
			}
			last = time.Now()
			if n > 1 {
				if !bytes.HasPrefix(bytes.TrimLeft(b[:n], "\n"), []byte("RECEIPT")) {
					t.Errorf("%q", b[:n])
				}
				break
			}
			beats++
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 90*time.Second || took > 150*time.Second || beats < 90 {
			t.Errorf("8 MB took %v, with %d beats", took, beats)
		}
		h.works()
	}, "orders")
}

// Rates of the queue slow SEND down and never end a session.
func TestRequestsPerSecond(t *testing.T) {
	t.Parallel()
	l := limits.Unthrottled()
	l.RequestsPerSecond = 10
	inBubbleWith(t, Options{}, &l, func(h *house) {
		p := h.connect("1.1", "heart-beat:2000,1000")
		began := time.Now()
		var all strings.Builder
		for i := range 300 {
			fmt.Fprintf(&all, "SEND\ndestination:orders\nreceipt:%d\n\nx\x00", i)
		}
		p.send(all.String())
		for i := range 300 {
			p.expect("RECEIPT", "receipt-id:"+fmt.Sprint(i))
		}
		if took := time.Since(began); took < 20*time.Second || took > 40*time.Second {
			t.Errorf("300 at 10 a second took %v", took)
		}
		h.works()
	}, "orders")
}

// A full FIFO of a queue makes a hundred sessions wait; all is stored.
func TestFullFIFO(t *testing.T) {
	t.Parallel()
	l := limits.Unthrottled()
	l.PendingRequestsPerQueue = 2
	h := openWith(t, Options{}, &l, false, "orders")
	var wg sync.WaitGroup
	for range 100 {
		p := h.connect("1.2")
		wg.Go(func() {
			_, err := io.WriteString(p.net, strings.Repeat("SEND\ndestination:orders\n\nx\x00", 30)+"DISCONNECT\nreceipt:d\n\n\x00")
			if err != nil {
				t.Error(err)
				return
			}
			if f, err := p.next(30 * time.Second); err != nil || f.command != "RECEIPT" {
				t.Error(f, err)
			}
		})
	}
	wg.Wait()
	h.visible("orders", 3000)
	h.works()
}

// Shutdown answers what has been read, then says that it ends, also where a
// rate holds frames up; and it waits no longer than it may.
func TestShutdown(t *testing.T) {
	t.Parallel()
	l := limits.Unthrottled()
	l.RequestsPerSecond = 1
	inBubbleWith(t, Options{}, &l, func(h *house) {
		p := h.connect("1.2")
		p.send(strings.Repeat("SEND\ndestination:orders\n\nx^@", 100))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		h.server.Close()
		if main, _ := h.stats("orders"); main.Visible > 10 {
			t.Errorf("%+v", main)
		}
	}, "orders")
	inBubble(t, Options{}, func(h *house) {
		p := h.connect("1.2")
		for i := range 100 {
			p.send(fmt.Sprintf("SEND\ndestination:orders\nreceipt:%d\n\nx^@", i))
		}
		synctest.Wait()
		if err := h.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		for i := range 100 {
			p.expect("RECEIPT", "receipt-id:"+fmt.Sprint(i))
		}
		p.fails(queue.ServiceUnavailable)
	}, "orders")
}

// Two hundred subscriptions whose clients are gone take nothing (FC-05).
func TestDeadSubscribers(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		var gone []*peer
		for range 200 {
			p := h.connect("1.2")
			p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\nvisibility:600\nreceipt:r\n\n^@")
			p.expect("RECEIPT")
			gone = append(gone, p)
		}
		for _, p := range gone {
			p.net.Close()
		}
		synctest.Wait()
		if n := h.broker.Snapshot().Waiters; n != 0 {
			t.Errorf("%d wait", n)
		}
		h.put("orders", "door 12 open")
		if got := h.get("orders"); len(got) != 1 || got[0].DeliveryCount != 1 {
			t.Errorf("%+v", got)
		}
		h.works()
	}, "orders")
}

// Clients of all kinds at once, some of which leave in the midst of it: what
// was sent and acknowledged is gone, all else is there (histories, small).
func TestManySessions(t *testing.T) {
	t.Parallel()
	h := open(t, Options{})
	never := int32(0)
	h.queue("orders", func(r *service.CreateQueueRequest) { r.DeadLetterQueueDeliveryCount = &never })
	const each = 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]bool{}
	for i := range 8 {
		p := h.connect([]string{"1.0", "1.1", "1.2"}[i%3])
		wg.Go(func() {
			for j := range each {
				fmt.Fprintf(p.net, "SEND\ndestination:orders\n\n%d-%d\x00", i, j)
			}
			fmt.Fprintf(p.net, "DISCONNECT\nreceipt:d\n\n\x00")
			if f, err := p.next(patient); err != nil || f.command != "RECEIPT" {
				t.Error(f, err)
			}
		})
	}
	for i := range 8 {
		wg.Go(func() {
			for left := 100; left > 0; {
				p := h.connect("1.2")
				fmt.Fprint(p.net, "SUBSCRIBE\ndestination:orders\nid:1\nack:client-individual\nrelease-on-close:true\n\n\x00")
				for until := 1 + rand.IntN(30); until > 0 && left > 0; { // then it leaves without a word
					f, err := p.next(patient)
					if err != nil {
						t.Error("nothing comes", i, err)
						return
					}
					if f.command == "MESSAGE" {
						fmt.Fprintf(p.net, "ACK\nid:%s\nreceipt:%s\n\n\x00", f.header["ack"], f.body)
						continue
					}
					until, left = until-1, left-1
					mu.Lock()
					if body := f.header["receipt-id"]; f.command != "RECEIPT" || acked[body] {
						t.Error("twice, or", f)
					} else {
						acked[body] = true
					}
					mu.Unlock()
				}
				p.net.Close()
			}
		})
	}
	wg.Wait()
	// An ACK may have been done whose RECEIPT nobody has read.
	left := map[string]bool{}
	for len(left)+len(acked) < 8*each {
		got := h.get("orders")
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			if body := string(m.Body); left[body] || acked[body] {
				t.Error("there is", body, "again")
			} else {
				left[body] = true
			}
		}
	}
	h.works()
}

// What the version of a connection cannot say as a header is named, and so are
// properties that bear a name of ours.
func TestOmittedProperties(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	for version, want := range map[string]string{"1.0": "content-type,destination,x-cr,x-lf", "1.1": "content-type,destination,x-cr", "1.2": "destination"} {
		h.batch("orders", service.PutMessage{Content: []byte("x"), ContentType: "a\r\nb", Properties: []queue.Property{
			{Name: "destination", Value: "forged"}, {Name: "x-cr", Value: "a\rb"}, {Name: "x-lf", Value: "a\nb"}, {Name: "delay", Value: "5"}, {Name: "x-ok", Value: "v:w"},
		}})
		p := h.connect(version)
		p.send("SUBSCRIBE\ndestination:orders\nid:1\n\n^@")
		m := p.expect("MESSAGE", "omitted-properties:"+want, "destination:orders", "delay:5")
		if version == "1.2" && (m.header["x-cr"] != `a\rb` || m.header["x-lf"] != `a\nb` || m.header["content-type"] != `a\r\nb` || m.header["x-ok"] != `v\cw`) {
			t.Errorf("%v", m.header)
		}
		p.send("DISCONNECT\nreceipt:d\n\n^@")
		p.expect("RECEIPT")
		p.closed()
	}
	h.works()
}

// A full disk refuses SEND by name and nothing else: what is there is delivered
// as far as leases have room, settled, and all goes on when there is room again
// (FC-15).
func TestFullDisk(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		h.put("orders", "a")
		p := h.connect("1.2")
		p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client\n\n^@")
		a := p.expect("MESSAGE")
		h.disk.SetFree(0)
		time.Sleep(time.Second)
		other := h.connect("1.2")
		other.send("SEND\ndestination:orders\nreceipt:r\n\nx^@")
		other.fails(queue.InsufficientStorage, "receipt-id:r")
		p.send("ACK\nid:" + a.header["ack"] + "\nreceipt:a\n\n^@")
		p.expect("RECEIPT", "receipt-id:a")
		time.Sleep(time.Minute)
		p.silent()
		h.disk.SetFree(1 << 40)
		time.Sleep(time.Second)
		other = h.connect("1.2")
		other.send("SEND\ndestination:orders\nreceipt:r\n\nx^@")
		other.expect("RECEIPT", "receipt-id:r")
		if f := p.expect("MESSAGE", "delivery-count:1"); f.body != "x" {
			t.Errorf("%q", f.body)
		}
		h.works()
	}, "orders")
}
