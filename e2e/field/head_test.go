//go:build field

package field

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// minutes is how long the load of TestHead runs.
var minutes = number("MINUTES", 30)

const (
	telemetry = "telemetry-raw"
	perMinute = 100_000 // messages in, and out: 3 million in 30 min
	steady    = 500_000
	bound     = 256 << 20 // octets on disk that may stay after a drain
)

// TestHead is field case FC-13: the head of the queue stays cheap to find.
func TestHead(t *testing.T) {
	s := server.Start(t, "--limits-profile", "unthrottled", "--create-queue", telemetry+",visibility=600,dlq=0", "--log-level", "warn")
	x := &head{T: t, s: s, probe: rest.Dial(t, s.REST)}
	t.Logf("empty queue: %v", times(200, x.miss("hot")))
	x.publish(x.probe, 1000, 0)
	t.Logf("1000 messages: %v", times(100, x.hit))

	t.Logf("filling it to %d", steady)
	var fill sync.WaitGroup
	for range 8 {
		fill.Go(func() { x.publish(rest.Dial(t, s.REST), steady/8, 0) })
	}
	fill.Wait()

	stop := make(chan struct{})
	var load sync.WaitGroup
	const clients = 4
	for range clients {
		load.Go(func() { x.produce(stop, clients) })
		load.Go(func() { x.consume(stop, clients) })
	}
	var hits []latency
	for minute := range minutes {
		time.Sleep(time.Minute)
		hit, cold := times(100, x.hit), times(200, x.miss("cold"))
		served := x.cold()
		hits = append(hits, hit)
		n := x.probe.Stats(t, telemetry).Queue
		t.Logf("minute %d: hit %v; empty channel %v; five of cold after %v; %d published, %d visible, %d in flight, %d MiB on disk",
			minute+1, hit, cold, served.Round(time.Millisecond), x.published.Load(), n.Visible, n.InFlight, x.disk()>>20)
		if cold.p99 > 10*time.Millisecond {
			t.Errorf("minute %d: an empty get takes %v at p99, more than 10 ms", minute+1, cold.p99)
		}
		if served > 5*time.Second {
			t.Errorf("minute %d: five messages of another channel took %v, more than 5 s", minute+1, served)
		}
	}
	close(stop)
	load.Wait()
	some := min(5, (len(hits)+1)/2)
	first, last := typical(hits[:some]), typical(hits[len(hits)-some:])
	t.Logf("p99 of a hit: %v at first, %v at last", first, last)
	if last > 3*first {
		t.Error("that is more than three times as much")
	}

	began := time.Now()
	x.drain()
	t.Logf("drained in %v; empty queue: %v; %d MiB on disk", time.Since(began).Round(time.Second), times(200, x.miss("hot")), x.disk()>>20)
	time.Sleep(time.Duration(max(1, minutes/3)) * time.Minute)
	after := times(200, x.miss("hot"))
	t.Logf("later: empty queue: %v; %d MiB on disk", after, x.disk()>>20)
	if after.p99 > 10*time.Millisecond {
		t.Error("an empty get takes more than 10 ms at p99")
	}
	if x.disk() > bound {
		t.Errorf("more than %d MiB stay on disk", bound>>20)
	}
}

type head struct {
	*testing.T
	s         *server.Server
	probe     *rest.Conn
	published atomic.Int64
}

var body = strings.Repeat("t", 200)

// publish publishes n messages to hot, in batches; every thousandth lives for
// 10 s if that many seconds are given.
func (x *head) publish(c *rest.Conn, n, short int) {
	for n > 0 {
		some := min(n, 20)
		entries := make([]string, some)
		for i := range entries {
			more := ""
			if short > 0 && x.published.Add(1)%1000 == 0 {
				more = fmt.Sprintf(`,"retentionInSeconds":%d`, short)
			}
			entries[i] = `{"content":"` + body + `","metadata":{"channelId":"hot"}` + more + `}`
		}
		c.Must(x, 200, "POST", "/queues/"+telemetry+"/messages", `{"messages":[`+strings.Join(entries, ",")+`]}`)
		n -= some
	}
}

// every calls f at the pace of one of so many clients, 20 messages at a time.
func every(stop chan struct{}, clients int, f func()) {
	tick := time.NewTicker(time.Minute * 20 * time.Duration(clients) / perMinute)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			f()
		}
	}
}

func (x *head) produce(stop chan struct{}, clients int) {
	c := rest.Dial(x, x.s.REST)
	every(stop, clients, func() { x.publish(c, 20, 10) })
}

// consume receives and deletes; every hundredth message is given back twice
// before.
func (x *head) consume(stop chan struct{}, clients int) {
	c := rest.Dial(x, x.s.REST)
	n := 0
	every(stop, clients, func() {
		m := c.Get(x, telemetry, "channelFilter=hot&limit=20&timeoutInSeconds=0")
		if n += len(m); n >= 100 && len(m) > 0 && m[0].DeliveryCount < 3 {
			c.Update(x, 200, telemetry, m[0].Receipt, 0)
			m = m[1:]
			n = 0
			if again := c.Get(x, telemetry, "channelFilter=hot&limit=1&timeoutInSeconds=0"); len(again) == 1 {
				c.Update(x, 200, telemetry, again[0].Receipt, 0)
			}
		}
		x.delete(c, m)
	})
}

func (x *head) delete(c *rest.Conn, messages []rest.Message) {
	if len(messages) > 0 {
		c.Must(x, 200, "POST", "/queues/"+telemetry+"/messages/actions/deleteMessages", receipts(x.T, messages))
	}
}

// receipts is the body of a request that deletes these messages.
func receipts(t *testing.T, messages []rest.Message) string {
	entries := make([]map[string]string, len(messages))
	for i, m := range messages {
		entries[i] = map[string]string{"receipt": m.Receipt}
	}
	text, err := json.Marshal(map[string]any{"entries": entries})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hit is how long a get takes that finds a message.
func (x *head) hit() time.Duration {
	began := time.Now()
	m := x.probe.Get(x, telemetry, "channelFilter=hot&limit=1&timeoutInSeconds=5")
	took := time.Since(began)
	if len(m) != 1 {
		x.Error("no message came")
	}
	x.delete(x.probe, m)
	return took
}

// miss is how long a get takes that finds none.
func (x *head) miss(channel string) func() time.Duration {
	return func() time.Duration {
		began := time.Now()
		if m := x.probe.Get(x, telemetry, "channelFilter="+channel+"&limit=1&timeoutInSeconds=0"); len(m) != 0 {
			x.Errorf("%d messages of the empty channel %s", len(m), channel)
		}
		return time.Since(began)
	}
}

// cold is how long it takes to receive five messages of another channel when
// none is named.
func (x *head) cold() time.Duration {
	x.probe.Must(x, 200, "POST", "/queues/"+telemetry+"/messages",
		`{"messages":[`+strings.Join(slices.Repeat([]string{`{"content":"c","metadata":{"channelId":"cold"}}`}, 5), ",")+`]}`)
	began := time.Now()
	for got := 0; got < 5 && time.Since(began) < time.Minute; {
		m := x.probe.Get(x, telemetry, "limit=5&timeoutInSeconds=0")
		for _, m := range m {
			if m.Metadata.ChannelID == "cold" {
				got++
			}
		}
		x.delete(x.probe, m)
	}
	return time.Since(began)
}

// drain receives and deletes all there is.
func (x *head) drain() {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c := rest.Dial(x, x.s.REST)
			defer c.Close()
			for {
				m := c.Get(x, telemetry, "limit=20&timeoutInSeconds=0")
				if len(m) == 0 {
					return
				}
				x.delete(c, m)
			}
		})
	}
	wg.Wait()
	c := rest.Dial(x, x.s.REST) // one that has waited meanwhile may have been closed
	defer c.Close()
	if n := c.Stats(x, telemetry).Queue; n.Visible+n.InFlight != 0 {
		x.Errorf("left are %+v", n)
	}
}

// latency is what many of one thing took.
type latency struct{ p50, p99 time.Duration }

func (l latency) String() string {
	return fmt.Sprintf("p50 %v p99 %v", l.p50.Round(10*time.Microsecond), l.p99.Round(10*time.Microsecond))
}

func times(n int, f func() time.Duration) latency {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = f()
	}
	return summary(all)
}

// summary sorts what there is of them.
func summary(all []time.Duration) latency {
	slices.Sort(all)
	return latency{all[len(all)/2], all[len(all)*99/100]}
}

// typical is the median of the p99s, so that one pause of the machine is not
// taken for the whole.
func typical(all []latency) time.Duration {
	var p99 []time.Duration
	for _, l := range all {
		p99 = append(p99, l.p99)
	}
	slices.Sort(p99)
	return p99[len(p99)/2]
}
