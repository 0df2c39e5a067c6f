package broker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// spot is one message in a broker, and what is known of it.
type spot struct {
	*bench
	queue   queue.ID
	id      queue.MessageID
	lane    store.LaneID
	lease   uint64        // of the last delivery that can be acted upon
	receipt queue.Receipt // of it; "" if there is none
	hidden  time.Duration // of a lease that the test is about
	delay   time.Duration // and of a delayed message
	indexed bool          // it expires out of the order of ids
	shared  bool          // another consumer group has it too
	others  []found       // what that has
}

const (
	spotChannel   = "c"
	spotRetention = 2 * time.Hour
)

func (p *spot) publish(delay time.Duration) {
	message := queue.NewMessage{Message: queue.Message{Body: []byte("body")}, Channel: spotChannel, Retention: spotRetention, Delay: delay}
	r := PublishRequest{Queue: p.queue, Messages: []queue.NewMessage{message}}
	if p.indexed {
		// One before it that lives longer; it goes at once.
		longer := message
		longer.Retention, longer.Delay = 24*time.Hour, 0
		r.Messages = []queue.NewMessage{longer, message}
	}
	out, err := p.b.Publish(p.t.Context(), r)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.indexed {
		got := p.get(ReceiveRequest{Queue: p.queue, Limit: 1, Visibility: time.Hour})
		if len(got) != 1 || got[0].ID != out[0].ID {
			p.t.Fatalf("got %+v", got)
		}
		if err := p.delete(got[0].Receipt); err != nil {
			p.t.Fatal(err)
		}
	}
	p.id = out[len(out)-1].ID
	p.lane = p.b.byID[p.queue].primary().lanes[store.LaneKey{Queue: 1, Channel: spotChannel}].row.ID
	if _, m := p.scanned(); m.Entry.Indexed != p.indexed || m.Entry.Shared != p.shared {
		p.t.Fatalf("indexed is %v, shared is %v", m.Entry.Indexed, m.Entry.Shared)
	}
	p.others = p.ofOthers()
}

// ofOthers is what the other group has.
func (p *spot) ofOthers() (out []found) {
	c, err := takeCensus(p.s, false)
	if err != nil {
		p.t.Error(err)
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.messages), place.compare) {
		if at.group > 0 {
			out = append(out, *c.messages[at])
		}
	}
	return out
}

// untouched fails if the other group has something else than what time alone
// has made of its messages, and reports how many of them have expired.
func (p *spot) untouched() (expired int64) {
	p.t.Helper()
	now, want := p.b.Now(), []found(nil)
	for _, f := range p.others {
		if f.Entry.ExpireAfter <= now {
			expired++
			continue
		}
		if f.state == store.Delayed && f.DueAt <= now {
			f.state = store.Returned
		}
		want = append(want, f)
	}
	if diff := cmp.Diff(want, p.ofOthers(), cmp.AllowUnexported(found{})); diff != "" {
		p.t.Errorf("the other group (-want +got):\n%s", diff)
	}
	return expired
}

func (p *spot) try(dead bool, hidden time.Duration) []queue.Delivery {
	f, _ := channels.ParseFilter(spotChannel)
	return p.get(ReceiveRequest{Queue: p.queue, Dead: dead, Filter: f, Visibility: hidden})
}

func (p *spot) take(dead bool, hidden time.Duration) {
	got := p.try(dead, hidden)
	if len(got) != 1 || got[0].ID != p.id {
		p.t.Fatalf("took %+v", got)
	}
	token, err := p.b.sealer.Open(got[0].Receipt)
	if err != nil {
		p.t.Fatal(err)
	}
	p.receipt, p.lease = got[0].Receipt, token.Lease
}

func (p *spot) nothing(dead bool) {
	if got := p.try(dead, time.Hour); len(got) > 0 {
		p.t.Errorf("got %+v", got)
	}
	synctest.Wait()
}

func (p *spot) pass(d time.Duration) {
	time.Sleep(d + 200*time.Millisecond) // two ticks of the wheel
	synctest.Wait()
}

// passUntil sleeps until the instant is over, if it is to come.
func (p *spot) passUntil(at queue.Instant) { p.pass(max(at.Sub(p.b.Now()), 0)) }

// prod has everything done that time asks for.
func (p *spot) prod() {
	p.b.do((*group).lapseSome)
	p.b.keeper.wants(1)
	synctest.Wait()
}

func (p *spot) update(r queue.Receipt, hidden time.Duration) error {
	out, err := p.b.Update(p.t.Context(), p.queue, queue.AnyGroup, []VisibilityUpdate{{Receipt: r, Visibility: hidden}})
	if err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
	return out[0].Err
}

func (p *spot) delete(r queue.Receipt) error {
	out, err := p.b.Delete(p.t.Context(), p.queue, queue.AnyGroup, []queue.Receipt{r})
	if err != nil {
		p.t.Fatal(err)
	}
	return out[0]
}

func (p *spot) undeliver(r queue.Receipt) {
	p.b.Undeliver([]queue.Receipt{r})
	synctest.Wait()
}

func (p *spot) limit(n int) {
	err := p.b.Admin(context.Background(), func(tx *Tx) error {
		q, _ := tx.Queue(p.queue)
		q.DeadLetterDeliveryCount = n
		tx.PutQueue(q)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// moved notes that the message is in the dead letter queue now.
func (p *spot) moved() {
	synctest.Wait()
	l := p.b.byID[p.queue].primary().lanes[store.LaneKey{Queue: 1, Dead: true, Channel: spotChannel}]
	if l == nil {
		p.t.Fatal("it has not moved")
	}
	p.lane, p.receipt = l.row.ID, ""
}

func (p *spot) bury() {
	p.limit(1)
	p.publish(0)
	p.take(false, time.Second)
	p.pass(time.Second)
	p.moved()
}

// purge gives everything up, and keeps the remover from its work.
func (p *spot) purge() {
	synctest.Wait() // it runs by now, on the list it was given
	p.b.remover = newWorker[removal]()
	err := p.b.Admin(context.Background(), func(tx *Tx) error { tx.Purge(p.queue, "", queue.PurgeBoth, nil); return nil })
	if err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
}

// other is a genuine receipt of another delivery of the message: of one that
// was superseded, or that never was.
func (p *spot) other() queue.Receipt {
	return p.b.sealer.Seal(visibility.Token{Queue: 1, Lane: uint64(p.lane), Message: p.id, Lease: 1 << 40, Generation: p.s.Generation()})
}

func (p *spot) own() queue.Receipt {
	if p.receipt == "" {
		return p.other()
	}
	return p.receipt
}

// row is the message as its m row and the row of its state tell, nil if it is
// gone.
func (p *spot) row() *found {
	c, err := takeCensus(p.s, true)
	if err != nil {
		p.t.Error(err)
	}
	if err := p.s.Check(); err != nil {
		p.t.Error(err)
	}
	return c.messages[place{p.id, 0}]
}

func (p *spot) scanned() (store.Message, *store.ScannedMessage) {
	m, e, found, err := p.s.Message(p.lane, p.id)
	if err != nil || !found {
		p.t.Fatal(found, err)
	}
	return m, &store.ScannedMessage{Entry: e, Message: m}
}

// rows is all that the store holds of messages, as text, but those of the
// other group.
func (p *spot) rows() []string {
	var out []string
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	load, err := p.s.Load()
	if err != nil {
		p.t.Fatal(err)
	}
	all := load.Removals
	for _, id := range all {
		line("z %d", id)
	}
	others := make(map[store.LaneID]bool)
	err = p.s.Lanes(func(l store.Lane) error {
		if l.Key.Group > 0 {
			others[l.ID] = true
			return nil
		}
		all = append(all, l.ID)
		line("c %+v", l)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, lane := range all {
		messages, _, err := p.s.ScanMessages(lane, 0, math.MaxInt, math.MaxInt64, false)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range messages {
			dead := m.Message.Dead
			m.Message.Dead = nil
			line("m %d %+v %+v", lane, m, dead)
		}
		returned, _, err := p.s.ScanReturned(lane, 0, math.MaxInt)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range returned {
			line("v %d %+v", lane, e)
		}
	}
	if err := p.s.Leases(func(lane store.LaneID, l store.Lease) error { line("l %d %+v", lane, l); return nil }); err != nil {
		p.t.Fatal(err)
	}
	for kind, scan := range map[string]func(from, through queue.Instant, max int) ([]store.Timer, queue.Instant, error){"t": p.s.ScanDue, "x": p.s.ScanExpiry} {
		timers, _, err := scan(0, math.MaxInt64, math.MaxInt)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, t := range timers {
			if !others[t.Lane] {
				line("%s %+v", kind, t)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (p *spot) events() [eventKinds]int64 { return p.b.Snapshot().Queues[0].Events }

// counted fails unless everything that counts says that there is one message
// in that state and nothing else; "" is no message.
func (p *spot) counted(state string) {
	p.t.Helper()
	var want queue.Stats
	kind, dead := strings.CutPrefix(state, "dead ")
	switch kind {
	case "fresh", "returned":
		want = queue.Stats{Visible: 1, Bytes: 4}
	case "leased":
		want = queue.Stats{InFlight: 1, Bytes: 4}
	case "delayed":
		want = queue.Stats{Delayed: 1, Bytes: 4}
	}
	wants := [2]queue.Stats{}
	wants[side(dead)] = want
	channel := spotChannel
	for what, channel := range map[string]*string{"queue": nil, "channel": &channel} {
		if m, d := p.b.Stats(p.queue, "", channel); m != wants[0] || d != wants[1] {
			p.t.Errorf("the %s counts %+v and dead %+v, want %+v", what, m, d, wants)
		}
	}
	octets := want.Bytes
	for _, f := range p.ofOthers() {
		if want.Bytes == 0 || f.ID != p.id { // what both have counts once
			octets += int64(f.Entry.Size)
		}
	}
	if s := p.b.Snapshot(); s.InFlight != want.InFlight || s.Bytes != octets {
		p.t.Errorf("the server counts %d in flight and %d octets, want %+v and %d", s.InFlight, s.Bytes, want, octets)
	}
}

// name is the state of a row of the census, as the table names it.
func (f *found) name() string {
	if f == nil {
		return "gone"
	}
	name := map[store.Row]string{store.Fresh: "fresh", store.Returned: "returned", store.Leased: "leased", store.Delayed: "delayed"}[f.state]
	if f.key.Dead {
		name = "dead " + name
	}
	return name
}

// restart closes and opens the broker: every row and every counter must be as
// it was.
func (p *spot) restart(state string) {
	p.t.Helper()
	before := p.rows()
	p.close()
	p.open()
	synctest.Wait()
	if state == "purged" { // the remover has come
		before = nil
	}
	if diff := cmp.Diff(before, p.rows()); diff != "" {
		p.t.Errorf("rows (-before the restart +after):\n%s", diff)
	}
	p.counted(state)
	if got := p.row().name(); state != "purged" && state != "gone" && got != state {
		p.t.Errorf("after the restart it is %s, before it was %s", got, state)
	}
}
