package bench

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// BenchmarkIdle opens connections that do nothing but wait, and reports what
// each takes of the server's memory: in use after a collection (heap and
// stacks), and resident. It does not depend on b.N.
func BenchmarkIdle(b *testing.B) {
	for _, kind := range []struct {
		name string
		n    int
		open func(t *target, n int) error
	}{
		{"STOMP sessions", 10_000, (*target).idleSessions},
		{"STOMP subscriptions", 5_000, (*target).idleSubscriptions},
		{"REST polls", 1_000, (*target).idlePolls},
		{"gRPC streams", 1_000, (*target).idleStreams},
	} {
		b.Run(strings.ReplaceAll(kind.name, " ", "-"), func(b *testing.B) {
			t := start(b)
			resident := func(m map[string]float64) float64 { return m["process_resident_memory_bytes"] }
			inUse := func(m map[string]float64) float64 {
				return m["go_memstats_heap_inuse_bytes"] + m["go_memstats_stack_inuse_bytes"]
			}
			before := t.settled()
			if err := kind.open(t, kind.n); err != nil {
				b.Fatal(err)
			}
			time.Sleep(25 * time.Second) // long enough for idle ones to give back what they do not need
			after := t.settled()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((inUse(after)-inUse(before))/float64(kind.n)/1024, "in-use-KiB/conn")
			b.ReportMetric((resident(after)-resident(before))/float64(kind.n)/1024, "resident-KiB/conn")
			b.ReportMetric((after["go_goroutines"]-before["go_goroutines"])/float64(kind.n), "goroutines/conn")
		})
	}
}

// settled is the metrics after the server has collected its garbage.
func (t *target) settled() map[string]float64 {
	for m, last := t.metrics(), -1.0; ; {
		if gc := m["go_gc_duration_seconds_count"]; last >= 0 && gc > last+1 {
			return m
		} else if last < 0 {
			last = gc
		}
		if err := t.collect(); err != nil {
			t.b.Fatal(err)
		}
		m = t.metrics()
	}
}

// collect makes the server collect: a heap profile with gc=1 does.
func (t *target) collect() error {
	resp, err := t.client.Get(t.s.Admin + "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("no profile: %s", resp.Status)
	}
	return resp.Body.Close()
}

// many runs f n times, some at once.
func many(n int, f func(int) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	next := make(chan int)
	for range cap(errs) {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					errs <- err
					for range next {
					}
					return
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func (t *target) idleSessions(n int) error {
	return many(n, func(int) error {
		c, err := net.Dial("tcp", t.s.STOMP)
		if err != nil {
			return err
		}
		t.b.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "CONNECT\naccept-version:1.2\nhost:bench\n\n\x00")
		_, err = c.Read(make([]byte, 512))
		return err
	})
}

func (t *target) idleSubscriptions(n int) error {
	return many(n, func(i int) error {
		c, err := net.Dial("tcp", t.s.STOMP)
		if err != nil {
			return err
		}
		t.b.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "CONNECT\naccept-version:1.2\nhost:bench\n\n\x00SUBSCRIBE\nid:1\ndestination:bench/none%d\nack:client\nreceipt:1\n\n\x00", i%200)
		for got := ""; !strings.Contains(got, "receipt-id:1"); {
			b := make([]byte, 512)
			k, err := c.Read(b)
			if err != nil {
				return err
			}
			got += string(b[:k])
		}
		return nil
	})
}

func (t *target) idlePolls(n int) error {
	for range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(t.s.REST, "http://"))
		if err != nil {
			return err
		}
		t.b.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "GET /20210201/queues/bench/messages?timeoutInSeconds=30 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	}
	for t.metrics()["queued_waiters"] < float64(n) {
		runtime.Gosched()
	}
	return nil
}

func (t *target) idleStreams(n int) error {
	client := t.rpc()
	for range n {
		s, err := client.ConsumeMessages(t.b.Context())
		if err != nil {
			return err
		}
		if err := s.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{
			Subscribe: &queuev1.ConsumeSubscription{QueueId: "bench", Credit: 10},
		}}); err != nil {
			return err
		}
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
	return nil
}
