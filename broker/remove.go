package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// removal is a lane that was given up: its rows are yet to go.
type removal struct {
	dormant store.LaneKey // of a queue: the purged dormant lanes of one of its groups
	lane    store.LaneID
	walk    bool // it may have timer rows, or share bodies, which only its messages tell of
}

// removeAll removes the rows of lanes. A crash in between begins the lane anew
// at the next start, which does no harm.
func (b *Broker) removeAll(ctx context.Context, list []removal) {
	for _, r := range list {
		if r.dormant.Queue != 0 {
			b.removeDormant(ctx, r.dormant)
			continue
		}
		from := queue.MessageID(0)
		var of *store.Body // of the first message that others have too: it says whose the lane was
		for more := r.walk; more && ctx.Err() == nil; {
			var found []store.ScannedMessage
			var err error
			found, more, err = b.store.ScanMessages(r.lane, from, keeperChunk, refillBytes, true)
			if err != nil {
				b.fail(fmt.Errorf("remove: %w", err))
			}
			if i := slices.IndexFunc(found, func(m store.ScannedMessage) bool { return m.Entry.Shared }); i >= 0 && of == nil {
				if of, _, err = b.store.Body(found[i].ID); err != nil {
					b.fail(fmt.Errorf("remove: %w", err))
				}
			}
			if !b.do(func(g *group) {
				for i := range found {
					m := &found[i]
					from = m.ID + 1
					e := store.Entry{ID: m.ID}
					if m.DueAt != 0 {
						g.changes++
						g.effect(store.Effect{Kind: store.Forget, From: store.Delayed, Lane: r.lane, Entry: e, At: m.DueAt})
					}
					if m.Entry.Indexed {
						g.changes++
						g.effect(store.Effect{Kind: store.Forget, From: store.Fresh, Lane: r.lane, Entry: e, At: m.Entry.ExpireAfter})
					}
					if m.Entry.Shared { // never twice, so its row goes with it
						g.changes++
						g.effect(store.Effect{Kind: store.Release, Lane: r.lane, Entry: e})
						g.unshareRemoved(of, &m.Entry)
					}
				}
			}) {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		b.do(func(g *group) {
			g.changes++
			g.cs.Removed = append(g.cs.Removed, r.lane)
		})
	}
}
