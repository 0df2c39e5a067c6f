package broker

import (
	"fmt"
	"sort"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/visibility"
)

// Action is one step of a transaction: a message that is published, or a
// delivery that ends.
type Action struct {
	Queue   queue.ID
	Message *queue.NewMessage // to publish; nil: the delivery of Receipt ends
	Receipt queue.Receipt     // of any consumer group of the queue
	Return  bool              // the message is visible again instead of deleted
}

// ActionError is why a transaction was refused, and which of its actions could
// not be done.
type ActionError struct {
	Action int // from 0
	Err    error
}

func (e *ActionError) Error() string { return fmt.Sprintf("action %d: %v", e.Action, e.Err) }

// Unwrap is what the action would have been refused with by itself.
func (e *ActionError) Unwrap() error { return e.Err }

// StartTransact does all the actions, whichever queues they are of, or none of
// them. then is called once, when they are durable, with what became of the
// messages, in the order of their actions, which is that of those of one queue;
// see StartPublish for by whom. Form and sizes are the caller's to check; the
// messages must not be changed afterwards.
//
// A delivery can be ended only while its lease runs: one that has lapsed, was
// superseded or whose message is at its end refuses the whole, as does a receipt
// that comes twice. Storage is judged with all messages of the transaction
// together, and without what its deletes will free.
//
// Errors: an ActionError of NotAuthorizedOrNotFound, InvalidParameter (not a
// receipt of ours) or LimitExceeded; by itself LimitExceeded (of the tenancy),
// InsufficientStorage, ServiceUnavailable. Those of StartTransact itself are
// among them; then is not called after one.
func (b *Broker) StartTransact(actions []Action, then func([]queue.Published, error)) error {
	if len(actions) == 0 {
		then(nil, nil)
		return nil
	}
	t, err := b.newTransaction(actions)
	if err != nil {
		return err
	}
	t.then = then
	for _, e := range t.ends {
		e.q.pace.consumed()
	}
	return b.begin(t.turn(), &t.request, t)
}

type transaction struct {
	request
	then func([]queue.Published, error)
	puts []*puts // queue by queue
	ends []ending
	out  []queue.Published
}

// puts is the messages that a transaction publishes to one queue.
type puts struct {
	publish
	actions []int
	places  []int // of the messages, among all of the transaction
}

// ending is the end of one delivery.
type ending struct {
	action int
	q      *queueState
	token  visibility.Token
	back   bool
	lease  *lease // of the delivery, once it was found to run
}

func (b *Broker) newTransaction(actions []Action) (*transaction, error) {
	t := &transaction{}
	t.what = t
	of := make(map[*queueState]*puts)
	for i := range actions {
		a := &actions[i]
		q, err := b.find(a.Queue)
		if err != nil {
			return nil, &ActionError{i, err}
		}
		if a.Message == nil {
			token, err := b.sealer.Open(a.Receipt)
			if err != nil {
				return nil, &ActionError{i, err}
			}
			t.ends = append(t.ends, ending{action: i, q: q, token: token, back: a.Return})
			continue
		}
		p := of[q]
		if p == nil {
			p = &puts{publish: publish{q: q}}
			of[q] = p
			t.puts = append(t.puts, p)
		}
		p.actions, p.places = append(p.actions, i), append(p.places, len(t.out))
		t.out = append(t.out, queue.Published{})
		p.r.Messages = append(p.r.Messages, *a.Message)
		p.size += a.Message.Size()
		t.bytes += a.Message.Size()
	}
	t.publishes = len(t.puts) > 0
	return t, nil
}

// turn is the queue in whose turn the transaction waits: one of those it
// changes.
func (t *transaction) turn() *queueState {
	if t.publishes {
		return t.puts[0].q
	}
	return t.ends[0].q
}

func (t *transaction) answered(err error) {
	if err != nil {
		t.out = nil
	}
	t.then(t.out, err)
}

func (t *transaction) decide(g *group) error {
	if err := t.checkPuts(g); err != nil {
		return err
	}
	if err := t.checkEnds(g); err != nil {
		return err
	}
	for i := range t.ends { // nothing is refused from here on
		switch e := &t.ends[i]; {
		case e.back:
			g.handBack(e.lease)
		default:
			g.dropLeased(e.lease)
			e.lease.lane.of.happened(evDeleted, 1)
		}
	}
	for _, p := range t.puts {
		for i := range p.r.Messages {
			t.out[p.places[i]] = g.put(p.q, &p.r.Messages[i])
		}
		p.q.events[evPublished] += int64(len(p.r.Messages))
	}
	return nil
}

// checkPuts looks at the queues, the disk and what is stored.
func (t *transaction) checkPuts(g *group) error {
	if !t.publishes {
		return nil
	}
	for _, p := range t.puts {
		if !p.q.q.Live() {
			return &ActionError{p.actions[0], errNoQueue}
		}
	}
	if err := g.b.disk.publish(); err != nil {
		return err
	}
	for _, p := range t.puts {
		if err := p.check(g, p.r.Messages, p.size); err != nil {
			return p.tooMany(g, err)
		}
	}
	return g.b.limits.CheckTenancyBytes(g.b.bytes, t.bytes)
}

// tooMany names the first message that is one too many, when all are refused
// with err.
func (p *puts) tooMany(g *group, err error) error {
	size := int64(0)
	sizes := make([]int64, len(p.r.Messages)) // of all up to each
	for i := range p.r.Messages {
		size += p.r.Messages[i].Size()
		sizes[i] = size
	}
	first := sort.Search(len(sizes)-1, func(i int) bool {
		return p.check(g, p.r.Messages[:i+1], sizes[i]) != nil
	})
	return &ActionError{p.actions[first], err}
}

// checkEnds finds the leases, all of which must run.
func (t *transaction) checkEnds(g *group) error {
	taken := make(map[*lease]bool, len(t.ends))
	for i := range t.ends {
		e := &t.ends[i]
		if !e.q.q.Live() {
			return &ActionError{e.action, errNoQueue}
		}
		d, err := g.locate(e.q, nil, e.token)
		if err == nil && (d.lease == nil || !d.lease.runs(g.now) || taken[d.lease]) {
			err = errStale
		}
		if err != nil {
			return &ActionError{e.action, err}
		}
		e.lease = d.lease
		taken[d.lease] = true
	}
	return nil
}

// runs reports whether the message is still whose delivery it was, and nobody
// else's soon.
func (x *lease) runs(now queue.Instant) bool {
	return !x.burying && x.VisibleAfter > now && x.ExpireAfter > now
}
