package stomp

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	gostomp "github.com/go-stomp/stomp/v3"
	gostompframe "github.com/go-stomp/stomp/v3/frame"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// foreign is a session of go-stomp, a client that we have not written.
func (h *house) foreign(version gostomp.Version, o ...func(*gostomp.Conn) error) *gostomp.Conn {
	h.t.Helper()
	o = append([]func(*gostomp.Conn) error{
		gostomp.ConnOpt.AcceptVersion(version), gostomp.ConnOpt.Host("/"), gostomp.ConnOpt.Login("me", "se:c\\ret"),
		gostomp.ConnOpt.HeartBeat(0, 0), gostomp.ConnOpt.Logger(silence{}), gostomp.ConnOpt.UnsubscribeReceiptTimeout(patient),
	}, o...)
	c, err := gostomp.Dial("tcp", h.addr, o...)
	if err != nil {
		h.t.Fatal(err)
	}
	if c.Version() != version {
		h.t.Fatalf("version %s, want %s", c.Version(), version)
	}
	return c
}

// silence is a logger of go-stomp.
type silence struct{}

func (silence) Debugf(string, ...any)   {}
func (silence) Infof(string, ...any)    {}
func (silence) Warningf(string, ...any) {}
func (silence) Errorf(string, ...any)   {}
func (silence) Debug(string)            {}
func (silence) Info(string)             {}
func (silence) Warning(string)          {}
func (silence) Error(string)            {}

// foreigners runs f in all versions.
func foreigners(t *testing.T, f func(t *testing.T, h *house, v gostomp.Version)) {
	t.Parallel()
	for _, v := range []gostomp.Version{gostomp.V10, gostomp.V11, gostomp.V12} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			h := open(t, Options{}, "orders")
			f(t, h, v)
			h.works()
		})
	}
}

// receive is the next message of a subscription.
func receive(t *testing.T, s *gostomp.Subscription) *gostomp.Message {
	t.Helper()
	select {
	case m := <-s.C:
		if m == nil || m.Err != nil {
			t.Fatalf("got %+v", m)
		}
		return m
	case <-time.After(patient):
		t.Fatal("no message")
	}
	return nil
}

// unsubscribe is Unsubscribe, which in v3.1.5 may miss the receipt that it
// waits for: it is woken without the lock, perhaps before it sleeps. The
// channel is closed when the receipt is there.
func unsubscribe(s *gostomp.Subscription) error {
	err := s.Unsubscribe()
	if errors.Is(err, &gostomp.ErrUnsubscribeReceiptTimeout) {
		if _, open := <-s.C; !open {
			return nil
		}
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestGoStompModes(t *testing.T) {
	for _, mode := range []gostomp.AckMode{gostomp.AckAuto, gostomp.AckClient, gostomp.AckClientIndividual} {
		t.Run(mode.String(), func(t *testing.T) {
			foreigners(t, func(t *testing.T, h *house, v gostomp.Version) {
				c := h.foreign(v)
				s, err := c.Subscribe("/queue/orders", mode, gostomp.SubscribeOpt.Header("prefetch-count", "5"))
				must(t, err)
				header := `a\b`
				if v != gostomp.V10 {
					header = "a\\b:c\nd"
				}
				body := []byte("a\x00b\r\n\xff")
				must(t, c.Send("/queue/orders", "application/octet-stream", body, gostomp.SendOpt.Receipt, gostomp.SendOpt.Header("kind", header)))
				m := receive(t, s)
				if !bytes.Equal(m.Body, body) || m.ContentType != "application/octet-stream" || m.Header.Get("kind") != header || m.Destination != "/queue/orders" {
					t.Errorf("%+v %q", m, m.Header.Get("kind"))
				}
				if mode != gostomp.AckAuto {
					must(t, c.Ack(m))
				}
				must(t, unsubscribe(s))
				must(t, c.Disconnect())
				h.drained("orders")
			})
		})
	}
}

// drained waits until a queue is empty.
func (h *house) drained(name string) {
	h.t.Helper()
	for range 500 {
		if main, dead := h.stats(name); main.Empty() && dead.Empty() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	main, dead := h.stats(name)
	h.t.Errorf("left: %+v %+v", main, dead)
}

func TestGoStompNack(t *testing.T) {
	foreigners(t, func(t *testing.T, h *house, v gostomp.Version) {
		if v == gostomp.V10 {
			return // it has none
		}
		c := h.foreign(v)
		s, err := c.Subscribe("orders", gostomp.AckClientIndividual)
		must(t, err)
		must(t, c.Send("orders", "", []byte("x")))
		first := receive(t, s)
		must(t, c.Nack(first))
		second := receive(t, s)
		if second.Header.Get("redelivered") != "true" || second.Header.Get("delivery-count") != "2" {
			t.Errorf("%v", second.Header)
		}
		must(t, c.Ack(second))
		must(t, c.Disconnect())
		h.drained("orders")
	})
}

func TestGoStompErrors(t *testing.T) {
	foreigners(t, func(t *testing.T, h *house, v gostomp.Version) {
		c := h.foreign(v)
		err := c.Send("nowhere", "text/plain", []byte("x"), gostomp.SendOpt.Receipt)
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("SEND to no queue: %v", err)
		}
		c = h.foreign(v)
		s, err := c.Subscribe("/topic/x", gostomp.AckAuto)
		must(t, err)
		if m := <-s.C; m == nil || m.Err == nil || !strings.Contains(m.Err.Error(), "/queue/") {
			t.Errorf("SUBSCRIBE to a topic: %+v", m)
		}
		if main, _ := h.stats("orders"); !main.Empty() {
			t.Errorf("%+v", main)
		}
	})
}

func TestGoStompTransactions(t *testing.T) {
	foreigners(t, func(t *testing.T, h *house, v gostomp.Version) {
		h.queue("results", nil)
		c := h.foreign(v)
		work, err := c.Subscribe("orders", gostomp.AckClient)
		must(t, err)
		h.put("orders", "a", "b")
		first, second := receive(t, work), receive(t, work)

		tx := c.Begin()
		must(t, tx.Ack(first))
		must(t, tx.Send("results", "text/plain", []byte("dropped"), gostomp.SendOpt.Receipt))
		must(t, tx.Abort())

		tx, other := c.Begin(), c.Begin()
		must(t, other.Send("results", "", []byte("two"), gostomp.SendOpt.Header("n", "2")))
		must(t, tx.Ack(second))
		must(t, tx.Send("results", "text/plain", []byte("one"), gostomp.SendOpt.Header("n", "1"), gostomp.SendOpt.Receipt))
		if main, _ := h.stats("results"); !main.Empty() {
			t.Errorf("before COMMIT: %+v", main)
		}
		must(t, tx.Commit())
		must(t, other.Commit())

		results, err := c.Subscribe("results", gostomp.AckClientIndividual)
		must(t, err)
		for _, want := range []string{"one", "two"} {
			m := receive(t, results)
			if string(m.Body) != want || m.Header.Get("n") == "" || m.Header.Get("transaction") != "" {
				t.Errorf("got %q %v, want %q", m.Body, m.Header, want)
			}
			tx := c.Begin()
			must(t, tx.Ack(m))
			must(t, tx.Commit())
		}
		if v != gostomp.V10 {
			must(t, c.Send("results", "", []byte("again")))
			tx := c.Begin()
			must(t, tx.Nack(receive(t, results)))
			must(t, tx.Commit())
			m := receive(t, results)
			if m.Header.Get("delivery-count") != "2" {
				t.Errorf("after NACK: %v", m.Header)
			}
			must(t, c.Ack(m))
		}
		must(t, c.Disconnect())
		h.drained("orders")
		h.drained("results")
	})
}

func TestGoStompBeats(t *testing.T) {
	t.Parallel()
	for _, v := range []gostomp.Version{gostomp.V11, gostomp.V12} {
		inBubble(t, Options{}, func(h *house) {
			c, err := gostomp.Connect(h.wire(), gostomp.ConnOpt.AcceptVersion(v), gostomp.ConnOpt.HeartBeat(10*time.Second, 10*time.Second),
				gostomp.ConnOpt.HeartBeatError(time.Second), gostomp.ConnOpt.Logger(silence{}))
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Subscribe("orders", gostomp.AckClientIndividual)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			h.put("orders", "x")
			m := <-s.C
			if m.Err != nil || string(m.Body) != "x" {
				t.Fatalf("%+v", m)
			}
			if err := c.Ack(m); err != nil {
				t.Fatal(err)
			}
			if err := c.Disconnect(); err != nil {
				t.Fatal(err)
			}
			h.works()
		}, "orders")
	}
}

// Our frames read by its reader.
func TestGoStompReader(t *testing.T) {
	t.Parallel()
	headers := [][2]string{{"plain", "v"}, {"empty", ""}, {"colon", "a:b"}, {"slash", `a\b\n\c\\`}, {"blank", " x "}, {"utf8", "é€😀"}, {"lf", "a\nb"}, {"cr", "a\rb"}}
	for _, v := range []frame.Version{frame.V10, frame.V11, frame.V12} {
		for _, body := range []string{"", "x", "a\x00b\x00", "\n", strings.Repeat("y", 70_000)} {
			var b []byte
			want := map[string]string{}
			b = frame.AppendCommand(b, frame.Message)
			for _, h := range headers {
				var ok bool
				if b, ok = frame.AppendHeader(b, v, h[0], h[1]); ok {
					want[h[0]] = h[1]
				}
			}
			b = frame.AppendContentLength(b, len(body))
			b = frame.AppendBody(b, []byte(body))
			b = append(b, b...)
			r := gostompframe.NewReader(bytes.NewReader(b))
			for range 2 {
				f, err := r.Read()
				for f == nil && err == nil { // line ends
					f, err = r.Read()
				}
				if err != nil || f.Command != "MESSAGE" || string(f.Body) != body {
					t.Fatalf("%s: %v %v", v, f, err)
				}
				for name, value := range want {
					got := f.Header.Get(name)
					if v == frame.V10 && strings.Contains(value, `\`) {
						continue // it decodes escapes in 1.0 too, against the specification
					}
					if got != value {
						t.Errorf("%s: %s is %q, want %q", v, name, got, value)
					}
				}
			}
		}
	}
}

// The refusal of its own: a code that it shows to its user.
func TestGoStompCode(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	c := h.foreign(gostomp.V12)
	err := c.Send("orders_dlq", "", []byte("x"), gostomp.SendOpt.Receipt)
	e, ok := err.(gostomp.Error)
	if !ok {
		if p, is := err.(*gostomp.Error); is {
			e, ok = *p, true
		}
	}
	if !ok || e.Frame == nil || e.Frame.Header.Get("code") != string(queue.InvalidParameter) {
		t.Errorf("%#v", err)
	}
	h.works()
}
