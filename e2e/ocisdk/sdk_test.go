// Package ocisdk drives the real server with the official Go SDK of OCI, as it
// comes: its own request signing, its default retries and circuit breaker, both
// clients with nothing but Host set. What works here works unchanged for those
// who come from OCI, or go there.
package ocisdk

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(16)
	os.Exit(server.Main(m))
}

// compartment is where the tests make queues.
const compartment = "ocid1.compartment.oc1..tests"

// provider signs with a key that was made just now: auth none takes any.
var provider = sync.OnceValues(func() (common.ConfigurationProvider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return common.NewRawConfigurationProvider("ocid1.tenancy.oc1..t", "ocid1.user.oc1..u", "eu-zurich-1",
		"20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34", string(text), nil), nil
})

// sdk is both clients of one program.
type sdk struct {
	t     *testing.T
	admin queue.QueueAdminClient
	data  queue.QueueClient
}

// connect makes clients as a program does.
func connect(t *testing.T, s *server.Server) *sdk {
	t.Helper()
	p, err := provider()
	if err != nil {
		t.Fatal(err)
	}
	c := &sdk{t: t}
	if c.admin, err = queue.NewQueueAdminClientWithConfigurationProvider(p); err != nil {
		t.Fatal(err)
	}
	if c.data, err = queue.NewQueueClientWithConfigurationProvider(p); err != nil {
		t.Fatal(err)
	}
	c.admin.Host, c.data.Host = s.REST, s.REST
	return c
}

// once is a request that is not tried again, for errors that the SDK would
// repeat for minutes.
func once() common.RequestMetadata {
	policy := common.NoRetryPolicy()
	return common.RequestMetadata{RetryPolicy: &policy}
}

// good fails the test at an error.
func good[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused fails the test unless err is an error of the service with this status
// and code, whose message holds all of say.
func refused(t *testing.T, what string, err error, status int, code string, say ...string) {
	t.Helper()
	e, ok := common.IsServiceError(err)
	if !ok {
		t.Errorf("%s: %v, want %d %s", what, err, status, code)
		return
	}
	if e.GetHTTPStatusCode() != status || e.GetCode() != code {
		t.Errorf("%s: %d %s (%s), want %d %s", what, e.GetHTTPStatusCode(), e.GetCode(), e.GetMessage(), status, code)
	}
	for _, s := range say {
		if !strings.Contains(e.GetMessage(), s) {
			t.Errorf("%s: %q does not name %q", what, e.GetMessage(), s)
		}
	}
	if e.GetOpcRequestID() == "" {
		t.Errorf("%s: without a request id", what)
	}
}

func (c *sdk) ctx() context.Context { return c.t.Context() }

// create makes a queue and gives its id, found as Terraform finds it.
func (c *sdk) create(d queue.CreateQueueDetails) string {
	c.t.Helper()
	if d.CompartmentId == nil {
		d.CompartmentId = new(compartment)
	}
	made := good[queue.CreateQueueResponse](c.t)(c.admin.CreateQueue(c.ctx(), queue.CreateQueueRequest{CreateQueueDetails: d}))
	return c.finished(made.OpcWorkRequestId, queue.ActionTypeCreated)
}

// finished follows a work request to its end, as Terraform does: it takes the
// first resource whose type contains "queue", and the work must succeed, with
// an end, and have done this to it.
func (c *sdk) finished(id *string, action queue.ActionTypeEnum) string {
	c.t.Helper()
	if id == nil || *id == "" {
		c.t.Fatal("there is no work request")
	}
	for {
		w := good[queue.GetWorkRequestResponse](c.t)(c.admin.GetWorkRequest(c.ctx(), queue.GetWorkRequestRequest{WorkRequestId: id}))
		var found *queue.WorkRequestResource
		for i, r := range w.Resources {
			if strings.Contains(strings.ToLower(*r.EntityType), "queue") {
				found = &w.Resources[i]
				break
			}
		}
		if found == nil {
			c.t.Fatalf("the work request names no queue: %+v", w)
		}
		switch w.Status {
		case queue.OperationStatusSucceeded:
			if w.TimeFinished == nil || *w.PercentComplete != 100 || found.ActionType != action {
				c.t.Errorf("work request %+v, want %s", w.WorkRequest, action)
			}
			return *found.Identifier
		case queue.OperationStatusFailed, queue.OperationStatusCanceled:
			c.t.Fatalf("work request %+v", w.WorkRequest)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// text is a message without channel, in is one in a channel.
func text(content string) queue.PutMessagesDetailsEntry {
	return queue.PutMessagesDetailsEntry{Content: &content}
}

func in(channel, content string) queue.PutMessagesDetailsEntry {
	return queue.PutMessagesDetailsEntry{Content: &content, Metadata: &queue.MessageMetadata{ChannelId: &channel}}
}

func (c *sdk) put(q string, messages ...queue.PutMessagesDetailsEntry) []queue.PutMessage {
	c.t.Helper()
	r := good[queue.PutMessagesResponse](c.t)(c.data.PutMessages(c.ctx(), putTo(q, messages...)))
	if len(r.Messages) != len(messages) {
		c.t.Fatalf("%d answers to %d messages", len(r.Messages), len(messages))
	}
	return r.Messages
}

func putTo(q string, messages ...queue.PutMessagesDetailsEntry) queue.PutMessagesRequest {
	return queue.PutMessagesRequest{QueueId: &q, PutMessagesDetails: queue.PutMessagesDetails{Messages: messages}}
}

// get receives without waiting; options change the request.
func (c *sdk) get(q string, options ...func(*queue.GetMessagesRequest)) []queue.GetMessage {
	c.t.Helper()
	return good[queue.GetMessagesResponse](c.t)(c.data.GetMessages(c.ctx(), getFrom(q, options...))).Messages
}

func getFrom(q string, options ...func(*queue.GetMessagesRequest)) queue.GetMessagesRequest {
	r := queue.GetMessagesRequest{QueueId: &q, TimeoutInSeconds: new(0)}
	for _, o := range options {
		o(&r)
	}
	return r
}

type getOption = func(*queue.GetMessagesRequest)

func hidden(seconds int) getOption {
	return func(r *queue.GetMessagesRequest) { r.VisibilityInSeconds = &seconds }
}
func wait(seconds int) getOption {
	return func(r *queue.GetMessagesRequest) { r.TimeoutInSeconds = &seconds }
}
func limit(n int) getOption { return func(r *queue.GetMessagesRequest) { r.Limit = &n } }
func filter(text string) getOption {
	return func(r *queue.GetMessagesRequest) { r.ChannelFilter = &text }
}

func (c *sdk) delete(q string, m queue.GetMessage) {
	c.t.Helper()
	good[queue.DeleteMessageResponse](c.t)(c.data.DeleteMessage(c.ctx(), queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: m.Receipt}))
}

func (c *sdk) update(q, receipt string, seconds int) (queue.UpdateMessageResponse, error) {
	return c.data.UpdateMessage(c.ctx(), queue.UpdateMessageRequest{QueueId: &q, MessageReceipt: &receipt,
		UpdateMessageDetails: queue.UpdateMessageDetails{VisibilityInSeconds: &seconds}})
}

// counters are those of a queue and of its dead letter queue.
type counters struct{ visible, inFlight, bytes, dead, deadInFlight, deadBytes int64 }

func (c *sdk) stats(q string) counters {
	c.t.Helper()
	return c.statsOf(queue.GetStatsRequest{QueueId: &q})
}

func (c *sdk) statsOf(r queue.GetStatsRequest) counters {
	c.t.Helper()
	s := good[queue.GetStatsResponse](c.t)(c.data.GetStats(c.ctx(), r))
	return counters{
		*s.Queue.VisibleMessages, *s.Queue.InFlightMessages, *s.Queue.SizeInBytes,
		*s.Dlq.VisibleMessages, *s.Dlq.InFlightMessages, *s.Dlq.SizeInBytes,
	}
}

// becomes waits until the counters are as wanted.
func (c *sdk) becomes(q string, atMost time.Duration, want counters) {
	c.t.Helper()
	for deadline := time.Now().Add(atMost); ; time.Sleep(50 * time.Millisecond) {
		got := c.stats(q)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("after %v: %+v, want %+v", atMost, got, want)
		}
	}
}

// queueOf reads a queue.
func (c *sdk) queueOf(id string) queue.GetQueueResponse {
	c.t.Helper()
	return good[queue.GetQueueResponse](c.t)(c.admin.GetQueue(c.ctx(), queue.GetQueueRequest{QueueId: &id}))
}
