package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// BenchmarkTenant is a polite client, which publishes a message of 1 KiB,
// receives and deletes it, one after the other; in turn alone, and beside others
// who keep another queue at its limits (profile oci: 1000 requests a second) and
// ask for twice as much as that. The figures are the polite one's, in ms, and
// beside over alone. It does not depend on b.N.
//
// The flood comes at a pace by a few sockets, written ahead, and its answers are
// hardly looked at: a flood from elsewhere takes none of the server's processor
// for its clients.
func BenchmarkTenant(b *testing.B) {
	const (
		turns  = 6 // of each kind
		rounds = 200
	)
	s := server.Start(b, "--create-queue", "polite", "--create-queue", "flooded,dlq=0", "--log-level", "warn", "--pprof")
	polite, err := rest.Open(s.REST)
	if err != nil {
		b.Fatal(err)
	}
	defer polite.Close()
	took := map[string][]time.Duration{}
	put := `{"messages":[{"content":"` + content() + `"}]}`
	t := &target{b: b, s: s}
	sum := map[string]float64{} // what the server spent
	turn := func(where string, rounds int) {
		before, began := t.metrics(), time.Now()
		defer func() {
			after := t.metrics()
			for _, name := range []string{"process_cpu_seconds_total", "queued_sync_seconds_sum", "queued_sync_seconds_count"} {
				sum[name+where] += after[name] - before[name]
			}
			sum[where] += time.Since(began).Seconds()
		}()
		for range rounds {
			began := time.Now()
			polite.Must(b, 200, "POST", "/queues/polite/messages", put)
			published := time.Now()
			var got struct{ Messages []rest.Message }
			polite.Must(b, 200, "GET", "/queues/polite/messages?limit=1", "").JSON(b, &got)
			if len(got.Messages) != 1 {
				b.Fatalf("received %d messages", len(got.Messages))
			}
			polite.Must(b, 204, "DELETE", "/queues/polite/messages/"+got.Messages[0].Receipt, "")
			took["publish "+where] = append(took["publish "+where], published.Sub(began))
			took["consume "+where] = append(took["consume "+where], time.Since(published))
		}
	}
	turn("to begin with", rounds)
	var flood tenantFlood
	for range turns {
		turn("alone", rounds)
		end := flood.begin(b, s)
		turn("beside", rounds)
		end()
	}
	// A flood that was not refused was none; one that was only refused, neither.
	if flood.refused.Load() == 0 || flood.served.Load() == 0 {
		b.Fatalf("%d requests of the flood were served, %d refused", flood.served.Load(), flood.refused.Load())
	}
	ms := func(what string, quantile float64) float64 {
		d := took[what]
		slices.Sort(d)
		return float64(d[int(float64(len(d)-1)*quantile)].Microseconds()) / 1000
	}
	for _, what := range []string{"publish", "consume"} {
		for _, q := range []float64{0.5, 0.99} {
			name := fmt.Sprintf("%s-p%g", what, q*100)
			alone, beside := ms(what+" alone", q), ms(what+" beside", q)
			b.ReportMetric(alone, name+"-alone-ms")
			b.ReportMetric(beside, name+"-beside-ms")
			b.ReportMetric(beside/alone, name+"-ratio")
		}
	}
	for _, where := range []string{"alone", "beside"} {
		b.ReportMetric(sum["process_cpu_seconds_total"+where]/sum[where], "server-cores-"+where)
		b.ReportMetric(1000*sum["queued_sync_seconds_sum"+where]/sum["queued_sync_seconds_count"+where], "sync-"+where+"-ms")
	}
	seconds := flood.lasted.Seconds()
	b.ReportMetric(float64(flood.served.Load())/seconds, "flood-served/s")
	b.ReportMetric(float64(flood.refused.Load())/seconds, "flood-refused/s")
	b.ReportMetric(0, "ns/op")
}

// tenantFlood counts what becomes of the requests of a flood.
type tenantFlood struct {
	served, refused atomic.Int64
	lasted          time.Duration
}

// begin floods until end: 2000 publishes and 2000 gets a second, each over eight
// connections. It returns when the queue is at its limit.
func (f *tenantFlood) begin(b *testing.B, s *server.Server) (end func()) {
	const every, burst = 48 * time.Millisecond, 12
	body := `{"messages":[{"content":"` + content() + `"}]}`
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	began, refused := time.Now(), f.refused.Load()
	for i := range 16 {
		one := "POST /20210201/queues/flooded/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
		if i%2 == 1 {
			one = "GET /20210201/queues/flooded/messages?limit=1&timeoutInSeconds=0&visibilityInSeconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n"
		}
		requests := []byte(strings.Repeat(one, burst))
		c, err := net.Dial("tcp", strings.TrimPrefix(s.REST, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		writers.Go(func() {
			for tick := time.NewTicker(every); ; {
				select {
				case <-stop:
					tick.Stop()
					_ = c.(*net.TCPConn).CloseWrite()
					return
				case <-tick.C:
				}
				if _, err := c.Write(requests); err != nil {
					b.Error(err)
					return
				}
			}
		})
		readers.Go(func() {
			defer c.Close()
			for r := bufio.NewReaderSize(c, 64<<10); ; {
				line, err := r.ReadSlice('\n')
				if i := bytes.Index(line, []byte("HTTP/1.1 ")); i >= 0 { // a body ends without a line
					switch code := string(line[i+9 : i+12]); code {
					case "200":
						f.served.Add(1)
					case "429", "503":
						f.refused.Add(1)
					default:
						b.Errorf("the flood is answered %s", code)
					}
				}
				if err != nil && err != bufio.ErrBufferFull {
					if err != io.EOF {
						b.Error(err)
					}
					return
				}
			}
		})
	}
	for f.refused.Load() == refused {
		time.Sleep(every)
	}
	return func() {
		close(stop)
		writers.Wait()
		readers.Wait()
		f.lasted += time.Since(began)
	}
}
