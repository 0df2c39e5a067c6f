package broker

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

var (
	crashRuns = flag.Int("crash.runs", 2, "runs of the crash test, each some hundred crashes")
	crashFor  = flag.Duration("crash.for", 0, "how long the crash test begins new runs, instead of so many")
	crashSeed = flag.Uint64("crash.seed", 0, "seed of the first run of the crash test; 0 is a random one")
)

// TestCrashAtEveryWrite does things at random (world_test.go) and crashes a
// copy of the disk ahead of every operation that changes it, with nothing, a
// part and all of what was not synced surviving. What a copy holds must be
// what was before the action that ran, or what is after it, whole; and what
// time alone may have made of either. Since whatever was answered or shown
// belongs to both, nothing acknowledged is lost and nothing deleted is back;
// leases, counts, receipts and retry tokens are exact. Some copies are opened
// and used on, and some crash again at every step of being opened
// (crashagain_test.go).
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	var all laboratory
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()>>1 + 1
	}
	first := seed
	for began := time.Now(); all.more(time.Since(began)); seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrasher(t, seed)
				defer c.shut()
				if n := 120; underRace {
					c.run(n / 4)
				} else {
					c.run(n)
				}
				all.add(c)
				for _, err := range c.losses {
					t.Error(err)
				}
			})
		})
		if !ok {
			all.failed++
			t.Logf("repeat with: make crash ROUNDS=1 SEED=%d", seed)
			break
		}
	}
	t.Logf("seeds %d to %d: %s", first, first+uint64(all.runs)-1, &all)
	if underRace {
		return
	}
	if all.crashes < 400*all.runs || all.again < 300*all.runs || all.revived < 10*all.runs {
		t.Error("these are too few crashes")
	}
}

// laboratory is the figures of many runs.
type laboratory struct {
	runs, actions, points, crashes, revived, again, twice, losses, failed int
	kinds                                                                 map[string]int
}

// more says whether another run is to be begun.
func (l *laboratory) more(passed time.Duration) bool {
	switch {
	case *crashFor > 0:
		return passed < *crashFor
	case underRace:
		return l.runs < min(*crashRuns, 1)
	}
	return l.runs < *crashRuns
}

func (l *laboratory) add(c *crasher) {
	l.runs++
	l.actions += c.actions
	l.points += c.passed
	l.crashes += c.crashes
	l.revived += c.revived
	l.again += c.again
	l.twice += c.twice
	l.losses += len(c.losses)
	if l.kinds == nil {
		l.kinds = make(map[string]int)
	}
	for k, n := range c.kinds {
		l.kinds[k] += n
	}
}

func (l *laboratory) String() string {
	return fmt.Sprintf("%d runs, %d of them failed; %d actions, %d crash points %v; %d copies opened and compared, and %d of crashes while such a copy was opened, %d of them of a second one; %d copies used on; %d violations",
		l.runs, l.failed, l.actions, l.points, l.kinds, l.crashes, l.again, l.twice, l.revived, l.losses)
}

// TestCrashWithoutSyncs is the control: a store that does not sync loses what
// it acknowledged, and the test above must see it.
func TestCrashWithoutSyncs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrasher(t, 1)
		defer c.shut()
		c.so.WithoutSyncs = true
		c.uses = false
		c.run(15)
		if t.Logf("%d crashes, %d with losses", c.crashes, len(c.losses)); len(c.losses) == 0 {
			t.Error("no loss was found where nothing is synced")
		}
	})
}

// crasher is a world whose disk is crashed at every step.
type crasher struct {
	*world
	random *rand.Rand
	uses   bool // open some copies and use them

	actions, passed  int // how many there were, and the crash points
	crashes, revived int
	again, twice     int // copies of crashes while a copy is opened, and while one of those is
	losses           []error
	kinds            map[string]int // of files, and how often each was written to

	mu struct {
		sync.Mutex
		watching bool
		points   []*crashPoint
		synced   bool // since the last point without anything unsynced
		wrote    bool // since the last with all of it
		told     int
	}
}

// crashPoint is a moment at which the power could have failed.
type crashPoint struct {
	at    queue.Instant
	shown uint64            // position of what had been shown
	told  int               // how many steps of the action had been answered
	disks [3]*testdisk.Disk // nothing, half and all of what was not synced; nil: as at the last point
}

var survivals = [3]int{0, 50, 100}

func newCrasher(t *testing.T, seed uint64) *crasher {
	c := &crasher{random: rand.New(rand.NewPCG(seed, 0)), uses: true}
	c.kinds = make(map[string]int)
	c.world = newWorld(t, func(_ string, n int) int { return c.random.IntN(n) })
	c.so.MemtableBytes = 16 << 10 // so that tables are written too
	c.so.ManifestBytes = 512      // and lists of them begun anew
	c.o.ReclaimBytes = 4 << 10    // and tables rewritten when most of them is deleted
	return c
}

// before is called ahead of everything that changes the disk.
func (c *crasher) before(s testdisk.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.watching {
		c.point()
	}
	if c.mu.watching {
		name := path.Base(s.Path)
		if c.kinds[strings.Trim(name, "-0123456789")]++; s.Sync {
			c.kinds["syncs"]++
		}
	}
	c.mu.synced = c.mu.synced || s.Sync
	c.mu.wrote = c.mu.wrote || !s.Sync
	return nil
}

// point takes the copies of one moment; mu is held.
func (c *crasher) point() {
	p := &crashPoint{at: c.now(), told: c.mu.told}
	if c.b != nil {
		c.b.shown.RLock()
		p.shown = c.b.shown.position
		c.b.shown.RUnlock()
	}
	for i, percent := range survivals {
		if percent == 0 && !c.mu.synced || percent == 100 && !c.mu.wrote || percent == 50 && !c.mu.synced && !c.mu.wrote {
			continue
		}
		p.disks[i] = c.disk.Crash(percent, rand.NewPCG(uint64(len(c.mu.points)), uint64(c.crashes)))
	}
	c.mu.synced, c.mu.wrote = false, false
	c.mu.points = append(c.mu.points, p)
}

// watch begins a new list of points, with all kinds at the first.
func (c *crasher) watch(on bool) (points []*crashPoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.watching {
		c.point() // the end is a moment too
	}
	points, c.mu.points = c.mu.points, nil
	c.mu.watching, c.mu.synced, c.mu.wrote, c.mu.told = on, true, true, 0
	return points
}

func (c *crasher) run(actions int) {
	c.settings()
	c.hook = c.before
	c.start()
	for range 2 {
		c.createQueue()
	}
	for range actions {
		c.settle(0)                  // time has passed in the copies that were used on
		states := []*world{c.fork()} // those that the action leads through
		var ends []int               // which of them end a step that is answered
		c.world.step = func() { states = append(states, c.fork()) }
		c.told = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.mu.told++
			ends = append(ends, len(states))
		}
		began := c.now()
		c.actions++
		c.watch(true)
		c.act(c.online())
		points := c.watch(false)
		c.world.step, c.told = func() {}, func() {}
		c.passed += len(points)
		for _, p := range points {
			states := states
			if p.told > 0 {
				states = states[ends[p.told-1]:] // what was before is over for good
			}
			for i, disk := range p.disks {
				if disk != nil {
					c.crashes++
					c.check(states, p, began, survivals[i], disk)
				}
			}
		}
		if len(c.losses) > 5 {
			return
		}
	}
	c.finish()
}

// online are the actions that need no other start of the broker and that lead
// through states the model knows: a get that gives up is not among them, since
// nobody is told what it was about to have.
func (w *world) online() []wantAct {
	return slices.DeleteFunc(w.acts(), func(a wantAct) bool {
		return slices.Contains([]string{"crash", "restart", "abandon", "stall"}, a.name)
	})
}

// check looks at one copy.
func (c *crasher) check(states []*world, p *crashPoint, began queue.Instant, percent int, disk *testdisk.Disk) {
	err := c.look(states, p, began, disk)
	if err != nil {
		c.losses = append(c.losses, fmt.Errorf("%s\na crash at %s, with %d%% of what was not synced: %w",
			strings.Join(c.history, "\n"), p.at, percent, err))
	}
}

func (c *crasher) look(states []*world, p *crashPoint, began queue.Instant, disk *testdisk.Disk) (err error) {
	var unopened *testdisk.Disk
	if c.uses && c.crashes%150 == 75 {
		unopened = copyOf(disk)
	}
	s, err := store.Open("data", lookOptions(disk))
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, s.Close())
		}
	}()
	census, err := takeCensus(s, true)
	if err != nil {
		return err
	}
	if census.State.Position < p.shown {
		return fmt.Errorf("position %d was shown, %d is there", p.shown, census.State.Position)
	}
	for i := len(states) - 1; i >= 0; i-- {
		w := states[i].fork()
		wrong := w.agrees(s, census)
		if wrong == nil {
			wrong = w.reconcile(w.messages, census, p.at, began)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("it is not the state %d of %d: %w", i+1, len(states), wrong))
			continue
		}
		if closed = true; s.Close() != nil {
			return errors.New("it does not close")
		}
		if unopened != nil {
			return c.crashAgain(states[i], p, began, unopened, 0)
		}
		if c.uses && c.crashes%20 == 0 {
			return c.revive(w, disk)
		}
		return nil
	}
	return err
}

// agrees compares queues and retry tokens with what a store has.
func (w *world) agrees(s *store.Store, c *census) error {
	live := make(map[queue.ID]store.Queue)
	for _, q := range c.Queues {
		if q.Live() {
			live[q.ID] = q
		}
	}
	if len(live) != len(w.queues) {
		return fmt.Errorf("%d queues are live, want %d", len(live), len(w.queues))
	}
	for _, q := range w.queues {
		have, ok := live[q.ID]
		if !ok || have.DeadLetterDeliveryCount != q.DeadLetterDeliveryCount {
			return fmt.Errorf("queue %s is %+v, want %+v", q.ID, have, q.Queue)
		}
		if err := q.agreesOnGroups(&have); err != nil {
			return err
		}
		for _, token := range []string{"one", "two"} {
			want, used := q.tokens[token]
			t, found, err := s.RetryToken(tokenScope(have.Number), token)
			if err != nil {
				return err
			}
			if used && w.now().Sub(want.at) >= tokenLife {
				continue
			}
			if found && t.At != want.at && w.now().Sub(t.At) < tokenLife || used && !found {
				return fmt.Errorf("retry token %s of %s: found %v, used at %s, want %s", token, q.ID, found, t.At, want.at)
			}
			if used {
				if _, out, ok := decodeAnswer(t.Value); !ok || !slices.Equal(out, want.out) {
					return fmt.Errorf("retry token %s of %s: %v, want %v", token, q.ID, out, want.out)
				}
			}
		}
	}
	return nil
}

// revive opens a copy and goes on with it for a while.
func (c *crasher) revive(w *world, disk *testdisk.Disk) error {
	c.revived++
	w.disk = disk
	w.note("power failed; this copy goes on")
	defer w.shut()
	err := c.crashStart(w)
	w.settle(0)
	for range 3 {
		w.act(w.online())
	}
	return err
}

// fork is a copy of the model, without the broker.
func (w *world) fork() *world {
	f := *w
	f.step, f.told, f.hook, f.open, f.hits = func() {}, func() {}, nil, false, maps.Clone(w.hits)
	f.history = slices.Clip(w.history)
	of := make(map[*wantQueue]*wantQueue)
	copied := func(q *wantQueue) *wantQueue {
		if of[q] == nil {
			c := *q
			c.tokens, c.groups, c.gone = maps.Clone(q.tokens), slices.Clone(q.groups), slices.Clone(q.gone)
			of[q] = &c
		}
		return of[q]
	}
	f.queues = nil
	for _, q := range w.queues {
		f.queues = append(f.queues, copied(q))
	}
	f.messages = make(map[place]want, len(w.messages))
	for id, m := range w.messages {
		m.q = copied(m.q)
		f.messages[id] = m
	}
	f.issued = slices.Clone(w.issued)
	for i := range f.issued {
		f.issued[i].q = copied(f.issued[i].q)
	}
	return &f
}
