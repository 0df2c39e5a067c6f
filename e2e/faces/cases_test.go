package faces

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/e2e/stomp"
)

// TestGoneWaits is field case FC-05 over all faces: who goes away while waiting
// takes nothing. Over gRPC the call alone is reset and the connection lives on,
// or all calls lose it; over STOMP and REST the connection breaks.
func TestGoneWaits(t *testing.T) {
	t.Parallel()
	for _, face := range All {
		t.Run(face.Name, func(t *testing.T) {
			t.Parallel()
			s := server.Start(t, "--limits-profile", "unthrottled")
			for _, many := range []int{1, 200} {
				x := newStage(t, s, face, settings{visibility: long})
				for round := range 4 {
					goneWaits(x, many, round)
				}
			}
		})
	}
}

// goneWaits has so many wait and go away, and then one who stays.
func goneWaits(x *stage, many, round int) {
	x.Helper()
	gone := make([]*Waiting, many)
	for i := range gone {
		var err error
		gone[i], err = x.Wait(x.queue, Want{For: patient, Visibility: long})
		x.must(err)
	}
	x.eventually(10*time.Second, func() error { return waiters(x, many) })
	if round >= 2 {
		x.Drop()
	}
	for _, w := range gone {
		w.Leave()
	}
	// At once too, where leaving has left when it returns.
	if calm := round%2 == 1 || x.face.Name == "gRPC" || x.face.Name == "streams"; calm {
		x.eventually(5*time.Second, func() error { return waiters(x, 0) })
		x.put(Text("door 12 open"))
		x.holds(1, 0, 0, 0)
	} else {
		x.put(Text("door 12 open"))
	}
	began := time.Now()
	d := x.one("door 12 open", 1, Want{For: 5 * time.Second})
	// At once; the rest is for a machine that has much else to do.
	if took := time.Since(began); took > 3*time.Second {
		x.Errorf("%d waits, round %d: the message took %v", many, round, took)
	}
	x.must(x.Delete(x.queue, d.Receipt))
	x.holds(0, 0, 0, 0)
	x.eventually(5*time.Second, func() error { return waiters(x, 0) })
}

// waiters is nil when so many wait.
func waiters(x *stage, want int) error {
	if n, ok := x.server.Metric("queued_waiters"); !ok || n != float64(want) {
		return fmt.Errorf("%v wait, want %d", n, want)
	}
	return nil
}

// TestPoison is field case FC-03: a message that kills every worker, one of
// each face in turn and the server between, goes to the dead letter queue by
// itself, once.
func TestPoison(t *testing.T) {
	t.Parallel()
	orders := [][]Face{{REST, GRPC, STOMP}, {STOMP, Streams, REST}}
	for _, workers := range orders {
		t.Run(fmt.Sprintf("%s %s %s", workers[0].Name, workers[1].Name, workers[2].Name), func(t *testing.T) {
			t.Parallel()
			s := server.Start(t)
			x := newStage(t, s, workers[0], settings{visibility: 2, dead: 3})
			x.put(Text("slide 40-B"))
			var id int64
			for i, face := range workers {
				if i == 2 {
					s.Kill()
					s.Restart()
					x.rest = rest.Dial(t, s.REST)
				}
				worker := face.Dial(s)
				got, err := worker.Receive(x.queue, Want{For: patient})
				x.must(err)
				worker.Drop()
				if len(got) != 1 || got[0].Count != i+1 || string(got[0].Body) != "slide 40-B" || id != 0 && got[0].ID != id {
					t.Fatalf("%s in delivery %d: got %+v", face.Name, i+1, got)
				}
				id = got[0].ID
			}
			x.holds(0, 0, 0, 1) // nobody asks for messages any more
			for _, face := range All {
				x.Client, x.face = face.Dial(s), face
				dead := x.from(x.queue+"_dlq", 1, Want{Limit: 20})[0]
				if dead.ID != id || dead.Dead == nil || dead.Dead.Reason != "DELIVERY_COUNT_REACHED" || dead.Dead.Count != 3 {
					t.Errorf("%s: dead letter %+v", face.Name, dead)
				}
				x.must(x.Return(x.queue+"_dlq", dead.Receipt, 0))
				x.Drop()
			}
			x.holds(0, 0, 0, 1)
		})
	}
}

// TestLateNack is field case FC-01 over STOMP, on one session: a NACK after the
// lapse leaves the message available, and the others of the session are
// untouched.
func TestLateNack(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	x := newStage(t, s, REST, settings{visibility: 30, dead: 5})
	x.put(Text("pallet 7731"))
	c := stomp.Dial(t, s.STOMP)
	next := func(command string) *stomp.Frame {
		t.Helper()
		f, err := c.Next(10 * time.Second)
		if err != nil || f.Command != command {
			t.Fatalf("%+v %v, want %s", f, err, command)
		}
		return f
	}
	say := func(command string, headers ...string) {
		t.Helper()
		x.must(c.Send(command, nil, headers...))
	}
	say("SUBSCRIBE", "destination", x.queue, "id", "short", "ack", "client-individual", "visibility", "2")
	first := next("MESSAGE")
	say("UNSUBSCRIBE", "id", "short", "receipt", "1")
	next("RECEIPT")
	x.put(Message{Body: []byte("another"), Channel: "c"})
	say("SUBSCRIBE", "destination", x.queue+"/c", "id", "long", "ack", "client-individual", "visibility", "600")
	other := next("MESSAGE")
	x.holds(1, 1, 0, 0) // the first has lapsed
	say("NACK", "id", first.Headers["ack"], "receipt", "2")
	next("RECEIPT")
	x.holds(1, 1, 0, 0)
	again := x.one("pallet 7731", 2, Want{})
	if again.Receipt == first.Headers["ack"] {
		t.Error("the receipt is the old one")
	}
	x.must(x.Extend(x.queue, again.Receipt, 45))
	say("NACK", "id", first.Headers["ack"]) // no effect, and no answer
	say("ACK", "id", other.Headers["ack"], "receipt", "3")
	next("RECEIPT")
	x.holds(0, 1, 0, 0)
	x.must(x.Delete(x.queue, again.Receipt))
	x.holds(0, 0, 0, 0)
}

// TestFrames is field case FC-09: a body that holds NUL, several frames in one
// packet or cut anywhere, and line ends between frames; received over all faces.
func TestFrames(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	x := newStage(t, s, REST, settings{visibility: long})
	var packet bytes.Buffer
	fmt.Fprintf(&packet, "SEND\ndestination:%s\ncontent-length:9\n\nab\x00cd\x00ef\x00\x00", x.queue)
	packet.WriteString("\n\r\n\n")
	fmt.Fprintf(&packet, "SEND\ndestination:%s\n\nplain\x00", x.queue)
	fmt.Fprintf(&packet, "SEND\ndestination:%s\ncontent-length:0\nreceipt:done\n\n\x00\r\n", x.queue)
	want := []string{"ab\x00cd\x00ef\x00", "plain", ""}

	clients := make([]Client, len(All))
	for i, face := range All {
		clients[i] = face.Dial(s)
		t.Cleanup(clients[i].Drop)
	}
	sender := stomp.Dial(t, s.STOMP)
	for cut := range packet.Len() {
		text := packet.Bytes()
		if _, err := sender.Write(text[:cut]); err != nil {
			t.Fatal(err)
		}
		if cut > 0 {
			time.Sleep(time.Millisecond) // so that it is a packet of its own
		}
		if _, err := sender.Write(text[cut:]); err != nil {
			t.Fatal(err)
		}
		if f, err := sender.Next(10 * time.Second); err != nil || f.Command != "RECEIPT" {
			t.Fatalf("cut at %d: %+v %v", cut, f, err)
		}
		c := clients[cut%len(clients)]
		messages, err := c.Receive(x.queue, Want{Limit: 3, For: patient})
		x.must(err)
		var got []string
		for _, d := range messages {
			got = append(got, string(d.Body))
			x.must(c.Delete(x.queue, d.Receipt))
		}
		if !slices.Equal(got, want) {
			t.Errorf("cut at %d, over %s: got %q", cut, All[cut%len(All)].Name, got)
		}
	}
	x.holds(0, 0, 0, 0)
}
