package backlog

import (
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// Started is what a start took.
type Started struct {
	Ready    time.Duration // from the exec until /readyz says yes, to 10 ms
	First    time.Duration // until the first message has come over REST
	Read     int64         // octets the process has read by then; -1 if that cannot be known
	Resident int64         // octets of memory by then
	Message  rest.Message  // the first message
}

// Start starts a server that was killed and receives one message, which stays
// in flight.
func Start(t testing.TB, s *server.Server, queue string) Started {
	t.Helper()
	began := time.Now()
	s.Restart()
	x := Started{Ready: time.Since(began)}
	c := rest.Dial(t, s.REST)
	defer c.Close()
	m := c.Get(t, queue, "limit=1&timeoutInSeconds=10")
	x.First = time.Since(began)
	if len(m) != 1 {
		t.Fatalf("no message came after the start; %+v", c.Stats(t, queue))
	}
	x.Message = m[0]
	x.Read = Read(t, s.PID())
	x.Resident = Resident(t, s)
	return x
}

// Resident is how many octets of memory the process has, by its own metric.
func Resident(t testing.TB, s *server.Server) int64 {
	t.Helper()
	n, ok := s.Metric("process_resident_memory_bytes")
	if !ok {
		t.Fatal("there is no process_resident_memory_bytes")
	}
	return int64(n)
}
