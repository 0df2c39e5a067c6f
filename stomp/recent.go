package stomp

import (
	"hash/maphash"

	"github.com/queued-mq/queued/queue"
)

// recentMost is how many settled receipts a session remembers, so that the same
// ACK once more is no failure and an ACK behind a NACK deletes nothing.
const recentMost = 1024

// recent is the receipts that were settled last, as their hashes. The zero
// value is empty.
type recent struct {
	seed  maphash.Seed
	ring  []uint64
	at    int // the oldest, once the ring is full
	known map[uint64]bool
}

func (r *recent) add(receipt queue.Receipt) {
	if r.known == nil {
		r.seed, r.known = maphash.MakeSeed(), make(map[uint64]bool)
	}
	h := maphash.String(r.seed, string(receipt))
	if r.known[h] {
		return
	}
	r.known[h] = true
	if len(r.ring) < recentMost {
		r.ring = append(r.ring, h)
		return
	}
	delete(r.known, r.ring[r.at])
	r.ring[r.at] = h
	r.at = (r.at + 1) % recentMost
}

// remove forgets a receipt, which was not settled after all.
func (r *recent) remove(receipt queue.Receipt) {
	if r.known != nil {
		delete(r.known, maphash.String(r.seed, string(receipt))) // its hash stays in the ring for a while
	}
}

func (r *recent) has(receipt queue.Receipt) bool {
	return r.known != nil && r.known[maphash.String(r.seed, string(receipt))]
}
