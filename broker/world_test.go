package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/dlq"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// world is a broker and, beside it, a plain model of what it must hold: a map
// of messages and the rules of the contract. The actions (actions_test.go) do
// something to both and compare the answers; settle then compares everything
// else: the rows on disk, their counters, and what is shown.
//
// Where the contract leaves a choice, the model follows the broker after it
// has checked that the choice is one: which of the visible messages a get
// gives, and what within the slack of a timer has happened already.
//
// It works in a bubble only: the clock stands still while something is done.
type world struct {
	t    stopper
	roll func(what string, n int) int // a number from 0 to n-1

	disk  *testdisk.Disk
	o     Options
	so    store.Options
	limit limits.Settings
	s     *store.Store
	b     *Broker
	open  bool

	queues   []*wantQueue // live ones
	messages map[place]want
	issued   []issued
	names    int
	bodies   int
	lastID   queue.MessageID // that was given out

	openedAt          queue.Instant
	holdTo, holdUntil queue.Instant

	pending chan got // a get that waits for a read; nil: none
	asked   queue.Instant

	history []string
	hits    map[string]int // what has been exercised

	// For crash tests.
	hook func(testdisk.Step) error // called ahead of what changes the disk
	step func()                    // called when the model has taken a step
	told func()                    // called when all that leads to the next step was answered
}

// stopper is what world needs of a test, one of rapid's too.
type stopper interface {
	Helper()
	Fatalf(format string, args ...any)
}

// slack is how late a timer may be: a tick of the wheel, and the work itself,
// which takes no time in a bubble.
const slack = 200 // milliseconds

type wantQueue struct {
	queue.Queue
	tokens   map[string]wantToken
	groups   []queue.ConsumerGroup // the primary one first; none: the queue has no consumer groups
	gone     []queue.ConsumerGroup // tombstones
	last     uint32                // highest number of a group given out
	unrouted int64                 // messages that no group accepted since the broker was opened
}

type wantToken struct {
	at       queue.Instant
	messages []queue.NewMessage
	out      []queue.Published
}

type wantState int

const (
	visible wantState = iota
	inFlight
	delayed
)

// want is one message as it should be.
type want struct {
	queue.NewMessage
	id         queue.MessageID
	q          *wantQueue
	group      uint32
	dead       bool
	state      wantState
	created    queue.Instant
	expire     queue.Instant
	due, until queue.Instant
	deliveries int
	lease      uint64 // of the last delivery, if its receipt is alive
	letter     *queue.DeadLetter
	shared     bool // several groups were given it
}

func (m *want) place() place { return place{m.id, m.group} }

// issued is a receipt that was given out.
type issued struct {
	receipt queue.Receipt
	q       *wantQueue
	group   uint32
	id      queue.MessageID
	lease   uint64
	dead    bool
}

func newWorld(t stopper, roll func(string, int) int) *world {
	w := &world{
		t: t, roll: roll, disk: testdisk.New(), limit: limits.Unthrottled(),
		messages: make(map[place]want), hits: make(map[string]int),
	}
	w.step, w.told = func() {}, func() {}
	w.so = store.Options{QuietScheduler: true, MemtableBytes: 1 << 20, CacheBytes: 1 << 20}
	w.o = Options{
		Limits: &w.limit, Checked: true, ClockGrace: time.Minute,
		Fatal: func(err error) {
			panic(fmt.Sprintf("%v, after:\n%s", err, strings.Join(w.history, "\n")))
		},
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", strings.Join(w.history, "\n"), fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s  %s", w.now(), fmt.Sprintf(format, args...)))
}

func (w *world) now() queue.Instant { return queue.InstantOf(time.Now()) }

// start opens the broker.
func (w *world) start() {
	w.t.Helper()
	if w.so.FS = w.disk; w.hook != nil {
		w.so.FS = w.disk.Watch(w.hook)
	}
	w.o.Random = rand.NewPCG(uint64(w.roll("choices among channels", 1<<20)), 0)
	s, err := store.Open("data", w.so)
	if err != nil {
		w.fail("open store: %v", err)
	}
	load, err := s.Load()
	if err != nil {
		w.fail("load: %v", err)
	}
	b, err := Open(s, w.o)
	if err != nil {
		w.fail("open broker: %v", err)
	}
	w.s, w.b, w.open = s, b, true
	for _, q := range w.queues {
		q.unrouted = 0
	}
	w.openedAt = w.now()
	w.holdTo, w.holdUntil = 0, 0
	if load.State.Now > 0 {
		w.holdTo, w.holdUntil = w.openedAt, w.openedAt.Add(w.o.ClockGrace)
	}
}

// stop closes the broker.
func (w *world) stop() {
	if !w.open {
		return
	}
	w.open = false
	if err := w.b.Close(); err != nil {
		w.fail("close broker: %v", err)
	}
	if err := w.s.Close(); err != nil {
		w.fail("close store: %v", err)
	}
}

// held reports whether a message with this end expired while the server was
// down, and is not deleted yet in case the clock is wrong.
func (w *world) held(expire, now queue.Instant) bool {
	return expire <= w.holdTo && now < w.holdUntil+slack
}

// gone says whether a message with this end may, and whether it must have been
// removed by now.
func (w *world) gone(expire, now queue.Instant) (may, must bool) {
	if expire <= w.holdTo {
		expire = w.holdUntil
	}
	expire = max(expire, w.openedAt)
	return expire <= now, expire+slack <= now
}

func (m *want) exhausted() bool {
	return !m.dead && dlq.Exhausted(m.deliveries, m.q.limit(m.group))
}

// buried is the message as it stands in the dead letter queue.
func (m want) buried(at queue.Instant) want {
	m.letter = &queue.DeadLetter{Reason: queue.DeliveryCountReached, DeliveryCount: m.deliveries, Channel: m.Channel, At: at}
	m.dead, m.state, m.expire, m.lease = true, visible, at.Add(m.q.Retention), 0
	return m
}

// takeable reports whether a get may be given the message now.
func (m *want) takeable(now queue.Instant) bool {
	return m.state == visible && m.expire > now && !m.exhausted()
}

// follow finds out what time alone, and a look at the head of the queue if
// there was one since the instant looked, has made of the message: row is what
// the store has of it, nil if nothing. It refuses what no rule allows.
func (w *world) follow(c *census, m want, row *found, now, looked queue.Instant) (want, error) {
	may, must := w.gone(m.expire, now)
	lapse := max(m.until, w.openedAt)
	lapsed := m.state == inFlight && m.until <= now
	last := m.exhausted()
	if row == nil {
		if may {
			return m, nil
		}
		// In flight for the last time, then dead, then at its end.
		if lapsed && last && m.expire > lapse && lapse.Add(m.q.Retention) <= now {
			return m, nil
		}
		return m, fmt.Errorf("it is gone")
	}
	if row.key.Dead == m.dead && must {
		return m, fmt.Errorf("it should have expired at %s", m.expire)
	}
	next := m
	switch {
	case row.key.Dead && !m.dead:
		at := row.Dead.At
		switch {
		case lapsed && last && m.expire > at && at >= lapse && at <= lapse+slack:
		case m.state == visible && last && looked != 0 && at >= looked && at <= now && m.expire > at:
			w.hits["buried after the limit was lowered"]++
		default:
			return m, fmt.Errorf("it is in the dead letter queue")
		}
		if must := at.Add(m.q.Retention) + slack; must <= now {
			return m, fmt.Errorf("it should have expired in the dead letter queue at %s", must)
		}
		next = m.buried(at)
		w.hits["buried"]++
	case row.key.Dead != m.dead:
		return m, fmt.Errorf("it left the dead letter queue")
	case row.state == store.Leased:
		if m.state != inFlight {
			return m, fmt.Errorf("it is in flight")
		}
		if lapse+slack <= now {
			return m, fmt.Errorf("it should have lapsed at %s", lapse)
		}
	case row.state == store.Delayed:
		if m.state != delayed {
			return m, fmt.Errorf("it is delayed")
		}
		if due := max(m.due, w.openedAt); due+slack <= now {
			return m, fmt.Errorf("it should have been due at %s", due)
		}
	default:
		switch m.state {
		case inFlight:
			if !lapsed || last && !(m.expire <= now && w.held(m.expire, now)) {
				return m, fmt.Errorf("it is visible")
			}
			w.hits["lapsed"]++
		case delayed:
			if m.due > now {
				return m, fmt.Errorf("it is visible before its time")
			}
			w.hits["due"]++
		}
		next.state = visible
	}
	return next, same(c, next, row)
}

// same compares a message with its row.
func same(c *census, m want, row *found) error {
	type view struct {
		Queue                 queue.ID
		Group                 uint32
		Dead, Shared          bool
		State                 wantState
		Channel, Body, Type   string
		Created, Expire       queue.Instant
		Due, Until            queue.Instant
		Deliveries            int
		Lease                 uint64
		Visibility            time.Duration
		Properties, DeadWords string
	}
	text := func(l *queue.DeadLetter) string {
		if l == nil {
			return ""
		}
		return fmt.Sprint(l.Reason, l.DeliveryCount, l.At)
	}
	a := view{
		m.q.ID, m.group, m.dead, m.shared, m.state, m.Channel, string(m.Body), m.ContentType, m.created, m.expire, 0, 0,
		m.deliveries, m.lease, m.Visibility, fmt.Sprint(m.Properties), text(m.letter),
	}
	b := view{
		c.id(row.key.Queue), row.key.Group, row.key.Dead, row.Entry.Shared, visible, row.key.Channel, string(row.Body), row.ContentType,
		row.CreatedAt, row.Entry.ExpireAfter, 0, 0, int(row.Deliveries), row.Lease,
		time.Duration(row.Message.Visibility) * time.Second, fmt.Sprint(row.Properties), "",
	}
	if row.Dead != nil {
		b.DeadWords = text(&queue.DeadLetter{Reason: row.Dead.Reason, DeliveryCount: int(row.Dead.Deliveries), At: row.Dead.At})
	}
	switch row.state {
	case store.Leased:
		b.State, b.Until, a.Until = inFlight, row.until, m.until
	case store.Delayed:
		b.State, b.Due, a.Due = delayed, row.DueAt, m.due
	}
	if a != b {
		return fmt.Errorf("the store has\n  %+v\nwant\n  %+v", b, a)
	}
	return nil
}

// settle lets the broker do what it has to do at this instant, and compares
// it with the model. looked is when a get has looked at the queues, 0 if none
// has.
func (w *world) settle(looked queue.Instant) {
	w.t.Helper()
	w.told()
	if w.pending != nil && looked == 0 {
		looked = w.asked
	}
	synctest.Wait()
	w.collect()
	w.step()
	c, err := takeCensus(w.s, false)
	if err != nil {
		w.fail("%v", err)
	}
	if err := w.reconcile(w.messages, c, w.now(), looked); err != nil {
		w.fail("%v", err)
	}
	w.compare()
	w.b.do(func(g *group) {
		w.cover(g)
		err = memoryAgrees(g.b, c)
	})
	if err != nil {
		w.fail("%v", err)
	}
}

// reconcile follows every message of the model to what the store has.
func (w *world) reconcile(messages map[place]want, c *census, now, looked queue.Instant) error {
	for at, m := range messages {
		row := c.messages[at]
		next, err := w.follow(c, m, row, now, looked)
		if err != nil {
			return fmt.Errorf("message %d of group %d at %s: %w; it was %+v, the row is %+v", at.id, at.group, now, err, m, row)
		}
		if row == nil {
			delete(messages, at)
			w.hits["expired"]++
			continue
		}
		messages[at] = next
	}
	for at, row := range c.messages {
		if _, known := messages[at]; !known {
			return fmt.Errorf("message %d of group %d at %s: it should not be there: %+v", at.id, at.group, now, row)
		}
	}
	return nil
}

// compare looks at all that is shown.
func (w *world) compare() {
	w.t.Helper()
	type side struct {
		id      queue.ID
		group   uint32
		dead    bool
		channel string
	}
	of, all := make(map[side]queue.Stats), queue.Stats{}
	oldest, stored := make(map[queue.ID]queue.Instant), make(map[queue.ID]int64)
	counted := make(map[queue.MessageID]bool)
	for _, m := range w.messages {
		s := queue.Stats{Bytes: m.Size()}
		switch m.state {
		case visible:
			s.Visible = 1
		case inFlight:
			s.InFlight = 1
		case delayed:
			s.Delayed = 1
		}
		all = all.Plus(s)
		for _, p := range []side{{m.q.ID, m.group, m.dead, m.Channel}, {m.q.ID, m.group, m.dead, "whole"}} {
			of[p] = of[p].Plus(s)
		}
		if !counted[m.id] { // whatever the number of groups
			counted[m.id] = true
			stored[m.q.ID] += m.Size()
		}
		if at := oldest[m.q.ID]; !m.dead && m.group != unrouted && (at == 0 || m.created < at) {
			oldest[m.q.ID] = m.created
		}
	}
	for _, q := range w.queues {
		got, ok := w.b.Lookup(queue.Ref{ID: q.ID}, nil)
		if !ok || got.DeadLetterDeliveryCount != q.DeadLetterDeliveryCount {
			w.fail("queue %s is %+v", q.ID, got)
		}
		w.compareGroups(q)
		for number, group := range q.all() {
			main, dead := w.b.Stats(q.ID, group, nil)
			if want := of[side{q.ID, number, false, "whole"}]; main != want {
				w.fail("stats of %s %q are %+v, want %+v", q.ID, group, main, want)
			}
			if want := of[side{q.ID, number, true, "whole"}]; dead != want {
				w.fail("dead stats of %s %q are %+v, want %+v", q.ID, group, dead, want)
			}
			for _, channel := range wantChannels {
				main, dead := w.b.Stats(q.ID, group, &channel)
				if want := of[side{q.ID, number, false, channel}]; main != want {
					w.fail("stats of %s %q channel %q are %+v, want %+v", q.ID, group, channel, main, want)
				}
				if want := of[side{q.ID, number, true, channel}]; dead != want {
					w.fail("dead stats of %s %q channel %q are %+v, want %+v", q.ID, group, channel, dead, want)
				}
			}
			for _, onDead := range []bool{false, true} {
				for _, f := range wantFilters {
					var names []string
					for _, channel := range wantChannels {
						if channel != "" && f.Match(channel) && !of[side{q.ID, number, onDead, channel}].Empty() {
							names = append(names, channel)
						}
					}
					slices.Sort(names)
					if got := w.b.Channels(q.ID, group, onDead, f, "", 100); !slices.Equal(got, names) {
						w.fail("channels of %s %q (dead %v) like %q are %q, want %q", q.ID, group, onDead, f, got, names)
					}
				}
			}
		}
		var age time.Duration
		if at := oldest[q.ID]; at != 0 {
			age = w.now().Sub(at)
		}
		if got, err := w.b.OldestAge(q.ID); err != nil || got != age {
			w.fail("the oldest of %s is %v old (%v), want %v", q.ID, got, err, age)
		}
	}
	waiters := int64(0)
	if w.pending != nil {
		waiters = 1
	}
	snap := w.b.Snapshot()
	octets := int64(0)
	for _, n := range stored {
		octets += n
	}
	if snap.InFlight != all.InFlight || snap.Bytes != octets || snap.Waiters != waiters || len(snap.Queues) != len(w.queues) {
		w.fail("the snapshot is %+v, want %+v, %d octets and %d queues", snap, all, octets, len(w.queues))
	}
	for _, s := range snap.Queues {
		if s.Stored != stored[s.Queue.ID] {
			w.fail("%d octets of %s are stored, want %d", s.Stored, s.Queue.ID, stored[s.Queue.ID])
		}
		for _, q := range w.queues {
			if q.ID == s.Queue.ID && q.unrouted != s.Events[evUnrouted] {
				w.fail("%d messages of %s were accepted by no group, want %d", s.Events[evUnrouted], q.ID, q.unrouted)
			}
		}
	}
}

// cover notes what the memory of the broker looks like.
func (w *world) cover(g *group) {
	for _, l := range g.b.lanes {
		if l.row.Fresh > int64(l.fresh.len()) {
			w.hits["fresh ones on disk only"]++
		}
		if l.row.Returned > int64(l.returned.len()+len(l.parked)+len(l.dying)) {
			w.hits["returned ones on disk only"]++
		}
		if l.takeable() > 0 && !l.loaded() {
			w.hits["a lane not loaded"]++
		}
		if len(l.parked) > 0 {
			w.hits["parked ones"]++
		}
	}
	if g.b.dormant > 0 {
		w.hits["dormant lanes"]++
	}
	if len(g.b.starved) > 0 {
		w.hits["starved queues"]++
	}
}

// these are the messages of one side of a group that f selects.
func (w *world) these(q *wantQueue, group uint32, dead bool, f channels.Filter) []want {
	var out []want
	for _, at := range slices.SortedFunc(maps.Keys(w.messages), place.compare) {
		if m := w.messages[at]; m.q == q && m.group == group && m.dead == dead && f.Match(m.Channel) {
			out = append(out, m)
		}
	}
	return out
}

var wantChannels = []string{"", "a", "ab", "b", "b.c", "long-name:1"}

var wantFilters = func() []channels.Filter {
	out := []channels.Filter{{}}
	for _, text := range []string{"a", "ab", "b", "a*", "*b", "*", "nobody"} {
		f, err := channels.ParseFilter(text)
		if err != nil {
			panic(err)
		}
		out = append(out, f)
	}
	return out
}()
