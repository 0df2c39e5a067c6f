package wire

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestGroupCounts is field case FC-17: counters of each group after expiry and
// after a lost client, by themselves, never below zero, and recounted from a
// backup at each point.
func TestGroupCounts(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	c := rest.Dial(t, s.REST)
	const q = "sms-out"
	c.Must(t, 202, "POST", "/queues", `{"displayName":"sms-out","capabilities":[{"type":"CONSUMER_GROUPS","primaryConsumerGroupDisplayName":"billing"}]}`)
	c.Must(t, 202, "POST", "/consumerGroups", `{"queueId":"sms-out","displayName":"audit","filter":":half"}`)
	groups := []string{"billing", "audit"}
	stats := func(c *rest.Conn, group string) (got rest.Stats) {
		t.Helper()
		c.Must(t, 200, "GET", "/queues/"+q+"/stats?consumerGroupId="+group, "").JSON(t, &got)
		return got
	}
	recounts := 0
	recount := func(when string) {
		t.Helper()
		recounts++
		backup := filepath.Join(t.TempDir(), fmt.Sprint("backup", recounts))
		for _, args := range [][]string{{"backup", backup, "--data-dir", s.Dir}, {"verify", backup}} {
			cmd := exec.Command(server.Binary(t), args...)
			cmd.Env = server.Environ()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: queued %s: %v\n%s", when, strings.Join(args, " "), err, out)
			}
		}
	}

	done := make(chan struct{})
	sampled := make(chan error, 1)
	watch := rest.Dial(t, s.REST) // closed before the restart
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			for _, group := range groups {
				a, err := watch.Do("GET", "/queues/"+q+"/stats?consumerGroupId="+group, "")
				if err != nil || a.Status != 200 || strings.Contains(string(a.Body), ":-") {
					sampled <- fmt.Errorf("%v %s", err, a.Body)
					return
				}
			}
		}
	}()

	// Every other message is one for audit too.
	batch := func(c *rest.Conn, retention, n int) {
		entries := make([]string, 20)
		for i := range entries {
			property := "whole"
			if i%2 == 0 {
				property = "half"
			}
			entries[i] = fmt.Sprintf(`{"content":"x","retentionInSeconds":%d,"metadata":{"customProperties":{%q:""}}}`, retention, property)
		}
		for range n / len(entries) {
			c.Must(t, 200, "POST", "/queues/"+q+"/messages", `{"messages":[`+strings.Join(entries, ",")+`]}`)
		}
	}
	batch(c, 86400, 500)
	var wg sync.WaitGroup
	for range 5 {
		c := rest.Dial(t, s.REST)
		wg.Go(func() { batch(c, 10, 200) })
	}
	wg.Wait()
	published := time.Now()
	recount("published")
	lost := rest.Dial(t, s.REST)
	for _, group := range groups {
		for range 5 {
			if n := len(lost.Get(t, q, "limit=20&visibilityInSeconds=3&timeoutInSeconds=0&consumerGroupId="+group)); n != 20 {
				t.Errorf("%d messages for %s", n, group)
			}
		}
	}
	lost.Reset()
	time.Sleep(time.Until(published.Add(15 * time.Second))) // the retention of the short ones, and a tolerance
	recount("expired")
	// A content of one octet, and the name of a property, of which half of
	// audit's have the one and billing's both.
	wants := []rest.Counters{
		{Visible: 500, Bytes: 500 + 250*int64(len("half")+len("whole"))},
		{Visible: 250, Bytes: 250 + 250*int64(len("half"))},
	}
	for i, group := range groups {
		if got := stats(c, group); got != (rest.Stats{Queue: wants[i]}) {
			t.Errorf("%s holds %+v, want %+v", group, got, wants[i])
		}
		name := fmt.Sprintf(`queued_group_messages_total{event="expired",group=%q,queue="sms-out"}`, group)
		if n, ok := s.Metric(name); !ok || n != []float64{1000, 500}[i] {
			t.Errorf("%v messages of %s expired", n, group)
		}
	}
	if n, ok := s.Metric(`queued_queue_bytes{queue="sms-out"}`); !ok || n != float64(wants[0].Bytes) {
		t.Errorf("%v octets are stored, want %d: those of both groups once", n, wants[0].Bytes)
	}
	for _, group := range groups {
		for {
			some := c.Get(t, q, "limit=20&timeoutInSeconds=0&consumerGroupId="+group)
			if len(some) == 0 {
				break
			}
			var entries []string
			for _, m := range some {
				entries = append(entries, fmt.Sprintf(`{"receipt":%q}`, m.Receipt))
			}
			a := c.Must(t, 200, "POST", "/queues/"+q+"/messages/actions/deleteMessages?consumerGroupId="+group, `{"entries":[`+strings.Join(entries, ",")+`]}`)
			if !strings.Contains(string(a.Body), `"clientFailures":0`) {
				t.Errorf("%s", a.Body)
			}
		}
	}
	empty := func(c *rest.Conn, when string) {
		t.Helper()
		for _, group := range groups {
			if got := stats(c, group); got != (rest.Stats{}) {
				t.Errorf("%s: %s holds %+v", when, group, got)
			}
		}
		if n, ok := s.Metric(`queued_queue_bytes{queue="sms-out"}`); !ok || n != 0 {
			t.Errorf("%s: %v octets are stored", when, n)
		}
		recount(when)
	}
	empty(c, "drained")
	close(done)
	if err := <-sampled; err != nil {
		t.Error(err)
	}
	s.Kill()
	s.Restart()
	empty(rest.Dial(t, s.REST), "restarted")
}
