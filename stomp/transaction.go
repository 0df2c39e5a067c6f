package stomp

import (
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp/frame"
)

// transactions are those that a session has begun and not ended. They are the
// reader's own. What they hold is dropped with the session.
type transactions struct {
	open   map[string]*transaction
	taken  map[queue.Receipt]*transaction // what they settle, spoken for until they end
	octets int64                          // of memory, of all
}

// transaction is frames that were checked and taken in, to be done together.
type transaction struct {
	name   string
	steps  []service.Step
	octets int64
}

// Memory of an action, beside the octets that the client chose.
const (
	sendBytes       = 512
	propertyBytes   = 32
	settlementBytes = 128 // for each message
	nameBytes       = 256
)

var errTransactions = queue.Errorf(queue.MethodNotImplemented, "transactions are not served (stomp.strict); send without BEGIN and the header transaction")

// transact serves BEGIN, COMMIT and ABORT.
func (c *conn) transact(f *frame.Frame, name string) error {
	if c.server.o.Strict {
		return errTransactions
	}
	if name == "" {
		return invalid("%s needs the header transaction", f.Command)
	}
	if f.Command == frame.Begin {
		return c.beginTransaction(f, name)
	}
	t, err := c.transaction(name)
	if err != nil {
		return err
	}
	if f.Command == frame.Commit {
		return c.commit(f, t)
	}
	c.abort(f, t)
	return nil
}

func (c *conn) beginTransaction(f *frame.Frame, name string) error {
	if c.open[name] != nil {
		return invalid("a transaction %.64q is open already", name)
	}
	if len(c.open) >= openTransactions {
		return queue.Errorf(queue.LimitExceeded, "the session has %d open transactions; it may have no more", openTransactions)
	}
	t := &transaction{name: strings.Clone(name)}
	if err := c.hold(t, int64(len(name))+nameBytes); err != nil {
		return err
	}
	if c.open == nil {
		c.open = make(map[string]*transaction)
		c.taken = make(map[queue.Receipt]*transaction)
	}
	c.open[t.name] = t
	c.answerNow(f)
	return nil
}

// transaction is the open one of that name.
func (c *conn) transaction(name string) (*transaction, error) {
	t := c.open[name]
	if t == nil {
		return nil, invalid("no transaction %.64q is open; a transaction begins with BEGIN and ends with COMMIT or ABORT", name)
	}
	return t, nil
}

// hold makes room in t for one action more, of so many octets.
func (c *conn) hold(t *transaction, octets int64) error {
	if len(t.steps) >= transactionActions {
		return queue.Errorf(queue.LimitExceeded, "the transaction has %d actions; it may have no more", transactionActions)
	}
	if most := c.server.o.TransactionBytes; c.octets+octets > most {
		return queue.Errorf(queue.LimitExceeded, "the open transactions of the session hold %d octets, %d more are too many; they may hold %d (stomp.transaction-bytes)",
			c.octets, octets, most)
	}
	c.octets += octets
	t.octets += octets
	return nil
}

// sendIn takes a SEND into a transaction. What was sent before it has its place
// in the line first.
func (c *conn) sendIn(f *frame.Frame, name string) error {
	c.publish()
	if err := c.room(); err != nil {
		return err
	}
	t, err := c.transaction(name)
	if err != nil {
		return err
	}
	d, err := readDestination(f)
	if err != nil {
		return err
	}
	m, err := c.readMessage(f, &d)
	if err != nil {
		return err
	}
	octets := int64(len(m.Content)+len(m.ContentType)+len(d.channel)) + sendBytes
	for _, p := range m.Properties {
		octets += int64(len(p.Name)+len(p.Value)) + propertyBytes
	}
	if err := c.hold(t, octets); err != nil {
		return err
	}
	step, err := c.server.service.TakePut(c.ctx, d.ref, m)
	if err != nil {
		c.fail(f, ofOne(err))
		return nil
	}
	t.steps = append(t.steps, step)
	c.answerNow(f)
	return nil
}

// settleIn takes an ACK or NACK into a transaction. What it settles stays in the
// books, and in the window of its subscription, until the transaction ends.
func (c *conn) settleIn(f *frame.Frame, name string) error {
	t, err := c.transaction(name)
	if err != nil {
		return err
	}
	value, err := c.readSettle(f)
	if err != nil {
		return err
	}
	ref, receipts, err := c.find(f, value, t)
	if err != nil || len(receipts) == 0 {
		return err
	}
	if err := c.hold(t, int64(len(receipts))*settlementBytes); err != nil {
		return err
	}
	step, err := c.server.service.TakeSettlement(c.ctx, ref, receipts, f.Command == frame.Nack)
	if err != nil {
		c.fail(f, err)
		return nil
	}
	for _, r := range receipts {
		c.taken[r] = t
	}
	t.steps = append(t.steps, step)
	c.answerNow(f)
	return nil
}

// upTo is d and, if the mode says so, all that was sent before it and is neither
// settled nor spoken for; mu is held.
func (c *conn) upTo(d *delivery) (receipts []queue.Receipt) {
	if d.sub.mode == cumulative {
		for _, before := range d.sub.order {
			if before == d {
				break
			}
			if !before.over && c.taken[before.receipt] == nil {
				receipts = append(receipts, before.receipt)
			}
		}
	}
	return append(receipts, d.receipt)
}

// isTaken answers an ACK or NACK of what t settles already. In t it is done;
// elsewhere both would settle it, and one of them in vain; mu is held.
func (c *conn) isTaken(f *frame.Frame, t, in *transaction) error {
	if t != in {
		return invalid("the transaction %.64q settles this message; COMMIT or ABORT it first", t.name)
	}
	c.line.add(f, 0)
	c.advance()
	return nil
}

// commit does a transaction: when all before it is done, and before anything
// behind it is looked at. So it is done only if nothing before it failed, and
// keeps its place among what goes to the same queues.
func (c *conn) commit(f *frame.Frame, t *transaction) error {
	if err := c.allAnswered(); err != nil {
		return err
	}
	place := c.wait(f, 0)
	c.server.service.StartCommit(c.ctx, t.steps, func(err error) {
		stored := 1
		if err != nil {
			stored = 0
		}
		c.complete(place, 0, stored, 1, err)
	})
	if err := c.allAnswered(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range t.steps {
		for _, r := range t.steps[i].Receipts() {
			c.settled.add(r)
			if d := c.sent[r]; d != nil {
				c.close(d)
				d.sub.trim()
				d.sub.poke()
			}
		}
	}
	c.drop(t)
	return nil
}

// abort forgets a transaction. What it would have settled is outstanding again,
// or goes back if its subscription has ended meanwhile and says so.
func (c *conn) abort(f *frame.Frame, t *transaction) {
	c.mu.Lock()
	var release []queue.Receipt
	for i := range t.steps {
		for _, r := range t.steps[i].Receipts() {
			if d := c.sent[r]; d != nil && d.sub.ended && d.sub.release {
				release = append(release, r)
				c.close(d)
			}
		}
	}
	c.mu.Unlock()
	c.drop(t)
	c.server.service.Release(release)
	c.answerNow(f)
}

// drop takes a transaction out of the books.
func (c *conn) drop(t *transaction) {
	for i := range t.steps {
		for _, r := range t.steps[i].Receipts() {
			delete(c.taken, r)
		}
	}
	delete(c.open, t.name)
	c.octets -= t.octets
}

// fail puts the failure of a frame into the line, as that of a request of the
// service, which has counted it.
func (c *conn) fail(f *frame.Frame, err error) {
	c.complete(c.wait(f, 0), 0, 0, 1, err)
}

// allAnswered waits until every frame in the line is answered.
func (c *conn) allAnswered() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.line.len() > 0 && !c.hasFailed() {
		c.answered.Wait()
	}
	if c.hasFailed() {
		return errEnded
	}
	return nil
}
