package broker

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
	"github.com/queued-mq/queued/visibility"
)

// The table of states and effects, as docs/states.md shows it: what becomes of
// a message in the state of the row when the effect of the column is tried.
// Nothing stands where the effect is refused and changes nothing.
var (
	effectNames = []string{"Lease", "Peek", "Return", "Undeliver", "Lapse", "ToDLQ", "Due", "Delete", "Expire"}
	stateTable  = []stateRow{
		{"fresh", map[string]string{"Lease": "leased", "Peek": "returned", "Expire": "gone"}},
		{"returned", map[string]string{"Lease": "leased", "Peek": "returned", "Undeliver": "returned", "ToDLQ": "dead returned", "Delete": "gone", "Expire": "gone"}},
		{"leased", map[string]string{"Return": "returned", "Undeliver": "returned", "Lapse": "returned", "ToDLQ": "dead returned", "Delete": "gone", "Expire": "gone"}},
		{"delayed", map[string]string{"Due": "returned", "Expire": "gone"}},
		{"dead returned", map[string]string{"Lease": "dead leased", "Peek": "dead returned", "Undeliver": "dead returned", "Delete": "gone", "Expire": "gone"}},
		{"dead leased", map[string]string{"Return": "dead returned", "Undeliver": "dead returned", "Lapse": "dead returned", "Delete": "gone", "Expire": "gone"}},
		{"purged", map[string]string{"Due": "its `t` row goes"}},
	}
)

type stateRow struct {
	state string
	cells map[string]string
}

// markdown is the table as the page shows it.
func markdown() []string {
	lines := []string{"| state | " + strings.Join(effectNames, " | ") + " |", "|---" + strings.Repeat("|---", len(effectNames)) + "|"}
	for _, row := range stateTable {
		cells := []string{row.state}
		for _, effect := range effectNames {
			cells = append(cells, row.cells[effect])
		}
		lines = append(lines, strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |", "|  |", "| |"))
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "|  |", "| |")
	}
	return lines
}

func TestStatesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(markdown(), "\n"); !strings.Contains(string(page), table+"\n") {
		t.Errorf("docs/states.md does not hold the table that is tested:\n%s", table)
	}
}

// TestStatesNameFunctions finds every function that the page names in the file
// that it names.
func TestStatesNameFunctions(t *testing.T) {
	page, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z_/]+\\.go)`(?:,? `([A-Za-z]+)`)?").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Errorf("%d places are named", len(named))
	}
	for _, n := range named {
		path := n[1]
		if !strings.Contains(path, "/") {
			path = "broker/" + path
		}
		source, err := os.ReadFile("../" + path)
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + n[2]).Match(source) {
			t.Errorf("%s has no function %s", path, n[2])
		}
	}
}

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
}

const (
	spotChannel   = "c"
	spotRetention = 2 * time.Hour
)

// way is one way into a state.
type way struct {
	state string
	name  string
	reach func(*spot)
}

var ways = []way{
	{"fresh", "published", func(p *spot) { p.publish(0) }},
	{"returned", "lapsed", func(p *spot) { p.publish(0); p.take(false, time.Second); p.pass(time.Second) }},
	{"returned", "given back", func(p *spot) { p.publish(0); p.take(false, time.Hour); p.update(p.receipt, 0) }},
	{"returned", "due", func(p *spot) { p.publish(time.Second); p.pass(time.Second) }},
	{"returned", "peeked at", func(p *spot) { p.publish(0); p.take(false, 0) }},
	{"returned", "taken back", func(p *spot) { p.publish(0); p.take(false, time.Hour); p.undeliver(p.receipt); p.receipt = "" }},
	{"leased", "fresh before", func(p *spot) { p.publish(0); p.take(false, p.hidden) }},
	{"leased", "returned before", func(p *spot) { p.publish(time.Second); p.pass(time.Second); p.take(false, p.hidden) }},
	{"leased", "extended", func(p *spot) { p.publish(0); p.take(false, time.Second); p.update(p.receipt, p.hidden) }},
	{"delayed", "published with a delay", func(p *spot) { p.publish(p.delay) }},
	{"dead returned", "moved from its lease", func(p *spot) { p.bury() }},
	{"dead returned", "moved when the limit was lowered", func(p *spot) {
		p.publish(0)
		p.take(false, time.Second)
		p.pass(time.Second)
		p.limit(1)
		p.nothing(false)
		p.moved()
	}},
	{"dead returned", "lapsed", func(p *spot) { p.bury(); p.take(true, time.Second); p.pass(time.Second) }},
	{"dead returned", "delayed at first", func(p *spot) {
		p.limit(1)
		p.publish(time.Second)
		p.pass(time.Second)
		p.take(false, time.Second)
		p.pass(time.Second)
		p.moved()
	}},
	{"dead leased", "taken", func(p *spot) { p.bury(); p.take(true, p.hidden) }},
	{"purged", "fresh", func(p *spot) { p.publish(0); p.purge() }},
	{"purged", "returned", func(p *spot) { p.publish(0); p.take(false, time.Second); p.pass(time.Second); p.purge() }},
	{"purged", "leased", func(p *spot) { p.publish(0); p.take(false, p.hidden); p.purge() }},
	{"purged", "delayed", func(p *spot) { p.publish(p.delay); p.purge() }},
	{"purged", "dead returned", func(p *spot) { p.bury(); p.purge() }},
	{"purged", "dead leased", func(p *spot) { p.bury(); p.take(true, p.hidden); p.purge() }},
}

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
	p.lane = p.b.byID[p.queue].lanes[store.LaneKey{Queue: 1, Channel: spotChannel}].row.ID
	if _, m := p.scanned(); m.Entry.Indexed != p.indexed {
		p.t.Fatalf("indexed is %v", m.Entry.Indexed)
	}
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
	out, err := p.b.Update(p.t.Context(), p.queue, []VisibilityUpdate{{Receipt: r, Visibility: hidden}})
	if err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
	return out[0].Err
}

func (p *spot) delete(r queue.Receipt) error {
	out, err := p.b.Delete(p.t.Context(), p.queue, []queue.Receipt{r})
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
	l := p.b.byID[p.queue].lanes[store.LaneKey{Queue: 1, Dead: true, Channel: spotChannel}]
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
	err := p.b.Admin(context.Background(), func(tx *Tx) error { tx.Purge(p.queue, queue.PurgeBoth, nil); return nil })
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
	return c.messages[p.id]
}

func (p *spot) scanned() (store.Message, *store.ScannedMessage) {
	m, e, found, err := p.s.Message(p.lane, p.id)
	if err != nil || !found {
		p.t.Fatal(found, err)
	}
	return m, &store.ScannedMessage{Entry: e, Message: m}
}

// effect is one column: how it is brought about where the table says what
// comes of it, and what it changes beside the state.
type effect struct {
	try     func(*spot)
	receipt bool   // it needs the receipt of a delivery that can be acted upon
	counts  int    // what it adds to the deliveries
	lease   string // the lease number afterwards: "new", "same" or "none"
	event   event
}

var effects = map[string]effect{
	"Lease": {try: func(p *spot) { p.try(false, time.Hour); p.try(true, time.Hour) }, counts: 1, lease: "new", event: evDelivered},
	"Peek":  {try: func(p *spot) { p.try(false, 0); p.try(true, 0) }, counts: 1, lease: "new", event: evDelivered},
	"Return": {try: func(p *spot) {
		p.update(p.own(), 0)
	}, receipt: true, lease: "same", event: evReturned},
	"Undeliver": {try: func(p *spot) { p.undeliver(p.own()) }, receipt: true, counts: -1, lease: "none", event: evReturned},
	"Lapse": {try: func(p *spot) {
		if r := p.row(); r != nil && r.state == store.Leased {
			p.passUntil(r.until)
		}
		p.prod()
	}, lease: "same", event: evLapsed},
	"ToDLQ": {try: func(p *spot) {
		p.limit(1)
		switch r := p.row(); {
		case r == nil || r.key.Dead || r.Entry.Deliveries == 0:
			m, _ := p.scanned()
			p.b.do(func(g *group) { g.moveToDead(burial{p.lane, p.id, p.lease}, m) })
		case r.state == store.Leased:
			p.passUntil(r.until)
		default:
			p.nothing(false)
		}
		synctest.Wait()
	}, lease: "none", event: evDeadLettered},
	"Due": {try: func(p *spot) {
		m, _ := p.scanned()
		if there, _ := p.s.Delayed(store.Timer{At: m.DueAt, Lane: p.lane, ID: p.id}); there {
			p.passUntil(m.DueAt)
		}
		p.prod()
	}, lease: "none", event: eventKinds},
	"Delete": {try: func(p *spot) { p.delete(p.own()) }, receipt: true, event: evDeleted},
	"Expire": {try: func(p *spot) { m, _ := p.scanned(); p.passUntil(m.ExpireAfter); p.prod() }, event: evExpired},
}

// wrongs are effects that are refused in every state: of another delivery,
// before their time, or without their reason.
var wrongs = map[string]func(*spot){
	"Return of another delivery":    func(p *spot) { p.update(p.other(), 0) },
	"Extend of another delivery":    func(p *spot) { p.update(p.other(), time.Hour) },
	"Delete of another delivery":    func(p *spot) { p.delete(p.other()) },
	"Undeliver of another delivery": func(p *spot) { p.undeliver(p.other()) },
	"all that time does, too early": (*spot).prod,
	"Expire too early":              func(p *spot) { _, m := p.scanned(); p.b.do(func(g *group) { g.expire(p.lane, m) }) },
	"ToDLQ without a reason": func(p *spot) {
		m, _ := p.scanned()
		p.b.do(func(g *group) { g.moveToDead(burial{p.lane, p.id, p.lease}, m) })
	},
}

// rows is all that the store holds of messages, as text.
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
	if err := p.s.Lanes(func(l store.Lane) error { all = append(all, l.ID); line("c %+v", l); return nil }); err != nil {
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
			line("%s %+v", kind, t)
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
		if m, d := p.b.Stats(p.queue, channel); m != wants[0] || d != wants[1] {
			p.t.Errorf("the %s counts %+v and dead %+v, want %+v", what, m, d, wants)
		}
	}
	if s := p.b.Snapshot(); s.InFlight != want.InFlight || s.Bytes != want.Bytes {
		p.t.Errorf("the server counts %d in flight and %d octets, want %+v", s.InFlight, s.Bytes, want)
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

// at brings a message into a state, in a bubble of its own, and has f work on
// it.
func (w way) at(t *testing.T, name string, indexed bool, change func(*spot), f func(p *spot)) {
	t.Run(fmt.Sprintf("%s/%s/%s/indexed=%v", w.state, w.name, name, indexed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &spot{bench: newBench(t, testdisk.New()), indexed: indexed, hidden: 30 * time.Minute, delay: time.Hour}
			defer p.shut()
			if change != nil {
				change(p)
			}
			p.queue = p.bench.queue("orders", func(q *queue.Queue) { q.Retention = spotRetention })
			w.reach(p)
			want := w.state
			if got := p.row().name(); want != "purged" && got != want {
				t.Fatalf("it is %s, want %s", got, want)
			}
			p.counted(want)
			f(p)
		})
	})
}

// TestStates walks the table: for every way into every state and every effect
// it reaches the state, tries the effect, and looks at every row and every
// counter, then again after a restart.
func TestStates(t *testing.T) {
	for _, w := range ways {
		i := slices.IndexFunc(stateTable, func(r stateRow) bool { return r.state == w.state })
		cells := stateTable[i].cells
		for _, indexed := range []bool{false, true} {
			// What is refused, one after the other: nothing may have changed.
			w.at(t, "refused", indexed, nil, func(p *spot) {
				rows, events := p.rows(), p.events()
				refused := func(name string, try func(*spot)) {
					try(p)
					synctest.Wait()
					if diff := cmp.Diff(rows, p.rows()); diff != "" {
						p.t.Errorf("%s changed rows (-before +after):\n%s", name, diff)
					}
					p.counted(w.state)
					if got := p.events(); got != events {
						p.t.Errorf("%s: events %v, before %v", name, got, events)
					}
				}
				for name, try := range wrongs {
					refused(name, try)
				}
				for _, name := range effectNames {
					if e := effects[name]; cells[name] == "" || e.receipt && p.receipt == "" {
						// Time that passes would bring about something else.
						if name == "Expire" && w.name == "delayed" {
							continue
						}
						refused(name, e.try)
					}
				}
				if w.state != "purged" {
					p.row() // recount
				}
				p.restart(w.state)
			})
			for _, name := range effectNames {
				if cells[name] != "" {
					w.walk(t, name, indexed, cells[name])
				}
			}
		}
	}
}

// walk tries one effect that changes something.
func (w way) walk(t *testing.T, name string, indexed bool, to string) {
	e := effects[name]
	// The effect must be the first thing that time brings.
	change := func(p *spot) {
		if name == "Expire" {
			p.hidden, p.delay = 12*time.Hour, 3*time.Hour
		}
	}
	w.at(t, name, indexed, change, func(p *spot) {
		if e.receipt && p.receipt == "" {
			return // among the refused
		}
		before, was, events := p.row(), p.rows(), p.events()
		if w.state == "purged" {
			due := func(row string) bool { return row[0] == 't' }
			e.try(p)
			if diff := cmp.Diff(slices.DeleteFunc(was, due), p.rows()); diff != "" {
				p.t.Errorf("rows (-want +got):\n%s", diff)
			}
			p.counted("purged")
			p.restart("purged")
			return
		}
		if name == "ToDLQ" && before.Entry.Deliveries == 0 {
			return // there is no reason to; tried without one among the refused
		}
		lanes := func() map[store.LaneKey]store.Lane {
			c, err := takeCensus(p.s, true)
			if err != nil {
				p.t.Error(err)
			}
			return c.lanes
		}
		cursor := lanes()[before.key].Cursor
		e.try(p)
		synctest.Wait()
		after := p.row()
		if got := after.name(); got != to {
			t.Fatalf("it is %s, want %s", got, to)
		}
		p.counted(to)

		want := events
		if e.event < eventKinds {
			want[e.event]++
		}
		if got := p.events(); got != want {
			t.Errorf("events %v, want %v: %v", got, want, EventNames)
		}
		if to == "gone" {
			if got := p.rows(); got != nil {
				t.Errorf("left behind: %v", got)
			}
			p.restart("gone")
			return
		}
		if got, want := int(after.Entry.Deliveries), int(before.Entry.Deliveries)+e.counts; got != want {
			t.Errorf("%d deliveries, want %d", got, want)
		}
		switch got := after.Entry.Lease; {
		case e.lease == "same" && got != before.Entry.Lease,
			e.lease == "none" && got != 0,
			e.lease == "new" && got <= before.Entry.Lease:
			t.Errorf("lease %d, before %d, want %s", got, before.Entry.Lease, e.lease)
		}
		// Only a fresh one that is taken moves the cursor.
		if l, ok := lanes()[before.key]; ok && before.key == after.key {
			if want := cursor; w.state == "fresh" {
				if l.Cursor != p.id {
					t.Errorf("the cursor is at %d, want it at the message, %d", l.Cursor, p.id)
				}
			} else if l.Cursor != want {
				t.Errorf("the cursor went from %d to %d", want, l.Cursor)
			}
		}
		if after.key.Dead && after.DueAt != 0 {
			t.Error("a dead letter has a delay")
		}
		if to == "dead returned" && name == "ToDLQ" {
			dead := after.Message.Dead
			if dead == nil || dead.Deliveries != before.Entry.Deliveries || dead.Reason != queue.DeliveryCountReached || after.Entry.ExpireAfter != dead.At.Add(spotRetention) {
				t.Errorf("it moved as %+v, expiring at %d", dead, after.Entry.ExpireAfter)
			}
			if err := p.delete(p.own()); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
				t.Errorf("a delete with the receipt of before the move: %v", err)
			}
		}
		if name == "Undeliver" {
			if err := p.delete(p.receipt); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
				t.Errorf("a delete with the receipt that was taken back: %v", err)
			}
		}
		p.restart(to)
		// The receipt of the last delivery still ends it, if there is one.
		if e.lease == "same" {
			if err := p.delete(p.receipt); err != nil {
				t.Errorf("a delete after the restart: %v", err)
			}
			p.counted("gone")
		}
	})
}
