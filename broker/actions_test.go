package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
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
		{4, "putGroup", w.putGroup}, {5, "changeGroup", w.changeGroup}, {2, "deleteGroup", w.deleteGroup}, {2, "wrongGroup", w.wrongGroup},
		{2, "release", w.release}, {8, "transact", w.transact},
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
	if w.roll("with groups", 2) == 0 {
		for range 2 + w.roll("groups", 2) {
			w.addGroup(q)
		}
	}
}

// deleteQueue deletes a queue and makes another in its place.
func (w *world) deleteQueue() {
	i := w.roll("queue", len(w.queues))
	q := w.queues[i]
	w.note("delete queue %s", q.ID)
	w.queues = slices.Delete(w.queues, i, i+1)
	maps.DeleteFunc(w.messages, func(_ place, m want) bool { return m.q == q })
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
		if kind := pick(w, "property", "", "a", "b", "a", "c"); len(q.groups) > 0 && kind != "" {
			m.Properties = append(m.Properties, queue.Property{Name: "kind", Value: kind})
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
	counted := make(map[queue.MessageID]bool) // whatever the number of groups
	for _, m := range w.messages {
		if m.q != q {
			continue
		}
		if !counted[m.id] {
			counted[m.id] = true
			whole += m.Size()
			have[m.Channel] += m.Size()
		}
		if !m.dead && m.Channel != "" {
			named[m.Channel] = true
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
		to := w.route(q, &n)
		m.shared = len(to) > 1
		if n.Delay > 0 {
			m.state, m.due = delayed, now.Add(n.Delay)
		}
		if p.ExpireAfter != m.expire {
			w.fail("message %d expires at %s, want %s", p.ID, p.ExpireAfter, m.expire)
		}
		if p.ID <= w.lastID || p.ID > queue.MaxMessageID {
			w.fail("message id %d comes after %d", p.ID, w.lastID)
		}
		w.lastID = p.ID
		for _, m.group = range to {
			w.messages[m.place()] = m
		}
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
	groups := w.someGroups(q)
	w.note("purge %s %q %s %q", q.ID, groups, what, only)
	var n, want int64
	for at, m := range w.messages {
		if m.q == q && slices.ContainsFunc(groups, func(id queue.ID) bool { return q.number(id) == m.group }) && (what == queue.PurgeBoth || m.dead == (what == queue.PurgeDLQ)) && (only == nil || slices.Contains(only, m.Channel)) {
			delete(w.messages, at)
			want++
		}
	}
	w.admin(func(tx *Tx) {
		for _, group := range groups {
			n += tx.Purge(q.ID, group, what, only)
		}
	})
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
		for _, group := range q.all() {
			for _, dead := range []bool{false, true} {
				for {
					g := w.ask(q, ReceiveRequest{Queue: q.ID, Group: group, Dead: dead, Limit: 20, Visibility: time.Hour})
					w.received(g, w.now(), true)
					w.settle(w.now())
					if len(g.out) == 0 {
						break
					}
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
