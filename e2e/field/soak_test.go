//go:build field

package field

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/guptarohit/asciigraph"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// swing is the backlog up to which TestSoak fills the queue before it drains it.
var swing = number("BACKLOG", 1_000_000)

// TestSoak fills a queue and drains it, again and again, and shows what that
// does to the disk, the memory, the goroutines, the tombstones and the time it
// takes to find the head. It fails if the server ends a swing with more
// goroutines than the first one, or with counters that are not zero.
func TestSoak(t *testing.T) {
	s := server.Start(t, "--limits-profile", "unthrottled", "--create-queue", telemetry+",visibility=600,dlq=0", "--log-level", "warn")
	x := &head{T: t, s: s, probe: rest.Dial(t, s.REST)}
	soak := &soak{head: x, began: time.Now()}
	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	var idle []float64 // goroutines at the end of each swing
	for swings := 0; swings == 0 || time.Now().Before(end); swings++ {
		soak.during("fill", func() {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					c := rest.Dial(t, s.REST)
					defer c.Close()
					x.publish(c, swing/8, 0)
				})
			}
			wg.Wait()
		})
		soak.during("drain", x.drain)
		time.Sleep(time.Second)
		at := soak.sample("empty")
		idle = append(idle, at.goroutines)
		if at.backlog != 0 {
			t.Errorf("swing %d leaves %v messages", swings+1, at.backlog)
		}
	}
	soak.show()
	if first, last := idle[0], idle[len(idle)-1]; last > first+20 {
		t.Errorf("%v goroutines after the first swing, %v after the last", first, last)
	}
}

// soak is the samples of a long run.
type soak struct {
	*head
	watcher *rest.Conn // of one sample, beside the load: one that said nothing for long would be closed
	began   time.Time
	samples []sample
}

// sample is the server at one moment.
type sample struct {
	at                                                        time.Duration
	phase                                                     string
	backlog, resident, heap, goroutines, tombstones, readAmpl float64
	files                                                     files
	find                                                      latency // a get with a hit
}

// during takes a sample every few seconds while f runs.
func (x *soak) during(phase string, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done) // also if the test fails in there
		f()
	}()
	every := max(2*time.Second, time.Duration(minutes)*time.Minute/200)
	for {
		select {
		case <-done:
			return
		case <-time.After(every):
			x.sample(phase)
		}
	}
}

func (x *soak) sample(phase string) sample {
	m, err := metrics(x.s)
	if err != nil {
		x.Fatal(err)
	}
	one := sample{
		at: time.Since(x.began), phase: phase,
		backlog:    m[`queued_queue_messages{queue="`+telemetry+`",state="visible"}`] + m[`queued_queue_messages{queue="`+telemetry+`",state="in_flight"}`],
		files:      x.files(),
		resident:   m["process_resident_memory_bytes"] / (1 << 20),
		heap:       m["go_memstats_heap_inuse_bytes"] / (1 << 20),
		goroutines: m["go_goroutines"],
		tombstones: m["pebble_tombstones"],
		readAmpl:   m["pebble_read_amplification"],
	}
	x.watcher = rest.Dial(x, x.s.REST)
	one.find = times(20, x.find)
	x.watcher.Close()
	x.samples = append(x.samples, one)
	x.Logf("%s %s: %.0f waiting, resident %.0f MiB, %.0f goroutines, %.0f tombstones, find %v; %v",
		one.at.Round(time.Second), phase, one.backlog, one.resident, one.goroutines, one.tombstones, one.find, one.files)
	return one
}

// find is how long a get takes that may find a message or not.
func (x *soak) find() time.Duration {
	began := time.Now()
	m := x.watcher.Get(x, telemetry, "channelFilter=hot&limit=1&timeoutInSeconds=0")
	took := time.Since(began)
	x.delete(x.watcher, m)
	return took
}

// metrics reads the server's.
func metrics(s *server.Server) (map[string]float64, error) {
	resp, err := http.Get(s.Admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			if v, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil {
				out[lines.Text()[:at]] = v
			}
		}
	}
	return out, nil
}

// show prints the table and the plots.
func (x *soak) show() {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nat\tphase\twaiting\tdisk MiB\tlogs\ttables\tmanifest KiB\tresident MiB\theap MiB\tgoroutines\ttombstones\tread ampl.\tfind p50\tp99\t")
	step := max(1, len(x.samples)/40)
	for i, s := range x.samples {
		if i%step == 0 || s.phase == "empty" {
			fmt.Fprintf(w, "%v\t%s\t%.0f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%v\t%v\t\n", s.at.Round(time.Second), s.phase, s.backlog,
				mib(s.files.total()), mib(s.files.logs), mib(s.files.tables), float64(s.files.manifest)/(1<<10),
				s.resident, s.heap, s.goroutines, s.tombstones, s.readAmpl, s.find.p50.Round(10*time.Microsecond), s.find.p99.Round(10*time.Microsecond))
		}
	}
	w.Flush()
	for _, plot := range []struct {
		name string
		of   func(sample) float64
	}{
		{"messages waiting", func(s sample) float64 { return s.backlog }},
		{"disk, MiB", func(s sample) float64 { return mib(s.files.total()) }},
		{"resident memory, MiB", func(s sample) float64 { return s.resident }},
		{"tombstones", func(s sample) float64 { return s.tombstones }},
		{"a get, p99 ms", func(s sample) float64 { return s.find.p99.Seconds() * 1000 }},
	} {
		values := make([]float64, len(x.samples))
		for i, s := range x.samples {
			values[i] = plot.of(s)
		}
		text.WriteString("\n" + asciigraph.Plot(values, asciigraph.Height(8), asciigraph.Width(100), asciigraph.Caption(plot.name)) + "\n")
	}
	x.Log(text.String())
}
