package faces

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(32)
	os.Exit(server.Main(m))
}

// settings are those of a scenario's queue, as CreateQueue takes them.
type settings struct {
	visibility int // seconds
	dead       int // deliveries; 0: never
	retention  int // seconds; 0: the default
}

// scenario is a story that runs over each face alike, on a queue of its own.
type scenario struct {
	name  string
	queue settings
	needs []Ability
	run   func(x *stage)
}

// stage is where one scenario runs over one face.
type stage struct {
	*testing.T
	Client
	face   Face
	server *server.Server
	queue  string
	rest   *rest.Conn // for the counters and the queue itself
}

// unsaid is what is not run, since a face has no words for it. The test
// compares it with what the faces declare, so that nothing is left out in
// silence.
const unsaid = `STOMP batch: publish several messages, all or none (a SEND is one message)
STOMP retry token: publish under a retry token (SEND has no header for it)
STOMP extend: extend a lease (STOMP has no frame for it)
STOMP own visibility: publish with a visibility of the message's own (SEND has no header for it; SUBSCRIBE has)
STOMP return with a delay: return a message with a delay (NACK gives back at once)
STOMP late extension: extend a lease (STOMP has no frame for it)
STOMP return of what has lapsed: refuse to return what has come back by itself (a NACK of what has come back is done already)
`

// TestScenarios runs the table.
func TestScenarios(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	var left strings.Builder
	for _, face := range All {
		for _, sc := range scenarios {
			if i := slices.IndexFunc(sc.needs, func(a Ability) bool { return face.Lacks[a] != "" }); i >= 0 {
				fmt.Fprintf(&left, "%s %s: %s (%s)\n", face.Name, sc.name, sc.needs[i], face.Lacks[sc.needs[i]])
				continue
			}
			t.Run(face.Name+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				sc.run(newStage(t, s, face, sc.queue))
			})
		}
	}
	t.Logf("what cannot be said:\n%s", left.String())
	if diff := cmp.Diff(unsaid, left.String()); diff != "" {
		t.Errorf("what is left out has changed (-declared +left out):\n%s", diff)
	}
}

var queues atomic.Int64

// newStage makes a queue and a client.
func newStage(t *testing.T, s *server.Server, face Face, q settings) *stage {
	t.Helper()
	x := &stage{T: t, Client: face.Dial(s), face: face, server: s, rest: rest.Dial(t, s.REST)}
	x.queue = fmt.Sprintf("q%d", queues.Add(1))
	x.create(x.queue, q)
	t.Cleanup(x.Drop)
	return x
}

func (x *stage) create(name string, q settings) {
	x.Helper()
	body := fmt.Sprintf(`{"displayName":%q,"deadLetterQueueDeliveryCount":%d,"visibilityInSeconds":%d`, name, q.dead, max(q.visibility, 1))
	if q.retention > 0 {
		body += fmt.Sprintf(`,"retentionInSeconds":%d`, q.retention)
	}
	x.rest.Must(x.T, 202, "POST", "/queues", body+"}")
}

// must wants no error.
func (x *stage) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// refused wants an error of that name.
func (x *stage) refused(code string, err error) {
	x.Helper()
	if got := Code(err); got != code {
		x.Errorf("got %v, want %s", err, code)
	}
}

// put publishes.
func (x *stage) put(messages ...Message) {
	x.Helper()
	ids, err := x.Publish(x.queue, "", messages...)
	x.must(err)
	if x.face.Lacks[IDs] == "" && len(ids) != len(messages) {
		x.Errorf("%d ids for %d messages", len(ids), len(messages))
	}
}

// patient is how long a message that must come may take.
const patient = 20 * time.Second

// get wants just so many messages.
func (x *stage) get(n int, w Want) []Delivery {
	x.Helper()
	return x.from(x.queue, n, w)
}

func (x *stage) from(queue string, n int, w Want) []Delivery {
	x.Helper()
	if w.Limit == 0 {
		w.Limit = n
	}
	if w.For == 0 && n > 0 {
		w.For = patient
	}
	got, err := x.Receive(queue, w)
	x.must(err)
	if len(got) != n {
		x.Fatalf("%d messages of %s, want %d: %+v", len(got), queue, n, got)
	}
	return got
}

// one wants one message of this text in this delivery.
func (x *stage) one(text string, count int, w Want) Delivery {
	x.Helper()
	d := x.get(1, w)[0]
	if string(d.Body) != text || d.Count != count {
		x.Fatalf("got %q in delivery %d, want %q in delivery %d", d.Body, d.Count, text, count)
	}
	return d
}

// holds wants these counters.
func (x *stage) holds(visible, inFlight, delayed, dead int64) {
	x.Helper()
	x.eventually(5*time.Second, func() error {
		s := x.rest.Stats(x.T, x.queue)
		got := [4]int64{s.Queue.Visible, s.Queue.InFlight, s.Queue.Delayed, s.DLQ.Visible + s.DLQ.InFlight}
		if want := [4]int64{visible, inFlight, delayed, dead}; got != want {
			return fmt.Errorf("visible, in flight, delayed, dead are %v, want %v", got, want)
		}
		return nil
	})
}

// eventually waits until f is nil.
func (x *stage) eventually(atMost time.Duration, f func() error) {
	x.Helper()
	eventually(x.T, atMost, f)
}

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

// lapse waits until a delivery's visibility has ended.
func lapse(d Delivery) { time.Sleep(time.Until(d.VisibleAfter.Add(100 * time.Millisecond))) }
