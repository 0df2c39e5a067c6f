package bench

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/e2e/rest"
)

// BenchmarkWake has one client wait for a message of an idle server, and
// measures from the beginning of a publish, over a connection of its own, until
// that client has the message. Between the two is one sync: the message and its
// lease are stored together.
func BenchmarkWake(b *testing.B) {
	for _, face := range []struct {
		name string
		open func(*target) (*waker, error)
	}{
		{"REST", (*target).wakeREST},
		{"gRPC", (*target).wakeGRPC},
		{"stream", (*target).wakeStream},
		{"STOMP", (*target).wakeSTOMP},
	} {
		b.Run(face.name, func(b *testing.B) {
			t := start(b)
			w, err := face.open(t)
			if err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for range b.N {
				came := make(chan error, 1)
				var at time.Time
				go func() {
					err := w.wait()
					at = time.Now()
					came <- err
				}()
				// So that the client waits, and the server has nothing to do: to ask
				// it whether that is so would give it something.
				time.Sleep(10 * time.Millisecond)
				began := time.Now()
				if err := w.publish(); err != nil {
					b.Fatal(err)
				}
				if err := <-came; err != nil {
					b.Fatal(err)
				}
				took = append(took, at.Sub(began))
				if err := w.settle(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // most of it is waiting
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
		})
	}
}

// waker is two clients of one face.
type waker struct {
	wait    func() error // for a message
	publish func() error
	settle  func() error // delete what came
}

func (t *target) wakeREST() (*waker, error) {
	var receipt string
	waits, publishes := rest.Dial(t.b, t.s.REST), rest.Dial(t.b, t.s.REST)
	body := content()
	return &waker{
		wait: func() error {
			a, err := waits.Do("GET", "/queues/bench/messages?limit=1&timeoutInSeconds=20", "")
			if err != nil {
				return err
			}
			m := rest.Messages(t.b, a)
			if len(m) != 1 {
				return fmt.Errorf("%d messages came", len(m))
			}
			receipt = m[0].Receipt
			return nil
		},
		publish: func() error {
			a, err := publishes.Do("POST", "/queues/bench/messages", `{"messages":[{"content":"`+body+`"}]}`)
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("publish: %d", a.Status)
			}
			return err
		},
		settle: func() error {
			a, err := publishes.Do("DELETE", "/queues/bench/messages/"+receipt, "")
			if err == nil && a.Status != 204 {
				err = fmt.Errorf("delete: %d", a.Status)
			}
			return err
		},
	}, nil
}

func (t *target) wakeGRPC() (*waker, error) {
	waits, publishes := t.rpc(), t.rpc()
	get := &queuev1.GetMessagesRequest{QueueId: "bench", Limit: new(int32(1)), TimeoutInSeconds: new(int32(20))}
	put := &queuev1.PutMessagesRequest{QueueId: "bench", PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: entries(1)}}
	var receipt string
	return &waker{
		wait: func() error {
			r, err := waits.GetMessages(t.b.Context(), get)
			if err != nil {
				return err
			}
			m := r.GetGetMessages().GetMessages()
			if len(m) != 1 {
				return fmt.Errorf("%d messages came", len(m))
			}
			receipt = m[0].Receipt
			return nil
		},
		publish: func() error {
			_, err := publishes.PutMessages(t.b.Context(), put)
			return err
		},
		settle: func() error {
			_, err := publishes.DeleteMessage(t.b.Context(), &queuev1.DeleteMessageRequest{QueueId: "bench", MessageReceipt: receipt})
			return err
		},
	}, nil
}

func (t *target) wakeStream() (*waker, error) {
	waits, err := t.rpc().ConsumeMessages(t.b.Context())
	if err != nil {
		return nil, err
	}
	publishes, err := t.rpc().PublishMessages(t.b.Context())
	if err != nil {
		return nil, err
	}
	say := func(r *queuev1.ConsumeMessagesRequest) error { return waits.Send(r) }
	if err := say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{
		Subscribe: &queuev1.ConsumeSubscription{QueueId: "bench", Credit: 1},
	}}); err != nil {
		return nil, err
	}
	if _, err := waits.Recv(); err != nil { // it stands
		return nil, err
	}
	batch := &queuev1.PublishMessagesRequest{QueueId: "bench", Messages: entries(1)}
	var receipt string
	return &waker{
		wait: func() error {
			r, err := waits.Recv()
			if err != nil {
				return err
			}
			if len(r.Messages) != 1 {
				return fmt.Errorf("%d messages came", len(r.Messages))
			}
			receipt = r.Messages[0].Receipt
			return nil
		},
		publish: func() error {
			if err := publishes.Send(batch); err != nil {
				return err
			}
			r, err := publishes.Recv()
			if err == nil && r.Error != nil {
				err = fmt.Errorf("publish: %s", r.Error.Message)
			}
			return err
		},
		settle: func() error {
			if err := say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: &queuev1.ConsumeSettlements{
				Settlements: []*queuev1.Settlement{{Receipt: receipt, Action: queuev1.Settlement_ACKNOWLEDGE}},
			}}}); err != nil {
				return err
			}
			r, err := waits.Recv()
			if err != nil {
				return err
			}
			if len(r.Settled) != 1 || r.Settled[0].Error != nil {
				return fmt.Errorf("settle: %v", r)
			}
			return say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: &queuev1.ConsumeCredit{Messages: 1}}})
		},
	}, nil
}

func (t *target) wakeSTOMP() (*waker, error) {
	waits, err := t.session(1)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", t.s.STOMP)
	if err != nil {
		return nil, err
	}
	t.b.Cleanup(func() { waits.Close(); c.Close() })
	publishes := &session{c, bufio.NewReader(c)}
	fmt.Fprint(c, "CONNECT\naccept-version:1.2\nhost:bench\n\n\x00")
	if _, _, err := publishes.frame(); err != nil {
		return nil, err
	}
	send := []byte("SEND\ndestination:bench\nreceipt:r\ncontent-length:" + strconv.Itoa(bodyBytes) + "\n\n" + content() + "\x00\n")
	var ack string
	return &waker{
		wait: func() (err error) {
			_, ack, err = waits.frame()
			return err
		},
		publish: func() error {
			if _, err := publishes.Write(send); err != nil {
				return err
			}
			_, _, err := publishes.frame() // its receipt
			return err
		},
		settle: func() error {
			if _, err := fmt.Fprintf(waits, "ACK\nid:%s\nreceipt:a\n\n\x00", ack); err != nil {
				return err
			}
			_, _, err := waits.frame()
			return err
		},
	}, nil
}
