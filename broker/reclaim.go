package broker

import (
	"context"
	"time"
)

// reclaimer gives the disk of what was deleted back while little is going on.
//
// A deletion is a row too, and what it deletes stays in the tables until both
// meet in a compaction. Under load that is soon: memtables fill up and are
// written out. But a queue that was drained leaves its last deletions in a
// memtable that nobody fills, and Pebble, which counts rows and not what they
// hide, sees nothing to do in a few small tables. So gigabytes of large messages
// would stay for as long as the server is idle.
type reclaimer struct {
	from    int64 // octets of tables that are left alone
	looked  time.Time
	written int64 // octets committed by then
	rest    int64 // octets of tables beside the messages that the last compaction could not give back
}

const (
	reclaimEvery = 10 * time.Second
	rowsOf       = 256       // octets of tables that a message takes beside its own, at most
	littleWrites = 256 << 10 // octets committed in a second while little is going on
)

// wants reports whether most of what the tables hold is deleted and now is the
// time to rewrite them: at most as much is written as is given back. live is
// what there is to be kept.
func (r *reclaimer) wants(b *Broker) (live int64, yes bool) {
	passed := time.Since(r.looked)
	if passed < reclaimEvery {
		return 0, false
	}
	written := b.store.Written()
	busy := float64(written-r.written) > littleWrites*passed.Seconds()
	r.looked, r.written = time.Now(), written
	tables := b.store.TableBytes()
	if busy || tables <= r.from {
		return 0, false
	}
	s := b.Snapshot()
	live = s.Bytes
	for i := range s.Queues {
		n := s.Queues[i].Main.Plus(s.Queues[i].Dead)
		live += rowsOf * (n.Visible + n.InFlight + n.Delayed)
	}
	return live, tables > r.from+2*(live+r.rest)
}

// run rewrites the tables, and notes what is left although nothing there is
// deleted, so that it is not tried for ever.
func (r *reclaimer) run(ctx context.Context, b *Broker, live int64) {
	before := b.store.TableBytes()
	if err := b.store.Compact(ctx); err != nil {
		if ctx.Err() == nil {
			b.log.Error("compact", "error", err)
		}
		return
	}
	after := b.store.TableBytes()
	r.rest = max(0, after-live)
	b.log.Info("disk of deleted messages given back", "tables_before", before, "tables_after", after)
}
