// Package python drives the STOMP face with stomp.py as Debian packages it, a
// client that is not ours.
package python

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// python is one that has stomp.py: that of the system, or else the one that is
// found first.
func python(t *testing.T) string {
	t.Helper()
	var said []string
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		text, err := exec.Command(path, "-c", "import stomp; stomp.StompConnection12").CombinedOutput()
		if err == nil {
			return path
		}
		said = append(said, path+": "+err.Error()+" "+string(text))
	}
	t.Fatalf("stomp.py is missing; install the package python3-stomp (make setup does)\n%s", strings.Join(said, "\n"))
	return ""
}

// TestStompPy: sessions of 1.0, 1.1 and 1.2 as stomp.py holds them. The script
// prints what it checked.
func TestStompPy(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "letters,visibility=2", "--limits-profile", "unthrottled")
	host, port, err := net.SplitHostPort(s.STOMP)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python(t), "stomp_py.py", host, port, "letters")
	cmd.Env = append(os.Environ(), "STOMP_SKIP_HOSTNAME_SCAN=1") // it would ask for names of the machine
	text, err := cmd.CombinedOutput()
	t.Logf("it said:\n%s", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.0", "1.1", "1.2"} {
		if n := strings.Count("\n"+string(text), "\n"+want+" "); n < 9 {
			t.Errorf("%d checks of %s", n, want)
		}
	}
	if n := rest.Dial(t, s.REST).Stats(t, "letters"); n != (rest.Stats{}) {
		t.Errorf("it left %+v", n)
	}
}
