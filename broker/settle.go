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
	Err        error         // set when the caller refused the entry already; kept as its result
}

// VisibilityResult is the outcome of one entry.
type VisibilityResult struct {
	ID           queue.MessageID
	VisibleAfter queue.Instant
	Err          error
}

var (
	errStale = queue.Errorf(queue.NotAuthorizedOrNotFound, "the receipt is stale: the message was delivered again, moved, or is gone, or its visibility timeout is over")
	errOther = queue.Errorf(queue.NotAuthorizedOrNotFound, "the receipt is of another queue")
)

// Delete removes the messages of the receipts, in order, with a result for
// each: nil when the message is gone, durably, whoever removed it.
//
// Errors of an entry: InvalidParameter (not a receipt of ours),
// NotAuthorizedOrNotFound (superseded by a later delivery, moved, or of
// another queue). The error return is for the request whole: unknown queue or
// overload.
func (b *Broker) Delete(ctx context.Context, id queue.ID, receipts []queue.Receipt) ([]error, error) {
	q, err := b.find(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tokens := make([]visibility.Token, len(receipts))
	results := make([]error, len(receipts))
	for i, r := range receipts {
		tokens[i], results[i] = b.sealer.Open(r)
	}
	err = b.submit(q, &request{decide: func(g *group) error {
		if !q.q.Live() {
			return errNoQueue
		}
		for i := range tokens {
			if results[i] == nil {
				results[i] = g.delete(q, tokens[i])
			}
		}
		return nil
	}})
	return results, err
}

// delete ends the message of one delivery.
func (g *group) delete(q *queueState, t visibility.Token) error {
	d, err := g.locate(q, t)
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
	q.events[evDeleted]++
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
// moved, or of another queue.
func (g *group) locate(q *queueState, t visibility.Token) (delivery, error) {
	if t.Queue != uint64(q.number) {
		return delivery{}, errOther
	}
	if t.Generation != g.b.store.Generation() {
		return delivery{}, errStale
	}
	l := g.numbered(store.LaneID(t.Lane))
	if l == nil { // the lane is gone, with all that was in it
		for _, dead := range q.lanes {
			if dead.dead() && g.holds(dead, t.Message) {
				return delivery{}, errStale
			}
		}
		return delivery{}, nil
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
		if dead := g.known(q, true, l.row.Key.Channel); dead != nil && g.holds(dead, t.Message) {
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
func (b *Broker) Update(ctx context.Context, id queue.ID, entries []VisibilityUpdate) ([]VisibilityResult, error) {
	q, err := b.find(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tokens := make([]visibility.Token, len(entries))
	results := make([]VisibilityResult, len(entries))
	for i, e := range entries {
		if results[i].Err = e.Err; e.Err == nil {
			tokens[i], results[i].Err = b.sealer.Open(e.Receipt)
		}
	}
	err = b.submit(q, &request{decide: func(g *group) error {
		if !q.q.Live() {
			return errNoQueue
		}
		for i := range tokens {
			if results[i].Err == nil {
				results[i] = g.update(q, tokens[i], entries[i].Visibility)
			}
		}
		return nil
	}})
	return results, err
}

func (g *group) update(q *queueState, t visibility.Token, hidden time.Duration) VisibilityResult {
	d, err := g.locate(q, t)
	if err == nil && (d.lease == nil || d.lease.VisibleAfter <= g.now || d.lease.ExpireAfter <= g.now) {
		err = errStale
	}
	if err != nil {
		return VisibilityResult{Err: err}
	}
	until := g.now.Add(hidden)
	switch {
	case hidden > 0:
		g.extend(d.lease, until)
	case g.lastDelivery(d.lease):
		g.extend(d.lease, until) // it lapses here and now
		g.buryLeased(d.lease)
	default:
		g.giveBack(d.lease, d.lease.Entry)
		q.events[evReturned]++
	}
	return VisibilityResult{ID: t.Message, VisibleAfter: until}
}

// lastDelivery reports whether the end of the lease is a move to the dead
// letter queue.
func (g *group) lastDelivery(x *lease) bool {
	return !x.lane.dead() && dlq.Exhausted(int(x.Deliveries), x.lane.of.q.DeadLetterDeliveryCount)
}
