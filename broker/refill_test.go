package broker

import (
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// What is read for a window may be older than what the core has decided since:
// a message that is gone must not come in, one that has changed or has come
// back must come in as it is now.
func TestMergeOfAnOldRead(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.close()
		x.o.WindowSize = 4
		x.open()
		x.limit(id, 0)
		x.put(id, "", make([]string, 12)...)
		held := x.get(ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Hour})
		for took := 1; took < 12; {
			took += len(x.get(ReceiveRequest{Queue: id, Visibility: time.Second}))
		}
		time.Sleep(2 * time.Second) // all are back
		var l *lane
		x.b.do(func(g *group) {
			for _, l = range g.b.lanes {
			}
			old, more, err := x.s.ScanReturned(l.row.ID, 0, 100)
			if err != nil || more || len(old) != 11 || l.refill != nil || l.returned.through == wholeLane {
				t.Errorf("read %d, %v, %v; the window goes up to %d", len(old), more, err, l.returned.through)
				return
			}
			r := &refill{window: &l.returned, from: l.returned.through + 1, room: 100, removed: make(map[queue.MessageID]bool), limit: wholeLane}
			l.refill = r
			var above []store.Entry
			for _, e := range old {
				if e.ID >= r.from {
					above = append(above, e)
				}
			}
			// Of what lies above the window: the first is deleted, the
			// second changes, the third goes and comes again.
			g.dropReturned(l, above[0])
			for _, i := range []int{1, 2} {
				e := above[i]
				g.touch(l)
				g.removeReturned(l, e.ID)
				e.Deliveries += uint32(100 * i)
				g.effect(store.Effect{Kind: store.Return, From: store.Returned, Lane: l.row.ID, Entry: e})
				g.addReturned(l, e)
			}
			l.returned.cap = 100 // so that all can be looked at
			g.merge(l.row.ID, r, above, nil, wholeLane)
		})
		x.b.do(func(g *group) {
			now, _, err := x.s.ScanReturned(l.row.ID, 0, 100)
			if err != nil || len(now) != 10 || l.returned.len() != len(now) {
				t.Errorf("%d are on disk, %d in memory, %v", len(now), l.returned.len(), err)
				return
			}
			for i, e := range l.returned.live() {
				if e != now[i] {
					t.Errorf("in memory %+v, on disk %+v", e, now[i])
				}
			}
		})
		x.deleteAll(id, held)
		if _, err := takeCensus(x.s, true); err != nil {
			t.Error(err)
		}
	})
}
