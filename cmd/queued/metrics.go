package main

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp"
)

// metrics is the registry of the server. Its names are a promise
// (docs/contract.md, docs/metrics.md). Requests and groups are counted as they
// happen; everything else is read when somebody asks.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	group    prometheus.Histogram
	syncs    prometheus.Histogram

	// Looking series up by their labels costs more than counting, so those in
	// use are remembered: a map that is copied when one is added. There are as
	// many as faces, operations and codes.
	adding sync.Mutex
	known  atomic.Pointer[map[outcome]counted]
}

// outcome is what requests are counted by.
type outcome struct {
	face, operation string
	code            queue.Code
}

// counted are the series of an outcome.
type counted struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queued_requests_total",
			Help: "Requests answered, by face, operation and code (OK, the error code, or Canceled when the client had gone).",
		}, []string{"face", "operation", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "queued_request_seconds",
			Help:    "How long requests took, the waiting of long polls included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60},
		}, []string{"face", "operation"}),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "queued_commit_group_size",
			Help:    "Requests that shared one sync of the disk.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		syncs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "queued_sync_seconds",
			Help:    "How long it took to make a group of requests durable.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 17), // to 3.3 s
		}),
	}
	m.known.Store(&map[outcome]counted{})
	m.registry.MustRegister(m.requests, m.seconds, m.group, m.syncs,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// request is the Observe hook of the service. What the program asks of itself
// is not counted.
func (m *metrics) request(face, operation string, code queue.Code, seconds float64) {
	if face == "" {
		return
	}
	if code == "" {
		code = "OK"
	}
	c, ok := (*m.known.Load())[outcome{face, operation, code}]
	if !ok {
		c = m.add(outcome{face, operation, code})
	}
	c.requests.Inc()
	c.seconds.Observe(seconds)
}

// add makes the series of a new outcome.
func (m *metrics) add(o outcome) counted {
	m.adding.Lock()
	defer m.adding.Unlock()
	c := counted{m.requests.WithLabelValues(o.face, o.operation, string(o.code)), m.seconds.WithLabelValues(o.face, o.operation)}
	known := maps.Clone(*m.known.Load())
	known[o] = c
	m.known.Store(&known)
	return c
}

// committed is the hook of the broker for groups.
func (m *metrics) committed(requests int, sync time.Duration) {
	m.group.Observe(float64(requests))
	m.syncs.Observe(sync.Seconds())
}

// desc describes a metric that is read when somebody asks.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// gauge and counter make one sample.
func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// faceWebSocket is the label of connections that speak STOMP over WebSocket. They
// come by the listener of REST; their requests are counted as those of STOMP.
const faceWebSocket = "websocket"

// others is the label of the queues that have no metrics of their own.
const others = "_other"

var (
	queueMessages = desc("queued_queue_messages", "Messages of the queue by state.", "queue", "state")
	queueBytes    = desc("queued_queue_bytes", "Stored octets of the queue, its dead letters included, those that several consumer groups have counted once.", "queue")
	groupMessages = desc("queued_group_messages", "Messages of a consumer group of the queue by state.", "queue", "group", "state")
	groupEvents   = desc("queued_group_messages_total", "What happened to messages of a consumer group of the queue, since the start.", "queue", "group", "event")
	queueAge      = desc("queued_queue_oldest_message_age_seconds", "Age of the oldest message of the queue, dead letters aside; 0 without one.", "queue")
	messagesTotal = desc("queued_messages_total", "What happened to messages of the queue, since the start.", "queue", "event")
	fullGets      = desc("queued_gets_at_in_flight_limit_total", "Gets that found the queue at its in-flight limit and waited or came back empty, since the start.", "queue")
	heldPublishes = desc("queued_publishes_held_total", "Publishes that waited a moment for consumers that fell behind, since the start.", "queue")

	queuesNow    = desc("queued_queues", "Live queues.")
	waitersNow   = desc("queued_waiters", "Gets that wait for a message.")
	inFlightNow  = desc("queued_in_flight_messages", "Messages in flight of all queues; each takes memory.")
	storedBytes  = desc("queued_stored_bytes", "Stored octets of all queues.")
	diskFree     = desc("queued_disk_free_bytes", "Free space on the disk of the store; absent when it is not known.")
	diskFloor    = desc("queued_disk_floor_bytes", "Free space below which publishes (kind publish) or new deliveries too (kind lease) are refused.", "kind")
	diskAlert    = desc("queued_disk_alert", "0: room enough; 1: less than one and a half times the publish floor; 2: publishes are refused; 3: new deliveries too.")
	clockAhead   = desc("queued_clock_ahead_seconds", "How far the machine's clock is ahead of the engine's time; negative: behind.")
	clockJumps   = desc("queued_clock_jumps_total", "Jumps of the machine's clock, since the start.")
	connections  = desc("queued_connections", "Open connections.", "face")
	quirksTotal  = desc("queued_stomp_quirks_total", "Frames of STOMP clients that did not keep to the letter and were served, by what was odd, since the start.", "kind")
	connsRefused = desc("queued_connections_refused_total", "Connections closed at once because of a limit, since the start.", "face")
)

// queueCollector shows what the broker counts. Of queues it shows the oldest
// by name and the rest as one, so that nobody who creates queues can flood the
// store of the metrics.
type queueCollector struct {
	snapshot  func() broker.Snapshot
	age       func(queue.ID) (time.Duration, error) // of the oldest message
	cfg       *Config
	listeners []*listener
	sessions  *stomp.Server
	log       *slog.Logger

	// Events are added up here: the broker forgets those of a deleted queue,
	// and a counter must not fall while its series lives.
	mu     sync.Mutex
	last   map[queue.ID]tally
	totals map[string]*tally

	lastOfGroup   map[queue.ID]events // of the group; that of what no group accepted bears the id of its queue
	totalsOfGroup map[groupLabels]*events
}

type events = [len(broker.EventNames)]int64

// groupLabels are the labels of a consumer group.
type groupLabels struct{ queue, group string }

// tally is what is counted of one queue, or of all queues of one label.
type tally struct {
	events events
	full   int64
	held   int64
}

func newQueueCollector(b *broker.Broker, cfg *Config, listeners []*listener, sessions *stomp.Server, log *slog.Logger) *queueCollector {
	return &queueCollector{
		snapshot: b.Snapshot, age: b.OldestAge, cfg: cfg, listeners: listeners, sessions: sessions, log: log,
		last: map[queue.ID]tally{}, totals: map[string]*tally{},
		lastOfGroup: map[queue.ID]events{}, totalsOfGroup: map[groupLabels]*events{},
	}
}

// Describe is part of prometheus.Collector.
func (c *queueCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		queueMessages, queueBytes, groupMessages, groupEvents, queueAge, messagesTotal, fullGets, heldPublishes, queuesNow, waitersNow, inFlightNow, storedBytes,
		diskFree, diskFloor, diskAlert, clockAhead, clockJumps, connections, connsRefused, quirksTotal,
	} {
		out <- d
	}
}

// ageTime bounds what is spent on the ages of queues without a name of their
// own, of which there may be any number: each is a read of the store.
const ageTime = time.Second

// shown is what is shown under one label.
type shown struct {
	main, dead queue.Stats
	stored     int64
	age        time.Duration
}

// groupShown is what is shown of the consumer groups of one name.
type groupShown struct {
	main, dead queue.Stats
	events     *events
}

// unrouted is the label of what no consumer group accepted.
const unrouted = "_unrouted"

// groups adds up what the snapshot says of consumer groups, for the queues that
// are shown by name: groups can have any name, and there may be any number.
func (c *queueCollector) groups(s *broker.Snapshot, by map[string]*shown) map[groupLabels]*groupShown {
	out := map[groupLabels]*groupShown{}
	seen := map[queue.ID]events{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range s.Queues {
		q := &s.Queues[i]
		label := q.Queue.DisplayName
		if by[label] == nil || label == others {
			continue
		}
		for j := range q.Groups {
			g := &q.Groups[j]
			at, id := groupLabels{label, g.Group.DisplayName}, g.Group.ID
			if id == queue.UnroutedGroup {
				at.group, id = unrouted, q.Queue.ID
			}
			sum := out[at]
			if sum == nil {
				if c.totalsOfGroup[at] == nil {
					c.totalsOfGroup[at] = &events{}
				}
				sum = &groupShown{events: c.totalsOfGroup[at]}
				out[at] = sum
			}
			sum.main, sum.dead = sum.main.Plus(g.Main), sum.dead.Plus(g.Dead)
			before := c.lastOfGroup[id]
			for k, n := range g.Events {
				sum.events[k] += n - before[k]
			}
			seen[id] = g.Events
		}
	}
	c.lastOfGroup = seen
	maps.DeleteFunc(c.totalsOfGroup, func(at groupLabels, _ *events) bool { return out[at] == nil })
	return out
}

// states are the numbers of messages by state.
func states(main, dead queue.Stats) map[string]int64 {
	return map[string]int64{
		"visible": main.Visible, "in_flight": main.InFlight, "delayed": main.Delayed,
		"dead": dead.Visible + dead.InFlight + dead.Delayed,
	}
}

// Collect is part of prometheus.Collector.
func (c *queueCollector) Collect(out chan<- prometheus.Metric) {
	s := c.snapshot()
	by, totals := c.label(&s)
	for label, q := range by {
		for state, n := range states(q.main, q.dead) {
			gauge(out, queueMessages, float64(n), label, state)
		}
		gauge(out, queueBytes, float64(q.stored), label)
		gauge(out, queueAge, q.age.Seconds(), label)
	}
	for at, g := range c.groups(&s, by) {
		for state, n := range states(g.main, g.dead) {
			gauge(out, groupMessages, float64(n), at.queue, at.group, state)
		}
		for i, event := range broker.EventNames {
			counter(out, groupEvents, float64(g.events[i]), at.queue, at.group, event)
		}
	}
	for label, t := range totals {
		for i, name := range broker.EventNames {
			counter(out, messagesTotal, float64(t.events[i]), label, name)
		}
		counter(out, fullGets, float64(t.full), label)
		counter(out, heldPublishes, float64(t.held), label)
	}

	gauge(out, queuesNow, float64(len(s.Queues)))
	gauge(out, waitersNow, float64(s.Waiters))
	gauge(out, inFlightNow, float64(s.InFlight))
	gauge(out, storedBytes, float64(s.Bytes))
	if s.FreeBytes >= 0 {
		gauge(out, diskFree, float64(s.FreeBytes))
	}
	gauge(out, diskFloor, float64(c.cfg.DiskFloorPublishBytes), "publish")
	gauge(out, diskFloor, float64(c.cfg.DiskFloorLeaseBytes), "lease")
	gauge(out, diskAlert, alertOf(s.FreeBytes, c.cfg))
	gauge(out, clockAhead, s.ClockAhead.Seconds())
	counter(out, clockJumps, float64(s.ClockJumps))
	c.sessions.Quirks(func(kind string, frames int64) { counter(out, quirksTotal, float64(frames), kind) })
	sockets := int64(c.sessions.WebSockets())
	gauge(out, connections, float64(sockets), faceWebSocket)
	for _, l := range c.listeners {
		n := l.count.Load()
		if l.face == service.FaceREST {
			n = max(n-sockets, 0) // the two are not read at one instant
		}
		gauge(out, connections, float64(n), l.face)
		counter(out, connsRefused, float64(l.refused.Load()), l.face)
	}
}

// label adds up what the snapshot says of queues: by label what is there now,
// and what has happened since the start.
func (c *queueCollector) label(s *broker.Snapshot) (map[string]*shown, map[string]tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[string]*shown{}
	seen := make(map[queue.ID]tally, len(s.Queues))
	var own int64
	began := time.Now()
	for i := range s.Queues {
		q := &s.Queues[i]
		label := q.Queue.DisplayName
		if by[label] == nil {
			if own < c.cfg.MetricsQueues && label != others {
				own++
			} else {
				label = others
			}
		}
		sum := by[label]
		if sum == nil {
			sum = &shown{}
			by[label] = sum
		}
		sum.main, sum.dead, sum.stored = sum.main.Plus(q.Main), sum.dead.Plus(q.Dead), sum.stored+q.Stored
		if !q.Main.Empty() && (label != others || time.Since(began) < ageTime) {
			age, err := c.age(q.Queue.ID)
			if err != nil {
				c.log.Error("read the oldest message for metrics", "queue", q.Queue.ID, "error", err)
			}
			sum.age = max(sum.age, age)
		}

		total := c.totals[label]
		if total == nil {
			total = &tally{}
			c.totals[label] = total
		}
		now, before := tally{q.Events, q.Full, q.Held}, c.last[q.Queue.ID]
		for i := range now.events {
			total.events[i] += now.events[i] - before.events[i]
		}
		total.full += now.full - before.full
		total.held += now.held - before.held
		seen[q.Queue.ID] = now
	}
	c.last = seen
	totals := make(map[string]tally, len(c.totals))
	for label, t := range c.totals {
		if by[label] == nil && label != others {
			delete(c.totals, label) // the queue is gone
			continue
		}
		totals[label] = *t
	}
	return by, totals
}

// alertOf is the state of the disk as queued_disk_alert says it: it changes
// well before anything is refused.
func alertOf(free int64, cfg *Config) float64 {
	switch {
	case free < 0:
		return 0
	case free < cfg.DiskFloorLeaseBytes:
		return 3
	case free < cfg.DiskFloorPublishBytes:
		return 2
	case free < cfg.DiskFloorPublishBytes+cfg.DiskFloorPublishBytes/2:
		return 1
	}
	return 0
}
