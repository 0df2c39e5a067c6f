package broker

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// Admin runs f inside the core: nothing else is decided meanwhile, and all
// that f changes through tx is one durable step. f must check first and change
// afterwards; when it returns an error it must have changed nothing. f must be
// quick and must not call the broker.
func (b *Broker) Admin(ctx context.Context, f func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.submit(&b.adminQueue, &request{what: admin(f)})
}

// admin is the decision of an Admin.
type admin func(*Tx) error

func (f admin) decide(g *group) error { return f(&Tx{g}) }

// Tx is what a control-plane operation sees and changes. It is valid only
// inside Admin.
type Tx struct{ g *group }

// Now is the instant of the change.
func (tx *Tx) Now() queue.Instant { return tx.g.now }

// Queue is the queue of that id, deleted ones included while they are kept.
func (tx *Tx) Queue(id queue.ID) (queue.Queue, bool) {
	if q := tx.find(id); q != nil {
		return q.q, true
	}
	return queue.Queue{}, false
}

func (tx *Tx) find(id queue.ID) *queueState { return tx.g.b.byID[id] }

// Queues yields all queues, deleted ones included while they are kept, in
// the order of their creation.
func (tx *Tx) Queues() iter.Seq[queue.Queue] {
	numbers := slices.Sorted(maps.Keys(tx.g.b.queues))
	return func(yield func(queue.Queue) bool) {
		for _, n := range numbers {
			if q := tx.g.b.queues[n]; q != nil && !yield(q.q) {
				return
			}
		}
	}
}

// PutQueue creates the queue or replaces it whole. A change to the state
// Deleted removes all its messages and ends those who wait on it. The broker
// sets Version itself, one higher at each put.
func (tx *Tx) PutQueue(q queue.Queue) {
	g := tx.g
	g.changes++
	b := g.b
	s := tx.find(q.ID)
	if s == nil {
		b.state.Queue++
		s = b.addQueue(&store.Queue{Number: b.state.Queue, Queue: q})
	}
	q.Version = s.q.Version + 1
	s.q = q
	if q.State == queue.Deleted {
		for _, c := range slices.Clone(s.groups) {
			g.dismiss(c, errNoQueue)
			if c.group.State, c.group.UpdatedAt = queue.Deleted, q.UpdatedAt; c.group.ID == "" || c.number == unrouted {
				g.purgeAll(c)
				continue
			}
			c.group.Version++
			g.dropGroup(c)
		}
	}
	g.cs.Queues = append(g.cs.Queues, s.row())
	g.catalog = true
	g.serve(s) // a setting may let somebody have what they wait for
}

// DropQueue forgets a queue that is Deleted; any other is left alone.
func (tx *Tx) DropQueue(id queue.ID) {
	g, s := tx.g, tx.find(id)
	if s == nil || s.q.State != queue.Deleted {
		return
	}
	g.changes++
	g.cs.GoneQueues = append(g.cs.GoneQueues, s.number)
	delete(g.b.queues, s.number)
	delete(g.b.byID, id)
	g.catalog = true
}

// Purge removes the messages that a consumer group of the queue has now: of
// the channels named (also of "", the queue outside all channels), or all if
// channels is nil. "" is the primary group. It reports how many.
func (tx *Tx) Purge(id, group queue.ID, what queue.PurgeType, channels []string) int64 {
	s := tx.find(id)
	if s == nil || s.find(group) == nil {
		return 0
	}
	c, n := s.find(group), int64(0)
	if what != queue.PurgeNormal {
		if channels == nil {
			n += tx.g.purgeDormant(c)
		}
		for _, channel := range channels {
			tx.g.known(c, true, channel)
		}
	}
	for key, l := range c.lanes {
		if (what == queue.PurgeNormal && key.Dead) || (what == queue.PurgeDLQ && !key.Dead) {
			continue
		}
		if channels == nil || slices.Contains(channels, key.Channel) {
			n += tx.g.purge(l)
		}
	}
	return n
}

// purgeAll removes all that a group has.
func (g *group) purgeAll(c *consumers) int64 {
	n := g.purgeDormant(c)
	for _, l := range c.lanes {
		n += g.purge(l)
	}
	return n
}

// PutWorkRequest stores a work request, or replaces the one of the same id and
// AcceptedAt.
func (tx *Tx) PutWorkRequest(w queue.WorkRequest) {
	tx.g.changes++
	tx.g.cs.Work = append(tx.g.cs.Work, w)
}

// DropWorkRequest forgets a work request; ID and AcceptedAt say which.
func (tx *Tx) DropWorkRequest(w queue.WorkRequest) {
	tx.g.changes++
	tx.g.cs.GoneWork = append(tx.g.cs.GoneWork, w)
}

// RetryToken is what PutRetryToken stored under scope and token in the last
// 24 h.
func (tx *Tx) RetryToken(scope, token string) ([]byte, bool) {
	t, found := tx.g.token("admin/"+scope, token)
	return t.Value, found
}

// PutRetryToken keeps value for 24 h. Neither scope nor token may hold a NUL.
func (tx *Tx) PutRetryToken(scope, token string, value []byte) {
	tx.g.changes++
	tx.g.cs.Tokens = append(tx.g.cs.Tokens, store.RetryToken{Scope: "admin/" + scope, Token: token, At: tx.g.now, Value: value})
}

// token finds a retry token of the last 24 h, one of this group included.
func (g *group) token(scope, token string) (store.RetryToken, bool) {
	for _, t := range g.cs.Tokens {
		if t.Scope == scope && t.Token == token {
			return t, true
		}
	}
	t, found, err := g.b.store.RetryToken(scope, token)
	if err != nil {
		g.b.fail(err)
	}
	if !found || g.now.Sub(t.At) >= tokenLife {
		return store.RetryToken{}, false
	}
	return t, true
}

// countTokens counts the retry tokens of publishes, which are limited.
func (b *Broker) countTokens() error {
	all, err := b.store.RetryTokens(b.clock.Now().Add(tokenLife), int(^uint(0)>>1))
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	for _, t := range all {
		if q := b.queueOfToken(t.Scope); q != nil {
			q.tokens++
		}
	}
	return nil
}

func tokenScope(n store.QueueNumber) string { return fmt.Sprintf("publish/%d", n) }

// queueOfToken is the queue whose publish a token belongs to, nil if none.
func (b *Broker) queueOfToken(scope string) *queueState {
	var n store.QueueNumber
	if number, ok := strings.CutPrefix(scope, "publish/"); ok {
		if _, err := fmt.Sscan(number, &n); err == nil {
			return b.queues[n]
		}
	}
	return nil
}

func (b *Broker) addQueue(q *store.Queue) *queueState {
	s := &queueState{number: q.Number, q: q.Queue, channels: make(map[string]int)}
	s.groups = []*consumers{newConsumers(s, 0, q.DeadThrough, &b.waiting)}
	s.last, s.shared.through = q.LastGroup, q.SharedThrough
	b.addGroups(s, q.Groups)
	b.queues[q.Number] = s
	b.byID[q.ID] = s
	return s
}

// byNumber orders queues by age.
func byNumber(a, b *queueState) int { return cmp.Compare(a.number, b.number) }
