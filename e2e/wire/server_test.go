package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestOpenAPI: the document is there, and of exactly this API: every operation
// in it is one, and every other method on its paths is none.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := rest.Dial(t, s.REST)
	a := c.Must(t, 200, "GET", "//openapi.json", "")
	proper(t, "openapi.json", a)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]json.RawMessage
	}
	a.JSON(t, &doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.") || len(doc.Paths) == 0 {
		t.Fatalf("OpenAPI %q with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	operations := 0
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range doc.Paths {
		raw := "/" + parameter.ReplaceAllString(path, "x")
		for _, method := range []string{"get", "put", "post", "delete", "patch", "head", "options"} {
			_, listed := methods[method]
			if !strings.HasPrefix(path, rest.Base+"/") {
				if listed {
					c.Must(t, 200, strings.ToUpper(method), raw, "")
				}
				continue
			}
			if listed {
				operations++
			}
			a := c.Must(t, 0, strings.ToUpper(method), raw, "")
			if served := a.Status != 405; served != listed || strings.Contains(string(a.Body), `"NotFound"`) {
				t.Errorf("%s %s: %d %s", method, path, a.Status, rest.Clip(a.Body))
			}
		}
	}
	if operations != 24 {
		t.Errorf("%d operations, OCI has 24", operations)
	}
}

// TestProbes: alive and ready, on both listeners, and nothing is delivered by
// them.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	for _, base := range []string{s.REST, s.Admin} {
		c := rest.Dial(t, base)
		for _, path := range []string{"//healthz", "//readyz"} {
			c.Must(t, 200, "GET", path, "")
			c.Must(t, 200, "HEAD", path, "")
		}
	}
	c := rest.Dial(t, s.REST)
	proper(t, "healthz", c.Must(t, 200, "GET", "//healthz", ""))
	c.Must(t, 0, "POST", "//healthz", "").Is(t, 405, "MethodNotAllowed")
	if a := rest.Dial(t, s.Admin).Must(t, 404, "GET", "//debug/pprof/", ""); a.Status != 404 {
		t.Errorf("pprof is served unasked: %d", a.Status)
	}
	rest.Dial(t, server.Start(t, "--pprof").Admin).Must(t, 200, "GET", "//debug/pprof/", "")
}

// TestPendingBodies: bodies that are being sent take no more memory than they
// may, whoever sends them.
func TestPendingBodies(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{
		Args: []string{"--create-queue", "orders"},
		Env:  []string{"QUEUED_LIMITS_PENDING_BYTES_TOTAL=16MiB"},
	})
	c := rest.Dial(t, s.REST)
	part := `{"messages":[{"content":"` + strings.Repeat("x", 3<<20)
	var refused atomic.Int64
	var held []*rest.Conn
	var wg sync.WaitGroup
	for range 12 { // each sends 3 MiB and not the rest
		slow := rest.Dial(t, s.REST)
		held = append(held, slow)
		wg.Go(func() {
			// The server may hang up on the one or on the other.
			_ = slow.Send("POST", "/queues/orders/messages", part, fmt.Sprintf("Content-Length: %d", len(part)+10))
			a, err := slow.Receive("POST")
			if err != nil {
				return
			}
			proper(t, "a refused body", a)
			if _, message, _ := a.Error(); a.Status != 503 || !strings.Contains(message, "limits.pending-bytes-total") {
				t.Errorf("%d %s", a.Status, message)
			}
			refused.Add(1)
		})
	}
	eventually(t, 20*time.Second, func() error {
		if n := refused.Load(); n < 6 {
			return fmt.Errorf("%d of 12 bodies of 3 MiB are refused, with room for 16 MiB", n)
		}
		return nil
	})
	for _, slow := range held {
		slow.Reset()
	}
	wg.Wait()
	// The room is given back.
	eventually(t, 5*time.Second, func() error {
		a := c.Must(t, 0, "POST", "/queues/orders/messages", `{"messages":[{"content":"a"}]}`)
		if a.Status != 200 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return nil
	})
}

// TestConnections: a flood of connections is refused at the door, and others
// are served.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{
		Args: []string{"--create-queue", "orders"},
		Env:  []string{"QUEUED_LIMITS_CONNECTIONS=50", "QUEUED_LIMITS_CONNECTIONS_PER_CLIENT=20"},
	})
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a")
	open := 1
	for range 30 {
		more := rest.Dial(t, s.REST)
		if a, err := more.Do("GET", "/queues", ""); err == nil && a.Status == 200 {
			open++
		}
	}
	if open != 20 {
		t.Errorf("%d connections were served, want 20", open)
	}
	c.Must(t, 200, "GET", "/queues/orders/stats", "")
	if n, ok := s.Metric(`queued_connections_refused_total{face="rest"}`); !ok || n != 11 {
		t.Errorf("%v refused connections are counted, want 11", n)
	}
}

// TestMemory: a backlog does not live in memory, nor does a start read it.
func TestMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skipf("resident memory is read in /proc: %v", err)
	}
	s := server.Start(t, "--create-queue", "orders", "--limits-profile", "unthrottled",
		"--body-cache-bytes", "1MiB", "--memtable-bytes", "1MiB", "--block-cache-bytes", "1MiB", "--window-bytes", "1MiB")
	resident := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
		n := 0
		if line != nil {
			_, _ = fmt.Sscan(string(line[1]), &n)
		}
		return n << 10
	}
	c := rest.Dial(t, s.REST)
	content := strings.Repeat("x", 100<<10)
	body := `{"messages":[` + strings.Join(slices.Repeat([]string{`{"content":"` + content + `"}`}, 5), ",") + `]}`
	for range 20 { // what it takes to serve at all
		c.Must(t, 200, "POST", "/queues/orders/messages", body)
	}
	before := resident()
	const more = 300 // 150 MB
	for range more {
		c.Must(t, 200, "POST", "/queues/orders/messages", body)
	}
	if grown := resident() - before; grown > 75<<20 {
		t.Errorf("a backlog of %d MiB took %d MiB of memory", more*5*len(content)>>20, grown>>20)
	}
	s.Kill()
	began := time.Now()
	s.Restart()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the start took %v", took)
	}
	if n := resident(); n > before+75<<20 {
		t.Errorf("after a start %d MiB are resident, %d were before the backlog", n>>20, before>>20)
	}
	c = rest.Dial(t, s.REST)
	if m := c.Get(t, "orders", "timeoutInSeconds=0&limit=1"); len(m) != 1 {
		t.Errorf("%d messages come", len(m))
	}
}
