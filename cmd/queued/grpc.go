package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/grpcapi"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// grpc is the face that speaks queue.v1.
func (s *server) grpc(l *listener) (*face, error) {
	limits := &s.cfg.Limits
	calls := &grpcCalls{server: s, scheme: "http://"}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(mostReceived(limits.LargeRequestBytes, limits.BatchMessages)),
		grpc.MaxConcurrentStreams(uint32(limits.StreamsPerConnection)),
		grpc.MaxHeaderListSize(uint32(limits.HeaderBytes)),
		grpc.ConnectionTimeout(10 * time.Second), // for the handshake
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(calls.unary),
		grpc.StreamInterceptor(calls.stream),
		grpc.UnknownServiceHandler(unknown),
		grpc.ForceServerCodecV2(unreadCodec{codec.New()}),
		grpc.WaitForHandlers(true),
	}
	if s.tls != nil {
		calls.scheme = "https://"
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls)))
	}
	srv := grpc.NewServer(options...)
	queuev1.RegisterQueueAdminServiceServer(srv, grpcapi.NewAdmin(s.service))
	var stopped context.CancelFunc
	calls.stopping, stopped = context.WithCancel(context.Background())
	queuev1.RegisterQueueServiceServer(srv, grpcapi.NewData(s.service, grpcapi.Options{Stopping: calls.stopping}))
	probe := health.NewServer()
	for name := range srv.GetServiceInfo() {
		probe.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(srv, probe)
	reflection.Register(srv)

	return &face{
		name:     service.FaceGRPC,
		listener: l,
		serve:    func(l net.Listener) error { return srv.Serve(unreadListener{l}) },
		shutdown: func(ctx context.Context) error {
			probe.Shutdown()
			stopped()
			done := make(chan struct{})
			go func() { // ends with cut at the latest
				srv.GracefulStop()
				close(done)
			}()
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		cut: srv.Stop,
	}, nil
}

// mostReceived is the size of a message beyond which it is cut unread. It is
// that of a body over REST, so that what only breaks limits.request-bytes or
// limits.large-request-bytes gets the error that says so; the entries of a batch
// have room for their receipts. gRPC reads a message before it is known for
// which queue it is, so there is one size for all.
func mostReceived(requestBytes, batch int64) int {
	return int(6*requestBytes + 64<<10 + batch<<10)
}

// grpcCalls stands around every call: it says who is calling and keeps a
// panic from ending the process.
type grpcCalls struct {
	server   *server
	scheme   string
	stopping context.Context // ends when the face stops
}

func (c *grpcCalls) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	caller := c.caller(ctx)
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, c.panicked(p, info.FullMethod, caller)
		}
		if err != nil {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("opc-request-id", caller.RequestID))
		}
	}()
	if resp, err = next(service.WithCaller(ctx, caller), req); err != nil {
		return resp, err
	}
	if resp, err = c.hold(ctx, resp); err != nil {
		return nil, grpcapi.Status(err)
	}
	return resp, nil
}

func (c *grpcCalls) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	caller := c.caller(ss.Context())
	ctx := service.WithCaller(ss.Context(), caller)
	if info.FullMethod == grpc_health_v1.Health_Watch_FullMethodName {
		// Watchers stay until the end; they must not hold it up.
		watch, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.stopping, cancel)()
		ctx = watch
	}
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(p, info.FullMethod, caller)
		}
		if err != nil {
			ss.SetTrailer(metadata.Pairs("opc-request-id", caller.RequestID))
		}
	}()
	return next(srv, &stream{ss, ctx})
}

// unknown answers a call of a method or a service that is not there. The name
// is the caller's own text and may be as long as the headers may be.
func unknown(_ any, ss grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(ss)
	return grpcapi.Status(queue.Errorf(queue.MethodNotImplemented, "no operation of that name: %.200q", method))
}

// stream is a stream with a context of ours.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *stream) Context() context.Context { return s.ctx }

// caller is who sent the headers of ctx.
func (c *grpcCalls) caller(ctx context.Context) *service.Caller {
	caller := &service.Caller{Face: service.FaceGRPC, RequestID: fmt.Sprintf("%016X", rand.Uint64())}
	if host := metadata.ValueFromIncomingContext(ctx, ":authority"); len(host) > 0 {
		caller.BaseURL = c.scheme + host[0]
	}
	return caller
}

// panicked logs a fault of ours and is what the caller is told.
func (c *grpcCalls) panicked(p any, method string, caller *service.Caller) error {
	c.server.log.Error("panic", "operation", method, "opc-request-id", caller.RequestID, "value", fmt.Sprint(p), "stack", string(debug.Stack()))
	return grpcapi.Status(errors.New("panic"))
}
