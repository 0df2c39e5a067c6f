package faces

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// mute stands before a server and can keep its answers from its clients.
type mute struct {
	*server.Server // the addresses to use
	silent         atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newMute(t *testing.T, s *server.Server) *mute {
	t.Helper()
	m := &mute{}
	m.Server = &server.Server{
		REST: "http://" + m.listen(t, s.REST[len("http://"):]), GRPC: m.listen(t, s.GRPC), STOMP: m.listen(t, s.STOMP),
	}
	t.Cleanup(m.cut)
	return m
}

// listen passes what comes to an address of its own on to another.
func (m *mute) listen(t *testing.T, to string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				return
			}
			m.mu.Lock()
			m.conns = append(m.conns, client, server)
			m.mu.Unlock()
			go func() { _, _ = io.Copy(server, client) }() // until it is cut
			go func() {
				_, _ = io.Copy(writer(func(b []byte) (int, error) {
					if m.silent.Load() {
						return len(b), nil
					}
					return client.Write(b)
				}), server)
			}()
		}
	}()
	return l.Addr().String()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// cut ends all connections.
func (m *mute) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = rest.Close(c)
	}
	m.conns = nil
}

// TestLostAnswers is step 4 of field case FC-19 over all faces: the answer to a
// publish is lost after the message was stored. Sent again under the same retry
// token, over any face that has one, it is one message; without one it is two.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	for _, face := range All {
		for _, token := range []string{"", "a1b2"} {
			if token != "" && face.Lacks[Token] != "" {
				t.Logf("%s cannot %s: %s", face.Name, Token, face.Lacks[Token])
				continue
			}
			name := face.Name + " without a token"
			if token != "" {
				name = face.Name + " with a token"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, face, settings{visibility: long})
				m := Text("caf\u00e9 \u00ff")
				between := newMute(t, s)
				c := face.Dial(between.Server)
				_, err := c.Receive(x.queue, Want{}) // so that it is connected
				x.must(err)
				between.silent.Store(true)
				result := make(chan error, 1)
				go func() {
					_, err := c.Publish(x.queue, token, m)
					result <- err
				}()
				x.holds(1, 0, 0, 0)
				between.cut()
				if err := <-result; err == nil || Code(err) != "" || errors.Is(err, ErrNotSent) {
					t.Fatalf("without an answer: %v", err)
				}
				if token == "" {
					x.put(m)
					x.holds(2, 0, 0, 0)
					return
				}
				var first int64
				for _, other := range All {
					if other.Lacks[Token] != "" {
						continue
					}
					again := other.Dial(s)
					ids, err := again.Publish(x.queue, token, m)
					x.must(err)
					again.Drop()
					if len(ids) != 1 || first != 0 && ids[0] != first {
						t.Errorf("%s: ids %v, before %d", other.Name, ids, first)
					}
					first = ids[0]
				}
				x.holds(1, 0, 0, 0)
				if d := x.one(string(m.Body), 1, Want{For: 10 * time.Second}); d.ID != first {
					t.Errorf("id %d, published as %d", d.ID, first)
				}
			})
		}
	}
}
