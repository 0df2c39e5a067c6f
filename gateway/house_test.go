package gateway

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/grpcapi"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// house is a whole server in memory below its REST face.
type house struct {
	t         testing.TB
	broker    *broker.Broker
	service   *service.Service
	handler   http.Handler // as New makes it
	generated http.Handler // the same without the hot handlers
}

// newHouse is a house without limits on rates. Two houses that are asked the
// same answer the same, but for receipts and request ids.
func newHouse(t testing.TB, o Options) *house {
	t.Helper()
	st, err := store.Open("data", store.Options{FS: testdisk.New(), QuietScheduler: true, MemtableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := limits.Unthrottled()
	b, err := broker.Open(st, broker.Options{Limits: &l, Checked: true, Random: rand.NewPCG(1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &house{t: t, broker: b, service: service.New(b, service.Options{Limits: &l, Entropy: rand.NewChaCha8([32]byte{1})})}
	admin, data := grpcapi.NewAdmin(h.service), grpcapi.NewData(h.service, grpcapi.Options{})
	if h.handler, err = New(h.service, admin, data, o); err != nil {
		t.Fatal(err)
	}
	if h.generated, err = newGateway(h.service, admin, data, o); err != nil {
		t.Fatal(err)
	}
	return h
}

// queue makes a queue of that name.
func (h *house) queue(name string) queue.ID {
	h.t.Helper()
	resp, err := h.service.CreateQueue(context.Background(), service.CreateQueueRequest{DisplayName: &name})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.ID
}

// queueID is the id of the queue of that name.
func (h *house) queueID(name string) queue.ID {
	h.t.Helper()
	resp, err := h.service.GetQueue(context.Background(), service.GetQueueRequest{QueueRef: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.Queue.ID
}

// put publishes one message.
func (h *house) put(queueRef, content string) {
	h.t.Helper()
	_, err := h.service.PutMessages(context.Background(), service.PutMessagesRequest{
		QueueRef: queueRef, Messages: []service.PutMessage{{Content: []byte(content)}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends one request to the handler without a socket. Headers are given as
// "name: value".
func ask(t testing.TB, h http.Handler, method, target, body string, headers ...string) answer {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, in)
	r.Host = "localhost:8080"
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "host") {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// wantError checks that a is exactly the OCI error.
func wantError(t testing.TB, what string, a answer, status int, code queue.Code, text string) {
	t.Helper()
	prefix := `{"code":"` + string(code) + `","message":"`
	if a.status != status || !strings.HasPrefix(a.body, prefix) || !strings.HasSuffix(a.body, `"}`) || !strings.Contains(a.body, text) {
		t.Errorf("%s: got %d %s, want %d %s with %q", what, a.status, a.body, status, code, text)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content-type %q", what, got)
	}
	if a.header.Get("Opc-Request-Id") == "" {
		t.Errorf("%s: no opc-request-id", what)
	}
}
