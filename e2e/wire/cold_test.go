package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestColdStart: a get that does not wait finds what there is also when
// nothing of it is in memory: just after a kill, in many channels, behind a
// filter, with windows far smaller than the backlog.
func TestColdStart(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--limits-profile", "unthrottled", "--window-bytes", "1MiB", "--body-cache-bytes", "1MiB")
	c := rest.Dial(t, s.REST)
	const channels, each, unnamed = 200, 20, 8000
	for ch := range channels {
		entries := strings.Repeat(fmt.Sprintf(`{"content":"x","metadata":{"channelId":"c%03d"}},`, ch), each)
		c.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[`+strings.TrimSuffix(entries, ",")+`]}`)
	}
	full := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"content":"x"},`, 20), ",") + `]}`
	for range unnamed / 20 {
		c.Must(t, 200, "POST", "/queues/orders/messages", full)
	}
	total := int64(channels*each + unnamed)
	taken := int64(0)
	take := func(query string) int {
		t.Helper()
		m := c.Get(t, "orders", "timeoutInSeconds=0&visibilityInSeconds=3600&"+query)
		taken += int64(len(m))
		return len(m)
	}
	restart := func() {
		t.Helper()
		s.Kill()
		s.Restart()
		c = rest.Dial(t, s.REST)
	}
	restart()
	if take("limit=1&channelFilter=c199") == 0 {
		t.Error("the first get of a channel is empty")
	}
	restart()
	if take("limit=1&channelFilter=*7") == 0 {
		t.Error("the first get of a pattern is empty")
	}
	restart()
	if take("limit=1") == 0 {
		t.Error("the first get is empty")
	}
	for taken < total {
		if take("limit=20") == 0 {
			t.Errorf("a get is empty with %d of %d messages visible", total-taken, total)
			break
		}
	}
	if n := c.Stats(t, "orders").Queue; n.Visible != total-taken || n.InFlight != taken {
		t.Errorf("%d of %d taken: %+v", taken, total, n)
	}
	if take("limit=20") != 0 {
		t.Error("more messages than there were")
	}
}
