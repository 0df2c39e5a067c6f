package stomp

import (
	"hash/maphash"
	"slices"

	"github.com/queued-mq/queued/queue"
)

// recentMost is how many settled receipts a session remembers, so that the same
// ACK once more is no failure and an ACK behind a NACK deletes nothing.
const recentMost = 1024

// recent is the receipts that were settled last, as their hashes. They are
// asked for only when an ACK names none that is outstanding, so they lie in a
// plain ring. The zero value is empty.
type recent struct {
	seed maphash.Seed
	ring []uint64
	at   int // the oldest, once the ring is full
}

func (r *recent) hash(receipt queue.Receipt) uint64 {
	if r.ring == nil {
		r.seed = maphash.MakeSeed()
	}
	return maphash.String(r.seed, string(receipt))
}

func (r *recent) add(receipt queue.Receipt) {
	h := r.hash(receipt)
	if len(r.ring) < recentMost {
		r.ring = append(r.ring, h)
		return
	}
	r.ring[r.at] = h
	r.at = (r.at + 1) % recentMost
}

// remove forgets a receipt, which was not settled after all.
func (r *recent) remove(receipt queue.Receipt) {
	if at := slices.Index(r.ring, r.hash(receipt)); at >= 0 {
		r.ring[at] = 0
	}
}

func (r *recent) has(receipt queue.Receipt) bool {
	return len(r.ring) > 0 && slices.Contains(r.ring, r.hash(receipt))
}
