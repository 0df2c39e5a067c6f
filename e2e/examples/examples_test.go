// Package examples runs the programs that the README and docs/client.md show.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestOCIGo runs the program that uses the official SDK, and the README shows
// its main function.
func TestOCIGo(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	program := filepath.Join(t.TempDir(), "oci-go")
	if text, err := exec.Command("go", "build", "-o", program, "./oci-go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := exec.Command(program)
	cmd.Env = append(server.Environ(), "QUEUED="+s.REST)
	text, err := cmd.CombinedOutput()
	if err != nil || string(text) != "hello delivery 1\n" {
		t.Errorf("it said %q, %v", text, err)
	}
	if n := rest.Dial(t, s.REST).Stats(t, "greetings"); n != (rest.Stats{}) {
		t.Errorf("it left %+v", n)
	}

	shows(t, "oci-go/main.go")
}

// shows checks that the README shows the main function of a program.
func shows(t *testing.T, program string) {
	t.Helper()
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, main, found := strings.Cut(string(source), " main()")
	main, _, _ = strings.Cut(main, "\n}\n")        // Go
	main, _, _ = strings.Cut(main, "\n\n\nmain()") // Python
	if !found || !strings.Contains(string(shown), " main()"+main+"\n") {
		t.Errorf("the README does not show%s", main)
	}
}

// TestGoClient runs the program that uses the Go client, and the README shows
// it; a test of package client sees that docs/client.md does too.
func TestGoClient(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	program := filepath.Join(t.TempDir(), "go-client")
	if text, err := exec.Command("go", "build", "-o", program, "./go-client").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := exec.Command(program)
	cmd.Env = append(server.Environ(), "QUEUED_GRPC="+s.GRPC)
	text, err := cmd.CombinedOutput()
	if err != nil || string(text) != "hello delivery 1\n" {
		t.Errorf("it said %q, %v", text, err)
	}
	if n := rest.Dial(t, s.REST).Stats(t, "greetings"); n != (rest.Stats{}) {
		t.Errorf("it left %+v", n)
	}
	shows(t, "go-client/main.go")
}

// TestStompPy runs the program that uses stomp.py, and the README shows it.
func TestStompPy(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	cmd := exec.Command(stompPython(t), "hello.py")
	cmd.Dir = "stomp-py" // not at the top: there python would take our stomp/ for its module
	cmd.Env = append(server.Environ(), "QUEUED_STOMP="+s.STOMP)
	text, err := cmd.CombinedOutput()
	if err != nil || string(text) != "hello over STOMP delivery 1\n" {
		t.Errorf("it said %q, %v", text, err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n := rest.Dial(t, s.REST).Stats(t, "orders")
		if n == (rest.Stats{}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it left %+v", n)
		}
	}
	shows(t, "stomp-py/hello.py")
}

// stompPython is a python that has stomp.py; make setup sees to it.
func stompPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		cmd := exec.Command(python, "-c", "import stomp; stomp.StompConnection12")
		cmd.Dir = t.TempDir()
		if cmd.Run() == nil {
			return python
		}
	}
	t.Fatal("no python has stomp.py; run make setup")
	return ""
}
