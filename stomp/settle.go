package stomp

import (
	"strconv"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// settleMost is how many messages one request settles; a cumulative ACK of more
// is more than one request.
const settleMost = 100

// settlement is one ACK or NACK under way.
type settlement struct {
	conn  *conn
	place uint64
	asked bool // for a RECEIPT: then what could not be done is an ERROR

	// Under conn.mu.
	left  int   // requests
	err   error // the first that ends the session
	stale bool  // some receipt did not hold any more
}

// settle serves ACK and NACK.
func (c *conn) settle(f *frame.Frame) error {
	nack := f.Command == frame.Nack
	if nack && c.version == frame.V10 {
		return invalid("STOMP 1.0 has no NACK; connect with 1.1 or 1.2")
	}
	name := idHeader(c.version)
	value, found := f.Get(name)
	if !found || value == "" {
		return invalid("%s needs the header %s", f.Command, name)
	}
	ref, receipts, err := c.find(f, value)
	if err != nil {
		return err
	}
	if len(receipts) == 0 { // settled on this session before
		c.answerNow(f)
		return nil
	}
	_, asked := f.Get("receipt")
	s := &settlement{conn: c, asked: asked, left: (len(receipts) + settleMost - 1) / settleMost}
	s.place = c.wait(f, int64(len(receipts))*128)
	for len(receipts) > 0 {
		some := receipts[:min(len(receipts), settleMost)]
		receipts = receipts[len(some):]
		if nack {
			c.server.service.StartUpdateMessages(c.ctx, ref, returns(some), s.returned)
		} else {
			c.server.service.StartDeleteMessages(c.ctx, ref, some, s.deleted)
		}
	}
	return nil
}

// returns makes the messages of the receipts visible. Those that have come back
// by themselves are as they should be.
func returns(receipts []queue.Receipt) []service.UpdateMessagesEntry {
	now := new(int32)
	entries := make([]service.UpdateMessagesEntry, len(receipts))
	for i, r := range receipts {
		entries[i] = service.UpdateMessagesEntry{Receipt: r, VisibilityInSeconds: now, OrOver: true}
	}
	return entries
}

// find is what an ACK or NACK of value settles, and the queue of it. Nothing,
// if it was settled before.
func (c *conn) find(f *frame.Frame, value string) (ref string, receipts []queue.Receipt, err error) {
	sub, named := f.Get("subscription")
	named = named && c.version == frame.V11
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.subs[sub]; named && u != nil && u.mode == auto {
		return "", nil, invalid("%s on the subscription %.64q, whose messages are settled by being sent (ack:auto)", f.Command, sub)
	}
	d := c.sent[queue.Receipt(value)]
	if d == nil && c.version == frame.V12 {
		d = c.byID(value)
	}
	if d != nil {
		if named && d.sub.id != sub {
			return "", nil, invalid("the message was not sent on the subscription %.64q", sub)
		}
		u := d.sub
		receipts = u.settle(d)
		u.poke()
		return string(u.get.QueueID()), receipts, nil
	}
	if c.settled.has(queue.Receipt(value)) {
		return "", nil, nil
	}
	// Not one of ours, or not any more: the receipt decides by itself.
	id, err := c.server.service.QueueOf(queue.Receipt(value))
	switch {
	case queue.CodeOf(err) == queue.InvalidParameter:
		return "", nil, invalid("no message of this session has the %s of this %s, and it is no receipt", idHeader(c.version), f.Command)
	case err != nil:
		return "", nil, err
	}
	c.settled.add(queue.Receipt(value))
	return string(id), []queue.Receipt{queue.Receipt(value)}, nil
}

// idHeader is the header by which an ACK names its message.
func idHeader(v frame.Version) string {
	if v == frame.V12 {
		return "id"
	}
	return "message-id"
}

// byID finds a message by its message-id, which old clients of 1.2 send where
// the value of its ack header belongs.
func (c *conn) byID(value string) *delivery {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return nil
	}
	for _, u := range c.subs {
		for _, d := range u.order {
			if d.id == queue.MessageID(n) && !d.over {
				return d
			}
		}
	}
	return nil
}

// settle takes d out of the books and, if the mode says so, all that was sent
// before it.
func (u *subscription) settle(d *delivery) (receipts []queue.Receipt) {
	c := u.conn
	one := func(d *delivery) {
		c.close(d)
		c.settled.add(d.receipt)
		receipts = append(receipts, d.receipt)
	}
	if u.mode == cumulative {
		for _, before := range u.order {
			if before == d {
				break
			}
			if !before.over {
				one(before)
			}
		}
	}
	one(d)
	n := 0
	for n < len(u.order) && u.order[n].over {
		n++
	}
	u.order = u.order[n:]
	return receipts
}

func (s *settlement) deleted(results []error, err error) {
	s.done(err, len(results), func(i int) error { return results[i] })
}

func (s *settlement) returned(results []service.VisibilityResult, err error) {
	s.done(err, len(results), func(i int) error { return results[i].Err })
}

// done is the outcome of one request. The core may call it.
func (s *settlement) done(err error, n int, result func(int) error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	note := func(err error) {
		switch {
		case err == nil:
		case stale(err) && !s.asked:
			s.stale = true
		case s.err == nil:
			s.err = err
		}
	}
	if note(err); err == nil {
		for i := range n {
			note(result(i))
		}
	}
	if s.left--; s.left > 0 {
		return
	}
	if s.stale && s.err == nil {
		c.oddStale = true // the reader logs it
	}
	a := c.line.at(s.place)
	a.done, a.err = true, s.err
	c.advance()
}
