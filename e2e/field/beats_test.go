//go:build field

package field

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/e2e/stomp"
)

func TestMain(m *testing.M) {
	server.Wide(8)
	os.Exit(server.Main(m))
}

// listener is a connection that notes how long it was silent at most.
type listener struct {
	net.Conn
	mu     sync.Mutex
	last   time.Time
	widest time.Duration
	beats  int
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.widest, l.last = max(l.widest, time.Since(l.last)), time.Now()
		if n == 1 && b[0] == '\n' {
			l.beats++
		}
	}
	return n, err
}

// connect opens a session by a CONNECT of these lines.
func connect(t *testing.T, s *server.Server, lines string) (*listener, *stomp.Conn, *stomp.Frame) {
	t.Helper()
	nc, err := net.Dial("tcp", s.STOMP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	l := &listener{Conn: nc, last: time.Now()}
	c := stomp.Over(l)
	if _, err := io.WriteString(c, "CONNECT\n"+lines+"\n\x00"); err != nil {
		t.Fatal(err)
	}
	f, err := c.Next(10 * time.Second)
	if err != nil || f.Command != "CONNECTED" {
		t.Fatalf("%+v %v", f, err)
	}
	t.Logf("CONNECTED says heart-beat:%s", f.Headers["heart-beat"])
	return l, c, f
}

// must wants a frame of this command.
func must(t *testing.T, c *stomp.Conn, wait time.Duration, command string) *stomp.Frame {
	t.Helper()
	f, err := c.Next(wait)
	if err != nil || f.Command != command {
		t.Fatalf("%+v %v, want %s", f, err, command)
	}
	return f
}

// TestBeats is field case FC-11: idle and busy clients under heart-beats.
func TestBeats(t *testing.T) {
	s := server.Start(t, "--create-queue", "idle-p", "--create-queue", "idle-q", "--create-queue", "jitter", "--create-queue", "busy")
	t.Run("sessions", func(t *testing.T) {
		for _, tt := range []struct{ name, queue, lines string }{
			{"P, of 1.0, is silent for 5 min", "idle-p", ""},
			{"Q, of 1.2 without beats, is silent for 5 min", "idle-q", "accept-version:1.2\nheart-beat:0,0\n"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				_, c, f := connect(t, s, tt.lines)
				if got := f.Headers["heart-beat"]; got != "0,0" && got != "" {
					t.Errorf("heart-beat %q", got)
				}
				send(t, c, "SUBSCRIBE", "destination", tt.queue, "id", "1", "receipt", "r")
				must(t, c, 10*time.Second, "RECEIPT")
				time.Sleep(5 * time.Minute)
				began := time.Now()
				rest.Dial(t, s.REST).Put(t, tt.queue, "night job")
				if f := must(t, c, 5*time.Second, "MESSAGE"); string(f.Body) != "night job" {
					t.Errorf("got %q", f.Body)
				}
				t.Logf("the message came after %v", time.Since(began).Round(time.Microsecond))
			})
		}
		t.Run("R beats up to 1 s late for 2 min", func(t *testing.T) {
			t.Parallel()
			l, c, _ := connect(t, s, "accept-version:1.2\nheart-beat:2000,2000\n")
			send(t, c, "SUBSCRIBE", "destination", "jitter", "id", "1")
			var wg sync.WaitGroup
			stop := time.Now().Add(2 * time.Minute)
			wg.Go(func() {
				for time.Now().Before(stop) {
					time.Sleep(2*time.Second + rand.N(time.Second))
					if _, err := io.WriteString(l.Conn, "\n"); err != nil {
						t.Errorf("cut off: %v", err)
						return
					}
				}
			})
			// It reads for as long as it beats: silence is measured by reading.
			if f, err := c.Next(time.Until(stop) + 4*time.Second); !errors.Is(err, stomp.ErrQuiet) {
				t.Errorf("%+v %v", f, err)
			}
			wg.Wait()
			rest.Dial(t, s.REST).Put(t, "jitter", "still here")
			must(t, c, 5*time.Second, "MESSAGE")
			t.Logf("%d beats came, %v apart at most", l.beats, l.widest.Round(time.Millisecond))
			if l.beats < 55 || l.widest > 2500*time.Millisecond {
				t.Error("the server promised one every 2 s")
			}
		})
		t.Run("S promises a beat every second and sends nothing for 20 s", func(t *testing.T) {
			t.Parallel()
			busy(t, s)
		})
	})
}

func send(t *testing.T, c *stomp.Conn, command string, headers ...string) {
	t.Helper()
	if err := c.Send(command, nil, headers...); err != nil {
		t.Fatal(err)
	}
}

func busy(t *testing.T, s *server.Server) {
	r := rest.Dial(t, s.REST)
	r.Put(t, "busy", "a long job")
	_, c, _ := connect(t, s, "accept-version:1.2\nheart-beat:1000,1000\n")
	send(t, c, "SUBSCRIBE", "destination", "busy", "id", "1", "ack", "client-individual", "visibility", "30")
	first, began := must(t, c, 5*time.Second, "MESSAGE"), time.Now()
	logged := strings.Count(s.Logs(), "level=WARN")
	var said []string
	cut := time.Duration(0)
	for cut == 0 {
		f, err := c.Next(20 * time.Second)
		if err != nil {
			cut = time.Since(began)
			said = append(said, err.Error())
			break
		}
		said = append(said, f.Command+" "+f.Headers["message"])
	}
	t.Logf("cut off after %v: %s", cut.Round(time.Millisecond), strings.Join(said, ", then "))
	if cut < 2*time.Second || cut > 10*time.Second {
		t.Error("it should be a few beats")
	}
	if n := strings.Count(s.Logs(), "level=WARN") - logged; n != 1 {
		t.Errorf("%d lines of level WARN, want 1", n)
	}
	time.Sleep(time.Until(began.Add(20 * time.Second)))
	if err := c.Send("ACK", nil, "id", first.Headers["ack"]); err == nil {
		_, err = c.Next(time.Second)
		t.Logf("the ACK on the dead connection: %v", err)
	}

	_, again, _ := connect(t, s, "accept-version:1.2\nheart-beat:0,0\n")
	send(t, again, "SUBSCRIBE", "destination", "busy", "id", "1", "ack", "client-individual", "visibility", "600")
	var last *stomp.Frame
	n := 0
	for until := time.Now().Add(time.Minute); ; n++ {
		f, err := again.Next(time.Until(until))
		if errors.Is(err, stomp.ErrQuiet) {
			break
		}
		if err != nil || f.Command != "MESSAGE" || f.Headers["delivery-count"] != "2" || f.Headers["message-id"] != first.Headers["message-id"] {
			t.Fatalf("%+v %v", f, err)
		}
		t.Logf("delivered again %v after the first time", time.Since(began).Round(time.Millisecond))
		last = f
	}
	if n != 1 {
		t.Fatalf("delivered %d times more, want once", n)
	}
	send(t, again, "ACK", "id", first.Headers["ack"], "receipt", "old")
	if f, err := again.Next(5 * time.Second); err != nil || f.Command != "ERROR" {
		t.Errorf("the old ack id: %+v %v, want ERROR", f, err)
	}
	if n := r.Stats(t, "busy").Queue; n.InFlight != 1 {
		t.Errorf("after the old ack id: %+v", n)
	}
	c = stomp.Dial(t, s.STOMP)
	send(t, c, "ACK", "id", last.Headers["ack"], "receipt", "done")
	must(t, c, 5*time.Second, "RECEIPT")
	if n := r.Stats(t, "busy").Queue; n.Visible+n.InFlight != 0 {
		t.Errorf("left are %+v", n)
	}
}
