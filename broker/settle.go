package broker

import (
	"context"
	"time"

	"github.com/queued-mq/queued/dlq"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// VisibilityUpdate is one entry of Update.
type VisibilityUpdate struct {
	Receipt    queue.Receipt
	Visibility time.Duration // 0 makes the message visible at once
	OrOver     bool          // a lease that is over by itself, with no later one, is a success that changes nothing
	Err        error         // set when the caller refused the entry already; kept as its result
}

// VisibilityResult is the outcome of one entry.
type VisibilityResult struct {
	ID           queue.MessageID
	VisibleAfter queue.Instant
	Err          error
}

var (
	errStale      = queue.Errorf(queue.NotAuthorizedOrNotFound, "the receipt is stale: the message was delivered again, moved, or is gone, or its visibility timeout is over")
	errOtherGroup = queue.Errorf(queue.NotAuthorizedOrNotFound, "the receipt is of another consumer group of the queue")

	errOther = queue.Errorf(queue.NotAuthorizedOrNotFound, "the receipt is of another queue")
)

// Delete removes the messages of the receipts, in order, with a result for
// each: nil when the message is gone, durably, whoever removed it.
//
// Errors of an entry: InvalidParameter (not a receipt of ours),
// NotAuthorizedOrNotFound (superseded by a later delivery, moved, or of
// another queue or group). The error return is for the request whole: unknown
// queue, unknown group or overload. group is that of the receipts: "" is the
// primary one, queue.AnyGroup whichever they are of.
func (b *Broker) Delete(ctx context.Context, id, group queue.ID, receipts []queue.Receipt) ([]error, error) {
	q, err := b.find(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := b.newDeletion(q, group, receipts)
	err = b.submit(q, &d.request)
	return d.results, err
}

// StartDelete is Delete for who does not wait; see StartPublish for then.
func (b *Broker) StartDelete(id, group queue.ID, receipts []queue.Receipt, then func([]error, error)) error {
	q, err := b.find(id)
	if err != nil {
		return err
	}
	d := b.newDeletion(q, group, receipts)
	d.then = then
	return b.begin(q, &d.request, d)
}

type deletion struct {
	request
	then    func([]error, error) // of StartDelete
	q       *queueState
	group   queue.ID
	tokens  []visibility.Token
	results []error
}

func (b *Broker) newDeletion(q *queueState, group queue.ID, receipts []queue.Receipt) *deletion {
	d := &deletion{q: q, group: group, tokens: make([]visibility.Token, len(receipts)), results: make([]error, len(receipts))}
	d.what = d
	for i, r := range receipts {
		d.tokens[i], d.results[i] = b.sealer.Open(r)
	}
	return d
}

func (d *deletion) answered(err error) { d.then(d.results, err) }

func (d *deletion) decide(g *group) error {
	of, err := d.q.ofReceipts(d.group)
	if err != nil {
		return err
	}
	for i := range d.tokens {
		if d.results[i] == nil {
			d.results[i] = g.delete(d.q, of, d.tokens[i])
		}
	}
	return nil
}

// ofReceipts is the group that receipts must be of; nil: any.
func (q *queueState) ofReceipts(group queue.ID) (*consumers, error) {
	if !q.q.Live() {
		return nil, errNoQueue
	}
	if group == queue.AnyGroup {
		return nil, nil
	}
	if c := q.find(group); c != nil {
		return c, nil
	}
	return nil, errNoGroup
}

// delete ends the message of one delivery.
func (g *group) delete(q *queueState, of *consumers, t visibility.Token) error {
	d, err := g.locate(q, of, t)
	if err != nil {
		return err
	}
	switch {
	case d.lease != nil:
		g.dropLeased(d.lease)
	case d.returned:
		g.dropReturned(d.lane, d.entry)
	default:
		return nil // gone already, and the receipt is genuine: a success
	}
	d.lane.of.happened(evDeleted, 1)
	return nil
}

// delivery is what has become of a delivery: its lease, the returned message
// it was, or neither, if the message is gone.
type delivery struct {
	lane     *lane
	lease    *lease
	entry    store.Entry
	returned bool
}

// locate finds the message of a receipt, and refuses one that is superseded,
// moved, or of another queue or, unless of is nil, of another group.
func (g *group) locate(q *queueState, of *consumers, t visibility.Token) (delivery, error) {
	if t.Queue != uint64(q.number) {
		return delivery{}, errOther
	}
	if t.Generation != g.b.store.Generation() {
		return delivery{}, errStale
	}
	l := g.numbered(store.LaneID(t.Lane))
	if l == nil { // the lane is gone, with all that was in it
		for _, c := range q.groups {
			if of != nil && c != of { // what became of it in another group says nothing
				continue
			}
			for _, dead := range c.lanes {
				if dead.dead() && g.holds(dead, t.Message) {
					return delivery{}, errStale
				}
			}
		}
		return delivery{}, nil
	}
	if of != nil && l.of != of {
		return delivery{}, errOtherGroup
	}
	if x := l.leases[t.Message]; x != nil {
		if x.Lease.Lease != t.Lease {
			return delivery{}, errStale
		}
		return delivery{lane: l, lease: x}, nil
	}
	if e, ok := g.findReturned(l, t.Message); ok {
		if e.Lease != t.Lease {
			return delivery{}, errStale
		}
		return delivery{lane: l, entry: e, returned: true}, nil
	}
	if !l.dead() {
		if dead := g.known(l.of, true, l.row.Key.Channel); dead != nil && g.holds(dead, t.Message) {
			return delivery{}, errStale
		}
	}
	return delivery{}, nil
}

// holds reports whether a message is in the lane, in flight or returned: a
// message that moved to a dead lane keeps its id there. Where the lane of its
// receipt is gone, and with it the name of the channel, only the dead lanes in
// memory are asked; a dormant one answers "gone" for "moved", and keeps the
// message all the same.
func (g *group) holds(l *lane, id queue.MessageID) bool {
	if l.leases[id] != nil {
		return true
	}
	_, ok := g.findReturned(l, id)
	return ok
}

// Update sets how long messages stay hidden, from now; 0 makes them visible
// at once. Only a receipt whose lease runs may do it; the delivery count stays.
// group is as for Delete.
func (b *Broker) Update(ctx context.Context, id, group queue.ID, entries []VisibilityUpdate) ([]VisibilityResult, error) {
	q, err := b.find(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u := b.newExtension(q, group, entries)
	err = b.submit(q, &u.request)
	return u.results, err
}

// StartUpdate is Update for who does not wait; see StartPublish for then.
func (b *Broker) StartUpdate(id, group queue.ID, entries []VisibilityUpdate, then func([]VisibilityResult, error)) error {
	q, err := b.find(id)
	if err != nil {
		return err
	}
	u := b.newExtension(q, group, entries)
	u.then = then
	return b.begin(q, &u.request, u)
}

type extension struct {
	request
	then    func([]VisibilityResult, error) // of StartUpdate
	q       *queueState
	group   queue.ID
	entries []VisibilityUpdate
	tokens  []visibility.Token
	results []VisibilityResult
}

func (b *Broker) newExtension(q *queueState, group queue.ID, entries []VisibilityUpdate) *extension {
	u := &extension{q: q, group: group, entries: entries, tokens: make([]visibility.Token, len(entries)), results: make([]VisibilityResult, len(entries))}
	u.what = u
	for i, e := range entries {
		if u.results[i].Err = e.Err; e.Err == nil {
			u.tokens[i], u.results[i].Err = b.sealer.Open(e.Receipt)
		}
	}
	return u
}

func (u *extension) answered(err error) { u.then(u.results, err) }

func (u *extension) decide(g *group) error {
	of, err := u.q.ofReceipts(u.group)
	if err != nil {
		return err
	}
	for i := range u.tokens {
		if u.results[i].Err == nil {
			u.results[i] = g.update(u.q, of, u.tokens[i], &u.entries[i])
		}
	}
	return nil
}

func (g *group) update(q *queueState, of *consumers, t visibility.Token, u *VisibilityUpdate) VisibilityResult {
	d, err := g.locate(q, of, t)
	over := err == nil && (d.lease == nil || d.lease.VisibleAfter <= g.now || d.lease.ExpireAfter <= g.now)
	if over && u.OrOver {
		return VisibilityResult{ID: t.Message}
	}
	if over {
		err = errStale
	}
	if err != nil {
		return VisibilityResult{Err: err}
	}
	until := g.now.Add(u.Visibility)
	if u.Visibility > 0 {
		g.extend(d.lease, until)
	} else {
		g.handBack(d.lease)
	}
	return VisibilityResult{ID: t.Message, VisibleAfter: until}
}

// handBack makes the message of a lease visible, as its consumer wants it, or
// dead if this was its last delivery.
func (g *group) handBack(x *lease) {
	if g.lastDelivery(x) {
		g.extend(x, g.now) // it lapses here and now
		g.buryLeased(x)
		return
	}
	g.giveBack(x, x.Entry)
	x.lane.of.happened(evReturned, 1)
}

// lastDelivery reports whether the end of the lease is a move to the dead
// letter queue.
func (g *group) lastDelivery(x *lease) bool {
	return !x.lane.dead() && dlq.Exhausted(int(x.Deliveries), x.lane.of.deliveryLimit())
}
