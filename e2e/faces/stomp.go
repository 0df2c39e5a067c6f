package faces

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/e2e/stomp"
)

// STOMP is STOMP 1.2. Everything is sent with a receipt, since without one
// there is no answer to a success.
var STOMP = Face{
	Name: "STOMP",
	Lacks: map[Ability]string{
		Batch:         "a SEND is one message",
		Token:         "SEND has no header for it",
		OwnVisibility: "SEND has no header for it; SUBSCRIBE has",
		IDs:           "a RECEIPT tells nothing but that it was done",
		Extend:        "STOMP has no frame for it",
		ReturnLater:   "NACK gives back at once",
		LateReturn:    "a NACK of what has come back is done already",
	},
	Dial: func(s *server.Server) Client { return &stompClient{server: s} },
}

type stompClient struct {
	server *server.Server
	conn   *stomp.Conn
	number int
	group  string
}

func (c *stompClient) As(group string) { c.group = group }

func (c *stompClient) Drop() {
	if c.conn != nil {
		c.conn.Reset()
		c.conn = nil
	}
}

func (c *stompClient) open() error {
	if c.conn != nil {
		return nil
	}
	conn, err := stomp.Open(c.server.STOMP)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	c.conn = conn
	return nil
}

// failed reads an ERROR and closes the connection, which it has ended.
func (c *stompClient) failed(err error) error {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	if r, ok := errors.AsType[*stomp.Refusal](err); ok {
		return &Refusal{r.Code, r.Message}
	}
	return err
}

// do sends a frame with a receipt and waits for it. Messages that come before
// it are returned.
func (c *stompClient) do(command string, body []byte, headers ...string) ([]Delivery, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	c.number++
	receipt := strconv.Itoa(c.number)
	// What fails here is told below: the ERROR may be there already.
	_ = c.conn.Send(command, body, append(headers, "receipt", receipt)...)
	var all []Delivery
	for {
		f, err := c.conn.Next(rest.Timeout)
		switch {
		case err != nil:
			return all, c.failed(err)
		case f.Command == "MESSAGE":
			d, err := stompDelivery(f)
			if err != nil {
				return all, c.failed(err)
			}
			all = append(all, d)
		case f.Command == "RECEIPT" && f.Headers["receipt-id"] == receipt:
			return all, nil
		default:
			return all, c.failed(f.Refusal())
		}
	}
}

func (c *stompClient) Publish(queue, _ string, messages ...Message) ([]int64, error) {
	for _, m := range messages { // one, or it is not all or none
		headers := []string{"destination", stompDestination(queue, m.Channel)}
		for name, value := range m.Properties {
			headers = append(headers, name, value)
		}
		for name, n := range map[string]int{"delay": m.Delay, "retention": m.Retention} {
			if n != 0 {
				headers = append(headers, name, strconv.Itoa(n))
			}
		}
		if m.ContentType != "" {
			headers = append(headers, "content-type", m.ContentType)
		}
		if _, err := c.do("SEND", m.Body, headers...); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func stompDestination(queue, channel string) string {
	if channel == "" {
		return queue
	}
	return queue + "/" + channel
}

func (c *stompClient) subscribe(queue, id string, w Want) []string {
	headers := []string{
		"destination", stompDestination(queue, w.Channel), "id", id,
		"ack", "client-individual", "prefetch-count", strconv.Itoa(w.limit()),
	}
	if w.Visibility > 0 {
		headers = append(headers, "visibility", strconv.Itoa(w.Visibility))
	}
	if c.group != "" {
		headers = append(headers, "consumer-group-id", c.group)
	}
	return headers
}

// Receive subscribes and unsubscribes.
func (c *stompClient) Receive(queue string, w Want) ([]Delivery, error) {
	id := "s" + strconv.Itoa(c.number)
	all, err := c.do("SUBSCRIBE", nil, c.subscribe(queue, id, w)...)
	if err != nil {
		return all, err
	}
	for patience := w.first(); len(all) < w.limit(); patience = grace {
		f, err := c.conn.Next(patience)
		if errors.Is(err, stomp.ErrQuiet) {
			break
		}
		if err == nil && f.Command != "MESSAGE" {
			err = f.Refusal()
		}
		var d Delivery
		if err == nil {
			d, err = stompDelivery(f)
		}
		if err != nil {
			return all, c.failed(err)
		}
		all = append(all, d)
	}
	more, err := c.do("UNSUBSCRIBE", nil, "id", id)
	return append(all, more...), err
}

// Wait waits on a connection of its own and leaves by closing it.
func (c *stompClient) Wait(queue string, w Want) (*Waiting, error) {
	conn, err := stomp.Open(c.server.STOMP)
	if err != nil {
		return nil, err
	}
	if err := conn.Send("SUBSCRIBE", nil, c.subscribe(queue, "s", w)...); err != nil {
		return nil, err
	}
	return waiting(conn.Reset, func() ([]Delivery, error) {
		defer conn.Close()
		f, err := conn.Next(w.For)
		switch {
		case errors.Is(err, stomp.ErrQuiet):
			return nil, nil
		case err != nil:
			return nil, err
		case f.Command == "ERROR":
			return nil, &Refusal{f.Headers["code"], f.Headers["message"]}
		case f.Command != "MESSAGE":
			return nil, f.Refusal()
		}
		d, err := stompDelivery(f)
		return []Delivery{d}, err
	}), nil
}

func (c *stompClient) Extend(string, string, int) error {
	return errors.New("STOMP has no frame to extend a lease")
}

func (c *stompClient) Return(_, receipt string, _ int) error {
	_, err := c.do("NACK", nil, "id", receipt)
	return err
}

func (c *stompClient) Until() time.Time { return time.Time{} }

func (c *stompClient) Delete(_, receipt string) error {
	_, err := c.do("ACK", nil, "id", receipt)
	return err
}

// stompOwn are the headers of a MESSAGE that are no properties.
var stompOwn = map[string]bool{
	"destination": true, "subscription": true, "message-id": true, "ack": true, "content-length": true, "content-type": true,
	"expire-after": true, "visible-after": true, "delivery-count": true, "oci-message-id": true, "timestamp": true, "redelivered": true,
	"dead-letter-reason": true, "dead-letter-delivery-count": true, "dead-letter-at": true,
}

// stompDelivery reads a MESSAGE.
func stompDelivery(f *stomp.Frame) (d Delivery, err error) {
	number := func(name string) int64 {
		n, e := strconv.ParseInt(f.Headers[name], 10, 64)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("MESSAGE: header %s: %w", name, e))
		}
		return n
	}
	instant := func(name string) time.Time { return time.UnixMilli(number(name)) }
	d = Delivery{
		ID: number("oci-message-id"), Receipt: f.Headers["ack"], Body: f.Body, ContentType: f.Headers["content-type"],
		Count: int(number("delivery-count")), Properties: map[string]string{},
		CreatedAt: instant("timestamp"), VisibleAfter: instant("visible-after"), ExpireAfter: instant("expire-after"),
	}
	if again := f.Headers["redelivered"]; again != strconv.FormatBool(d.Count > 1) {
		err = errors.Join(err, fmt.Errorf("MESSAGE: redelivered is %q in delivery %d", again, d.Count))
	}
	if len(f.Body) != int(number("content-length")) {
		err = errors.Join(err, errors.New("MESSAGE: content-length"))
	}
	_, d.Channel, _ = strings.Cut(f.Headers["destination"], "/")
	for name, value := range f.Headers {
		if !stompOwn[name] {
			d.Properties[name] = value
		}
	}
	if reason := f.Headers["dead-letter-reason"]; reason != "" {
		d.Dead = &Dead{reason, int(number("dead-letter-delivery-count")), instant("dead-letter-at")}
	}
	return d, err
}
