package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestScripts runs the stories in scripts. Beside what testscript knows they
// have the commands below; `queued` is the binary built from these sources, and
// takes free ports if they say nothing else.
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(server.Binary(t))
	testscript.Run(t, testscript.Params{
		Dir:                 "scripts",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			for _, face := range []string{"REST", "GRPC", "STOMP", "ADMIN"} {
				env.Setenv("QUEUED_"+face+"_ADDR", "127.0.0.1:0")
			}
			env.Values[commandsKey] = map[int]*exec.Cmd{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":  fails,
			"ready":  ready,
			"signal": signal,
			"exited": exited,
			"http":   request,
			"cert":   certificate,
		},
	})
}

type key string

// commandsKey is where a script keeps the servers that have been ready, by pid.
const commandsKey key = "commands"

// fails CODE PROGRAM ARGS...: the program must end with just that exit code.
// Its output can be asked with stdout and stderr.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails code program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != want {
		ts.Fatalf("%s ended with %v, want exit code %d", args[1], err, want)
	}
}

// ready DIR: waits until the server on that data directory, started in the
// background, is ready. Then $rest, $grpc, $stomp and $admin are its addresses and
// $pid its process, for signal and exited.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready data-dir")
	}
	file := ts.MkAbs(filepath.Join(args[0], "addresses.json"))
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := look(ts, file)
		if err == nil {
			return
		}
		running := false
		for _, cmd := range ts.BackgroundCmds() {
			running = running || cmd.Process.Signal(syscall.Signal(0)) == nil
		}
		if !running || time.Now().After(deadline) {
			ts.Fatalf("the server is not ready: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func look(ts *testscript.TestScript, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var at struct {
		REST, GRPC, STOMP, Admin string
		PID                      int
	}
	if err := json.Unmarshal(text, &at); err != nil {
		return err
	}
	commands := ts.Value(commandsKey).(map[int]*exec.Cmd)
	for _, cmd := range ts.BackgroundCmds() {
		commands[cmd.Process.Pid] = cmd
	}
	if commands[at.PID] == nil {
		return fmt.Errorf("%s is of process %d, which was not started here", file, at.PID)
	}
	resp, err := http.Get("http://" + at.Admin + "/readyz")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	for name, value := range map[string]string{"rest": at.REST, "grpc": at.GRPC, "stomp": at.STOMP, "admin": at.Admin, "pid": strconv.Itoa(at.PID)} {
		ts.Setenv(name, value)
	}
	return nil
}

// current is the server that was ready last.
func current(ts *testscript.TestScript) *exec.Cmd {
	pid, err := strconv.Atoi(ts.Getenv("pid"))
	cmd := ts.Value(commandsKey).(map[int]*exec.Cmd)[pid]
	if err != nil || cmd == nil {
		ts.Fatalf("no server has been ready")
	}
	return cmd
}

// signal TERM|INT|KILL: sends it to the server that was ready last.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill}
	if neg || len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|INT|KILL")
	}
	ts.Check(current(ts).Process.Signal(signals[args[0]]))
}

// exited CODE: the server that was ready last, and has been waited for, ended
// with that exit code; -1 is by a signal.
func exited(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: exited code")
	}
	state := current(ts).ProcessState
	if state == nil {
		ts.Fatalf("wait for the server first")
	}
	if got := strconv.Itoa(state.ExitCode()); got != args[0] {
		ts.Fatalf("the server ended with %v, want exit code %s", state, args[0])
	}
}

// http [METHOD] ADDRESS/PATH [BODY]: sends a request, GET if no method is
// said, and gives status line and body to stdout. With ! no answer must come.
// $cacert is the file of a certificate to trust.
func request(ts *testscript.TestScript, neg bool, args []string) {
	method := http.MethodGet
	if len(args) > 1 && args[0] == strings.ToUpper(args[0]) {
		method, args = args[0], args[1:]
	}
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: http [method] address/path [body]")
	}
	url := args[0]
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	var body io.Reader
	if len(args) == 2 {
		body = strings.NewReader(args[1])
	}
	req, err := http.NewRequest(method, url, body)
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: 45 * time.Second, Transport: &http.Transport{}}
	if file := ts.Getenv("cacert"); file != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(ts.ReadFile(file)))
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if neg {
		if err == nil {
			ts.Fatalf("%s %s: %s, want no answer", method, url, resp.Status)
		}
		return
	}
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s %s\n%s\n", resp.Proto, resp.Status, bytes.TrimSpace(text))
}
