package stomp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
	named queue.Receipt // those before it are settled by the way

	// Under conn.mu.
	left int // requests
}

// settle serves ACK and NACK.
func (c *conn) settle(f *frame.Frame) error {
	value, err := c.readSettle(f)
	if err != nil {
		return err
	}
	ref, receipts, err := c.find(f, value, nil)
	if err != nil || len(receipts) == 0 {
		return err
	}
	nack := f.Command == frame.Nack
	s := &settlement{conn: c, named: receipts[len(receipts)-1], left: (len(receipts) + settleMost - 1) / settleMost}
	s.place = c.wait(f, int64(len(receipts))*128)
	for some := range slices.Chunk(receipts, settleMost) {
		if nack {
			c.server.service.StartUpdateMessages(c.ctx, ref, returns(some), func(results []service.VisibilityResult, err error) {
				s.done(some, err, func(i int) error { return results[i].Err })
			})
		} else {
			c.server.service.StartDeleteMessages(c.ctx, ref, some, func(results []error, err error) {
				s.done(some, err, func(i int) error { return results[i] })
			})
		}
	}
	return nil
}

// readSettle is what an ACK or NACK names its message by.
func (c *conn) readSettle(f *frame.Frame) (queue.Receipt, error) {
	if f.Command == frame.Nack && c.version == frame.V10 {
		return "", invalid("STOMP 1.0 has no NACK; connect with 1.1 or 1.2")
	}
	name := idHeader(c.version)
	value, found := f.Get(name)
	if !found || value == "" {
		return "", invalid("%s needs the header %s", f.Command, name)
	}
	return queue.Receipt(value), nil
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
// if it was settled before; then the frame has its place in the line already.
// What is settled is out of the books, unless it is so in a transaction: then
// it is spoken for until that ends.
func (c *conn) find(f *frame.Frame, value queue.Receipt, in *transaction) (ref string, receipts []queue.Receipt, err error) {
	sub, named := f.Get("subscription")
	named = named && c.version == frame.V11
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.subs[sub]; named && u != nil && u.mode == auto {
		return "", nil, invalid("%s on the subscription %.64q, whose messages are settled by being sent (ack:auto)", f.Command, sub)
	}
	d := c.sent[value]
	if d == nil && c.version == frame.V12 {
		if d, value = c.byID(value); d != nil {
			c.quirks |= ackByMessageID
		}
	}
	if !named && c.version == frame.V11 {
		c.quirks |= ackNoSubscription
	}
	if d != nil {
		if named && d.sub.id != sub {
			return "", nil, invalid("the message was not sent on the subscription %.64q", sub)
		}
		u := d.sub
		if t := c.taken[value]; t != nil {
			return "", nil, c.isTaken(f, t, in)
		}
		if in != nil {
			return string(u.get.QueueID()), c.upTo(d), nil
		}
		receipts = u.settle(d)
		u.poke()
		c.begin(receipts)
		return string(u.get.QueueID()), receipts, nil
	}
	if c.settled.has(value) {
		c.quirks |= ackRepeated
		c.again(f, value)
		return "", nil, nil
	}
	if t := c.taken[value]; t != nil {
		return "", nil, c.isTaken(f, t, in)
	}
	// Not one of ours, or not any more: the receipt decides by itself.
	id, err := c.server.service.QueueOf(value)
	switch {
	case queue.CodeOf(err) == queue.InvalidParameter:
		return "", nil, invalid("no message of this session has the %s of this %s, and it is no receipt", idHeader(c.version), f.Command)
	case err != nil:
		return "", nil, err
	}
	if in != nil {
		return string(id), []queue.Receipt{queue.Receipt(strings.Clone(string(value)))}, nil
	}
	receipts = []queue.Receipt{value}
	c.begin(receipts)
	return string(id), receipts, nil
}

// begin notes that receipts are being settled; mu is held.
func (c *conn) begin(receipts []queue.Receipt) {
	if c.settling == nil {
		c.settling = make(map[queue.Receipt][]uint64)
	}
	for _, r := range receipts {
		c.settled.add(r)
		c.settling[r] = nil
	}
}

// again gives its place to a frame about a receipt that has been settled. While
// that is not certain it waits for it; mu is held.
func (c *conn) again(f *frame.Frame, r queue.Receipt) {
	a := c.line.add(f, 0)
	if behind, under := c.settling[r]; under {
		a.done = false
		c.settling[r] = append(behind, c.line.last())
	}
	c.advance()
}

// idHeader is the header by which an ACK names its message.
func idHeader(v frame.Version) string {
	if v == frame.V12 {
		return "id"
	}
	return "message-id"
}

// byID finds a message by its message-id, which old clients of 1.2 send where
// the value of its ack header belongs: the last delivery of it, or the receipt
// that was settled by this name before; mu is held.
func (c *conn) byID(value queue.Receipt) (last *delivery, receipt queue.Receipt) {
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return nil, value
	}
	id := queue.MessageID(n)
	for _, d := range c.sent {
		if d.id == id && (last == nil || d.count > last.count) {
			last = d
		}
	}
	if last == nil {
		return nil, cmp.Or(c.byName[id], value)
	}
	if c.byName == nil || len(c.byName) >= recentMost {
		c.byName = make(map[queue.MessageID]queue.Receipt)
	}
	c.byName[id] = last.receipt
	return last, last.receipt
}

// settle takes d out of the books and, if the mode says so, all that was sent
// before it.
func (u *subscription) settle(d *delivery) (receipts []queue.Receipt) {
	c := u.conn
	one := func(d *delivery) {
		c.close(d)
		receipts = append(receipts, d.receipt)
	}
	if u.mode == cumulative {
		for _, before := range u.order {
			if before == d {
				break
			}
			if !before.over && c.taken[before.receipt] == nil {
				one(before)
			}
		}
	}
	one(d)
	u.trim()
	return receipts
}

// trim lets go of what is settled ahead of all that is not.
func (u *subscription) trim() {
	n := 0
	for n < len(u.order) && u.order[n].over {
		n++
	}
	u.order = u.order[n:]
}

// done is the outcome of one request. The core may call it. What could not be
// done is an ERROR if a RECEIPT was asked for, since that would be untrue.
func (s *settlement) done(receipts []queue.Receipt, err error, result func(int) error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range receipts {
		failure := err
		if err == nil {
			failure = result(i)
		}
		behind := c.settling[r]
		delete(c.settling, r)
		if failure != nil {
			c.settled.remove(r)
			if r != s.named && stale(failure) {
				c.tooLate() // somebody else has it by now
			} else {
				c.note(s.place, failure)
			}
		}
		for _, place := range behind {
			c.note(place, failure)
			c.line.at(place).done = true
		}
	}
	if s.left--; s.left == 0 {
		c.line.at(s.place).done = true
	}
	c.advance()
}

// note adds a failure to the answer at a place; mu is held.
func (c *conn) note(place uint64, err error) {
	a := c.line.at(place)
	switch {
	case err == nil:
	case stale(err) && !a.asked:
		c.tooLate()
	case a.err == nil:
		a.err = err
	}
}
