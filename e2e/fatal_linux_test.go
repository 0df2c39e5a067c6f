package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/queued-mq/queued/e2e/server"
)

// TestFailedWrite: when a write to the log fails, the process says so and ends
// within a second, not with 0; nothing that was acknowledged is lost.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--limits-profile", "unthrottled")
	// From here on a file of the process may not grow beyond this, which the
	// system answers as it answers a broken disk: with an error of the write.
	limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("x", 100_000)
	url := s.REST + "/20210201/queues/orders/messages"
	stored, began := 0, time.Now()
	for ; stored < 100; stored++ {
		began = time.Now()
		body := fmt.Sprintf(`{"messages":[{"content":"%d %s"}]}`, stored, content)
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			break
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("publish %d: %s", stored, resp.Status)
			break
		}
	}
	if stored == 0 || stored == 100 {
		t.Fatalf("%d messages were stored", stored)
	}
	if code := s.Wait(5 * time.Second); code <= 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the process went on for %v", took)
	}
	if !strings.Contains(s.Logs(), "store failed") || !strings.Contains(s.Logs(), "file too large") {
		t.Errorf("the log does not say why:\n%s", s.Logs())
	}
	if strings.Contains(s.Logs(), "goroutine ") {
		t.Errorf("the process panicked:\n%s", s.Logs())
	}

	s.Restart()
	url = s.REST + "/20210201/queues/orders/messages?limit=20&visibilityInSeconds=60&timeoutInSeconds=0"
	got := map[string]bool{}
	for {
		_, text := call(t, http.MethodGet, url, "")
		var answer struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err, text)
		}
		if len(answer.Messages) == 0 {
			break
		}
		for _, m := range answer.Messages {
			number, _, _ := strings.Cut(m.Content, " ")
			got[number] = true
		}
	}
	for i := range stored {
		if !got[fmt.Sprint(i)] {
			t.Errorf("message %d was acknowledged and is gone", i)
		}
	}
}
