package broker

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
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

// at brings a message into a state, in a bubble of its own, and has f work on
// it.
func (w way) at(t *testing.T, name string, kind spotKind, change func(*spot), f func(p *spot)) {
	t.Run(fmt.Sprintf("%s/%s/%s/indexed=%v,shared=%v", w.state, w.name, name, kind.indexed, kind.shared), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &spot{bench: newBench(t, testdisk.New()), indexed: kind.indexed, shared: kind.shared, hidden: 30 * time.Minute, delay: time.Hour}
			defer p.shut()
			if change != nil {
				change(p)
			}
			p.queue = p.bench.queue("orders", func(q *queue.Queue) { q.Retention = spotRetention })
			if kind.shared {
				p.groups(p.queue, "", "")
			}
			w.reach(p)
			want := w.state
			if got := p.row().name(); want != "purged" && got != want {
				t.Fatalf("it is %s, want %s", got, want)
			}
			p.counted(want)
			f(p)
			p.untouched()
		})
	})
}

// spotKind is a kind of message that the table is walked with.
type spotKind struct{ indexed, shared bool }

var spotKinds = []spotKind{{}, {indexed: true}, {shared: true}, {indexed: true, shared: true}}

// TestStates walks the table: for every way into every state and every effect
// it reaches the state, tries the effect, and looks at every row and every
// counter, then again after a restart.
func TestStates(t *testing.T) {
	for _, w := range ways {
		i := slices.IndexFunc(stateTable, func(r stateRow) bool { return r.state == w.state })
		cells := stateTable[i].cells
		for _, kind := range spotKinds {
			// What is refused, one after the other: nothing may have changed.
			w.at(t, "refused", kind, nil, func(p *spot) {
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
						if name == "Expire" && (w.name == "delayed" || w.state == "purged" && kind.shared) {
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
					w.walk(t, name, kind, cells[name])
				}
			}
		}
	}
}

// walk tries one effect that changes something.
func (w way) walk(t *testing.T, name string, kind spotKind, to string) {
	e := effects[name]
	// The effect must be the first thing that time brings.
	change := func(p *spot) {
		if name == "Expire" {
			p.hidden, p.delay = 12*time.Hour, 3*time.Hour
		}
	}
	w.at(t, name, kind, change, func(p *spot) {
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
		want[evExpired] += p.untouched() // which are none of the message's own
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
