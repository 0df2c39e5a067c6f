package stomp

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// stingy is a connection that takes so many octets and no more.
type stingy struct {
	net.Conn
	room int
	took []byte
}

func (s *stingy) Write(p []byte) (int, error) {
	n := min(s.room, len(p))
	s.room -= n
	s.took = append(s.took, p[:n]...)
	if n < len(p) {
		return n, errors.New("no more")
	}
	return n, nil
}

func (s *stingy) SetWriteDeadline(time.Time) error { return nil }

// Wherever a write ends, it is known which frames have left in full, and which
// have not begun: those go back.
func TestWhatHasLeft(t *testing.T) {
	t.Parallel()
	sub := new(subscription)
	chunkOf := func(sizes ...int) *chunk {
		k := &chunk{sub: sub}
		for i, n := range sizes {
			k.data = append(k.data, strings.Repeat(string(rune('a'+i)), n)...)
			k.ends = append(k.ends, len(k.data))
			k.messages = append(k.messages, queue.Delivery{})
		}
		return k
	}
	todo := []*chunk{chunkOf(10, 200, 3), chunkOf(40_000), chunkOf(5, 66_000, 7, 8), chunkOf(100, 30_000, 30_000, 20_000)}
	var wires []int // where each frame ends
	for _, k := range todo {
		from := 0
		for _, to := range k.ends {
			last := 0
			if len(wires) > 0 {
				last = wires[len(wires)-1]
			}
			wires = append(wires, last+len(appendHeader(nil, binaryMessage, to-from))+to-from)
			from = to
		}
	}
	var rooms []int
	for _, w := range append(wires, 0) {
		rooms = append(rooms, w-1, w, w+1, w+2, w+500)
	}
	for _, room := range rooms {
		if room < 0 {
			continue
		}
		under := &stingy{room: room}
		s := newSocket()
		s.under = under
		n, err := s.writeAll(todo)
		whole, begun := 0, 0
		for i, w := range wires {
			if w <= room {
				whole++
			}
			if start := slices.Concat([]int{0}, wires)[i]; start < room {
				begun++
			}
		}
		if (err == nil) != (whole == len(wires)) {
			t.Fatalf("room for %d octets: %v", room, err)
		}
		left, kept := 0, 0
		for _, k := range todo {
			here := min(n, len(k.data))
			n -= here
			kept += len(k.unwritten(here))
			for _, end := range k.ends {
				if end <= here {
					left++
				}
			}
		}
		if left != whole || len(wires)-kept != begun {
			t.Errorf("room for %d octets: %d frames have left and %d begun, want %d and %d", room, left, len(wires)-kept, whole, begun)
		}
	}
}

// What is said over and over makes no garbage.
func TestAllocations(t *testing.T) {
	h := open(t, Options{}, "orders")
	s := newSocket()
	s.under = &sink{}
	k := &chunk{data: []byte(strings.Repeat("MESSAGE\n\n\x00", 20))}
	for n := 10; n <= len(k.data); n += 10 {
		k.ends = append(k.ends, n)
	}
	todo := []*chunk{k, k, k}
	c := newConn(h.server, &sink{})
	c.version = frame.V12
	u := &subscription{conn: c, at: "orders", destination: []byte("destination:orders\n"), prefix: []byte("MESSAGE\nsubscription:1\n"), mode: individual}
	m := &queue.Delivery{Receipt: "receipt"}
	m.ID, m.Body, m.ContentType = 7, make([]byte, 100), "text/plain"
	m.Properties = []queue.Property{{Name: "a", Value: "b:c"}}
	dst := make([]byte, 0, 4096)
	var buf []byte
	receipt := func() {
		c.mu.Lock()
		c.line.push(answer{receipt: "r", asked: true, done: true})
		c.advance()
		todo := c.out.chunks
		c.out.chunks = c.out.chunks[:0]
		c.mu.Unlock()
		if _, err := c.writeAll(todo, &buf); err != nil {
			t.Fatal(err)
		}
		todo[0].recycle()
	}
	for name, f := range map[string]func(){
		"frames over WebSocket": func() {
			if n, err := s.writeAll(todo); n != 600 || err != nil {
				t.Fatal(n, err)
			}
		},
		"MESSAGE": func() { u.appendMessage(dst, m) },
		"RECEIPT": receipt,
		"a quirk that has been named": func() {
			c.quirks = rawColon | reservedHeader
			c.sayQuirks()
		},
	} {
		if got := testing.AllocsPerRun(200, f); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// sink takes everything.
type sink struct{ net.Conn }

func (*sink) Write(p []byte) (int, error)      { return len(p), nil }
func (*sink) SetWriteDeadline(time.Time) error { return nil }
func (*sink) SetReadDeadline(time.Time) error  { return nil }
