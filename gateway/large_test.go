package gateway

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/queued-mq/queued/service"
)

// spelled is a publish of messages of these sizes, each octet in the longest
// way that JSON has.
func spelled(sizes ...int) string {
	var b strings.Builder
	for _, n := range sizes {
		b.WriteString(`,{"content":"` + strings.Repeat(`\u0061`, n) + `"}`)
	}
	return `{"messages":[` + b.String()[1:] + `]}`
}

// A body may be as large as its queue takes messages, in any spelling, whether
// its length is announced or not; and is cut at that of the queue.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.queue("small")
	large := "large"
	made, err := h.service.CreateQueue(context.Background(), service.CreateQueueRequest{
		DisplayName: &large, Capabilities: []service.CapabilityDetails{{Type: "LARGE_MESSAGES"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, h.handler, ServerOptions{})
	announced := func(ref, body string) string {
		return fmt.Sprintf("POST /20210201/queues/%s/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", ref, len(body), body)
	}
	chunked := func(ref, body string) string {
		return fmt.Sprintf("POST /20210201/queues/%s/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", ref, len(body), body)
	}
	for _, c := range []struct {
		ref, body string
		status    int
		text      string
	}{
		{"small", spelled(256<<10, 256<<10), 200, ""},
		{"small", spelled(512 << 10), 413, "limits.message-bytes"},
		{"small", spelled(256<<10, 256<<10, 64<<10), 413, "six times limits.request-bytes"},
		{"large", spelled(512<<10, 512<<10), 200, ""},
		{string(made.ID), spelled(512<<10, 512<<10), 200, ""},
		{"%6Carge", spelled(512<<10, 512<<10), 200, ""},
		{"large", spelled(512<<10 + 1), 413, "limits.large-message-bytes"},
		{"large", spelled(512<<10, 512<<10, 1), 413, "limits.large-request-bytes"},
		{"large", spelled(512<<10, 512<<10, 64<<10), 413, "six times limits.large-request-bytes"},
		{"large_dlq", spelled(512<<10, 512<<10), 400, "_dlq"},
		{"unknown", spelled(256<<10, 256<<10, 64<<10), 413, "six times limits.request-bytes"},
	} {
		for way, request := range map[string]func(ref, body string) string{"announced": announced, "chunked": chunked} {
			t.Run(fmt.Sprintf("%s %d %s", c.ref, len(c.body), way), func(t *testing.T) {
				w := dial(t, addr)
				go func() { _, _ = io.WriteString(w, request(c.ref, c.body)) }() // the server may close before all is written
				a := w.read("POST")
				if a.status != c.status || !strings.Contains(a.body, c.text) {
					t.Errorf("%d %.200s, want %d with %q", a.status, a.body, c.status, c.text)
				}
			})
		}
	}
}

// Other operations have no large bodies.
func TestLargeBodiesArePublishesAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	large := "large"
	if _, err := h.service.CreateQueue(context.Background(), service.CreateQueueRequest{
		DisplayName: &large, Capabilities: []service.CapabilityDetails{{Type: "LARGE_MESSAGES"}},
	}); err != nil {
		t.Fatal(err)
	}
	body := `{"entries":[]` + strings.Repeat(" ", 6*512<<10+64<<10) + `}`
	a := ask(t, h.handler, "POST", "/20210201/queues/large/messages/actions/deleteMessages", body)
	wantError(t, "deleteMessages", a, 413, "PayloadTooLarge", "six times limits.request-bytes")
}

// A queue shows its capabilities as objects, a list as words.
func TestCapabilitiesShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	a := ask(t, h.handler, "POST", "/20210201/queues", `{"displayName":"large","capabilities":[{"type":"LARGE_MESSAGES"}]}`)
	if a.status != 202 {
		t.Fatal(a.status, a.body)
	}
	if a := ask(t, h.handler, "GET", "/20210201/queues/large", ""); !strings.Contains(a.body, `"capabilities":[{"type":"LARGE_MESSAGES"}]`) {
		t.Error(a.body)
	}
	if a := ask(t, h.handler, "GET", "/20210201/queues", ""); !strings.Contains(a.body, `"capabilities":["LARGE_MESSAGES"]`) {
		t.Error(a.body)
	}
}
