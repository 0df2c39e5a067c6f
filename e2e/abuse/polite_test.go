package abuse

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/stomp"
)

// polite is a client that publishes a message, receives it and deletes it, over
// and over on a queue of its own, and connects anew every few rounds. None of its
// requests may fail.
type polite struct {
	face   string
	visit  func(p *polite, rounds int) error
	rounds atomic.Int64
	failed atomic.Pointer[error]

	mu sync.Mutex // held during a visit, and by who wants none
}

const (
	perVisit = 5
	// pace leaves some of the processor to others: a polite client is no flood.
	pace = 2 * time.Millisecond
)

// politely begins the clients of all faces; they end with the test.
func (h *house) politely() {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	h.t.Cleanup(func() { stop(); wg.Wait() })
	for face, visit := range map[string]func(*polite, int) error{"rest": h.overREST, "grpc": h.overGRPC, "stomp": h.overSTOMP} {
		p := &polite{face: face, visit: visit}
		h.polite = append(h.polite, p)
		wg.Go(func() {
			for ctx.Err() == nil {
				p.mu.Lock()
				err := p.visit(p, perVisit)
				p.mu.Unlock()
				if err != nil {
					if ctx.Err() == nil {
						p.failed.Store(&err)
					}
					return
				}
				time.Sleep(pace)
			}
		})
	}
}

// fill puts n messages of 250 KiB into the queue prey, by REST.
func (h *house) fill(n int) {
	h.t.Helper()
	nc, err := h.dial(h.s.REST)
	if err != nil {
		h.t.Fatal(err)
	}
	c := rest.Over(nc, "localhost")
	defer c.Close()
	body := `{"messages":[{"content":"` + strings.Repeat("x", 250<<10) + `"}]}`
	for range n {
		c.Must(h.t, http.StatusOK, "POST", "/queues/prey/messages", body)
	}
}

// pause keeps polite clients from coming, or lets them come again. When it
// returns, none of them is connected.
func (h *house) pause(on bool) {
	for _, p := range h.polite {
		if on {
			p.mu.Lock()
		} else {
			p.mu.Unlock()
		}
	}
}

// counts is how many rounds each has done.
func (h *house) counts() (n []int) {
	for _, p := range h.polite {
		n = append(n, int(p.rounds.Load()))
	}
	return n
}

// served waits until each has done so many rounds more.
func (h *house) served(rounds int) {
	h.t.Helper()
	for _, p := range h.polite {
		h.await(p, rounds)
	}
}

func (h *house) await(p *polite, rounds int) {
	h.t.Helper()
	want := p.rounds.Load() + int64(rounds)
	for deadline := time.Now().Add(waitFor); p.rounds.Load() < want; time.Sleep(pace) {
		if err := p.failed.Load(); err != nil {
			h.t.Fatalf("the polite client over %s, in round %d: %v", p.face, p.rounds.Load(), *err)
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the polite client over %s has come to round %d, not to %d", p.face, p.rounds.Load(), want)
		}
	}
}

// text is the message of this round.
func (p *polite) text() string { return fmt.Sprintf("%s %d", p.face, p.rounds.Load()) }

func (h *house) overREST(p *polite, rounds int) error {
	nc, err := h.dial(h.s.REST)
	if err != nil {
		return err
	}
	c := rest.Over(nc, "localhost")
	defer c.Close()
	do := func(method, path, body string) ([]byte, error) {
		a, err := c.Do(method, "/queues/rest/messages"+path, body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if a.Status >= 300 {
			return nil, fmt.Errorf("%s: %d %s", method, a.Status, rest.Clip(a.Body))
		}
		return a.Body, nil
	}
	for range rounds {
		if _, err := do("POST", "", `{"messages":[{"content":"`+p.text()+`"}]}`); err != nil {
			return err
		}
		body, err := do("GET", "?timeoutInSeconds=20", "")
		if err != nil {
			return err
		}
		var got struct{ Messages []rest.Message }
		if err := json.Unmarshal(body, &got); err != nil {
			return err
		}
		if len(got.Messages) != 1 || got.Messages[0].Content != p.text() {
			return fmt.Errorf("received %s, not %q", rest.Clip(body), p.text())
		}
		if _, err := do("DELETE", "/"+got.Messages[0].Receipt, ""); err != nil {
			return err
		}
		p.rounds.Add(1)
	}
	return nil
}

func (h *house) overGRPC(p *polite, rounds int) error {
	ctx, cancel := context.WithTimeout(context.Background(), rest.Timeout)
	defer cancel()
	creds := insecure.NewCredentials()
	if h.secure != nil {
		creds = credentials.NewTLS(h.secure)
	}
	conn, err := grpc.NewClient(h.s.GRPC, grpc.WithTransportCredentials(creds), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer conn.Close()
	client, wait := queuev1.NewQueueServiceClient(conn), int32(20)
	for range rounds {
		put := &queuev1.PutMessagesDetails{Messages: []*queuev1.PutMessagesDetailsEntry{{Content: []byte(p.text())}}}
		if _, err := client.PutMessages(ctx, &queuev1.PutMessagesRequest{QueueId: "grpc", PutMessagesDetails: put}); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		got, err := client.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "grpc", TimeoutInSeconds: &wait})
		if err != nil {
			return fmt.Errorf("get: %w", err)
		}
		m := got.GetGetMessages().GetMessages()
		if len(m) != 1 || string(m[0].GetContent()) != p.text() {
			return fmt.Errorf("received %v, not %q", m, p.text())
		}
		if _, err := client.DeleteMessage(ctx, &queuev1.DeleteMessageRequest{QueueId: "grpc", MessageReceipt: m[0].GetReceipt()}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		p.rounds.Add(1)
	}
	return nil
}

func (h *house) overSTOMP(p *polite, rounds int) error {
	nc, err := h.dial(h.s.STOMP)
	if err != nil {
		return err
	}
	c := stomp.Over(nc)
	defer c.Close()
	next := func(command string) (*stomp.Frame, error) {
		f, err := c.Next(rest.Timeout)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		if f.Command != command {
			return nil, f.Refusal()
		}
		return f, nil
	}
	ask := func(command, body, answer string, headers ...string) (f *stomp.Frame, err error) {
		if err := c.Send(command, []byte(body), headers...); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		return next(answer)
	}
	if _, err := ask("CONNECT", "", "CONNECTED", "accept-version", "1.2", "host", "queued"); err != nil {
		return err
	}
	if _, err := ask("SUBSCRIBE", "", "RECEIPT", "id", "1", "destination", "stomp", "ack", "client-individual", "receipt", "s"); err != nil {
		return err
	}
	for range rounds {
		// A RECEIPT comes before the MESSAGE that it makes.
		if _, err := ask("SEND", p.text(), "RECEIPT", "destination", "stomp", "receipt", "p"); err != nil {
			return err
		}
		f, err := next("MESSAGE")
		if err != nil {
			return err
		}
		if string(f.Body) != p.text() {
			return fmt.Errorf("received %q, not %q", f.Body, p.text())
		}
		if _, err := ask("ACK", "", "RECEIPT", "id", f.Headers["ack"], "receipt", "a"); err != nil {
			return err
		}
		p.rounds.Add(1)
	}
	return nil
}
