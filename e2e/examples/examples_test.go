// Package examples runs the programs that the README and docs/client.md show.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

	source, err := os.ReadFile("oci-go/main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	main := regexp.MustCompile(`(?ms)^func main\(\) \{.*?^\}$`).Find(source)
	if main == nil || !strings.Contains(string(shown), string(main)) {
		t.Errorf("the README does not show\n%s", main)
	}
}

// TestGoClient runs the program that uses the Go client; a test of package
// client sees that docs/client.md shows it.
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
}
