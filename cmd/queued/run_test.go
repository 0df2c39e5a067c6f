package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// testServer is a server in this process.
type testServer struct {
	rest, grpc, stomp, admin string
	dir                      string
	out, logs                *safeBuffer
	stop                     func() error
}

// startServer runs a server on free ports until the test ends. The default
// configuration, on a new directory and with small memory, is for change to
// change.
func startServer(t *testing.T, change func(*Config)) *testServer {
	t.Helper()
	cfg := Default()
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	cfg.RESTAddr, cfg.GRPCAddr, cfg.StompAddr, cfg.AdminAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.MemtableBytes, cfg.BlockCacheBytes, cfg.BallastBytes = 4<<20, 4<<20, 0
	cfg.LogLevel = "debug"
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &testServer{dir: cfg.DataDir, out: &safeBuffer{}, logs: &safeBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, cfg, newLogger(cfg, s.logs), s.out, func(code int) {
			t.Errorf("exit(%d)\n%s", code, s.logs)
		})
	}()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(s.out.String(), "\n") {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("serve: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready:\n%s", s.logs)
		}
	}
	text, err := os.ReadFile(filepath.Join(cfg.DataDir, "addresses.json"))
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ REST, GRPC, STOMP, Admin string }
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	s.rest, s.grpc, s.stomp, s.admin = at.REST, at.GRPC, at.STOMP, at.Admin
	return s
}

// call sends a request that must have that status, and is the body.
func (s *testServer) call(t *testing.T, method, url, body string, want int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s: %s, want %d\n%s", method, url, resp.Status, want, text)
	}
	return string(text)
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestServeAndStop(t *testing.T) {
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders"} })
	for _, at := range []string{s.rest, s.admin} {
		s.call(t, http.MethodGet, "http://"+at+"/healthz", "", 200)
		s.call(t, http.MethodGet, "http://"+at+"/readyz", "", 200)
	}
	s.call(t, http.MethodGet, "http://"+s.admin+"/debug/pprof/", "", 404)
	const secret = "the-content-of-a-message"
	messages := "http://" + s.rest + "/20210201/queues/orders/messages"
	s.call(t, http.MethodPost, messages, `{"messages":[{"content":"`+secret+`"}]}`, 200)
	var got struct {
		Messages []struct{ Content, Receipt string }
	}
	if err := json.Unmarshal([]byte(s.call(t, http.MethodGet, messages, "", 200)), &got); err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	receipt := got.Messages[0].Receipt
	s.call(t, http.MethodDelete, messages+"/"+receipt, "", 204)

	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "addresses.json")); !os.IsNotExist(err) {
		t.Errorf("addresses.json: %v", err)
	}
	logs := s.logs.String()
	for _, never := range []string{secret, receipt} {
		if strings.Contains(logs, never) {
			t.Errorf("%q is in the log:\n%s", never, logs)
		}
	}
	for _, once := range []string{`"msg":"stopping"`, `"msg":"stopped"`} {
		if n := strings.Count(logs, once); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", once, n, logs)
		}
	}
}

func TestGRPC(t *testing.T) {
	s := startServer(t, func(c *Config) {
		c.CreateQueue = []string{"orders"}
		c.Limits.RequestBytes, c.Limits.MessageBytes = 1000, 1000
		c.Limits.LargeRequestBytes, c.Limits.LargeMessageBytes = 1000, 1000
	})
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := t.Context()

	client := queuev1.NewQueueServiceClient(conn)
	put := func(size int) (metadata.MD, error) {
		var trailer metadata.MD
		_, err := client.PutMessages(ctx, &queuev1.PutMessagesRequest{
			QueueId: "orders",
			PutMessagesDetails: &queuev1.PutMessagesDetails{
				Messages: []*queuev1.PutMessagesDetailsEntry{{Content: bytes.Repeat([]byte("x"), size)}},
			},
		}, grpc.Trailer(&trailer))
		return trailer, err
	}
	if _, err := put(1000); err != nil {
		t.Error(err)
	}
	// What only breaks a limit is told so; what is far beyond is not even read.
	trailer, err := put(5000)
	if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), "limits.message-bytes") {
		t.Errorf("over the limit: %v", err)
	}
	if len(trailer["opc-request-id"]) != 1 {
		t.Errorf("no opc-request-id beside an error: %v", trailer)
	}
	if _, err := put(1 << 20); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("far over the limit: %v", err)
	}

	admin := queuev1.NewQueueAdminServiceClient(conn)
	got, err := admin.GetQueue(ctx, &queuev1.GetQueueRequest{QueueId: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	if at := got.GetQueue().GetMessagesEndpoint(); at != "http://"+s.grpc {
		t.Errorf("messagesEndpoint is %q", at)
	}

	for _, method := range []string{"/queue.v1.QueueService/Steal", "/queue.v9.QueueService/PutMessages", "/queue.v1.QueueService/" + strings.Repeat("x", 5000)} {
		var trailer metadata.MD
		err := conn.Invoke(ctx, method, &queuev1.GetStatsRequest{QueueId: "orders"}, &queuev1.GetStatsResponse{}, grpc.Trailer(&trailer))
		st := status.Convert(err)
		if st.Code() != codes.Unimplemented || !strings.Contains(st.Message(), `no operation of that name: "`+method[:20]) || len(st.Message()) > 300 {
			t.Errorf("%.60s: %v", method, err)
		}
		if info, ok := append(st.Details(), nil)[0].(*errdetails.ErrorInfo); !ok || info.Reason != "MethodNotImplemented" || info.Domain != "queued" {
			t.Errorf("%.60s: the details are %v", method, st.Details())
		}
		if len(trailer["opc-request-id"]) != 1 {
			t.Errorf("%.60s: the trailer is %v", method, trailer)
		}
	}

	check := grpc_health_v1.NewHealthClient(conn)
	for _, name := range []string{"", "queue.v1.QueueService", "queue.v1.QueueAdminService"} {
		resp, err := check.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || resp.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, resp, err)
		}
	}
	reflection, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list := &grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}
	if err := reflection.Send(list); err != nil {
		t.Fatal(err)
	}
	resp, err := reflection.Recv()
	if err != nil || !strings.Contains(resp.String(), "queue.v1.QueueService") {
		t.Errorf("reflection: %v, %v", resp, err)
	}
	if err := reflection.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := reflection.Recv(); err != io.EOF {
		t.Errorf("reflection: %v", err)
	}

	// A watcher is told, and does not hold the stop up.
	watch, err := check.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := watch.Recv(); err != nil || resp.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("watch: %v, %v", resp, err)
	}
	began := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for {
		resp, err := watch.Recv()
		if err != nil {
			break
		}
		if resp.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("watch: %v while stopping", resp)
		}
	}
}

// A panic in a call is that call's internal error, logged, and no more.
func TestGRPCPanic(t *testing.T) {
	t.Parallel()
	var logs safeBuffer
	calls := &grpcCalls{server: &server{log: slog.New(slog.NewTextHandler(&logs, nil))}, scheme: "http://"}
	_, err := calls.unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/queue.v1.QueueService/GetStats"}, func(context.Context, any) (any, error) {
		panic("oh no")
	})
	if st := status.Convert(err); st.Code() != codes.Internal || st.Message() != "internal error" {
		t.Errorf("the caller is told %v", err)
	}
	if got := logs.String(); !strings.Contains(got, "oh no") || !strings.Contains(got, "GetStats") || !strings.Contains(got, "run_test.go") {
		t.Errorf("the log says %q", got)
	}
}

// TestFatal: when the store has failed the process ends, with 1, at once.
func TestFatal(t *testing.T) {
	t.Parallel()
	codes := make(chan int, 1)
	s := &server{exit: func(code int) { codes <- code }}
	s.ready.Store(true)
	go s.fatal(io.ErrShortWrite) // never returns
	select {
	case code := <-codes:
		if code != 1 {
			t.Errorf("exit(%d), want 1", code)
		}
	case <-time.After(time.Second):
		t.Error("the process goes on")
	}
	if s.ready.Load() {
		t.Error("the server is still ready")
	}
}

// A start that fails gives back all that it has opened.
func TestFailedStart(t *testing.T) {
	busy := startServer(t, nil)
	cfg := Default()
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	cfg.RESTAddr, cfg.GRPCAddr, cfg.AdminAddr = "127.0.0.1:0", "127.0.0.1:0", busy.admin
	var out safeBuffer
	log := slog.New(slog.DiscardHandler)
	exit := func(code int) { t.Errorf("exit(%d)", code) }
	err := serve(t.Context(), cfg, log, &out, exit)
	if err == nil || !strings.Contains(err.Error(), "admin-addr "+busy.admin) || strings.Contains(err.Error(), "\n") {
		t.Errorf("serve: %v", err)
	}
	if out.String() != "" {
		t.Errorf("the start line is %q", out.String())
	}
	cfg.AdminAddr = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(ctx, cfg, log, &out, exit); err != nil {
		t.Errorf("serve again: %v", err)
	}

	cfg.DataDir = busy.dir
	err = serve(t.Context(), cfg, log, &out, exit)
	if err == nil || !strings.Contains(err.Error(), "is in use by process ") {
		t.Errorf("serve on a directory in use: %v", err)
	}
}
