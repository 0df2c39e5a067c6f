package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// Options tune a broker. The zero value works.
type Options struct {
	Limits      *limits.Settings // nil: limits.OCI
	WindowBytes int64            // memory for the order of messages; 0: 64 MiB
	BodyBytes   int64            // memory for bodies of fresh messages; 0: 64 MiB
	WindowSize  int              // most entries of the order of one lane in memory; 0: 2048
	ClockGrace  time.Duration    // how long a jump of the wall clock must last; 0: 5 minutes

	PublishFloor int64 // octets free on disk below which publishes are refused; 0: 256 MiB
	LeaseFloor   int64 // and below which new leases are refused too; 0: half of it
	BallastBytes int64 // given to the store, to make the ballast again when there is room
	ReclaimBytes int64 // octets of tables of which nothing is given back before the disk runs low; 0: 64 MiB

	KeepUnrouted bool // what no consumer group accepts is kept until its retention is over

	DeadLanes int // channels of dead letter queues in memory; 0: 10,000. The rest is read when asked for

	Wall    func() time.Time // the wall clock; nil: time.Now
	Logger  *slog.Logger     // nil: none
	Fatal   func(error)      // told of what the process cannot survive; must not return. nil: panic
	Random  rand.Source      // for the choice among channels; nil: seeded by the machine
	Checked bool             // look for broken invariants after every group; for tests
}

// Broker is the core over one store. All methods may be called from many
// goroutines at once.
type Broker struct {
	store  *store.Store
	limits *limits.Settings
	sealer *visibility.Sealer
	clock  *clock
	log    *slog.Logger
	fatal  func(error)
	in     intake
	run    chan struct{}

	// What follows belongs to the core: whoever runs a group.
	g        *group
	own      []func(*group)
	requests []*request
	state    store.State
	queues   map[store.QueueNumber]*queueState
	byID     map[queue.ID]*queueState
	lanes    map[store.LaneID]*lane
	lapses   *visibility.Wheel[*lease]
	expiries *visibility.Wheel[*lane]
	bodies   bodies
	windows  windows
	hasty    []*receive           // gets that do not wait, until they are answered
	order    uint64               // of gets
	starved  map[*queueState]bool // somebody waits there for the in-flight limit of the server
	inFlight int64
	bytes    int64
	dormant  int // dead lanes that are not in memory

	deadLanes, mostDeadLanes int // that are

	random   *rand.Rand
	draining bool

	keepUnrouted bool
	checked      bool

	holding           bool
	holdTo, holdUntil queue.Instant

	adminQueue queueState // requests of the control plane wait in its turn

	disk     *disk
	reclaim  reclaimer // watch's own
	lapser   *alarm
	keeper   *keeper
	burials  *worker[burial]
	remover  *worker[removal]
	reads    *worker[func()]
	waiting  atomic.Int64
	measured measured

	stop    context.CancelFunc
	stopped chan struct{}
	wg      sync.WaitGroup

	shown struct {
		sync.RWMutex
		byID      map[queue.ID]*queueState
		byName    map[string][]*queueState // oldest first
		ordered   []*queueState            // oldest first
		groups    map[queue.ID]queue.ConsumerGroup
		allGroups []queue.ConsumerGroup // queue by queue
		position  uint64
		inFlight  int64
		bytes     int64
	}
}

// Open starts a broker over the store. It reads queues, counters and leases,
// never messages. The store is the caller's to close, after the broker.
func Open(s *store.Store, o Options) (*Broker, error) {
	if o.Limits == nil {
		l := limits.OCI()
		o.Limits = &l
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(err) }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Random == nil {
		o.Random = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	def := func(n *int64, d int64) {
		if *n == 0 {
			*n = d
		}
	}
	def(&o.WindowBytes, 64<<20)
	def(&o.ReclaimBytes, 64<<20)
	def(&o.BodyBytes, 64<<20)
	def(&o.PublishFloor, 256<<20)
	def(&o.LeaseFloor, o.PublishFloor/2)
	if o.DeadLanes == 0 {
		o.DeadLanes = 10_000
	}
	if o.WindowSize == 0 {
		o.WindowSize = 2048
	}
	if o.ClockGrace == 0 {
		o.ClockGrace = 5 * time.Minute
	}
	b := &Broker{
		store: s, limits: o.Limits, log: o.Logger, fatal: o.Fatal,
		sealer:  visibility.NewSealer(s.ReceiptKey()),
		run:     make(chan struct{}, 1),
		queues:  make(map[store.QueueNumber]*queueState),
		byID:    make(map[queue.ID]*queueState),
		starved: make(map[*queueState]bool),
		lanes:   make(map[store.LaneID]*lane),
		bodies:  bodies{limit: o.BodyBytes, byID: make(map[queue.MessageID]*store.Message)},
		windows: windows{limit: int(o.WindowBytes / entryBytes), each: o.WindowSize},
		random:  rand.New(o.Random),
		checked: o.Checked,

		keepUnrouted: o.KeepUnrouted,

		mostDeadLanes: o.DeadLanes,

		lapser:  newAlarm(),
		burials: newWorker[burial](),
		remover: newWorker[removal](),
		reads:   newWorker[func()](),
		stopped: make(chan struct{}),
	}
	b.g = &group{b: b, rows: make(map[rowID]*store.Entry)}
	b.keeper = &keeper{b: b, alarm: newAlarm()}
	b.disk = newDisk(s, o)
	b.reclaim = reclaimer{from: o.ReclaimBytes, looked: time.Now()}
	if err := b.load(o); err != nil {
		return nil, err
	}
	b.start()
	return b, nil
}

// load rebuilds the memory from what a start reads.
func (b *Broker) load(o Options) error {
	data, err := b.store.Load()
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	b.state = data.State
	b.clock = newClock(o.Wall, b.state.Now, o.ClockGrace, b.log)
	now := b.clock.Now()
	b.lapses = visibility.NewWheel[*lease](now)
	b.expiries = visibility.NewWheel[*lane](now)
	if b.state.Now > 0 {
		b.holding, b.holdTo, b.holdUntil = true, now, now.Add(o.ClockGrace)
	}
	for i := range data.Queues {
		if err := readable(data.Queues[i].Groups); err != nil {
			return fmt.Errorf("open broker: queue %s: %w", data.Queues[i].ID, err)
		}
		b.addQueue(&data.Queues[i])
	}
	marked := make(map[store.LaneKey]bool)
	err = b.store.Lanes(func(row store.Lane) error {
		c := b.consumers(row.Key)
		if c == nil || (row.Key.Dead && row.ID <= c.deadThrough) {
			if of := (store.LaneKey{Queue: row.Key.Queue, Group: row.Key.Group, Dead: true}); !marked[of] {
				marked[of] = true
				b.remover.add(removal{dormant: of})
			}
			return nil
		}
		stats := row.Stats()
		side := c.stats(row.Key.Dead)
		*side = side.Plus(stats)
		c.queue.stored += stats.Bytes - row.Shared
		c.queue.shared.held += row.Shared
		if row.Key.Dead && b.deadLanes >= b.mostDeadLanes && row.InFlight == 0 &&
			c.lanes[c.key(false, row.Key.Channel)] == nil { // those come first
			c.dormant++
			b.dormant++
			c.dormantStats = c.dormantStats.Plus(stats)
			c.dormantShare += row.Shared
			return nil
		}
		l := newLane(b.windows.each, c, row)
		b.link(l)
		if !l.dead() && !row.Empty() {
			b.expiries.Schedule(&l.expiry, now) // have a look
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	err = b.store.Shared(func(row store.Shared) {
		if q := b.queues[row.Queue]; q != nil {
			q.shared.bytes += row.Bytes
			q.stored += row.Bytes
		}
	})
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	for _, q := range b.queues {
		b.bytes += q.stored
	}
	err = b.store.Leases(func(id store.LaneID, row store.Lease) error {
		l := b.lanes[id]
		if l == nil {
			return nil // given up; the remover has yet to come
		}
		b.hold(l, row)
		b.inFlight++
		return nil
	})
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	for _, l := range b.lanes {
		if int64(len(l.leases)) != l.row.InFlight {
			return fmt.Errorf("open broker: lane %d counts %d in flight and has %d leases", l.row.ID, l.row.InFlight, len(l.leases))
		}
		l.of.setReady(l)
	}
	if err := b.countTokens(); err != nil {
		return err
	}
	for _, id := range data.Removals {
		b.remover.add(removal{lane: id, walk: true})
	}
	b.keeper.expiryFrom = b.state.ExpiryFrom
	for _, q := range b.queues {
		b.show(q)
	}
	b.catalog()
	b.shown.bytes, b.shown.inFlight, b.shown.position = b.bytes, b.inFlight, b.state.Position
	return nil
}

// start begins what runs beside the core.
func (b *Broker) start() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.wg.Go(b.runner)
	b.wg.Go(func() {
		b.lapser.run(ctx, b.Now, func(context.Context) { b.do((*group).lapseSome) })
	})
	b.wg.Go(func() { b.keeper.run(ctx, b.Now, b.keeper.round) })
	b.wg.Go(func() { b.burials.run(ctx, 64, b.buryAll) })
	b.wg.Go(func() { b.remover.run(ctx, 1, b.removeAll) })
	b.wg.Go(func() {
		b.reads.run(ctx, 1, func(_ context.Context, list []func()) { list[0]() })
	})
	b.wg.Go(func() { b.watch(ctx) })
	if at, ok := b.lapses.Next(); ok {
		b.lapser.wants(at)
	}
	b.keeper.wants(1)
}

// Drain answers all who wait, with nothing, and refuses new gets. Publishes,
// updates and deletes go on until Close.
func (b *Broker) Drain() {
	b.do(func(g *group) {
		b.draining = true
		for _, q := range b.queues {
			for _, c := range q.groups {
				g.dismiss(c, nil)
			}
		}
	})
}

// Close finishes what has been accepted, refuses what comes, and waits for
// everything that runs.
func (b *Broker) Close() error {
	b.Drain()
	b.in.mu.Lock()
	if b.in.closed {
		b.in.mu.Unlock()
		return errors.New("close broker: closed already")
	}
	b.in.closed = true
	var idle chan struct{}
	if b.in.busy {
		idle = make(chan struct{})
		b.in.ownAfter = idle
	}
	b.in.mu.Unlock()
	if idle != nil {
		<-idle
	}
	close(b.stopped)
	b.stop()
	close(b.run)
	b.wg.Wait()
	return nil
}

// Now is the engine's time (docs/architecture.md, Time).
func (b *Broker) Now() queue.Instant { return b.clock.Now() }

// commit makes the group durable.
func (b *Broker) commit(g *group) {
	began := time.Now()
	if err := b.store.Commit(&g.cs); err != nil {
		b.fail(err)
	}
	b.measured.group(len(b.requests)+len(b.own), time.Since(began))
}

// fail ends the process: the store cannot be trusted any more.
func (b *Broker) fail(err error) {
	b.log.Error("storage failed", "error", err)
	b.fatal(err)
	panic(err) // fatal must not return
}

// crash ends the process after a fault of ours that may have left the memory
// in disorder; what is on disk is in order.
func (b *Broker) crash(p any) {
	b.logPanic(p)
	err := fmt.Errorf("broken invariant: %v", p)
	b.fatal(err)
	panic(err)
}

func (b *Broker) logPanic(p any) {
	b.log.Error("panic", "value", fmt.Sprint(p), "stack", string(debug.Stack()))
}
