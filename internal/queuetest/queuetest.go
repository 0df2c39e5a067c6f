// Package queuetest is a whole server in memory, for tests and examples: store,
// broker, service and the gRPC face, without a port and without a file. It is
// made to run inside a synctest bubble as well as outside.
//
//	s := queuetest.Start(t)
//	c, err := client.Dial(s.Target(), client.Options{DialOptions: s.DialOptions()})
//
// Only tests import it.
package queuetest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/grpcapi"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// Server is a server without rate limits on an empty disk in memory.
type Server struct {
	store   *store.Store
	broker  *broker.Broker
	service *service.Service

	mu   sync.Mutex
	face *face
}

// face is what listens.
type face struct {
	wire *bufconn.Listener
	grpc *grpc.Server
	done chan error
}

// Start is a server that ends with the test, after what the test cleans up
// later.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Open is a server for those who have no test, such as examples. Close it.
func Open() (*Server, error) {
	st, err := store.Open("data", store.Options{FS: testdisk.New(), QuietScheduler: true, MemtableBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	l := limits.Unthrottled()
	b, err := broker.Open(st, broker.Options{Limits: &l, Checked: true})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s := &Server{store: st, broker: b, service: service.New(b, service.Options{Limits: &l})}
	s.Resume()
	return s, nil
}

// Target is what to dial, together with DialOptions.
func (s *Server) Target() string { return "passthrough:queuetest" }

// DialOptions are a connection to the server, whichever listens at the moment.
func (s *Server) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			s.mu.Lock()
			f := s.face
			s.mu.Unlock()
			if f == nil {
				return nil, errors.New("nobody listens")
			}
			return f.wire.DialContext(ctx)
		}),
	}
}

// Break cuts all connections in the middle of whatever they do, and nobody
// listens until Resume. What is stored stays.
func (s *Server) Break() error {
	s.mu.Lock()
	f := s.face
	s.face = nil
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	f.grpc.Stop()
	if err := <-f.done; !errors.Is(err, grpc.ErrServerStopped) { // it had hardly begun
		return err
	}
	return nil
}

// Resume listens again after Break.
func (s *Server) Resume() {
	f := &face{
		wire: bufconn.Listen(1 << 16),
		grpc: grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.WaitForHandlers(true), grpc.MaxRecvMsgSize(4<<20),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})), // as the real one
		done: make(chan error, 1),
	}
	queuev1.RegisterQueueAdminServiceServer(f.grpc, grpcapi.NewAdmin(s.service))
	queuev1.RegisterQueueServiceServer(f.grpc, grpcapi.NewData(s.service, grpcapi.Options{}))
	go func() { f.done <- f.grpc.Serve(f.wire) }() // Break waits for it
	s.mu.Lock()
	s.face = f
	s.mu.Unlock()
}

// Close ends the server; clients should be closed before.
func (s *Server) Close() error {
	return errors.Join(s.Break(), s.broker.Close(), s.store.Close())
}
