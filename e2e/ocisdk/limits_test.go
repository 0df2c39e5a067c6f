package ocisdk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/server"
)

// start runs a server with these lines in its configuration file.
func start(t *testing.T, config ...string) *server.Server {
	t.Helper()
	if len(config) == 0 {
		return server.Start(t)
	}
	file := filepath.Join(t.TempDir(), "queued.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.Start(t, "--config", file)
}

// TestRoom: what limits count, and that room comes back.
func TestRoom(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t, "limits:", "  bytes-per-queue: 100", "  channels-per-queue: 2", "  queues-per-tenancy: 2"))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), DeadLetterQueueDeliveryCount: new(1)})
	full := func() bool {
		_, err := c.data.PutMessages(t.Context(), putTo(q, text(strings.Repeat("x", 40))))
		if err != nil {
			refused(t, "full", err, 400, "LimitExceeded", "limits.bytes-per-queue")
		}
		return err != nil
	}
	for n, want := range []bool{false, false, true} {
		if full() != want {
			t.Fatalf("message %d of 40 octets: refused %v", n+1, !want)
		}
	}
	// In flight it counts, in the dead letter queue it counts, deleted not.
	c.get(q, limit(1), hidden(0))
	c.becomes(q, 5*time.Second, counters{visible: 1, bytes: 40, dead: 1, deadBytes: 40})
	held := c.get(q, hidden(60))
	if !full() {
		t.Error("dead letters and what is in flight do not count")
	}
	c.delete(q, held[0])
	if full() {
		t.Error("a delete makes no room")
	}
	good[queue.PurgeQueueResponse](t)(c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: "DLQ"}}))
	if full() {
		t.Error("a purge makes no room")
	}
	good[queue.PurgeQueueResponse](t)(c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: "BOTH"}}))

	// All or nothing: one message too many and none is stored.
	_, err := c.data.PutMessages(t.Context(), putTo(q, text(strings.Repeat("x", 60)), text(strings.Repeat("x", 60))))
	refused(t, "together", err, 400, "LimitExceeded")
	_, err = c.data.PutMessages(t.Context(), putTo(q, in("a", "1"), in("b", "1"), in("c", "1")))
	refused(t, "channels", err, 400, "LimitExceeded")
	if n := c.stats(q); n != (counters{}) {
		t.Errorf("a part is stored: %+v", n)
	}

	// A channel counts while it holds a message that is no dead letter.
	c.put(q, in("a", "1"), in("b", "1"))
	_, err = c.data.PutMessages(t.Context(), putTo(q, in("c", "1")))
	refused(t, "third channel", err, 400, "LimitExceeded", "limits.channels-per-queue")
	c.put(q, in("a", "2"), text("1")) // those that are there are
	c.get(q, filter("b"), hidden(0))
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err = c.data.PutMessages(t.Context(), putTo(q, in("c", "1"))); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}

	// A deleted queue makes room for another.
	second := c.create(queue.CreateQueueDetails{DisplayName: new("second")})
	_, err = c.admin.CreateQueue(t.Context(), queue.CreateQueueRequest{CreateQueueDetails: queue.CreateQueueDetails{DisplayName: new("third"), CompartmentId: new(compartment)}})
	refused(t, "third queue", err, 400, "LimitExceeded", "limits.queues-per-tenancy")
	good[queue.DeleteQueueResponse](t)(c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &second}))
	c.create(queue.CreateQueueDetails{DisplayName: new("third")})
}

// TestInFlightLimit: at it a get waits out its poll and is empty, which is no
// error; what makes room ends the poll.
func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	s := start(t, "limits:", "  in-flight-per-queue: 3", "  in-flight-reserved-per-queue: 3")
	c := connect(t, s)
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	for range 5 {
		c.put(q, text("x"))
	}
	held := c.get(q, hidden(600))
	if len(held) != 3 {
		t.Fatalf("%d in flight", len(held))
	}
	for range 20 { // more than a circuit breaker forgives
		if got := c.get(q); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
	}
	began := time.Now()
	if got := c.get(q, wait(1)); len(got) != 0 || time.Since(began) < time.Second {
		t.Errorf("after %v: %+v", time.Since(began), got)
	}
	if n := c.stats(q); n != (counters{visible: 2, inFlight: 3, bytes: 5}) {
		t.Errorf("%+v", n)
	}
	if got := c.get(q, hidden(0)); len(got) == 0 {
		t.Error("a peek leases nothing and gives nothing")
	}
	waiting := make(chan []queue.GetMessage, 1)
	go func() {
		r, err := c.data.GetMessages(t.Context(), getFrom(q, wait(20)))
		if err != nil {
			t.Error(err)
		}
		waiting <- r.Messages
	}()
	time.Sleep(300 * time.Millisecond)
	began = time.Now()
	c.delete(q, held[0])
	if got := <-waiting; len(got) != 1 || time.Since(began) > time.Second {
		t.Errorf("after %v: %+v", time.Since(began), got)
	}
}

// TestBreaker: refusals that no waiting helps do not silence a client: its
// circuit breaker stays closed, and it is not left retrying.
func TestBreaker(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t, "limits:", "  bytes-per-queue: 10"))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	c.put(q, text("123456789"))
	began := time.Now()
	for range 15 {
		_, err := c.data.PutMessages(t.Context(), putTo(q, text("123456789")))
		refused(t, "full", err, 400, "LimitExceeded")
		_, err = c.data.PutMessages(t.Context(), putTo(q, text(strings.Repeat("x", 300<<10))))
		refused(t, "large", err, 413, "PayloadTooLarge")
		_, err = c.data.DeleteMessage(t.Context(), queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: new("AAAA")})
		refused(t, "receipt", err, 400, "InvalidParameter")
		_, err = c.data.GetStats(t.Context(), queue.GetStatsRequest{QueueId: new("nobody")})
		refused(t, "queue", err, 404, "NotAuthorizedOrNotFound")
	}
	if took := time.Since(began); took > 30*time.Second { // a retry waits for seconds
		t.Errorf("60 refusals took %v: they were retried", took)
	}
	if got := c.get(q); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	// A disk without room is no reason either.
	s := start(t, "disk-floor-publish-bytes: 1000TiB")
	c = connect(t, s)
	q = c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	for range 15 {
		_, err := c.data.PutMessages(t.Context(), putTo(q, text("x")))
		refused(t, "disk", err, 507, "InsufficientStorage")
	}
	if n := c.stats(q); n != (counters{}) {
		t.Errorf("%+v", n)
	}
}

// TestThrottled: over a rate the SDK waits and tries again by itself, and gets
// through.
func TestThrottled(t *testing.T) {
	t.Parallel()
	c := connect(t, start(t, "limits:", "  requests-per-second: 4"))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	throttled := 0
	for range 12 {
		r := queue.GetStatsRequest{QueueId: &q, RequestMetadata: once()}
		_, err := c.data.GetStats(t.Context(), r)
		if e, ok := common.IsServiceError(err); ok && e.GetCode() == "TooManyRequests" {
			throttled++
			r.RequestMetadata = common.RequestMetadata{} // as it comes
			_, err = c.data.GetStats(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if throttled == 0 {
		t.Error("no request was over the rate")
	}
}

// TestUnthrottled: the profile lifts rates, number of queues and storage, and
// nothing else.
func TestUnthrottled(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	c := connect(t, s)
	if !strings.Contains(s.Logs(), "limits unthrottled") {
		t.Errorf("the start line does not say so: %s", s.Logs())
	}
	var q string
	for range 15 {
		q = c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	}
	for range 60 { // three times the data rate of OCI for a second
		c.put(q, text(strings.Repeat("x", 256<<10)), text(strings.Repeat("x", 256<<10)))
	}
	_, err := c.data.PutMessages(t.Context(), putTo(q, text(strings.Repeat("x", 256<<10+1))))
	refused(t, "size", err, 413, "PayloadTooLarge", "limits.message-bytes")
	_, err = c.data.PutMessages(t.Context(), putTo(q, make21(text("x"))...))
	refused(t, "batch", err, 400, "InvalidParameter", "limits.batch-messages")
}
