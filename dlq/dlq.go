// Package dlq is the rule of the dead letter queue: when a message moves
// there, and what it looks like afterwards. It moves nothing itself.
//
// A queue with a limit of N delivers a message at most N times. When the Nth
// delivery ends without a delete, the message moves to the dead letter queue
// instead of becoming visible (OCI reference 4.5). It keeps its id, channel
// and delivery count, and its retention starts anew.
package dlq

import (
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// Exhausted reports whether a message with so many deliveries may not be
// delivered again; a limit of 0 allows any number.
func Exhausted(deliveries, limit int) bool { return limit > 0 && deliveries >= limit }

// Bury is the message as it stands in the dead letter queue of q from now on:
// the row and what the engine must know of it.
func Bury(m store.Message, e store.Entry, q *queue.Queue, now queue.Instant) (*store.Message, store.Entry) {
	m.ExpireAfter = now.Add(q.Retention)
	m.DueAt = 0
	m.Indexed = true // dead ones come in any order of ids
	m.Dead = &store.Dead{Reason: queue.DeliveryCountReached, Deliveries: e.Deliveries, At: now}
	e.ExpireAfter = m.ExpireAfter
	e.Indexed = true
	e.Lease = 0
	return &m, e
}
