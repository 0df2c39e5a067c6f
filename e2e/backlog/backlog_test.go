package backlog

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

const (
	messages = 1_000_000
	octets   = 100
)

// TestMillion kills a server that has a million messages waiting. The next
// start has all of them, in order, and neither reads them nor keeps them in
// memory.
func TestMillion(t *testing.T) {
	// Small memtables: the log that a start reads again is as long as they are,
	// and is not to be taken for the backlog.
	s := server.StartWith(t, server.Options{
		Args: []string{"--limits-profile", "unthrottled", "--create-queue", "orders,visibility=600,dlq=0", "--log-level", "warn"},
		Env:  []string{"QUEUED_LIMITS_BATCH_MESSAGES=500", "QUEUED_MEMTABLE_BYTES=8MiB"},
	})
	load := &Load{Queue: "orders", Messages: messages, Octets: octets, Batch: 500, Streams: 1}
	began := time.Now()
	if err := Fill(t.Context(), s.GRPC, load); err != nil {
		t.Fatal(err)
	}
	t.Logf("filled in %v; %d MiB of memory", time.Since(began).Round(time.Millisecond), Resident(t, s)>>20)

	// The first three hundred are deleted, of the next two hundred each stays
	// in flight.
	c := rest.Dial(t, s.REST)
	next := 0
	receive := func(n int) []rest.Message {
		t.Helper()
		got := take(t, c, next, n)
		next += n
		return got
	}
	for _, m := range receive(300) {
		c.Delete(t, 204, "orders", m.Receipt)
	}
	held := receive(200)
	before := c.Stats(t, "orders")
	if want := (rest.Counters{Visible: messages - 500, InFlight: 200, Bytes: (messages - 300) * octets}); before.Queue != want {
		t.Errorf("before the kill: %+v, want %+v", before.Queue, want)
	}

	for range 3 {
		s.Kill()
		tables := tableBytes(t, s)
		x := Start(t, s, "orders")
		t.Logf("ready after %v, the first message after %v; %d MiB of memory; %d MiB read, and the tables have %d",
			x.Ready.Round(time.Millisecond), x.First.Round(time.Millisecond), x.Resident>>20, x.Read>>20, tables>>20)
		if got, want := x.Message.Content, Content(next, octets); got != want || x.Message.DeliveryCount != 1 {
			t.Errorf("the first message is %q, delivered %d times; want %q", got, x.Message.DeliveryCount, want)
		}
		next++
		before.Queue.Visible--
		before.Queue.InFlight++
		c = rest.Dial(t, s.REST)
		if got := c.Stats(t, "orders"); got != before {
			t.Errorf("after the start: %+v, want %+v", got, before)
		}
		if x.Read > tables/2 {
			t.Errorf("the start has read %d octets; the tables, which it need not read, have %d", x.Read, tables)
		}
		if x.Resident > messages*octets {
			t.Errorf("the start takes %d MiB of memory", x.Resident>>20)
		}
		receive(1000)
		before.Queue.Visible -= 1000
		before.Queue.InFlight += 1000
	}
	for _, m := range held {
		c.Delete(t, 204, "orders", m.Receipt)
	}
	before.Queue.InFlight -= int64(len(held))
	before.Queue.Bytes -= int64(len(held)) * octets
	if got := c.Stats(t, "orders"); got != before {
		t.Errorf("in the end: %+v, want %+v", got, before)
	}
}

// take receives n messages, which must be the next ones from this number on.
func take(t *testing.T, c *rest.Conn, number, n int) (got []rest.Message) {
	t.Helper()
	for len(got) < n {
		m := c.Get(t, "orders", "limit=100&timeoutInSeconds=10")
		if len(m) == 0 || len(m) > n-len(got) {
			t.Fatalf("%d messages came, want %d in hundreds", len(m), n-len(got))
		}
		got = append(got, m...)
	}
	for i, m := range got {
		if want := Content(number+i, octets); m.Content != want || m.DeliveryCount != 1 {
			t.Fatalf("message %d is %q, delivered %d times; want %q", i, m.Content, m.DeliveryCount, want)
		}
	}
	return got
}

// tableBytes is how large the tables of the store are.
func tableBytes(t *testing.T, s *server.Server) (n int64) {
	t.Helper()
	err := filepath.WalkDir(s.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(e.Name(), ".sst") {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
