package stomp

import (
	"errors"
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// Limits of custom headers in strict mode (contract, STOMP).
const (
	strictHeaders     = 10
	strictHeaderBytes = 256
)

// How many SENDs are handed over together, and with how many octets of bodies.
const (
	gatherMost  = 64
	gatherBytes = 64 << 10
)

// gathered is the SENDs that arrived together and are yet to be handed over:
// the reader does so before it waits for more, and before any other frame. It
// is the reader's own.
type gathered struct {
	queue    string // of all of them
	messages []service.PutMessage
	answers  []answer // what each waits for
	octets   int
}

// send takes the message of a SEND in, to be published with its neighbours.
func (c *conn) send(f *frame.Frame) error {
	d, err := readDestination(f)
	if err != nil {
		return err
	}
	if g := &c.sends; d.ref != g.queue || len(g.messages) >= gatherMost || g.octets+len(f.Body) > gatherBytes {
		c.publish()
		if err := c.room(); err != nil {
			return err
		}
		if d.ref != g.queue {
			g.queue = strings.Clone(d.ref)
		}
	}
	m, err := c.readMessage(f, &d)
	if err != nil {
		return err
	}
	g := &c.sends
	a := answer{bytes: int64(len(f.Body)) + 512 + headerBytes(f)}
	a.receipt, a.asked = f.Get("receipt")
	g.messages, g.answers, g.octets = append(g.messages, m), append(g.answers, a), g.octets+len(f.Body)
	return nil
}

// readMessage reads the message of a SEND, whose queue is there if it has to be
// made.
func (c *conn) readMessage(f *frame.Frame, d *destination) (m service.PutMessage, err error) {
	m = service.PutMessage{Content: f.Body, ChannelID: optional(d.channel)}
	if err := c.readSend(f, &m); err != nil {
		return m, err
	}
	if !strings.HasSuffix(d.ref, queue.DeadSuffix) { // nothing can be sent there
		err = c.autoCreate(d.ref)
	}
	return m, err
}

// publish hands over what was gathered; each SEND is answered when its message
// is durable.
func (c *conn) publish() {
	g := &c.sends
	if len(g.messages) == 0 {
		return
	}
	if first, open := c.waitAll(g.answers); open {
		c.server.service.StartPutEach(c.ctx, g.queue, g.messages, func(from, stored, to int, err error) {
			c.complete(first, from, stored, to, ofOne(err))
		})
	}
	clear(g.messages)
	clear(g.answers)
	g.messages, g.answers, g.octets = g.messages[:0], g.answers[:0], 0
}

// ofOne takes the place in a list out of the text of an error: a SEND has one
// message, and no list.
func ofOne(err error) error {
	e, ok := errors.AsType[*queue.Error](err)
	if !ok {
		return err
	}
	text := strings.TrimPrefix(e.Message, "messages[0]")
	if text == e.Message {
		return err
	}
	return queue.Errorf(e.Code, "%s", strings.TrimLeft(text, ".: "))
}

// readSend reads what the headers of a SEND say of its message.
func (c *conn) readSend(f *frame.Frame, m *service.PutMessage) (err error) {
	custom, octets := 0, 0
	for _, h := range f.Headers {
		switch kindOf(h.Name) {
		case customHeader:
			custom++
			octets += len(h.Name) + len(h.Value)
			if c.server.o.Strict && len(h.Name)+len(h.Value) > strictHeaderBytes {
				return queue.Errorf(queue.InvalidParameter, "the custom header %.64q has more than %d octets (stomp.strict)", h.Name, strictHeaderBytes)
			}
		case addition:
			if c.server.o.Strict {
				return queue.Errorf(queue.InvalidParameter, "SEND may not have the header %s (stomp.strict)", h.Name)
			}
			v, err := seconds(h.Name, h.Value)
			if err != nil {
				return err
			}
			if h.Name == "delay" {
				m.DelayInSeconds = v
			} else {
				m.RetentionInSeconds = v
			}
		case reserved:
			c.quirks |= reservedHeader
		case contentType:
			m.ContentType = strings.Clone(h.Value)
		}
	}
	if c.server.o.Strict && custom > strictHeaders {
		return queue.Errorf(queue.InvalidParameter, "SEND has %d custom headers; it may have %d (stomp.strict)", custom, strictHeaders)
	}
	if custom > 0 {
		m.Properties = properties(f, custom, octets)
	}
	return nil
}

// properties are the custom headers. They are kept with the message, so they
// get memory of their own: the frame's headers may be many times as long.
func properties(f *frame.Frame, custom, octets int) []queue.Property {
	var text strings.Builder
	text.Grow(octets)
	for _, h := range f.Headers {
		if kindOf(h.Name) == customHeader {
			text.WriteString(h.Name)
			text.WriteString(h.Value)
		}
	}
	all, list := text.String(), make([]queue.Property, 0, custom)
	for _, h := range f.Headers {
		if kindOf(h.Name) == customHeader {
			n, v := len(h.Name), len(h.Value)
			list = append(list, queue.Property{Name: all[:n], Value: all[n : n+v]})
			all = all[n+v:]
		}
	}
	return list
}

// kind is what a header of SEND is.
type kind uint8

const (
	customHeader kind = iota // a property of the message
	addition                 // a time of the message
	contentType              // kept apart
	dropped                  // it means something to us or to the protocol
	reserved                 // a name that we set ourselves: it is dropped too
)

func kindOf(name string) kind {
	switch name {
	case "destination", "receipt", "transaction", "content-length", "host", "login", "passcode", "accept-version", "heart-beat":
		return dropped
	case "message-id", "subscription", "ack", "redelivered", "timestamp", "expire-after", "visible-after", "delivery-count",
		"oci-message-id", "dead-letter-reason", "dead-letter-delivery-count", "dead-letter-at", omittedHeader:
		return reserved
	case "content-type":
		return contentType
	case "delay", "retention":
		return addition
	}
	return customHeader
}

// autoCreate makes the queue that a frame names, if that is wanted and there is
// none.
func (c *conn) autoCreate(ref string) error {
	if !c.server.o.AutoCreate || c.known[ref] {
		return nil
	}
	name := strings.TrimSuffix(ref, queue.DeadSuffix)
	if !queue.Addressable(name) {
		return nil // an OCID: if it is unknown, the request says so
	}
	name = strings.Clone(name)
	id, made, err := c.server.service.EnsureQueue(c.ctx, service.CreateQueueRequest{DisplayName: &name})
	if err != nil {
		return err
	}
	if made {
		c.log.Info("queue created", "queue", name, "id", id)
	}
	if c.known == nil || len(c.known) >= subscriptions {
		c.known = make(map[string]bool)
	}
	c.known[strings.Clone(ref)] = true
	return nil
}
