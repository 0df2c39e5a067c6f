//go:build field

package field

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/queued-mq/queued/e2e/backlog"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// number is a setting of a field case in the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

const (
	fewMessages = 1000 // what many are compared with
	smallOctets = 100  // of a message of the backlog
	largeOctets = 1 << 10
	loadFor     = 15 * time.Second
	publishers  = 16 // over REST, beside 8 streams
	consumers   = 16
)

// TestBacklog has MESSAGES wait (10,000,000) and shows what that does to a
// receive, to the memory and to a start after kill -9. A receive is a get of
// one message over REST; before it one is published, behind it that message is
// deleted, so that the backlog stays as it is. Memory is
// process_resident_memory_bytes. With JSON=FILE each row of the table is a line
// of that file too.
func TestBacklog(t *testing.T) {
	all := number("MESSAGES", 10_000_000)
	s := server.StartWith(t, server.Options{
		Args: []string{"--limits-profile", "unthrottled", "--create-queue", telemetry + ",visibility=3600,dlq=0", "--log-level", "warn"},
		Env:  []string{"QUEUED_LIMITS_BATCH_MESSAGES=500"}, // for filling alone
	})
	x := &deep{head: &head{T: t, s: s, probe: rest.Dial(t, s.REST)}, samples: number("SAMPLES", 3000), began: time.Now()}
	defer x.show()

	x.fill("", fewMessages)
	x.receive("one client", 0)
	x.receive("50 a second", 20*time.Millisecond)

	x.fill("filling", all-fewMessages)
	x.receive("one client, at once", 0)
	x.receive("50 a second", 20*time.Millisecond)
	x.receive("one client", 0)

	for range 3 {
		before := x.probe.Stats(t, telemetry).Queue
		x.s.Kill()
		x.start("kill -9")
		before.Visible, before.InFlight = before.Visible-1, before.InFlight+1 // which came
		if now := x.probe.Stats(t, telemetry).Queue; now != before {
			t.Errorf("after the start: %+v, want %+v", now, before)
		}
	}
	x.receive("one client, after the start", 0)

	x.load("full load", false)
	x.load("full load, then kill -9", true)
	x.receive("one client, after the start", 0)
	x.receive("50 a second", 20*time.Millisecond)
}

// deep is a run of TestBacklog.
type deep struct {
	*head
	samples int
	began   time.Time
	rows    []deepRow
}

// deepRow is a line of its table; what a phase has none of is 0.
type deepRow struct {
	At        float64 `json:"at_s"`
	Phase     string  `json:"phase"`
	Waiting   int64   `json:"waiting"`
	Rate      float64 `json:"a_second,omitempty"`
	Get50     float64 `json:"get_p50_ms,omitempty"`
	Get99     float64 `json:"get_p99_ms,omitempty"`
	Delete50  float64 `json:"delete_p50_ms,omitempty"`
	Delete99  float64 `json:"delete_p99_ms,omitempty"`
	ReadyMS   float64 `json:"ready_ms,omitempty"`
	FirstMS   float64 `json:"first_message_ms,omitempty"`
	ReadMiB   float64 `json:"start_read_mib,omitempty"`
	Resident  float64 `json:"resident_mib"`
	Peak      float64 `json:"peak_resident_mib,omitempty"`
	DiskMiB   float64 `json:"disk_mib"`
	ReadAmpl  float64 `json:"read_amplification"`
	DebtMiB   float64 `json:"compaction_debt_mib"`
	GoInUse   float64 `json:"go_heap_in_use_mib"`
	BlockMiB  float64 `json:"block_cache_mib"`
	TablesMiB float64 `json:"memtables_mib"`
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// row adds the server as it is now to a row.
func (x *deep) row(r deepRow) {
	if x.s.Running() {
		m, err := metrics(x.s)
		if err != nil {
			x.Fatal(err)
		}
		n := x.probe.Stats(x, telemetry).Queue
		r.Waiting = n.Visible
		r.Resident = m["process_resident_memory_bytes"] / (1 << 20)
		r.ReadAmpl = m["pebble_read_amplification"]
		r.DebtMiB = m["pebble_compaction_debt_bytes"] / (1 << 20)
		r.GoInUse = m["go_memstats_heap_inuse_bytes"] / (1 << 20)
		r.BlockMiB = m["pebble_block_cache_bytes"] / (1 << 20)
		r.TablesMiB = m["pebble_memtable_bytes"] / (1 << 20)
	}
	r.At, r.DiskMiB = time.Since(x.began).Seconds(), float64(x.disk()>>20)
	x.rows = append(x.rows, r)
	text, err := json.Marshal(r)
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("%s", text)
	record(x.T, text)
}

// record appends a line to the file that JSON names, if any.
func record(t *testing.T, line []byte) {
	path := os.Getenv("JSON")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = cmp.Or(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// watched is the most memory that the server has while f runs, looked at four
// times a second.
func (x *deep) watched(f func()) float64 {
	done := make(chan struct{})
	go func() {
		defer close(done) // also if the test fails in there
		f()
	}()
	most := 0.0
	for {
		select {
		case <-done:
			return most
		case <-time.After(250 * time.Millisecond):
			m, err := metrics(x.s)
			if err == nil { // it may be killed this moment
				most = max(most, m["process_resident_memory_bytes"]/(1<<20))
			}
		}
	}
}

func (x *deep) fill(phase string, n int) {
	l := &backlog.Load{Queue: telemetry, Messages: n, Octets: smallOctets, Batch: 500, Streams: 2}
	began := time.Now()
	peak := x.watched(func() {
		if err := backlog.Fill(x.Context(), x.s.GRPC, l); err != nil {
			x.Error(err)
		}
	})
	if phase != "" {
		x.row(deepRow{Phase: phase, Rate: float64(n) / time.Since(began).Seconds(), Peak: peak})
	}
}

// receive measures samples of a get and of the delete behind it.
func (x *deep) receive(phase string, pace time.Duration) {
	var gets, deletes []time.Duration
	c := rest.Dial(x, x.s.REST)
	defer c.Close()
	content := backlog.Content(0, smallOctets)
	began := time.Now()
	peak := x.watched(func() {
		for i := range x.samples {
			time.Sleep(time.Until(began.Add(time.Duration(i) * pace))) // the pace is what is asked for
			c.Put(x, telemetry, content)
			at := time.Now()
			m := c.Get(x, telemetry, "limit=1&timeoutInSeconds=5")
			gets = append(gets, time.Since(at))
			if len(m) != 1 {
				x.Error("no message came")
				return
			}
			at = time.Now()
			c.Delete(x, 204, telemetry, m[0].Receipt)
			deletes = append(deletes, time.Since(at))
		}
	})
	if x.Failed() {
		x.FailNow()
	}
	get, del := summary(gets), summary(deletes)
	x.row(deepRow{Phase: phase, Get50: ms(get.p50), Get99: ms(get.p99), Delete50: ms(del.p50), Delete99: ms(del.p99), Peak: peak})
}

// start starts the killed server again.
func (x *deep) start(phase string) {
	one := backlog.Start(x, x.s, telemetry)
	x.probe = rest.Dial(x, x.s.REST)
	x.row(deepRow{Phase: phase, ReadyMS: ms(one.Ready), FirstMS: ms(one.First), ReadMiB: float64(one.Read) / (1 << 20), Peak: float64(one.Resident) / (1 << 20)})
}

// load has everybody publish and consume at once, as fast as it goes, for 15 s,
// at the end of which the server may be killed and started again. Then its
// counters fit what was answered.
func (x *deep) load(phase string, kill bool) {
	before := x.probe.Stats(x, telemetry).Queue
	ctx, stop := context.WithCancel(x.Context())
	defer stop()
	var killing atomic.Bool
	var published, publishing, deleted, deleting atomic.Int64
	streams := &backlog.Load{Queue: telemetry, Messages: 1 << 40, Octets: largeOctets, Batch: 20, Streams: 8}
	var wg sync.WaitGroup
	wg.Go(func() { _ = backlog.Fill(ctx, x.s.GRPC, streams) }) // it ends with ctx, or with the server
	put := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"content":"`+backlog.Content(0, largeOctets)+`"},`, 20), ",") + `]}`
	for range publishers {
		x.client(ctx, &wg, &killing, func(c *rest.Conn) error {
			publishing.Add(20)
			a, err := c.Do("POST", "/queues/"+telemetry+"/messages", put)
			if err == nil && a.Status == 200 {
				published.Add(20)
			}
			return err
		})
	}
	for range consumers {
		x.client(ctx, &wg, &killing, func(c *rest.Conn) error {
			a, err := c.Do("GET", "/queues/"+telemetry+"/messages?limit=20&timeoutInSeconds=1", "")
			if err != nil {
				return err
			}
			m := rest.Messages(x, a)
			if len(m) == 0 {
				return nil
			}
			n := int64(len(m))
			deleting.Add(n)
			if a, err = c.Do("POST", "/queues/"+telemetry+"/messages/actions/deleteMessages", receipts(x.T, m)); err == nil && a.Status == 200 {
				deleted.Add(n)
			}
			return err
		})
	}
	began := time.Now()
	var took time.Duration
	peak := x.watched(func() {
		time.Sleep(loadFor)
		if took = time.Since(began); kill {
			killing.Store(true)
			x.s.Kill()
		}
		stop()
		wg.Wait()
	})
	done := published.Load() + streams.Acknowledged.Load()
	x.row(deepRow{Phase: phase, Rate: float64(done) / took.Seconds(), Peak: peak})
	x.Logf("%d published and %d consumed in %v", done, deleted.Load(), took.Round(time.Millisecond))
	if kill {
		x.start("the start behind it")
	}
	// A batch of a stream that was not answered may have been stored.
	now := x.probe.Stats(x, telemetry).Queue
	least := before.Visible + before.InFlight + done - deleting.Load()
	most := before.Visible + before.InFlight + publishing.Load() + streams.Acknowledged.Load() + 8*9*20 - deleted.Load()
	if n := now.Visible + now.InFlight; n < least || n > most {
		x.Errorf("%d messages are there, not %d to %d", n, least, most)
	}
}

// client does f on a connection until ctx is done or the server is killed.
func (x *deep) client(ctx context.Context, wg *sync.WaitGroup, killing *atomic.Bool, f func(*rest.Conn) error) {
	wg.Go(func() {
		c, err := rest.Open(x.s.REST)
		for err == nil && ctx.Err() == nil {
			err = f(c)
		}
		if c != nil {
			c.Close()
		}
		if err != nil && !killing.Load() {
			x.Error(err)
		}
	})
}

// show prints the table.
func (x *deep) show() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nat s\tphase\twaiting\ta second\tget p50\tp99 ms\tdelete p50\tp99 ms\tready\tfirst ms\tread MiB\tresident\tpeak MiB\tdisk MiB\tread ampl.\tdebt MiB\t")
	for _, r := range x.rows {
		fmt.Fprintf(w, "%.0f\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", r.At, r.Phase, r.Waiting, r.Rate, r.Get50, r.Get99,
			r.Delete50, r.Delete99, r.ReadyMS, r.FirstMS, r.ReadMiB, r.Resident, r.Peak, r.DiskMiB, r.ReadAmpl, r.DebtMiB)
	}
	w.Flush()
	x.Log(text.String())
}
