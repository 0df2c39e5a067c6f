package main

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/gateway"
	"github.com/queued-mq/queued/queue"
)

// gRPC takes an answer from its handler whether or not the client takes it
// from gRPC. So a client with many streams and a closed window could have the
// server keep thousands of answers of 2 MiB. Here the octets of large answers
// are counted for each connection, from the moment the handler gives them to
// that at which gRPC lets go of their memory.
//
//	unread ◄── unreadAddr ◄── peer of the call        hold: + octets, or the get is refused
//	       ◄── heldAnswer ◄── codec ◄── gRPC's buffer  Put:  − octets

// largeAnswer is the size from which answers are counted: smaller ones are not
// much beside what a stream takes anyway. gRPC pools buffers of this size, and
// so tells when it lets go of them.
const largeAnswer = 16 << 10

// unread is the octets of large answers that one connection has not taken. It
// goes with the connection.
type unread struct{ octets atomic.Int64 }

// unreadListener gives each connection its count.
type unreadListener struct{ net.Listener }

func (l unreadListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unreadConn{c, &unreadAddr{Addr: c.RemoteAddr()}}, nil
}

// unreadConn is a connection whose address knows the count: that is what gRPC
// tells of a call's connection.
type unreadConn struct {
	net.Conn
	remote *unreadAddr
}

func (c *unreadConn) RemoteAddr() net.Addr { return c.remote }

type unreadAddr struct {
	net.Addr
	unread
}

// hold counts the answer to a get, if it is large, and is what is to be
// answered in its place. Beyond the bound that is an error: the messages go
// back, uncounted, since no octet of them has left.
func (c *grpcCalls) hold(ctx context.Context, resp any) (any, error) {
	get, ok := resp.(*queuev1.GetMessagesResponse)
	if !ok {
		return resp, nil
	}
	n := int64(get.SizeVT())
	if n < largeAnswer {
		return resp, nil
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return resp, nil // a call of a test
	}
	at, ok := p.Addr.(*unreadAddr)
	if !ok {
		return resp, nil
	}
	if at.octets.Add(n) > gateway.UnreadBytes {
		at.octets.Add(-n)
		var back []queue.Delivery
		for _, m := range get.GetGetMessages().GetMessages() {
			back = append(back, queue.Delivery{Receipt: queue.Receipt(m.GetReceipt())})
		}
		c.server.service.Undeliver(back)
		return nil, gateway.ErrUnread
	}
	return &heldAnswer{GetMessagesResponse: get, of: &at.unread, octets: n}, nil
}

// heldAnswer is an answer that is counted. It is the pool that its buffer goes
// back to.
type heldAnswer struct {
	*queuev1.GetMessagesResponse
	of     *unread
	octets int64
	buffer mem.Buffer
}

// Get is never asked for: what the pool takes it does not hand out.
func (a *heldAnswer) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put is called when gRPC lets go of the answer.
func (a *heldAnswer) Put(*[]byte) {
	a.of.octets.Add(-a.octets)
	a.buffer.Free()
}

// unreadCodec hands over counted answers so that it is told of their end.
type unreadCodec struct{ encoding.CodecV2 }

func (c unreadCodec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*heldAnswer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	data, err := c.CodecV2.Marshal(a.GetMessagesResponse)
	if err != nil || len(data) != 1 {
		a.of.octets.Add(-a.octets)
		return data, err
	}
	a.buffer = data[0]
	octets := a.buffer.ReadOnlyData()
	return mem.BufferSlice{mem.NewBuffer(&octets, a)}, nil
}
