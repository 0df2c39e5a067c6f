package faces

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/queued-mq/queued/e2e/server"
)

// goSTOMP is STOMP as go-stomp speaks it, a client that is not ours. It can
// publish, receive and delete; it never learns what became of an ACK.
var goSTOMP = Face{
	Name: "go-stomp",
	Dial: func(s *server.Server) Client { return &goStompClient{server: s, held: map[string]*stomp.Message{}} },
}

type goStompClient struct {
	Client // what it cannot do
	server *server.Server
	conn   *stomp.Conn
	held   map[string]*stomp.Message
}

func (c *goStompClient) open() (err error) {
	if c.conn == nil {
		c.conn, err = stomp.Dial("tcp", c.server.STOMP, stomp.ConnOpt.HeartBeat(10*time.Second, 10*time.Second))
	}
	return err
}

func (c *goStompClient) failed(err error) error {
	c.conn = nil // it has ended
	if e, ok := errors.AsType[stomp.Error](err); ok && e.Frame != nil {
		return &Refusal{e.Frame.Header.Get("code"), e.Message}
	}
	return err
}

func (c *goStompClient) Publish(queue, _ string, messages ...Message) ([]int64, error) {
	for _, m := range messages {
		if err := c.open(); err != nil {
			return nil, err
		}
		options := []func(*frame.Frame) error{stomp.SendOpt.Receipt}
		for name, value := range m.Properties {
			options = append(options, stomp.SendOpt.Header(name, value))
		}
		if err := c.conn.Send(stompDestination(queue, m.Channel), m.ContentType, m.Body, options...); err != nil {
			return nil, c.failed(err)
		}
	}
	return nil, nil
}

func (c *goStompClient) Receive(queue string, w Want) (all []Delivery, err error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	sub, err := c.conn.Subscribe(stompDestination(queue, w.Channel), stomp.AckClientIndividual,
		stomp.SubscribeOpt.Header("prefetch-count", strconv.Itoa(w.limit())))
	if err != nil {
		return nil, c.failed(err)
	}
	patience := w.first()
	for len(all) < w.limit() {
		select {
		case m := <-sub.C:
			if m.Err != nil {
				return all, c.failed(m.Err)
			}
			d, err := goStompDelivery(m)
			if err != nil {
				return all, err
			}
			c.held[d.Receipt] = m
			all = append(all, d)
			patience = grace
			continue
		case <-time.After(patience):
		}
		break
	}
	return all, unsubscribe(sub)
}

// unsubscribe is Unsubscribe, which in v3.1.5 may miss the receipt that it
// waits for: it is woken without the lock, perhaps before it sleeps. The
// channel is closed when the receipt is there.
func unsubscribe(sub *stomp.Subscription) error {
	err := sub.Unsubscribe()
	if errors.Is(err, &stomp.ErrUnsubscribeReceiptTimeout) {
		if _, open := <-sub.C; !open {
			return nil
		}
	}
	return err
}

func goStompDelivery(m *stomp.Message) (Delivery, error) {
	count, err := strconv.Atoi(m.Header.Get("delivery-count"))
	if err != nil {
		return Delivery{}, fmt.Errorf("delivery-count: %w", err)
	}
	d := Delivery{
		Receipt: m.Header.Get("ack"), Body: m.Body, Count: count,
		ContentType: m.Header.Get("content-type"), Properties: map[string]string{},
	}
	_, d.Channel, _ = strings.Cut(m.Destination, "/")
	for i := range m.Header.Len() {
		if name, value := m.Header.GetAt(i); !stompOwn[name] {
			d.Properties[name] = value
		}
	}
	return d, nil
}

func (c *goStompClient) Delete(_, receipt string) error {
	if err := c.conn.Ack(c.held[receipt]); err != nil {
		return c.failed(err)
	}
	return nil
}

// Drop disconnects in order: go-stomp waits for the answer, so that all before
// it is done.
func (c *goStompClient) Drop() {
	if c.conn != nil {
		_ = c.conn.Disconnect() // of a connection that failed it fails too
		c.conn = nil
	}
}
