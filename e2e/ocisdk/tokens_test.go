package ocisdk

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/server"
)

// TestRetryTokens: opc-retry-token of CreateQueue.
func TestRetryTokens(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)
	create := func(token *string, name string) (queue.CreateQueueResponse, error) {
		return c.admin.CreateQueue(t.Context(), queue.CreateQueueRequest{OpcRetryToken: token,
			CreateQueueDetails: queue.CreateQueueDetails{DisplayName: &name, CompartmentId: new(compartment), FreeformTags: map[string]string{"b": "2", "a": "1", "c": "3"}}})
	}
	token := new(strings.Repeat("t", 64))
	first := good[queue.CreateQueueResponse](t)(create(token, "orders"))
	id := c.finished(first.OpcWorkRequestId, queue.ActionTypeCreated)
	for range 3 {
		again := good[queue.CreateQueueResponse](t)(create(token, "orders"))
		if *again.OpcWorkRequestId != *first.OpcWorkRequestId {
			t.Errorf("work requests %s and %s", *first.OpcWorkRequestId, *again.OpcWorkRequestId)
		}
	}
	_, err := create(token, "parcels")
	refused(t, "the same token for another queue", err, 400, "InvalidParameter", "opc-retry-token")
	_, err = create(new(strings.Repeat("t", 65)), "orders")
	refused(t, "a long token", err, 400, "InvalidParameter", "opc-retry-token", "64")
	// Without one of ours the SDK makes one for each call.
	for range 2 {
		good[queue.CreateQueueResponse](t)(create(nil, "orders"))
	}
	if names, _ := c.names(queue.ListQueuesRequest{}); strings.Join(names, " ") != "orders orders orders" {
		t.Errorf("there are %v", names)
	}

	// At the same time they make one queue.
	var wg sync.WaitGroup
	works := make([]string, 8)
	for i := range works {
		wg.Go(func() {
			r, err := create(new("at once"), "many")
			if err != nil {
				t.Error(err)
				return
			}
			works[i] = *r.OpcWorkRequestId
		})
	}
	wg.Wait()
	for _, w := range works {
		if w != works[0] {
			t.Errorf("work requests %v", works)
			break
		}
	}

	// A change of the queue does not matter, its end does, and a kill neither.
	good[queue.UpdateQueueResponse](t)(c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &id,
		UpdateQueueDetails: queue.UpdateQueueDetails{DisplayName: new("renamed")}}))
	s.Kill()
	s.Restart()
	c = connect(t, s)
	again := good[queue.CreateQueueResponse](t)(create(token, "orders"))
	if *again.OpcWorkRequestId != *first.OpcWorkRequestId {
		t.Errorf("work requests %s and, after a restart, %s", *first.OpcWorkRequestId, *again.OpcWorkRequestId)
	}
	good[queue.DeleteQueueResponse](t)(c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &id}))
	for range 2 {
		_, err = create(token, "orders")
		refused(t, "the token of a deleted queue", err, 409, "InvalidatedRetryToken", "deleted")
	}
	s.Kill()
	s.Restart()
	c = connect(t, s)
	_, err = create(token, "orders")
	refused(t, "the token of a deleted queue, after a restart", err, 409, "InvalidatedRetryToken")
}

// lossy is a proxy that loses so many answers: the request arrives, and the
// connection is reset before an octet of the answer. (At an end in order this
// SDK gives up.)
func lossy(t *testing.T, s *server.Server, lose int64) (host string, lost *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	lost = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("tcp", strings.TrimPrefix(s.REST, "http://"))
				if err != nil {
					return
				}
				defer up.Close()
				go func() { _, _ = io.Copy(up, c) }()
				if lost.Load() < lose {
					one := make([]byte, 1)
					if _, err := up.Read(one); err == nil {
						lost.Add(1)
						_ = c.(*net.TCPConn).SetLinger(0)
					}
					return
				}
				_, _ = io.Copy(c, up)
			}()
		}
	}()
	return "http://" + l.Addr().String(), lost
}

// TestLostAnswers: the SDK tries again what lost its answer, and nothing
// happens twice, nor does it see an error.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	direct := connect(t, s)
	q := direct.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	direct.put(q, text("a"), text("b"))
	m := direct.get(q)

	calls := map[string]func(c *sdk) error{
		"create": func(c *sdk) error {
			_, err := c.admin.CreateQueue(t.Context(), queue.CreateQueueRequest{CreateQueueDetails: queue.CreateQueueDetails{DisplayName: new("once"), CompartmentId: new(compartment)}})
			return err
		},
		"delete": func(c *sdk) error {
			_, err := c.data.DeleteMessage(t.Context(), queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: m[0].Receipt})
			return err
		},
		"update": func(c *sdk) error {
			_, err := c.update(q, *m[1].Receipt, 60)
			return err
		},
		"purge": func(c *sdk) error {
			_, err := c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: "DLQ"}})
			return err
		},
	}
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() {
			host, lost := lossy(t, s, 2)
			c := connect(t, s)
			c.admin.Host, c.data.Host = host, host
			if err := call(c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if lost.Load() == 0 {
				t.Errorf("%s: no answer was lost", name)
			}
		})
	}
	wg.Wait()
	if names, _ := direct.names(queue.ListQueuesRequest{DisplayName: new("once")}); len(names) != 1 {
		t.Errorf("%d queues were made", len(names))
	}
	if n := direct.stats(q); n != (counters{inFlight: 1, bytes: 1}) {
		t.Errorf("%+v are left", n)
	}
}
