// Package wire looks at the octets of the REST face: what a client that is no
// SDK sends and gets, header by header and key by key, and what becomes of
// messages whose clients vanish. Its tests speak HTTP by hand (package rest).
//
// The rules are those of the OCI API as docs/contract.md takes them: SDKs of
// many languages parse these answers, some of them strictly.
package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(16)
	os.Exit(server.Main(m))
}

// keys are the names of a JSON object, sorted.
func keys(t *testing.T, object json.RawMessage) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%s: %v", rest.Clip(object), err)
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// field is a member of a JSON object.
func field(t *testing.T, object json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatalf("%s: %v", rest.Clip(object), err)
	}
	return m[name]
}

var requestID = regexp.MustCompile(`^[!-~]{1,128}/[0-9A-F]{16}/[0-9A-F]{16}$`)

// proper checks what every answer has: a request id, a date, JSON or nothing,
// and no way to somewhere else.
func proper(t *testing.T, what string, a *rest.Answer) {
	t.Helper()
	if id := a.Header.Get("opc-request-id"); !requestID.MatchString(id) {
		t.Errorf("%s: opc-request-id is %q", what, id)
	}
	if _, err := http.ParseTime(a.Header.Get("date")); err != nil {
		t.Errorf("%s: date: %v", what, err)
	}
	if a.Status/100 == 3 || a.Status < 200 || a.Header.Get("location") != "" {
		t.Errorf("%s: status %d, location %q", what, a.Status, a.Header.Get("location"))
	}
	if len(a.Body) == 0 {
		if ct := a.Header.Get("content-type"); ct != "" {
			t.Errorf("%s: content-type %q without a body", what, ct)
		}
		return
	}
	if ct := a.Header.Get("content-type"); ct != "application/json" {
		t.Errorf("%s: content-type is %q", what, ct)
	}
	if !json.Valid(a.Body) {
		t.Errorf("%s: no JSON: %s", what, rest.Clip(a.Body))
	}
	if a.Status >= 400 {
		if got := keys(t, a.Body); got != "code message" {
			t.Errorf("%s: an error has the keys %s", what, got)
		}
	}
}

// eventually waits until f is nil, and fails the test if that takes longer.
func eventually(t *testing.T, atMost time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(atMost)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", atMost, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// holds is nil when the counters of a queue are as wanted.
func holds(t *testing.T, c *rest.Conn, queue string, want rest.Stats) error {
	t.Helper()
	if got := c.Stats(t, queue); got != want {
		return fmt.Errorf("%s holds %+v, want %+v", queue, got, want)
	}
	return nil
}
