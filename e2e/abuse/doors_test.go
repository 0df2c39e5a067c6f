package abuse

import (
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

func restDoor() *door {
	fields := func(method, path string) [][2]string {
		return [][2]string{{":method", method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", "/20210201/queues/prey/messages" + path}}
	}
	return &door{
		addr: func(a *abuser) string { return a.s.REST },
		ask:  fields("POST", ""),
		get:  fields("GET", "?limit=20&visibilityInSeconds=0&timeoutInSeconds=0"),
		poll: fields("GET", "?timeoutInSeconds=30&channelFilter=none"),
	}
}

func grpcDoor() *door {
	fields := func(method string) [][2]string {
		return [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", "/queue.v1.QueueService/" + method},
			{"content-type", "application/grpc"}, {"te", "trailers"}}
	}
	message := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			panic(err) // it is one of those below
		}
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	}
	limit, zero, long := int32(20), int32(0), int32(30)
	return &door{
		addr: func(a *abuser) string { return a.s.GRPC },
		ask:  fields("PutMessages"),
		get:  fields("GetMessages"),
		body: message(&queuev1.GetMessagesRequest{QueueId: "prey", Limit: &limit, VisibilityInSeconds: &zero, TimeoutInSeconds: &zero}),
		poll: fields("GetMessages"),
		wait: message(&queuev1.GetMessagesRequest{QueueId: "prey", ChannelFilter: proto.String("none"), TimeoutInSeconds: &long}),
	}
}

// TestHTTP2 is REST over HTTP/2 in the clear.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	d := restDoor()
	run(t, slices.Concat(d.openings(), d.floods(), d.unread(), d.bombs(func(c *h2) bool { return c.status[":status 431"] > 0 }), []row{
		// gRPC lets it pass: who counts wrongly harms nobody else.
		d.broken("a window of more than can be", func(c *h2) {
			_ = c.WriteWindowUpdate(0, 1<<31-1)
			_ = c.WriteWindowUpdate(0, 1<<31-1)
		}, http2.ErrCodeFlowControl),
		{name: "a body of a tebibyte is announced", abuse: func(a *abuser) {
			d.announced(a, func(c *h2) {
				c.ask(false, d.withField("content-length", strconv.Itoa(1<<40))...)
			}, ":status 413")
		}},
	}))
}

// TestGRPC is HTTP/2 as gRPC serves it.
func TestGRPC(t *testing.T) {
	t.Parallel()
	d := grpcDoor()
	run(t, slices.Concat(d.openings(), d.floods(), d.unread(), d.bombs(func(c *h2) bool { return c.resets[http2.ErrCodeFrameSize] > 0 }), []row{
		{name: "it says nothing", abuse: func(a *abuser) {
			a.each(a.s.GRPC, func(c net.Conn) { a.said(c) })
		}},
		{name: "a message of 4 GiB is announced", abuse: func(a *abuser) {
			d.announced(a, func(c *h2) {
				id := c.ask(false, d.ask...)
				_ = c.WriteData(id, false, []byte("\x00\xff\xff\xff\xff"))
			}, "grpc-status 8") // ResourceExhausted
		}},
		{name: "a message of 2 MiB is announced and does not come", abuse: func(a *abuser) {
			c := a.h2(a.s.GRPC, false)
			for range 900 {
				id := c.ask(false, d.ask...)
				_ = c.WriteData(id, false, []byte("\x00\x00\x20\x00\x00and no more"))
				a.count.Add(1)
			}
			c.flush()
			if !c.alive() {
				a.Error("the connection was ended")
			}
		}},
	}))
}

// announced sends streams whose first octets say that too much comes; each is
// answered with this status, and the connection lives on.
func (d *door) announced(a *abuser, write func(*h2), status string) {
	c := a.h2(d.addr(a), false)
	for i := range many {
		write(c)
		c.flush()
		if !c.until("the answer "+status, func() bool { return c.status[status] > i }) {
			a.Fatalf("heard: %v, %v, %v", c.status, c.resets, c.goAway)
		}
		a.count.Add(1)
	}
	if !c.alive() {
		a.Error("the connection was ended")
	}
}

// unread are rows of clients who ask and do not take the answers.
func (d *door) unread() []row {
	return []row{
		{name: "answers behind a closed window", prey: 8, abuse: func(a *abuser) {
			c := a.h2(d.addr(a), false, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for i := range 900 {
				id := c.ask(len(d.body) == 0, d.get...)
				if len(d.body) > 0 {
					_ = c.WriteData(id, true, d.body)
				}
				c.flush()
				a.count.Add(1)
				if (i+1)%100 == 0 && !c.until("the answers begin", func() bool { return c.status[":status 200"]+c.status[":status 503"] > i }) {
					a.Fatalf("heard: %v, %v, %v", c.status, c.resets, c.goAway)
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if kept := c.status[":status 200"] - c.status["grpc-status 14"]; kept > 20 || c.data > 0 {
				a.Errorf("%d answers are kept for who has read %d octets", kept, c.data)
			}
			if refused := c.status[":status 503"] + c.status["grpc-status 14"]; refused == 0 {
				a.Error("no get was refused")
			}
		}, most: 512 << 20}, // over REST the refused answers were spelled before
		{name: "more streams than there may be", abuse: func(a *abuser) {
			c := a.h2(d.addr(a), false)
			for range 5000 {
				id := c.ask(len(d.wait) == 0, d.poll...)
				if len(d.wait) > 0 {
					_ = c.WriteData(id, true, d.wait)
				}
				c.flush()
				a.count.Add(1)
			}
			if !c.until("streams are refused", func() bool { return c.resets[http2.ErrCodeRefusedStream] > 0 || c.goAway != nil }) {
				a.Error("the server hung up and did not say why")
			}
		}},
	}
}
