package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/faces"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/internal/history"
)

// rounds is how often the server is killed, and seed that of all random
// choices.
var (
	rounds = number("ROUNDS", 20)
	seed   = number("SEED", rand.Uint64())
)

// number reads a number from the environment.
func number(name string, absent uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return absent
	}
	return n
}

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestKill: many clients of all faces, a server that is killed with signal 9 at any moment,
// and at last once stopped in order, and nobody may see more of it than
// answers that did not come.
func TestKill(t *testing.T) {
	t.Logf("again: make chaos ROUNDS=%d SEED=%d", rounds, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	s := server.Start(t, "--limits-profile", "unthrottled",
		"--create-queue", fmt.Sprintf("%s,dlq=%d,retention=86400", queue, threshold))
	serving, end := context.WithCancel(t.Context())
	w := &world{t: t, serving: serving, done: map[string]int{}}
	w.listens(s)

	var wg sync.WaitGroup
	for i := range 8 {
		face := faces.All[i%len(faces.All)]
		wg.Go(w.client(face, "p"+strconv.Itoa(i), seed).produce)
		wg.Go(w.client(face, "c"+strconv.Itoa(i), seed).consume)
	}
	for range rounds {
		// From killed at once to killed with a full house.
		time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
		s.Kill()
		restart(w, s)
	}
	time.Sleep(time.Second)
	if code := s.Stop(); code != 0 {
		t.Errorf("exit code %d of a stop in order", code)
	}
	restart(w, s)
	time.Sleep(time.Second)
	end()
	wg.Wait()

	judge(t, w, s)
}

func restart(w *world, s *server.Server) {
	w.t.Helper()
	s.Restart()
	w.listens(s)
}

// listens tells all clients where the server is.
func (w *world) listens(s *server.Server) {
	w.addr.Store(&server.Server{REST: s.REST, GRPC: s.GRPC, STOMP: s.STOMP})
}

// judge takes everything out and lets the history be checked.
func judge(t *testing.T, w *world, s *server.Server) {
	c := w.client(faces.REST, "judge", seed)
	defer c.drop()
	conn := rest.Dial(t, s.REST)

	// Every lease and delay runs out by itself.
	deadline := time.Now().Add((longest + 5) * time.Second)
	for {
		n := conn.Stats(t, queue)
		if n.Queue.InFlight == 0 && n.Queue.Delayed == 0 && n.DLQ.InFlight == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("in flight or delayed when all is over: %+v", n)
		}
		time.Sleep(50 * time.Millisecond)
	}
	before, drain := stats(conn.Stats(t, queue)), time.Now()
	for _, from := range []string{queue, queue + "_dlq"} {
		for {
			messages := c.receive(from, faces.Want{Limit: 20, Visibility: 600})
			if len(messages) == 0 {
				break
			}
			for _, m := range messages {
				c.delete(m.Receipt)
			}
		}
	}
	h := w.rec.History(time.Now())
	h.Threshold, h.Tolerance = threshold, history.OneMachine
	conn = rest.Dial(t, s.REST) // the other may have been idle for too long
	h.Drain, h.Before, h.After = drain, before, stats(conn.Stats(t, queue))

	for answer := range w.odd.Range {
		t.Error(answer)
	}
	found := h.Check()
	for i, v := range found {
		if i == 30 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Error(v)
	}
	vacuous(t, h)
	for _, face := range faces.All {
		for _, what := range []string{"publish", "receive", "update", "delete"} {
			if n := w.done[face.Name+" "+what]; n == 0 {
				t.Errorf("no %s over %s worked", what, face.Name)
			}
		}
	}
	t.Logf("what worked: %v", w.done)

	// And so it is after one more start.
	s.Kill()
	s.Restart()
	if n := stats(rest.Dial(t, s.REST).Stats(t, queue)); n != (history.Stats{}) {
		t.Errorf("%+v after one more restart", n)
	}
}

func stats(s rest.Stats) history.Stats {
	return history.Stats{
		Visible: s.Queue.Visible, InFlight: s.Queue.InFlight, Delayed: s.Queue.Delayed, Bytes: s.Queue.Bytes,
		DeadVisible: s.DLQ.Visible, DeadInFlight: s.DLQ.InFlight, DeadBytes: s.DLQ.Bytes,
	}
}

// vacuous fails a history in which something never happened, for then nothing
// was shown.
func vacuous(t *testing.T, h *history.History) {
	t.Helper()
	var published, updated, deleted [4]int
	tokens, late, dead, lost := 0, 0, 0, 0
	for _, p := range h.Publishes {
		published[p.Outcome]++
		if p.Token != "" {
			tokens++
		}
	}
	for _, u := range h.Updates {
		updated[u.Outcome]++
	}
	for _, d := range h.Deletes {
		deleted[d.Outcome]++
	}
	for _, d := range h.Deliveries {
		if d.Dead {
			dead++
		}
		if d.Count > 1 {
			late++
		}
	}
	for _, l := range h.Lost {
		if l.Why == history.Unanswered {
			lost++
		}
	}
	t.Logf("publishes %v (done, refused, stale, in doubt), %d of them with a token; %d deliveries, %d of them not the first, %d of dead letters; %d receives in doubt; updates %v; deletes %v",
		published, tokens, len(h.Deliveries), late, dead, lost, updated, deleted)
	for what, n := range map[string]int{
		"publishes that were acknowledged": published[history.Done],
		"publishes in doubt":               published[history.Doubt],
		"publishes with a token":           tokens,
		"deliveries after the first":       late,
		"dead letters":                     dead,
		"receives in doubt":                lost,
		"updates that worked":              updated[history.Done],
		"deletes that worked":              deleted[history.Done],
	} {
		if n == 0 {
			t.Errorf("there were no %s", what)
		}
	}
}
