package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// The actions: each does one thing to the broker and to the model, and
// compares the answers.

// acts are the actions and how often each is done.
func (w *world) acts() []wantAct {
	return []wantAct{
		{20, "get", w.get}, {10, "publish", w.publish}, {12, "sleep", w.sleep}, {10, "update", w.update},
		{10, "delete", w.delete}, {10, "volley", w.volley}, {8, "publishMany", w.publishMany}, {5, "poll", w.poll},
		{5, "publishOnce", w.publishOnce}, {4, "undeliver", w.undeliver}, {4, "abandon", w.abandon},
		{4, "changeLimit", w.changeLimit}, {3, "restart", w.restart}, {3, "crash", w.crash},
		{8, "stall", w.stall}, {2, "sleepLong", w.sleepLong}, {2, "purge", w.purge}, {1, "deleteQueue", w.deleteQueue}, {4, "get", w.get},
	}
}

type wantAct struct {
	often int
	name  string
	do    func()
}

// act does one of them.
func (w *world) act(acts []wantAct) {
	all := 0
	for _, a := range acts {
		all += a.often
	}
	n := w.roll("action", all)
	for _, a := range acts {
		if n -= a.often; n < 0 {
			a.do()
			return
		}
	}
}

func pick[T any](w *world, what string, from ...T) T { return from[w.roll(what, len(from))] }

func (w *world) queue() *wantQueue { return w.queues[w.roll("queue", len(w.queues))] }

func (w *world) admin(f func(tx *Tx)) {
	w.t.Helper()
	if err := w.b.Admin(context.Background(), func(tx *Tx) error { f(tx); return nil }); err != nil {
		w.fail("admin: %v", err)
	}
}

func (w *world) createQueue() {
	w.names++
	q := &wantQueue{Queue: queue.Queue{
		ID: queue.ID(fmt.Sprintf("ocid1.queue.oc1.local.q%d", w.names)), CompartmentID: "ocid1.tenancy.oc1..local",
		DisplayName: "q", State: queue.Active,
		Retention:               pick(w, "retention", time.Hour, 10*time.Second, time.Minute, 24*time.Hour),
		Visibility:              pick(w, "visibility", 30*time.Second, time.Second, 10*time.Minute),
		DeadLetterDeliveryCount: pick(w, "limit", 2, 0, 1, 3, 5),
		ChannelConsumptionLimit: pick(w, "consumption", 100, 50),
	}, tokens: make(map[string]wantToken)}
	w.note("create queue %s: retention %v, visibility %v, limit %d", q.ID, q.Retention, q.Visibility, q.DeadLetterDeliveryCount)
	w.queues = append(w.queues, q)
	w.admin(func(tx *Tx) { tx.PutQueue(q.Queue) })
	w.settle(0)
}

// deleteQueue deletes a queue and makes another in its place.
func (w *world) deleteQueue() {
	i := w.roll("queue", len(w.queues))
	q := w.queues[i]
	w.note("delete queue %s", q.ID)
	w.queues = slices.Delete(w.queues, i, i+1)
	maps.DeleteFunc(w.messages, func(_ queue.MessageID, m want) bool { return m.q == q })
	drop := w.roll("drop", 2) == 0
	w.admin(func(tx *Tx) {
		gone := q.Queue
		gone.State = queue.Deleted
		tx.PutQueue(gone)
		if drop {
			tx.DropQueue(q.ID)
		}
	})
	w.hits["queue deleted"]++
	w.settle(0)
	if _, err := w.b.Publish(context.Background(), PublishRequest{Queue: q.ID, Messages: make([]queue.NewMessage, 1)}); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
		w.fail("publish to a deleted queue: %v", err)
	}
	if _, err := w.b.Receive(context.Background(), ReceiveRequest{Queue: q.ID, Limit: 1}); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
		w.fail("get from a deleted queue: %v", err)
	}
	w.createQueue()
}

// changeLimit lowers or raises the limit of deliveries.
func (w *world) changeLimit() {
	q := w.queue()
	q.DeadLetterDeliveryCount = pick(w, "limit", 1, 0, 2, 3, 5)
	w.note("limit of %s is now %d", q.ID, q.DeadLetterDeliveryCount)
	w.admin(func(tx *Tx) {
		now, _ := tx.Queue(q.ID)
		now.DeadLetterDeliveryCount = q.DeadLetterDeliveryCount
		tx.PutQueue(now)
	})
	w.settle(0)
}

func (w *world) newMessages(q *wantQueue, most int) []queue.NewMessage {
	n := 1 + w.roll("messages", most)
	channel := pick(w, "channel", wantChannels...)
	mixed := w.roll("mixed", 3) == 0
	out := make([]queue.NewMessage, n)
	for i := range out {
		m := &out[i]
		w.bodies++
		m.Body = fmt.Appendf(nil, "body %d", w.bodies)
		if m.Channel = channel; mixed {
			m.Channel = pick(w, "channel", wantChannels...)
		}
		switch w.roll("kind", 12) {
		case 0:
			m.Body = append(m.Body, strings.Repeat(" long", 50)...)
		case 1:
			m.Body = nil
		case 2:
			m.ContentType, m.Properties = "text/plain", []queue.Property{{Name: "n", Value: "v"}}
		}
		life := q.Retention
		if w.roll("own retention", 3) == 0 {
			m.Retention = pick(w, "retention", 10*time.Second, min(time.Minute, life), life)
			life = m.Retention
		}
		if w.roll("delay", 4) == 0 {
			m.Delay = pick(w, "delay", time.Second, 5*time.Second, life-time.Second)
		}
		if w.roll("own visibility", 4) == 0 {
			m.Visibility = pick(w, "visibility", time.Second, 20*time.Second)
		}
	}
	return out
}

// refuses says whether limits on storage and channels forbid the publish.
func (w *world) refuses(q *wantQueue, messages []queue.NewMessage) bool {
	var whole, adds int64
	have, add, named := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for _, m := range w.messages {
		if m.q == q {
			whole += m.Size()
			have[m.Channel] += m.Size()
			if !m.dead && m.Channel != "" {
				named[m.Channel] = true
			}
		}
	}
	for i := range messages {
		adds += messages[i].Size()
		add[messages[i].Channel] += messages[i].Size()
	}
	fresh := 0
	for channel, n := range add {
		if channel == "" {
			continue
		}
		if !named[channel] {
			fresh++
		}
		if l := w.limit.BytesPerQueue; l > 0 && q.ChannelConsumptionLimit < 100 &&
			have[channel]+n > l*int64(q.ChannelConsumptionLimit)/100 {
			return true
		}
	}
	if fresh > 0 && int64(len(named)+fresh) > w.limit.ChannelsPerQueue {
		return true
	}
	return w.limit.BytesPerQueue > 0 && whole+adds > w.limit.BytesPerQueue
}

func (w *world) publish() { w.publishUpTo(5) }

func (w *world) publishMany() { w.publishUpTo(20) }

func (w *world) publishUpTo(most int) {
	q := w.queue()
	w.note("publish to %s", q.ID)
	w.published(q, w.send(PublishRequest{Queue: q.ID, Messages: w.newMessages(q, most)}), true)
	w.settle(0)
}

// sent is a publish and its answer.
type sent struct {
	PublishRequest
	out []queue.Published
	err error
}

func (w *world) send(r PublishRequest) sent {
	out, err := w.b.Publish(context.Background(), r)
	return sent{r, out, err}
}

// published takes a publish into the model. When others were decided with it,
// the model does not know whether they came before it to a limit.
func (w *world) published(q *wantQueue, s sent, alone bool) {
	w.t.Helper()
	refused := queue.CodeOf(s.err) == queue.LimitExceeded
	if alone && refused != w.refuses(q, s.Messages) {
		w.fail("a publish, over a limit %v: %v", !refused, s.err)
	}
	if refused {
		w.hits["publish refused"]++
		return
	}
	if s.err != nil || len(s.out) != len(s.Messages) {
		w.fail("publish: %v, %v", s.out, s.err)
	}
	now := w.now()
	for i, p := range s.out {
		n := s.Messages[i]
		m := want{NewMessage: n, id: p.ID, q: q, created: now, expire: now.Add(cmp.Or(n.Retention, q.Retention))}
		if n.Delay > 0 {
			m.state, m.due = delayed, now.Add(n.Delay)
		}
		if p.ExpireAfter != m.expire {
			w.fail("message %d expires at %s, want %s", p.ID, p.ExpireAfter, m.expire)
		}
		if _, used := w.messages[p.ID]; used || p.ID == 0 || p.ID > queue.MaxMessageID || i > 0 && p.ID <= s.out[i-1].ID {
			w.fail("message id %d is not new", p.ID)
		}
		w.messages[p.ID] = m
	}
}

// publishOnce uses a retry token, new or used.
func (w *world) publishOnce() {
	q := w.queue()
	r := PublishRequest{Queue: q.ID, RetryToken: pick(w, "token", "one", "two")}
	used, known := q.tokens[r.RetryToken]
	known = known && w.now().Sub(used.at) < 24*time.Hour
	same := known && w.roll("same", 3) > 0
	if r.Messages = used.messages; !same {
		r.Messages = w.newMessages(q, 3)
	}
	w.note("publish to %s with token %s, known %v, same messages %v", q.ID, r.RetryToken, known, same)
	s := w.send(r)
	switch {
	case same:
		w.hits["retry token honoured"]++
		if s.err != nil || !slices.Equal(s.out, used.out) {
			w.fail("a retry was answered %v, %v, the first time %v", s.out, s.err, used.out)
		}
	case known:
		if queue.CodeOf(s.err) != queue.InvalidParameter {
			w.fail("a used token with other messages: %v", s.err)
		}
	default:
		w.published(q, s, true)
		if s.err == nil {
			q.tokens[r.RetryToken] = wantToken{w.now(), r.Messages, s.out}
		}
	}
	w.settle(0)
}

func (w *world) newGet(q *wantQueue) ReceiveRequest {
	return ReceiveRequest{
		Queue: q.ID, Dead: w.roll("dead", 4) == 0,
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

func (w *world) get() {
	q := w.queue()
	r := w.newGet(q)
	w.note("get from %s dead %v filter %q most %d hidden %v octets %d", q.ID, r.Dead, r.Filter, r.Limit, r.Visibility, r.MaxBytes)
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
	if g.err != nil {
		w.fail("get: %v", g.err)
	}
	w.note("  got %s", ids(g.out))
	room := w.roomFor(g.q)
	if alone && len(g.out) == 0 && (g.Visibility == 0 || room > 0) {
		for _, m := range w.these(g.q, g.Dead, g.Filter) {
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
	m, known := w.messages[d.ID]
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
	w.messages[d.ID] = m
	w.issued = append(w.issued, issued{d.Receipt, m.q, d.ID, t.Lease, m.dead})
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
	w.note("poll %s for %v dead %v filter %q most %d hidden %v", q.ID, r.Wait, r.Dead, r.Filter, r.Limit, r.Visibility)
	began := w.now()
	g := w.ask(q, r)
	now := w.now()
	if len(g.out) == 0 && now != began.Add(r.Wait) {
		w.fail("a poll of %v was answered after %v with nothing", r.Wait, now.Sub(began))
	}
	// Whoever became visible must not have been kept waiting.
	for _, m := range w.these(q, r.Dead, r.Filter) {
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
		m, known := w.messages[d.ID]
		switch {
		case !known:
		case m.state == inFlight && m.until <= now && !m.exhausted(), m.state == delayed && m.due <= now:
			m.state = visible
			w.messages[d.ID] = m
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
	w.note("reads stall, and a get from %s: dead %v filter %q most %d hidden %v", q.ID, r.Dead, r.Filter, r.Limit, r.Visibility)
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
			{4, "sleep", w.sleep}, {1, "changeLimit", w.changeLimit}, {1, "purge", w.purge},
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
			m := w.messages[g.out[0].ID]
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
	m, known := w.messages[d.ID]
	if !known || m.dead || !g.Dead || d.DeadLetter == nil || !m.exhausted() || m.state == inFlight && m.until > w.now() {
		return
	}
	at := d.DeadLetter.At
	if at > w.now() || m.expire <= at || m.state == inFlight && (at < m.until || at > m.until+slack) {
		w.fail("message %d came into the dead letter queue at %s: %+v", d.ID, at, m)
	}
	w.messages[d.ID] = m.buried(at)
	w.hits["served by a burial"]++
}

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
	m, there = w.messages[r.id]
	return m, there, !there || m.dead == r.dead && m.lease == r.lease
}

func (w *world) delete() {
	q := w.queue()
	list := w.receipts(5)
	receipts := []queue.Receipt{}
	for _, r := range list {
		receipts = append(receipts, r.receipt)
	}
	garbage := w.roll("garbage", 6) == 0
	if garbage {
		receipts = append(receipts, "garbage")
	}
	w.note("delete from %s %v", q.ID, numbers(list))
	errs, err := w.b.Delete(context.Background(), q.ID, receipts)
	if err != nil || len(errs) != len(receipts) {
		w.fail("delete: %v, %v", errs, err)
	}
	if garbage && queue.CodeOf(errs[len(list)]) != queue.InvalidParameter {
		w.fail("delete of a receipt that is none: %v", errs[len(list)])
	}
	w.deleted(q, list, errs)
	w.settle(0)
}

func (w *world) deleted(q *wantQueue, list []issued, errs []error) {
	w.t.Helper()
	for i, r := range list {
		m, there, ok := w.delivery(q, r)
		if errs[i] == nil && there && m.dead && !r.dead && r.q == q && w.o.DeadLanes > 0 {
			// Its first lane is gone, and the dead one is dormant.
			w.hits["gone for moved"]++
			continue
		}
		if code := queue.CodeOf(errs[i]); ok != (code == "") || !ok && code != queue.NotAuthorizedOrNotFound {
			w.fail("delete %d of message %d by lease %d: %v; there %v, %+v", i, r.id, r.lease, errs[i], there, m)
		}
		if ok && there {
			delete(w.messages, r.id)
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
	list := w.receipts(5)
	entries := w.newUpdates(list)
	w.note("update in %s %v: %v", q.ID, numbers(list), lengths(entries))
	results, err := w.b.Update(context.Background(), q.ID, entries)
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
		w.messages[m.id] = m
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
			if row := c.messages[m.id]; row != nil && row.Lease != 0 {
				continue
			}
		}
		m.deliveries--
		m.lease, m.state = 0, visible
		w.messages[m.id] = m
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
	w.note("get from %s, abandoned: dead %v filter %q hidden %v", q.ID, r.Dead, r.Filter, r.Visibility)
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
	if g.err == nil {
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
	for _, m := range w.these(q, r.Dead, r.Filter) {
		if row := c.messages[m.id]; row != nil && m.state == visible && row.state == store.Returned && row.Lease == 0 && g.err != nil {
			m.lease = 0
			w.messages[m.id] = m
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
			calls = append(calls, func() { errs, _ = w.b.Delete(context.Background(), q.ID, receipts) })
			settles = append(settles, func() { w.deleted(q, list, errs) })
		case 2:
			list := w.receipts(3)
			entries := w.newUpdates(list)
			var results []VisibilityResult
			what = append(what, fmt.Sprint("update ", numbers(list), lengths(entries)))
			calls = append(calls, func() { results, _ = w.b.Update(context.Background(), q.ID, entries) })
			settles = append(settles, func() { w.updated(q, list, entries, results) })
		default:
			g := &got{ReceiveRequest: w.newGet(q), q: q}
			gets = append(gets, g)
			what = append(what, fmt.Sprintf("get dead %v filter %q hidden %v", g.Dead, g.Filter, g.Visibility))
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
		if g.err != nil {
			w.fail("get: %v", g.err)
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

func (w *world) purge() {
	q := w.queue()
	what := pick(w, "what", queue.PurgeNormal, queue.PurgeDLQ, queue.PurgeBoth)
	var only []string
	if w.roll("all channels", 2) == 0 {
		for range 1 + w.roll("channels", 2) {
			if channel := pick(w, "channel", wantChannels...); !slices.Contains(only, channel) {
				only = append(only, channel)
			}
		}
	}
	w.note("purge %s %s %q", q.ID, what, only)
	var n, want int64
	for id, m := range w.messages {
		if m.q == q && (what == queue.PurgeBoth || m.dead == (what == queue.PurgeDLQ)) && (only == nil || slices.Contains(only, m.Channel)) {
			delete(w.messages, id)
			want++
		}
	}
	w.admin(func(tx *Tx) { n = tx.Purge(q.ID, what, only) })
	if n != want {
		w.fail("purge says %d, want %d", n, want)
	}
	if want > 0 {
		w.hits["purged"]++
	}
	w.settle(0)
}

func (w *world) sleep() {
	w.sleepFor(pick(w, "time", time.Second, 5*time.Second, 100*time.Millisecond, 31*time.Second, 10*time.Second, 2*time.Minute))
}

func (w *world) sleepLong() {
	w.sleepFor(pick(w, "time", 11*time.Minute, time.Hour, 25*time.Hour))
}

func (w *world) sleepFor(d time.Duration) {
	d += time.Duration(w.roll("more", 1000)) * time.Millisecond
	w.note("sleep %v", d)
	time.Sleep(d)
	w.settle(0)
}

func (w *world) away() time.Duration {
	return pick(w, "away", 0, time.Second, 0, 20*time.Second, 2*time.Minute, 2*time.Hour)
}

func (w *world) restart() {
	d := w.away()
	w.note("restart after %v", d)
	w.stop()
	time.Sleep(d)
	w.start()
	w.settle(0)
}

func (w *world) crash() {
	percent := pick(w, "unsynced", 0, 50, 100)
	d := w.away()
	w.note("crash with %d%% of what was not synced, restart after %v", percent, d)
	disk := w.disk.Crash(percent, rand.NewPCG(uint64(w.roll("blocks", 1<<20)), 0))
	w.stop()
	w.disk = disk
	time.Sleep(d)
	w.start()
	w.settle(0)
}

// finish drains everything and looks for what was left over on disk.
func (w *world) finish() {
	w.note("finish")
	w.settle(0)
	for _, q := range w.queues {
		for _, dead := range []bool{false, true} {
			for {
				g := w.ask(q, ReceiveRequest{Queue: q.ID, Dead: dead, Limit: 20, Visibility: time.Hour})
				w.received(g, w.now(), true)
				w.settle(w.now())
				if len(g.out) == 0 {
					break
				}
			}
		}
	}
	synctest.Wait()
	if _, err := takeCensus(w.s, true); err != nil {
		w.fail("%v", err)
	}
	w.stop()
}
