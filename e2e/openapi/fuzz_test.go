package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// installed is the folder that scripts/setup.sh installs into.
var installed = filepath.Join("..", "..", ".build", "openapi")

// budget is the time for a part of the tests: so many seconds, or as many
// eightieths of the minutes that `make schemathesis` asks for.
func budget(t *testing.T, seconds int) int {
	t.Helper()
	minutes := os.Getenv("MINUTES")
	if minutes == "" {
		return seconds
	}
	n, err := strconv.Atoi(minutes)
	if err != nil || n < 1 {
		t.Fatalf("MINUTES is %q, not a number of minutes", minutes)
	}
	return n * 60 * seconds / 80
}

// TestOperations fuzzes each operation by itself, with requests that conform
// and requests that do not.
func TestOperations(t *testing.T) {
	s := server.Start(t, "--limits-profile", "unthrottled")
	r := fuzz(t, s, 25, "--seed", "1", "--phases", "examples,coverage,fuzzing")
	if r.Operations.Total != 24 || r.Operations.Tested != 24 {
		t.Errorf("%d operations of %d were tested, want all 24", r.Operations.Tested, r.Operations.Total)
	}
}

// TestWays follows the links of the document from operation to operation, with
// requests that conform.
func TestWays(t *testing.T) {
	s := server.Start(t, "--limits-profile", "unthrottled")
	reach(t, s, 25, []string{"CreateQueue", "GetQueue", "UpdateQueue", "DeleteQueue", "ChangeQueueCompartment", "PurgeQueue",
		"GetWorkRequest", "ListWorkRequestLogs", "ListWorkRequestErrors"})
}

// TestMessages follows the links between the operations on messages alone, so
// that the ways are long: publish, receive, extend, delete.
func TestMessages(t *testing.T) {
	s := server.Start(t, "--limits-profile", "unthrottled")
	var args []string
	operations := []string{"CreateQueue", "PutMessages", "GetMessages", "UpdateMessage", "DeleteMessage", "UpdateMessages", "DeleteMessages"}
	for _, operation := range operations {
		args = append(args, "--include-operation-id", operation)
	}
	reach(t, s, 30, operations, args...)
	for _, event := range []string{"published", "delivered", "deleted"} {
		if n := total(t, s, "queued_messages_total", `event="`+event+`"`); n == 0 {
			t.Errorf("no message was %s: the fuzzer has not reached what it shall prove", event)
		} else {
			t.Logf("%.0f messages were %s", n, event)
		}
	}
}

// reach follows links until each of the operations has succeeded: once, or with
// other seeds again if the machine had so much else to do that one run was too
// short. The metrics of the server tell.
func reach(t *testing.T, s *server.Server, seconds int, operations []string, args ...string) {
	t.Helper()
	const most = 4
	for seed := 1; ; seed++ {
		fuzz(t, s, seconds, append([]string{"--seed", strconv.Itoa(seed), "--phases", "stateful", "--mode", "positive"}, args...)...)
		var said, missed []string
		for _, operation := range operations {
			n := total(t, s, "queued_requests_total", `code="OK",face="rest",operation="`+operation+`"`)
			said = append(said, fmt.Sprintf("%s %.0f", operation, n))
			if n == 0 {
				missed = append(missed, operation)
			}
		}
		t.Logf("succeeded: %s", strings.Join(said, ", "))
		if len(missed) == 0 || t.Failed() {
			return
		}
		if seed == most {
			t.Fatalf("no %s succeeded: the fuzzer has not reached what it shall prove", strings.Join(missed, ", "))
		}
	}
}

// total is the sum of the samples of a metric with these labels.
func total(t *testing.T, s *server.Server, metric, labels string) (sum float64) {
	t.Helper()
	for _, line := range strings.Split(s.Metrics(), "\n") {
		if !strings.HasPrefix(line, metric+"{") || !strings.Contains(line, labels) {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += n
	}
	return sum
}

// report is what the fuzzer says of a run, as far as it is looked at.
type report struct {
	ExitCode   int  `json:"exit_code"`
	Complete   bool `json:"complete"`
	Operations struct{ Total, Tested int }
	TestCases  struct {
		Generated     int
		WithoutChecks int `json:"without_checks"`
	} `json:"test_cases"`
	Failures, Errors []any
}

// fuzz runs the fuzzer against the server for about so many seconds, see
// budget, and fails the test if it finds anything.
func fuzz(t *testing.T, s *server.Server, seconds int, args ...string) report {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	seconds = budget(t, seconds)
	out := filepath.Join(dir, "report.json")
	all := append([]string{"--config-file", file("schemathesis.toml"), "run", s.REST + "/openapi.json",
		"--no-color", "--max-time", strconv.Itoa(seconds), "--request-timeout", "20",
		"--generation-database", "none", "--report", "json", "--report-json-path", out}, args...)
	cmd := exec.CommandContext(t.Context(), file(filepath.Join(installed, "python", "bin", "st")), all...)
	cmd.Dir = dir // where it may leave what it likes
	cmd.Env = append(server.Environ(), "HOME="+dir, "SCHEMATHESIS_HOOKS="+file("hooks.py"), "PYTHONDONTWRITEBYTECODE=1",
		// Whatever is not this machine would meet a closed port.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1")
	began := time.Now()
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if err != nil {
		t.Errorf("schemathesis: %v (make setup installs it)\n%s", err, text.String())
	}
	var r report
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 0 || !r.Complete || len(r.Failures)+len(r.Errors) > 0 || r.TestCases.Generated == 0 || r.TestCases.WithoutChecks > 0 {
		t.Errorf("the run was not good and whole: %+v", r)
	}
	t.Logf("%d requests in %v", r.TestCases.Generated, time.Since(began).Round(time.Second))
	return r
}
