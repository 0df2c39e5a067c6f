//go:build field

package field

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/guptarohit/asciigraph"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestQueue has MESSAGES (5,000,000) go through one queue in which BACKLOG
// (500,000) wait all the time, as fast as it goes or PER_MINUTE; of every
// hundred one is given back. Meanwhile it measures a receive, and a get of an
// empty channel beside it; each line is a minute, or EVERY so many seconds. In
// the end the queue is drained.
func TestQueue(t *testing.T) {
	through, waiting := number("MESSAGES", 5_000_000), number("BACKLOG", 500_000)
	s := server.Start(t, "--limits-profile", "unthrottled", "--create-queue", telemetry+",visibility=600,dlq=0", "--log-level", "warn")
	x := &passage{head: &head{T: t, s: s, probe: rest.Dial(t, s.REST)}, began: time.Now()}
	defer x.show()

	x.mark("empty")
	x.many(func(c *rest.Conn) { x.publish(c, waiting/turners, 0) })
	x.mark("filled")

	turns := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { x.pace(turns, through/turn, number("PER_MINUTE", 0)) })
	for range turners {
		load.Go(func() { x.turns(turns) })
	}
	ended := make(chan struct{})
	go func() { load.Wait(); close(ended) }()
	every := time.Duration(number("EVERY", 60)) * time.Second
	for running := true; running; {
		if running = x.period(every, ended); t.Failed() {
			t.FailNow() // else it might wait for a client that has gone
		}
	}
	x.compare()
	if n := x.probe.Stats(t, telemetry).Queue; n.Visible+n.InFlight != int64(waiting/turners*turners) {
		t.Errorf("left are %+v, want %d", n, waiting)
	}

	x.many(x.drained)
	if n := x.fresh().Stats(t, telemetry).Queue; n.Visible+n.InFlight != 0 {
		t.Errorf("after the drain: %+v", n)
	}
	x.mark("drained")
	for range 4 {
		time.Sleep(every / 2) // what is measured is what happens while nobody does anything
		x.mark("idle")
	}
}

const (
	turners = 8  // clients
	turn    = 20 // messages
)

// passage is a run of TestQueue.
type passage struct {
	*head
	began time.Time
	rows  []queueRow

	mu     sync.Mutex
	passed int // messages deleted
	back   int // messages given back
}

// queueRow is a line of its table.
type queueRow struct {
	At         float64 `json:"at_s"`
	Phase      string  `json:"phase"`
	Waiting    float64 `json:"waiting"`
	Passed     int     `json:"passed"`
	GivenBack  int     `json:"given_back"`
	Rate       float64 `json:"a_second"`
	Samples    int     `json:"samples"`
	Hit50      float64 `json:"get_p50_ms"`
	Hit99      float64 `json:"get_p99_ms"`
	Miss50     float64 `json:"empty_channel_p50_ms"`
	Miss99     float64 `json:"empty_channel_p99_ms"`
	Disk       float64 `json:"disk_mib"`
	Peak       float64 `json:"peak_disk_mib"`
	Tombstones float64 `json:"tombstones"`
	Resident   float64 `json:"resident_mib"`
	ReadAmpl   float64 `json:"read_amplification"`
}

// fresh is a connection that has not waited.
func (x *passage) fresh() *rest.Conn {
	x.probe.Close()
	x.probe = rest.Dial(x, x.s.REST)
	return x.probe
}

func (x *passage) many(f func(c *rest.Conn)) {
	var wg sync.WaitGroup
	for range turners {
		wg.Go(func() {
			c := rest.Dial(x, x.s.REST)
			defer c.Close()
			f(c)
		})
	}
	wg.Wait()
}

// pace has n turns taken, then closes the channel.
func (x *passage) pace(turns chan<- struct{}, n, perMinute int) {
	defer close(turns)
	began := time.Now()
	for i := range n {
		if perMinute > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Minute * turn / time.Duration(perMinute)))) // the pace is what is asked for
		}
		turns <- struct{}{}
	}
}

// turns is a client that publishes as many messages as it then receives and
// deletes, so that as many wait as before. Of a hundred it gives one back, and
// does not count it.
func (x *passage) turns(turns <-chan struct{}) {
	c := rest.Dial(x, x.s.REST)
	defer c.Close()
	since := 0
	for range turns {
		x.publish(c, turn, 0)
		for left := turn; left > 0; {
			m := c.Get(x, telemetry, fmt.Sprintf("channelFilter=hot&limit=%d&timeoutInSeconds=5", left))
			if len(m) == 0 {
				x.Error("no message came")
				return
			}
			back := 0
			if since += len(m); since >= 100 {
				since -= 100
				back = 1
				c.Update(x, 200, telemetry, m[0].Receipt, 0)
			}
			x.delete(c, m[back:])
			left -= len(m) - back
			x.mu.Lock()
			x.passed += len(m) - back
			x.back += back
			x.mu.Unlock()
		}
	}
}

// drained receives and deletes what there is.
func (x *passage) drained(c *rest.Conn) {
	for {
		m := c.Get(x, telemetry, "limit=20&timeoutInSeconds=0")
		if len(m) == 0 {
			return
		}
		x.delete(c, m)
	}
}

// period measures for so long, or until the load has ended, which it tells.
func (x *passage) period(length time.Duration, ended <-chan struct{}) (running bool) {
	began := time.Now()
	x.mu.Lock()
	before := x.passed
	x.mu.Unlock()
	var hits, misses []time.Duration
	peak := int64(0)
	miss := x.miss("cold")
	for running = true; running && !x.Failed() && time.Since(began) < length; {
		hits = append(hits, x.hit())
		x.publish(x.probe, 1, 0)
		misses = append(misses, miss())
		if len(hits)%50 == 1 {
			peak = max(peak, x.disk())
		}
		select {
		case <-ended:
			running = false
		case <-time.After(10 * time.Millisecond): // not to be a load itself
		}
	}
	x.mu.Lock()
	passed := x.passed - before
	x.mu.Unlock()
	hit, miss99 := summary(hits), summary(misses)
	x.row(queueRow{Phase: "load", Rate: float64(passed) / time.Since(began).Seconds(), Samples: len(hits), Peak: float64(peak >> 20),
		Hit50: ms(hit.p50), Hit99: ms(hit.p99), Miss50: ms(miss99.p50), Miss99: ms(miss99.p99)})
	return running
}

// mark is a line without load: only what an empty channel says.
func (x *passage) mark(phase string) {
	x.fresh()
	miss := times(200, x.miss("cold"))
	x.row(queueRow{Phase: phase, Miss50: ms(miss.p50), Miss99: ms(miss.p99)})
}

func (x *passage) row(r queueRow) {
	m, err := metrics(x.s)
	if err != nil {
		x.Fatal(err)
	}
	x.mu.Lock()
	r.Passed, r.GivenBack = x.passed, x.back
	x.mu.Unlock()
	r.At = time.Since(x.began).Seconds()
	for _, state := range []string{"visible", "in_flight"} {
		r.Waiting += m[`queued_queue_messages{queue="`+telemetry+`",state="`+state+`"}`]
	}
	r.Disk = float64(x.disk() >> 20)
	r.Peak = max(r.Peak, r.Disk)
	r.Tombstones, r.ReadAmpl = m["pebble_tombstones"], m["pebble_read_amplification"]
	r.Resident = m["process_resident_memory_bytes"] / (1 << 20)
	x.rows = append(x.rows, r)
	text, err := json.Marshal(r)
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("%s", text)
	record(x.T, text)
}

// compare says how the last whole period is to the first.
func (x *passage) compare() {
	var whole []queueRow
	for _, r := range x.rows {
		if r.Phase == "load" {
			whole = append(whole, r)
		}
	}
	if len(whole) > 2 {
		whole = whole[:len(whole)-1] // that one was cut short
	}
	first, last := whole[0], whole[len(whole)-1]
	x.Logf("a receive at p99: %.2f ms in the first period, %.2f ms in the last, %.1f times as much; an empty channel %.2f and %.2f ms",
		first.Hit99, last.Hit99, last.Hit99/first.Hit99, first.Miss99, last.Miss99)
}

// show prints the table and the plots.
func (x *passage) show() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nat s\tphase\twaiting\tpassed\tgiven back\ta second\tsamples\tget p50\tp99 ms\tempty p50\tp99 ms\tdisk\tpeak MiB\ttombstones\tresident MiB\tread ampl.\t")
	var gets, disk []float64
	for _, r := range x.rows {
		fmt.Fprintf(w, "%.0f\t%s\t%.0f\t%d\t%d\t%.0f\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", r.At, r.Phase, r.Waiting, r.Passed, r.GivenBack, r.Rate,
			r.Samples, r.Hit50, r.Hit99, r.Miss50, r.Miss99, r.Disk, r.Peak, r.Tombstones, r.Resident, r.ReadAmpl)
		disk = append(disk, r.Peak)
		if r.Phase == "load" {
			gets = append(gets, r.Hit99)
		}
	}
	w.Flush()
	for caption, values := range map[string][]float64{"a get, p99 ms": gets, "disk, MiB": disk} {
		if len(values) > 0 {
			text.WriteString("\n" + asciigraph.Plot(values, asciigraph.Height(8), asciigraph.Width(100), asciigraph.Caption(caption)) + "\n")
		}
	}
	x.Log(text.String())
}
