// Package bench measures the real server from outside: messages a second, and
// what a message costs it in CPU, allocations and syncs, read from its own
// metrics. Client and server share the machine; compare figures of one run.
//
//	go test ./bench -bench . -benchtime 3s
package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

const bodyBytes = 1024

// target is one server with one queue.
type target struct {
	b      testing.TB
	s      *server.Server
	client *http.Client
	url    string
}

func start(b testing.TB) *target {
	s := server.Start(b, "--limits-profile", "unthrottled", "--create-queue", "bench,dlq=0,visibility=600", "--log-level", "warn", "--pprof")
	return &target{b: b, s: s, url: s.REST + "/20210201/queues/bench", client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}}
}

func (t *target) call(method, path string, body []byte, out any) error {
	r, err := http.NewRequest(method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := t.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// putBody is a publish of so many messages that do not compress.
func putBody(messages int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"messages":[`)
	for i := range messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"content":"` + content() + `"}`)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// content is the body of one of them.
func content() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	text := make([]byte, bodyBytes)
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return string(text)
}

func (t *target) put(body []byte) error { return t.call("POST", "/messages", body, nil) }

// consume receives up to max messages and deletes them.
func (t *target) consume(max int) (int, error) {
	var got struct {
		Messages []struct {
			Receipt string `json:"receipt"`
		} `json:"messages"`
	}
	if err := t.call("GET", "/messages?timeoutInSeconds=5&limit="+strconv.Itoa(max), nil, &got); err != nil {
		return 0, err
	}
	if len(got.Messages) == 0 {
		return 0, nil
	}
	entries, err := json.Marshal(map[string]any{"entries": got.Messages})
	if err != nil {
		return 0, err
	}
	return len(got.Messages), t.call("POST", "/messages/actions/deleteMessages", entries, nil)
}

// metrics reads the counters of the server.
func (t *target) metrics() map[string]float64 {
	resp, err := http.Get(t.s.Admin + "/metrics")
	if err != nil {
		t.b.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = v
			}
		}
	}
	return out
}

// measure runs f until b.N messages are done and reports what each cost.
func (t *target) measure(b *testing.B, callers int, f func(left *atomic.Int64) (int, error)) {
	before := t.metrics()
	var left, done atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Load() > 0 {
				n, err := f(&left)
				if err != nil {
					b.Error(err)
					return
				}
				left.Add(-int64(n))
				done.Add(int64(n))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	b.StopTimer()
	after := t.metrics()
	n := float64(max(done.Load(), 1))
	cost := func(name string) float64 { return after[name] - before[name] }
	b.ReportMetric(n/took.Seconds(), "msgs/s")
	b.ReportMetric(cost("process_cpu_seconds_total")*1e6/n, "server-µs/msg")
	b.ReportMetric(cost("go_memstats_mallocs_total")/n, "server-allocs/msg")
	b.ReportMetric(n/max(cost("queued_sync_seconds_count"), 1), "msgs/sync")
}

var cells = []struct{ callers, messages int }{{1, 1}, {64, 1}, {1, 20}, {64, 20}}

func BenchmarkPublish(b *testing.B) {
	for _, c := range cells {
		b.Run(fmt.Sprintf("callers=%d/messages=%d", c.callers, c.messages), func(b *testing.B) {
			t := start(b)
			body := putBody(c.messages)
			t.measure(b, c.callers, func(*atomic.Int64) (int, error) { return c.messages, t.put(body) })
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	for _, c := range cells {
		b.Run(fmt.Sprintf("callers=%d/messages=%d", c.callers, c.messages), func(b *testing.B) {
			t := start(b)
			t.fill(b.N + 2*c.callers*c.messages)
			t.measure(b, c.callers, func(*atomic.Int64) (int, error) { return t.consume(c.messages) })
		})
	}
}

// BenchmarkSteady has as many producers as consumers at work at once.
func BenchmarkSteady(b *testing.B) {
	for _, c := range []struct{ callers, messages int }{{8, 1}, {64, 10}} {
		b.Run(fmt.Sprintf("callers=%d/messages=%d", c.callers, c.messages), func(b *testing.B) {
			t := start(b)
			body := putBody(c.messages)
			var stop atomic.Bool
			var produced atomic.Int64
			var wg sync.WaitGroup
			for range c.callers {
				wg.Go(func() {
					for !stop.Load() {
						if err := t.put(body); err != nil {
							b.Error(err)
							return
						}
						produced.Add(int64(c.messages))
					}
				})
			}
			began := time.Now()
			t.measure(b, c.callers, func(*atomic.Int64) (int, error) { return t.consume(c.messages) })
			b.ReportMetric(float64(produced.Load())/time.Since(began).Seconds(), "produced/s")
			stop.Store(true)
			wg.Wait()
		})
	}
}
