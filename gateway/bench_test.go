package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// still is a service that answers at once, so that only the face is measured.
type still struct {
	published  []queue.Published
	deliveries []queue.Delivery
}

func newStill(n int) *still {
	s := &still{}
	at := queue.InstantOf(time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC))
	for i := range n {
		s.published = append(s.published, queue.Published{ID: queue.MessageID(1000 + i), ExpireAfter: at})
		s.deliveries = append(s.deliveries, queue.Delivery{
			Message: queue.Message{Body: []byte(strings.Repeat("x", 256)), Properties: []queue.Property{{Name: "type", Value: "order"}}},
			ID:      queue.MessageID(1000 + i), Channel: "c1", Receipt: "AQEBAQEA1-UkFkaIUB06-6At_E6VdA", DeliveryCount: 1,
			CreatedAt: at, VisibleAfter: at, ExpireAfter: at,
		})
	}
	return s
}

func (s *still) PutMessages(context.Context, service.PutMessagesRequest) (service.PutMessagesResponse, error) {
	return service.PutMessagesResponse{Messages: s.published}, nil
}
func (s *still) GetMessages(context.Context, service.GetMessagesRequest) (service.GetMessagesResponse, error) {
	return service.GetMessagesResponse{Messages: s.deliveries}, nil
}
func (s *still) UpdateMessage(context.Context, service.UpdateMessageRequest) (service.UpdateMessageResponse, error) {
	return service.UpdateMessageResponse{ID: 1, VisibleAfter: 1}, nil
}
func (s *still) UpdateMessages(context.Context, service.UpdateMessagesRequest) (service.UpdateMessagesResponse, error) {
	return service.UpdateMessagesResponse{}, nil
}
func (s *still) DeleteMessage(context.Context, service.DeleteMessageRequest) (service.DeleteMessageResponse, error) {
	return service.DeleteMessageResponse{}, nil
}
func (s *still) DeleteMessages(_ context.Context, r service.DeleteMessagesRequest) (service.DeleteMessagesResponse, error) {
	return service.DeleteMessagesResponse{Entries: make([]service.Failure, len(r.Receipts))}, nil
}
func (s *still) Undeliver([]queue.Delivery)              {}
func (s *still) TakesLarge(context.Context, string) bool { return false }

func putBody(n int) string {
	entry := `{"content":"` + strings.Repeat("x", 256) + `","metadata":{"channelId":"c1","customProperties":{"type":"order"}}}`
	return `{"messages":[` + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + `]}`
}

func deleteBody(n int) string {
	return `{"entries":[` + strings.TrimSuffix(strings.Repeat(`{"receipt":"AQEBAQEA1-UkFkaIUB06-6At_E6VdA"},`, n), ",") + `]}`
}

// discard is a ResponseWriter without a socket.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header              { return d.header }
func (d *discard) Write(b []byte) (int, error)      { return len(b), nil }
func (d *discard) WriteHeader(int)                  { clear(d.header) }
func (d *discard) Flush()                           {}
func (d *discard) SetReadDeadline(time.Time) error  { return nil }
func (d *discard) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkHandler is the face alone: from a parsed HTTP request to the octets
// of the answer, over a service that does nothing.
func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{1, 20} {
		g, err := newGateway(newStill(n), nil, nil, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.handleHot(); err != nil {
			b.Fatal(err)
		}
		for _, op := range []struct{ name, method, target, body string }{
			{"put", "POST", orders + "/messages", putBody(n)},
			{"get", "GET", orders + "/messages?limit=20&timeoutInSeconds=5", ""},
			{"delete", "DELETE", orders + "/messages/AQEBAQEA1-UkFkaIUB06-6At_E6VdA", ""},
			{"deletes", "POST", orders + "/messages/actions/deleteMessages", deleteBody(n)},
		} {
			if op.name == "delete" && n > 1 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", op.name, n), func(b *testing.B) {
				body := strings.NewReader(op.body)
				r := httptest.NewRequest(op.method, op.target, body)
				if a := ask(b, g, op.method, op.target, op.body); a.status >= 300 {
					b.Fatal(a)
				}
				w := &discard{header: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					body.Reset(op.body)
					g.ServeHTTP(w, r)
				}
			})
		}
	}
}

func BenchmarkDecodePut(b *testing.B) {
	for _, n := range []int{1, 20} {
		body := []byte(putBody(n))
		b.Run(fmt.Sprintf("hot/%d", n), func(b *testing.B) {
			var r wire.Reader
			var d putDecoder
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.decode(&r, body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("generated/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := unmarshal(body, &queuev1.PutMessagesDetails{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeGet(b *testing.B) {
	for _, n := range []int{1, 20} {
		s := newStill(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out = appendDeliveries(out[:0], s.deliveries, false)
			}
			b.SetBytes(int64(len(out)))
		})
	}
}

// BenchmarkRoundTrip is a put, a get and a delete over one connection each for
// 64 clients, over a real broker in memory.
func BenchmarkRoundTrip(b *testing.B) {
	h := newHouse(b, Options{Loopback: true})
	h.queue("orders")
	addr := serve(b, h.handler, ServerOptions{})
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
		do := func(method, path, body string) string {
			r, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return ""
			}
			resp, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return ""
			}
			defer resp.Body.Close()
			buf := make([]byte, 4096)
			n, _ := resp.Body.Read(buf)
			if resp.StatusCode >= 300 {
				b.Errorf("%s %s: %d %s", method, path, resp.StatusCode, buf[:n])
			}
			return string(buf[:n])
		}
		for pb.Next() {
			do("POST", orders+"/messages", putBody(1))
			got := do("GET", orders+"/messages?limit=1", "")
			if m := receipts.FindStringSubmatch(got); m != nil {
				do("DELETE", orders+"/messages/"+m[1], "")
			}
		}
	})
}
