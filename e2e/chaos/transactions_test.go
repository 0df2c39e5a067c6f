package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/e2e/stomp"
)

// TestKillDuringCommit kills the server with signal 9 between a COMMIT and its
// answer. Each transaction takes a message from one queue and publishes to two
// others: afterwards all three have happened, or none; where the RECEIPT came,
// all have.
func TestKillDuringCommit(t *testing.T) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := server.Start(t, "--limits-profile", "unthrottled", "--create-queue", "from,visibility=5",
		"--create-queue", "left", "--create-queue", "right")
	const kills, streams = 8, 4
	answered, sent := make(map[string]bool), 0
	for round := range kills {
		told := make(chan string, 10_000)
		ended := make(chan int, streams)
		for stream := range streams {
			go func() { ended <- commits(s.STOMP, fmt.Sprintf("%d-%d", round, stream), told) }()
		}
		time.Sleep(time.Duration(10+random.IntN(300)) * time.Millisecond) // somewhere among them
		s.Kill()
		for range streams {
			sent += <-ended
		}
		close(told)
		for name := range told {
			answered[name] = true
		}
		s.Restart()
	}

	c := rest.Dial(t, s.REST)
	defer c.Close()
	left, right := drained(t, c, "left", 0), drained(t, c, "right", 0)
	from := drained(t, c, "from", 7) // what was taken comes back
	for name := range left {
		if !right[name] {
			t.Errorf("%s is in one queue alone", name)
		}
	}
	for name := range right {
		if !left[name] {
			t.Errorf("%s is in the other queue alone", name)
		}
	}
	for name := range answered {
		if !left[name] {
			t.Errorf("%s was answered and is not there", name)
		}
	}
	for name := range from {
		if left[name] {
			t.Errorf("%s was published and is still to be taken", name)
		}
	}
	if there := len(from) + len(left); there < sent {
		t.Errorf("%d messages were taken, %d are anywhere", sent, there)
	}
	t.Logf("%d transactions in which the server was killed %d times: %d are there, %d were answered", sent, kills, len(left), len(answered))
	if len(answered) == 0 || len(left) == sent {
		t.Error("no transaction was under way when the server was killed")
	}
}

// commits does transactions one after the other until the server is gone, and
// says how many messages it has seen to take. It tells which are answered.
func commits(addr, name string, told chan<- string) (seen int) {
	c, err := stomp.Open(addr)
	if err != nil {
		return 0
	}
	defer c.Close()
	channel := "from/" + name
	c.Send("SUBSCRIBE", nil, "destination", channel, "id", "1", "ack", "client-individual", "prefetch-count", "1")
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		c.Send("SEND", []byte(id), "destination", channel)
		m, err := c.Next(10 * time.Second)
		if err != nil || m.Command != "MESSAGE" {
			return seen
		}
		seen++
		c.Send("BEGIN", nil, "transaction", "t")
		c.Send("SEND", []byte(id), "destination", "left", "transaction", "t")
		c.Send("ACK", nil, "id", m.Headers["ack"], "transaction", "t")
		c.Send("SEND", []byte(id+strings.Repeat(" ", 5000)), "destination", "right", "transaction", "t")
		c.Send("COMMIT", nil, "transaction", "t", "receipt", id)
		if f, err := c.Next(10 * time.Second); err != nil || f.Command != "RECEIPT" {
			return seen
		}
		told <- id
	}
}

// drained is what a queue holds, each once.
func drained(t *testing.T, c *rest.Conn, queue string, wait int) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for {
		list := c.Get(t, queue, fmt.Sprintf("limit=20&timeoutInSeconds=%d&visibilityInSeconds=600", wait))
		if len(list) == 0 {
			return all
		}
		for _, m := range list {
			name := strings.TrimSpace(m.Content)
			if all[name] {
				t.Errorf("%s is in %s twice", name, queue)
			}
			all[name] = true
		}
	}
}
