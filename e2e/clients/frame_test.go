package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

// suite is a table: clients of one kind, which are its columns from left to
// right, and its rows, which are what each of them must have checks of.
type suite struct {
	name    string // in the marks around the table
	topics  []string
	clients []client
}

// operations are the rows of OCI's clients: those of the control plane, those
// of the data plane, and what concerns several of them.
var operations = []string{
	"CreateQueue", "GetQueue", "ListQueues", "UpdateQueue", "DeleteQueue", "ChangeQueueCompartment", "PurgeQueue",
	"GetWorkRequest", "ListWorkRequests", "ListWorkRequestErrors", "ListWorkRequestLogs",
	"CreateConsumerGroup", "GetConsumerGroup", "ListConsumerGroups", "UpdateConsumerGroup", "DeleteConsumerGroup",
	"PutMessages", "GetMessages", "UpdateMessage", "DeleteMessage", "UpdateMessages", "DeleteMessages",
	"GetStats", "ListChannels",
	"errors", "paging", "dlq", "channels", "groups",
}

// client is a program that checks one client.
type client struct {
	name    string   // its column, and its section of the page
	dir     string   // the folder it runs in, which holds what its section shows
	command []string // program and arguments; a program with a slash is relative to this package
	env     []string // beside what every program finds

	flags, settings []string // of its server; settings are in the environment
}

// runTimeout is how long a program may take: all of them share two cores with
// the other tests.
const runTimeout = 8 * time.Minute

// run runs the program beside a server of its own. It finds in its environment
//
//	QUEUED        the server, http://host:port
//	STOMP         its listener for STOMP, host:port
//	RESTART       a GET of it ends the server as kill -9 does, starts it again on the same ports, and answers when it is ready
//	HOME, TMPDIR  empty folders of its own
//
// and of the test's environment only PATH and LANG. A client that turns to
// anything but this machine meets a proxy that fails the test.
func (c client) run(t *testing.T, r *report) {
	s := server.StartWith(t, server.Options{Args: append(ports(), c.flags...), Env: c.settings})
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	program := c.command[0]
	if strings.Contains(program, "/") {
		var err error
		if program, err = filepath.Abs(program); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(program); err != nil {
			t.Fatalf("%v; make setup installs it", err)
		}
	}
	trap := beyond(t)
	cmd := exec.CommandContext(ctx, program, c.command[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "QUEUED=" + s.REST,
		"STOMP=" + s.STOMP, "RESTART=" + restarter(t, s),
		"http_proxy=" + trap, "https_proxy=" + trap, "HTTP_PROXY=" + trap, "HTTPS_PROXY=" + trap,
		"no_proxy=127.0.0.1,localhost", "NO_PROXY=127.0.0.1,localhost",
	}, c.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second // for children that hold its output
	begin := time.Now()
	err := cmd.Run()
	t.Logf("%s: %.0f s\n%s", c.name, time.Since(begin).Seconds(), out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if err := r.read(out.String()); err != nil {
		t.Fatal(err)
	}
	for _, op := range r.topics {
		if r.checks[op] == 0 && r.none[op] == "" {
			t.Errorf("%s: no check", op)
		}
	}
	r.whole = !t.Failed()
}

// report is what a program said.
type report struct {
	topics []string
	checks map[string]int    // by topic
	none   map[string]string // why the client has no way to do it
	whole  bool              // the program ran and left nothing out
}

func newReport(topics []string) *report {
	return &report{topics: topics, checks: map[string]int{}, none: map[string]string{}}
}

// read reads the lines of a program.
func (r *report) read(text string) error {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		if len(f) != 3 || f[2] == "" || !slices.Contains(r.topics, f[1]) {
			return fmt.Errorf("no check: %q", lines.Text())
		}
		switch f[0] {
		case "ok":
			r.checks[f[1]]++
		case "none":
			r.none[f[1]] = f[2]
		default:
			return fmt.Errorf("no check: %q", lines.Text())
		}
	}
	for op := range r.none {
		if r.checks[op] > 0 {
			return fmt.Errorf("%s: both checked and declared to be impossible", op)
		}
	}
	return nil
}

// beyond is the address of a proxy that fails the test when it is asked.
func beyond(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			line, _ := bufio.NewReader(conn).ReadString('\n')
			conn.Close()
			t.Errorf("the client turned elsewhere: %q", line)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// ports are flags for two ports that a server may have again after a restart.
func ports() []string { return []string{"--rest-addr", freeAddress(), "--stomp-addr", freeAddress()} }

// freeAddress is host:port where nobody listens; none that the system hands
// out, so that nobody gets it meanwhile.
func freeAddress() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}

// restarter is the address at which a program has the server killed and started
// again.
func restarter(t *testing.T, s *server.Server) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Kill()
		s.Restart()
	}))
	t.Cleanup(h.Close)
	return h.URL
}
