// Package server runs the real queued binary for tests: it builds it once,
// starts it on ports of its own with a data directory of its own, kills or
// stops it, starts it again on the same directory, and keeps what it logs.
//
//	s := server.Start(t, "--create-queue", "orders")
//	http.Get(s.REST + "/20210201/queues")
//	s.Kill()    // as a power cut would end the process
//	s.Restart() // the same directory, the same arguments
//
// A server ends with its test. Only processes that were started here are ever
// ended, each by its own process handle.
package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a start may take before the test gives up: many
// tests share the disk. stopTimeout is for a stop: a server that is told to stop
// has 10 s by default.
const (
	startTimeout = time.Minute
	stopTimeout  = 20 * time.Second
)

// Server is one server. Its addresses change with Restart.
type Server struct {
	REST  string // base URL, http://host:port
	Admin string // base URL, http://host:port
	GRPC  string // host:port
	STOMP string // host:port; "" while it is not served
	Dir   string // the data directory

	t    testing.TB
	args []string
	env  []string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended

	logs buffer
}

// Options say how a server is started. The zero value is a server with default
// settings.
type Options struct {
	Dir  string   // the data directory; "": a new one that goes with the test
	Args []string // flags behind those that choose directory and ports; the last of a flag counts
	Env  []string // settings in the environment, QUEUED_...=...; those of the test's own environment do not count
}

// Start runs a server with these flags and returns when it is ready.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartWith(t, Options{Args: args})
}

// StartWith is Start with options.
func StartWith(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, Dir: o.Dir, args: o.Args, env: o.Env}
	if s.Dir == "" {
		s.Dir = filepath.Join(t.TempDir(), "data")
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", s.Logs())
		}
	})
	s.Restart()
	return s
}

// Restart starts the server again, on the same directory and with the same
// flags, and returns when it is ready. It must not be running.
func (s *Server) Restart() {
	s.t.Helper()
	if s.Running() {
		s.t.Fatal("restart: the server is still running")
	}
	args := []string{"serve", "--data-dir", s.Dir, "--log-format", "text"}
	for _, face := range []string{"rest", "grpc", "stomp", "admin"} {
		args = append(args, "--"+face+"-addr", "127.0.0.1:0")
	}
	cmd := exec.Command(Binary(s.t), append(args, s.args...)...)
	cmd.Env = append(Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = &s.logs, &s.logs
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start the server: %v", err)
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code is in ProcessState
	}()
	if err := s.await(); err != nil {
		s.Kill()
		s.t.Fatalf("start the server: %v\n%s", err, s.Logs())
	}
}

// await returns when addresses.json is that of the new process and /readyz
// says yes.
func (s *Server) await() error {
	deadline := time.Now().Add(startTimeout)
	for {
		select {
		case <-s.done:
			return fmt.Errorf("it ended with %v", s.cmd.ProcessState)
		case <-time.After(10 * time.Millisecond):
		}
		err := s.look()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it was not ready after %v: %w", startTimeout, err)
		}
	}
}

// look reads the addresses and asks whether the server is ready.
func (s *Server) look() error {
	text, err := os.ReadFile(filepath.Join(s.Dir, "addresses.json"))
	if err != nil {
		return err
	}
	var at struct {
		REST, GRPC, STOMP, Admin string
		PID                      int
	}
	if err := json.Unmarshal(text, &at); err != nil {
		return fmt.Errorf("addresses.json: %w", err)
	}
	if at.PID != s.cmd.Process.Pid {
		return fmt.Errorf("addresses.json is of process %d", at.PID)
	}
	scheme := "http://"
	for _, arg := range s.args {
		if strings.HasPrefix(arg, "--tls-cert") {
			scheme = "https://"
		}
	}
	s.REST, s.GRPC, s.STOMP, s.Admin = scheme+at.REST, at.GRPC, at.STOMP, "http://"+at.Admin
	resp, err := http.Get(s.Admin + "/readyz")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz is %s", resp.Status)
	}
	return nil
}

// PID is the id of the process that was started last.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Running reports whether the process has not ended.
func (s *Server) Running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Kill ends the process at once, as kill -9 does, and waits until it has
// ended. It may have ended already.
func (s *Server) Kill() {
	s.t.Helper()
	if s.Running() {
		s.Signal(os.Kill)
		<-s.done
	}
}

// Stop tells the server to stop (SIGTERM), waits until it has, and returns its
// exit code.
func (s *Server) Stop() int {
	s.t.Helper()
	if s.Running() {
		s.Signal(syscall.SIGTERM)
	}
	return s.Wait(stopTimeout)
}

// Signal sends a signal. A process that has ended takes none.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal %v: %v", sig, err)
	}
}

// Wait waits for the process to end by itself and returns its exit code, -1
// if a signal ended it. The test fails if that takes longer than atMost.
func (s *Server) Wait(atMost time.Duration) int {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(atMost):
		s.Kill()
		s.t.Fatalf("the server did not end within %v\n%s", atMost, s.Logs())
	}
	return s.cmd.ProcessState.ExitCode()
}

// Ended is closed when the process that was started last has ended.
func (s *Server) Ended() <-chan struct{} { return s.done }

// CPU is the processor time that the process has used, which is known when it
// has ended.
func (s *Server) CPU() time.Duration {
	<-s.done
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}

// Metric reads one sample of /metrics by its name with all its labels, as in
// queued_queue_messages{queue="orders",state="visible"}. Ok is false if it is
// not there.
func (s *Server) Metric(name string) (value float64, ok bool) {
	s.t.Helper()
	for line := range strings.Lines(s.Metrics()) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			return value, true
		}
	}
	return 0, false
}

// Metrics is the text of /metrics.
func (s *Server) Metrics() string {
	s.t.Helper()
	resp, err := http.Get(s.Admin + "/metrics")
	if err != nil {
		s.t.Fatalf("read metrics: %v", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("read metrics: %v", err)
	}
	return string(text)
}

// Logs is all that the server has written, over all restarts.
func (s *Server) Logs() string { return s.logs.String() }

// buffer is a bytes.Buffer for many goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Environ is the environment of the test without settings of the server.
func Environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "QUEUED_") {
			env = append(env, v)
		}
	}
	return env
}

// binary is where the server was built; see Binary and Main.
var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary is the path of the server, built from the sources around this module
// at the first call of a test process. The environment variable E2E_BINARY
// names a finished one instead.
func Binary(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() { binary.path, binary.err = build() })
	if binary.err != nil {
		t.Fatalf("build the server: %v", binary.err)
	}
	return binary.path
}

func build() (string, error) {
	if path := os.Getenv("E2E_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("the sources are not to be found")
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(here)))
	shared := filepath.Join(root, ".build", "e2e")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(shared, "run-")
	if err != nil {
		return "", err
	}
	binary.dir = dir
	path := filepath.Join(dir, "queued")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	// The packages of tests that run at the same time link it once: the go
	// command leaves a binary alone that is up to date. Each keeps a name of its
	// own for it, so that nobody's binary is exchanged under way.
	target := path
	unlock, ok := lock(filepath.Join(shared, "lock"))
	if ok {
		defer unlock()
		target = filepath.Join(shared, "queued")
	}
	cmd := exec.Command("go", "build", "-o", target, "./cmd/queued")
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	if target != path {
		if err := os.Link(target, path); err != nil {
			return "", err
		}
	}
	return path, nil
}

// Main runs the tests of a package and removes the binary they built. Every
// package of tests that calls Binary or Start has
//
//	func TestMain(m *testing.M) { os.Exit(server.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	Clean()
	return code
}

// Wide lets n parallel tests of a package run at once, whatever the number of
// processors, unless -parallel says otherwise: tests that wait for time to pass
// need none. It goes before Main.
func Wide(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Clean removes the binary that was built.
func Clean() {
	if binary.dir != "" {
		_ = os.RemoveAll(binary.dir)
	}
}
