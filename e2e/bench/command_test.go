package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// report is what the tests look at of the JSON that `queued bench` writes.
type report struct {
	Face, Shape         string
	Seconds             float64
	Interrupted         bool
	Published, Consumed struct{ Messages uint64 }
	Publish, Settle     *struct{ Count uint64 }
	EndToEnd            *struct{ Count uint64 } `json:"end_to_end"`
	Errors              map[string]uint64
	Verified            struct {
		Published, Consumed, Duplicates, Left uint64
		Lost                                  *uint64
	}
	Server *struct {
		CPU float64 `json:"cpu_us_per_message"`
	}
	Notes []string
}

func benchArgs(s *server.Server, args ...string) []string {
	return append([]string{"bench", "--data-dir", s.Dir, "--json", "--producers", "4", "--consumers", "4", "--warmup", "100ms"}, args...)
}

// command runs `queued bench` against s.
func command(t *testing.T, s *server.Server, args ...string) report {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(server.Binary(t), benchArgs(s, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, &said, &out)
	}
	return parse(t, out.Bytes())
}

func parse(t *testing.T, text []byte) (r report) {
	t.Helper()
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// TestCommand has every face in every shape, briefly. Nothing may fail, get
// lost or come twice, and the queues must be gone in the end.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled", "--log-level", "warn")
	t.Run("all", func(t *testing.T) {
		for _, face := range []string{"rest", "grpc", "streams", "stomp"} {
			for shape, more := range map[string][]string{
				"publish": {"--ahead", "2"},
				"drain":   {"--messages", "2000", "--channels", "3"},
				"steady":  {"--queues", "2", "--ahead", "2", "--rate", "1000"},
				"latency": {"--rate", "200", "--batch", "1"},
			} {
				t.Run(face+"/"+shape, func(t *testing.T) {
					t.Parallel()
					r := command(t, s, append(more, "--face", face, "--shape", shape, "--duration", "700ms")...)
					if r.Face != face || r.Shape != shape || r.Interrupted {
						t.Errorf("%+v", r)
					}
					if v := r.Verified; v.Published == 0 || v.Lost == nil || *v.Lost != 0 || v.Duplicates != 0 {
						t.Errorf("verified %+v", v)
					}
					if len(r.Errors) > 0 {
						t.Errorf("errors %v, notes %q", r.Errors, r.Notes)
					}
					if shape != "publish" && (r.Verified.Left != 0 || r.Verified.Consumed != r.Verified.Published || r.Settle == nil || r.Consumed.Messages == 0) {
						t.Errorf("%+v", r)
					}
					if shape != "drain" && (r.Published.Messages == 0 || r.Publish == nil) {
						t.Errorf("%+v", r)
					}
					if (shape == "steady" || shape == "latency") != (r.EndToEnd != nil) {
						t.Errorf("%+v", r)
					}
					if r.Server == nil || r.Server.CPU <= 0 {
						t.Errorf("server %+v, notes %q", r.Server, r.Notes)
					}
				})
			}
		}
	})
	if left := queues(t, s); left != `{"items":[]}` {
		t.Errorf("queues are left: %s", left)
	}
}

func queues(t *testing.T, s *server.Server) string {
	t.Helper()
	resp, err := http.Get(s.REST + "/20210201/queues")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestCommandSaysLimits meets limits that are low: they are counted and told.
// Its queue is kept, and made over gRPC.
func TestCommandSaysLimits(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{Args: []string{"--log-level", "warn"}, Env: []string{"QUEUED_LIMITS_REQUESTS_PER_SECOND=20"}})
	r := command(t, s, "--rest", "", "--face", "grpc", "--shape", "publish", "--duration", "1s", "--keep", "--admin", "")
	if r.Errors["TooManyRequests"] == 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "TooManyRequests is a limit of the server") {
		t.Errorf("errors %v, notes %q", r.Errors, r.Notes)
	}
	if r.Server != nil {
		t.Errorf("without metrics the server has cost %+v", r.Server)
	}
	if left := queues(t, s); !strings.Contains(left, `"displayName":"bench-`) {
		t.Errorf("its queue is not kept: %s", left)
	}
}

// TestCommandInterrupted ends it before its time: it reports, and tidies up.
func TestCommandInterrupted(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled", "--log-level", "warn")
	var out, said bytes.Buffer
	cmd := exec.Command(server.Binary(t), benchArgs(s, "--face", "stomp", "--duration", "10m", "--warmup", "0s", "--progress")...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	published := `queued_requests_total{code="OK",face="stomp",operation="PutMessages"}`
	for range 500 {
		if n, _ := s.Metric(published); n > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(1200 * time.Millisecond) // a line of progress
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	r := parse(t, out.Bytes())
	if !r.Interrupted || r.Published.Messages == 0 || r.Verified.Lost == nil || *r.Verified.Lost != 0 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(said.String(), "measuring") {
		t.Errorf("progress %q", &said)
	}
	if left := queues(t, s); left != `{"items":[]}` {
		t.Errorf("queues are left: %s", left)
	}
}

// TestCommandWithoutServer has nobody to talk to.
func TestCommandWithoutServer(t *testing.T) {
	t.Parallel()
	text, err := exec.Command(server.Binary(t), "bench", "--rest", "127.0.0.1:1").CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 1 || !strings.Contains(string(text), "create queue") {
		t.Errorf("%v\n%s", err, text)
	}
}
