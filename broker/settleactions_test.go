package broker

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// The actions with receipts, alone and many at once.

// receipts are some that were given out, sooner or later, some more than once.
func (w *world) receipts(most int) []issued {
	out := []issued{}
	if len(w.issued) == 0 {
		return out
	}
	var alive []issued
	for _, r := range w.issued {
		if _, there, ok := w.delivery(r.q, r); there && ok {
			alive = append(alive, r)
		}
	}
	for range 1 + w.roll("receipts", most) {
		from := w.issued[max(0, len(w.issued)-40):]
		if len(alive) > 0 && w.roll("alive", 4) > 0 {
			from = alive
		}
		out = append(out, from[len(from)-1-w.roll("back", len(from))])
	}
	return out
}

// delivery is what has become of one; ok is false when the receipt is stale.
func (w *world) delivery(q *wantQueue, r issued) (m want, there, ok bool) {
	if r.q != q {
		return m, false, false
	}
	m, there = w.messages[place{r.id, r.group}]
	return m, there, !there || m.dead == r.dead && m.lease == r.lease
}

func (w *world) delete() {
	q := w.queue()
	list, group := w.ofOne(q, w.receipts(5))
	receipts := []queue.Receipt{}
	for _, r := range list {
		receipts = append(receipts, r.receipt)
	}
	garbage := w.roll("garbage", 6) == 0
	if garbage {
		receipts = append(receipts, "garbage")
	}
	w.note("delete from %s %q %v", q.ID, group, numbers(list))
	errs, err := w.b.Delete(context.Background(), q.ID, group, receipts)
	if err != nil || len(errs) != len(receipts) {
		w.fail("delete: %v, %v", errs, err)
	}
	if garbage && queue.CodeOf(errs[len(list)]) != queue.InvalidParameter {
		w.fail("delete of a receipt that is none: %v", errs[len(list)])
	}
	w.deleted(q, list, errs, group != queue.AnyGroup)
	w.settle(0)
}

// deleted takes a delete into the model; named says that their group was.
func (w *world) deleted(q *wantQueue, list []issued, errs []error, named bool) {
	w.t.Helper()
	for i, r := range list {
		m, there, ok := w.delivery(q, r)
		if errs[i] == nil && there && m.dead && !r.dead && r.q == q && w.o.DeadLanes > 0 {
			// Its first lane is gone, and the dead one is dormant.
			w.hits["gone for moved"]++
			continue
		}
		if errs[i] != nil && !there && r.q == q && !named && w.deadElsewhere(r) {
			// Its first lane is gone, so it may have been of any group.
			w.hits["moved for gone"]++
			continue
		}
		if code := queue.CodeOf(errs[i]); ok != (code == "") || !ok && code != queue.NotAuthorizedOrNotFound {
			w.fail("delete %d of message %d by lease %d: %v; there %v, %+v", i, r.id, r.lease, errs[i], there, m)
		}
		if ok && there {
			delete(w.messages, m.place())
			w.hits["deleted"]++
			if m.state == visible {
				w.hits["deleted after its lease"]++
			}
		} else if !ok {
			w.hits["stale delete"]++
		}
	}
}

func numbers(list []issued) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%d by lease %d, ", r.id, r.lease)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

func (w *world) update() {
	q := w.queue()
	list, group := w.ofOne(q, w.receipts(5))
	entries := w.newUpdates(list)
	w.note("update in %s %q %v: %v", q.ID, group, numbers(list), lengths(entries))
	results, err := w.b.Update(context.Background(), q.ID, group, entries)
	if err != nil || len(results) != len(entries) {
		w.fail("update: %v, %v", results, err)
	}
	w.updated(q, list, entries, results)
	w.settle(0)
}

func (w *world) newUpdates(list []issued) []VisibilityUpdate {
	entries := []VisibilityUpdate{}
	for _, r := range list {
		entries = append(entries, VisibilityUpdate{Receipt: r.receipt,
			Visibility: pick(w, "hidden", 0, 0, time.Second, 30*time.Second, 10*time.Minute)})
	}
	return entries
}

func lengths(entries []VisibilityUpdate) (out []time.Duration) {
	for _, e := range entries {
		out = append(out, e.Visibility)
	}
	return out
}

func (w *world) updated(q *wantQueue, list []issued, entries []VisibilityUpdate, results []VisibilityResult) {
	w.t.Helper()
	now := w.now()
	for i, r := range list {
		m, there, ok := w.delivery(q, r)
		ok = ok && there && m.state == inFlight && m.until > now && m.expire > now
		if code := queue.CodeOf(results[i].Err); ok != (code == "") || !ok && code != queue.NotAuthorizedOrNotFound {
			w.fail("update %d of message %d by lease %d: %v; %+v", i, r.id, r.lease, results[i].Err, m)
		}
		if !ok {
			w.hits["stale update"]++
			continue
		}
		m.until = now.Add(entries[i].Visibility)
		if results[i].VisibleAfter != m.until || results[i].ID != m.id {
			w.fail("update %d of message %d says %+v, want until %s", i, r.id, results[i], m.until)
		}
		if entries[i].Visibility == 0 && !m.exhausted() {
			m.state = visible
		}
		w.messages[m.place()] = m
		w.hits["updated"]++
	}
}

// undeliver takes deliveries back.
func (w *world) undeliver() {
	list := w.receipts(3)
	w.note("undeliver %v", numbers(list))
	var receipts []queue.Receipt
	for _, r := range list {
		receipts = append(receipts, r.receipt)
	}
	w.b.Undeliver(receipts)
	for _, r := range list {
		m, there, ok := w.delivery(r.q, r)
		if !there || !ok {
			continue
		}
		if m.state == visible && (m.exhausted() || m.expire <= w.now()) {
			// It may be parked; then it is left alone.
			synctest.Wait()
			c, err := takeCensus(w.s, false)
			if err != nil {
				w.fail("%v", err)
			}
			if row := c.messages[m.place()]; row != nil && row.Lease != 0 {
				continue
			}
		}
		m.deliveries--
		m.lease, m.state = 0, visible
		w.messages[m.place()] = m
		w.hits["undelivered"]++
	}
	synctest.Wait() // there is no answer that could be waited for
	w.settle(0)
}

// give up: a get whose client is gone when the answer comes.
func (w *world) abandon() {
	q := w.queue()
	r := w.newGet(q)
	ctx, cancel := context.WithCancel(context.Background())
	w.note("get from %s %q, abandoned: dead %v filter %q hidden %v", q.ID, r.Group, r.Dead, r.Filter, r.Visibility)
	gate, admin := make(chan struct{}), make(chan error)
	go func() {
		admin <- w.b.Admin(context.Background(), func(*Tx) error { <-gate; return nil })
	}()
	synctest.Wait()
	out := make(chan got)
	go func() {
		d, err := w.b.Receive(ctx, r)
		out <- got{r, q, d, err}
	}()
	synctest.Wait()
	if w.roll("late", 2) == 0 {
		go func() {
			// It ends at some moment of the decision and the sync.
			for range w.roll("moment", 30) {
				runtime.Gosched()
			}
			cancel()
		}()
	} else {
		cancel()
	}
	close(gate)
	g := <-out
	cancel()
	if err := <-admin; err != nil {
		w.fail("admin: %v", err)
	}
	if q.state(r.Group) != queue.Active && g.err != context.Canceled {
		w.refusedGet(g)
	} else if g.err == nil {
		w.hits["served before it was abandoned"]++
		w.received(g, w.now(), true)
	} else if g.err != context.Canceled || len(g.out) > 0 {
		w.fail("an abandoned get: %v, %v", g.out, g.err)
	}
	// A delivery that was taken back has superseded the one before.
	synctest.Wait()
	c, err := takeCensus(w.s, false)
	if err != nil {
		w.fail("%v", err)
	}
	for _, m := range w.these(q, g.number(), r.Dead, r.Filter) {
		if row := c.messages[m.place()]; row != nil && m.state == visible && row.state == store.Returned && row.Lease == 0 && g.err != nil {
			m.lease = 0
			w.messages[m.place()] = m
		}
	}
	w.settle(w.now())
}

// volley has several requests decided in one group.
func (w *world) volley() {
	q := w.queue()
	var calls []func()
	var sends []*sent
	var gets []*got
	var settles []func()
	what := []string{}
	for range 2 + w.roll("requests", 5) {
		switch w.roll("request", 4) {
		case 0:
			s := &sent{PublishRequest: PublishRequest{Queue: q.ID, Messages: w.newMessages(q, 3)}}
			sends = append(sends, s)
			what = append(what, "publish")
			calls = append(calls, func() { s.out, s.err = w.b.Publish(context.Background(), s.PublishRequest) })
		case 1:
			list := w.receipts(3)
			var receipts []queue.Receipt
			for _, r := range list {
				receipts = append(receipts, r.receipt)
			}
			var errs []error
			what = append(what, "delete "+numbers(list))
			calls = append(calls, func() { errs, _ = w.b.Delete(context.Background(), q.ID, queue.AnyGroup, receipts) })
			settles = append(settles, func() { w.deleted(q, list, errs, false) })
		case 2:
			list := w.receipts(3)
			entries := w.newUpdates(list)
			var results []VisibilityResult
			what = append(what, fmt.Sprint("update ", numbers(list), lengths(entries)))
			calls = append(calls, func() { results, _ = w.b.Update(context.Background(), q.ID, queue.AnyGroup, entries) })
			settles = append(settles, func() { w.updated(q, list, entries, results) })
		default:
			g := &got{ReceiveRequest: w.newGet(q), q: q}
			gets = append(gets, g)
			what = append(what, fmt.Sprintf("get %q dead %v filter %q hidden %v", g.Group, g.Dead, g.Filter, g.Visibility))
			calls = append(calls, func() { g.out, g.err = w.b.Receive(context.Background(), g.ReceiveRequest) })
		}
	}
	w.note("together in %s: %s", q.ID, strings.Join(what, "; "))
	gate, admin := make(chan struct{}), make(chan error)
	go func() {
		admin <- w.b.Admin(context.Background(), func(*Tx) error { <-gate; return nil })
	}()
	synctest.Wait()
	done := make(chan struct{})
	for _, call := range calls {
		go func() { call(); done <- struct{}{} }()
		synctest.Wait()
	}
	close(gate)
	<-admin
	for range calls {
		<-done
	}
	// Publishes, and the rest, each in their order; gets are served last.
	for _, s := range sends {
		w.published(q, *s, false)
	}
	for _, s := range settles {
		s()
	}
	w.step()
	// Among gets the lease numbers tell the order.
	type one struct {
		g     *got
		d     *queue.Delivery
		lease uint64
	}
	var all []one
	for _, g := range gets {
		if w.refusedGet(*g) {
			continue
		}
		for i := range g.out {
			t, _ := w.b.sealer.Open(g.out[i].Receipt)
			all = append(all, one{g, &g.out[i], t.Lease})
		}
		w.note("  got %s", ids(g.out))
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(a.lease, b.lease) })
	for i, x := range all {
		if i > 0 && x.g != all[i-1].g {
			w.step() // gets may have been served one after the other
		}
		w.mayHaveDied(*x.g, x.d)
		w.delivered(*x.g, x.d, w.now())
	}
	w.hits["volleys"]++
	w.settle(w.now())
}
