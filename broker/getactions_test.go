package broker

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// The actions that receive.

func (w *world) newGet(q *wantQueue) ReceiveRequest {
	return ReceiveRequest{
		Queue: q.ID, Group: w.group(q), Dead: w.roll("dead", 4) == 0,
		Filter: pick(w, "filter", append(make([]channels.Filter, 8), wantFilters...)...),
		Limit:  pick(w, "most", 1, 3, 20),
		Visibility: pick(w, "hidden", -1, 5*time.Second, 0, time.Second,
			30*time.Second, 0, 5*time.Minute, 12*time.Hour),
		MaxBytes: pick[int64](w, "bytes", 0, 0, 20, 300),
	}
}

// got is a get and its answer.
type got struct {
	ReceiveRequest
	q   *wantQueue
	out []queue.Delivery
	err error
}

// number is that of the group that was asked.
func (g *got) number() uint32 { return g.q.number(g.Group) }

func (g *got) place(d *queue.Delivery) place { return place{d.ID, g.number()} }

// refusedGet looks at the error of a get: there is one if the group is disabled
// or gone, and no other.
func (w *world) refusedGet(g got) bool {
	w.t.Helper()
	want := queue.Code("")
	switch state := g.q.state(g.Group); state {
	case queue.Inactive:
		want = queue.IncorrectState
	case queue.Deleted:
		want = queue.NotAuthorizedOrNotFound
	}
	if want != "" {
		w.hits["a get from a group that does not serve"]++
	}
	if got := queue.CodeOf(g.err); g.err == nil && want != "" || g.err != nil && got != want {
		w.fail("get from %q: %d messages, %v; want %q", g.Group, len(g.out), g.err, want)
	}
	return want != ""
}

func (w *world) get() {
	q := w.queue()
	r := w.newGet(q)
	w.note("get from %s %q dead %v filter %q most %d hidden %v octets %d", q.ID, r.Group, r.Dead, r.Filter, r.Limit, r.Visibility, r.MaxBytes)
	w.received(w.ask(q, r), w.now(), true)
	w.settle(w.now())
}

func (w *world) ask(q *wantQueue, r ReceiveRequest) got {
	out, err := w.b.Receive(context.Background(), r)
	return got{r, q, out, err}
}

// roomFor is how many leases the limits leave to a queue.
func (w *world) roomFor(q *wantQueue) int64 {
	var own, all int64
	for _, m := range w.messages {
		if m.state == inFlight {
			if all++; m.q == q {
				own++
			}
		}
	}
	return min(w.limit.InFlightPerQueue-own, max(w.limit.InFlightTotal-all, w.limit.InFlightReservedPerQueue-own))
}

// received takes a get into the model. When alone, the get was the only thing
// asked for, so an empty answer means that there was nothing.
func (w *world) received(g got, now queue.Instant, alone bool) {
	w.t.Helper()
	if w.refusedGet(g) {
		return
	}
	w.note("  got %s", ids(g.out))
	room := w.roomFor(g.q)
	if alone && len(g.out) == 0 && (g.Visibility == 0 || room > 0) {
		for _, m := range w.these(g.q, g.number(), g.Dead, g.Filter) {
			if m.takeable(now) {
				w.fail("a get had nothing, and message %d was visible: %+v", m.id, m)
			}
		}
	}
	if alone && g.Visibility != 0 && int64(len(g.out)) > max(room, 0) {
		w.fail("a get had %d where %d may be in flight", len(g.out), room)
	}
	if len(g.out) > g.Limit {
		w.fail("a get had %d, the most is %d", len(g.out), g.Limit)
	}
	var octets int64
	for i := range g.out {
		if g.out[i].Channel != g.out[0].Channel {
			w.fail("a get had two channels: %q and %q", g.out[i].Channel, g.out[0].Channel)
		}
		octets += g.out[i].Size()
		w.delivered(g, &g.out[i], now)
	}
	if len(g.out) > 1 && g.MaxBytes > 0 && octets > g.MaxBytes {
		w.fail("a get had %d octets, the most is %d", octets, g.MaxBytes)
	}
}

// delivered takes one delivery into the model.
func (w *world) delivered(g got, d *queue.Delivery, now queue.Instant) {
	w.t.Helper()
	m, known := w.messages[g.place(d)]
	if !known || m.q != g.q || m.dead != g.Dead || !g.Filter.Match(m.Channel) {
		w.fail("message %d was not asked for: %+v", d.ID, m)
	}
	if !m.takeable(now) {
		w.fail("message %d may not be delivered: %+v", d.ID, m)
	}
	m.deliveries++
	m.until = now
	switch {
	case g.Visibility > 0:
		m.until = now.Add(g.Visibility)
	case g.Visibility < 0:
		m.until = now.Add(cmp.Or(m.Visibility, m.q.Visibility))
	}
	wantText := fmt.Sprintf("%q %q %v %q %d %s %s %s %v", m.Body, m.ContentType, m.Properties, m.Channel,
		m.deliveries, m.created, m.until, m.expire, letter(m.letter))
	gotText := fmt.Sprintf("%q %q %v %q %d %s %s %s %v", d.Body, d.ContentType, d.Properties, d.Channel,
		d.DeliveryCount, d.CreatedAt, d.VisibleAfter, d.ExpireAfter, letter(d.DeadLetter))
	if gotText != wantText {
		w.fail("message %d came as\n%s\nwant\n%s", d.ID, gotText, wantText)
	}
	t, err := w.b.sealer.Open(d.Receipt)
	if err != nil || t.Message != d.ID || t.Lease == 0 {
		w.fail("the receipt of message %d says %+v, %v", d.ID, t, err)
	}
	for _, r := range w.issued {
		if r.lease == t.Lease {
			w.fail("lease number %d was used twice", t.Lease)
		}
	}
	m.lease = t.Lease
	m.state = inFlight
	if g.Visibility == 0 && !m.exhausted() {
		m.state = visible
	}
	w.messages[m.place()] = m
	w.issued = append(w.issued, issued{d.Receipt, m.q, m.group, d.ID, t.Lease, m.dead})
	w.hits["delivered"]++
}

func letter(l *queue.DeadLetter) string {
	if l == nil {
		return "none"
	}
	return fmt.Sprint(l.Reason, l.DeliveryCount, l.Channel, l.At)
}

func ids(out []queue.Delivery) string {
	var b strings.Builder
	for _, d := range out {
		fmt.Fprintf(&b, "%d (%d) ", d.ID, d.DeliveryCount)
	}
	return cmp.Or(strings.TrimSpace(b.String()), "nothing")
}

// poll waits for a message, which time alone may bring.
func (w *world) poll() {
	q := w.queue()
	r := w.newGet(q)
	r.Wait = pick(w, "wait", time.Second, 5*time.Second, 20*time.Second)
	w.note("poll %s %q for %v dead %v filter %q most %d hidden %v", q.ID, r.Group, r.Wait, r.Dead, r.Filter, r.Limit, r.Visibility)
	began := w.now()
	g := w.ask(q, r)
	now := w.now()
	if g.err == nil && len(g.out) == 0 && now != began.Add(r.Wait) {
		w.fail("a poll of %v was answered after %v with nothing", r.Wait, now.Sub(began))
	}
	// Whoever became visible must not have been kept waiting.
	for _, m := range w.these(q, g.number(), r.Dead, r.Filter) {
		if g.err != nil {
			break // the group is disabled
		}
		since := began
		switch m.state {
		case inFlight:
			since = max(since, m.until)
		case delayed:
			since = max(since, m.due)
		}
		if m.exhausted() || m.expire <= since+slack || w.limit.InFlightPerQueue < 1000 || w.limit.InFlightTotal < 1000 {
			continue
		}
		if since+slack < now {
			w.fail("a poll was answered at %s with %s, and message %d was visible from %s: %+v", now, ids(g.out), m.id, since, m)
		}
	}
	w.servedLater(g, now)
	w.settle(began)
}

// servedLater takes a get into the model that waited until now, so that what
// it was given may have become visible meanwhile.
func (w *world) servedLater(g got, now queue.Instant) {
	w.t.Helper()
	for _, d := range g.out {
		m, known := w.messages[g.place(&d)]
		switch {
		case !known:
		case m.state == inFlight && m.until <= now && !m.exhausted(), m.state == delayed && m.due <= now:
			m.state = visible
			w.messages[m.place()] = m
			w.hits["served by time"]++
		default:
			w.mayHaveDied(g, &d)
		}
	}
	w.received(g, now, false)
}

// stall lets reads of windows wait while other things happen, and a get for
// which something is to be read.
func (w *world) stall() {
	q := w.queue()
	r := w.newGet(q)
	w.note("reads stall, and a get from %s %q: dead %v filter %q most %d hidden %v", q.ID, r.Group, r.Dead, r.Filter, r.Limit, r.Visibility)
	gate := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(gate) })
	defer goOn() // also after a failure
	w.b.reads.add(func() { <-gate })
	w.pending, w.asked = make(chan got, 1), w.now()
	go func() { w.pending <- w.ask(q, r) }()
	w.settle(w.now())
	if w.pending != nil {
		w.hits["a get for which something is read"]++
	}
	for range 1 + w.roll("meanwhile", 5) {
		w.act([]wantAct{
			{4, "publish", w.publish}, {4, "update", w.update}, {4, "delete", w.delete}, {2, "undeliver", w.undeliver},
			{4, "sleep", w.sleep}, {1, "changeLimit", w.changeLimit}, {1, "purge", w.purge}, {2, "changeGroup", w.changeGroup}, {1, "deleteGroup", w.deleteGroup},
		})
	}
	w.note("reads go on")
	goOn()
	w.settle(w.now())
	if w.pending != nil {
		w.fail("a get that does not wait is not answered")
	}
}

// collect takes the answer of a get that stalled into the model.
func (w *world) collect() {
	w.t.Helper()
	select {
	case g := <-w.pending:
		w.pending = nil
		at := w.now()
		if len(g.out) > 0 {
			m := w.messages[g.place(&g.out[0])]
			at = g.out[0].VisibleAfter.Add(-max(g.Visibility, 0))
			if g.Visibility < 0 && m.q != nil {
				at = at.Add(-cmp.Or(m.Visibility, m.q.Visibility))
			}
		}
		if at > w.now() {
			w.fail("a get was answered at %s", at)
		}
		w.servedLater(g, at)
	default:
	}
}

// mayHaveDied moves a message in the model that had moved to the dead letter
// queue before a get was given it from there.
func (w *world) mayHaveDied(g got, d *queue.Delivery) {
	w.t.Helper()
	m, known := w.messages[g.place(d)]
	if !known || m.dead || !g.Dead || d.DeadLetter == nil || !m.exhausted() || m.state == inFlight && m.until > w.now() {
		return
	}
	at := d.DeadLetter.At
	if at > w.now() || m.expire <= at || m.state == inFlight && (at < m.until || at > m.until+slack) {
		w.fail("message %d came into the dead letter queue at %s: %+v", d.ID, at, m)
	}
	w.messages[m.place()] = m.buried(at)
	w.hits["served by a burial"]++
}
