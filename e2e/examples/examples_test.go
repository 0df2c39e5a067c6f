// Package examples runs what the README shows, as it is printed there.
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

const readme = "../../README.md"

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
	shown, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	main := regexp.MustCompile(`(?ms)^func main\(\) \{.*?^\}$`).Find(source)
	if main == nil || !strings.Contains(string(shown), string(main)) {
		t.Errorf("the README does not show\n%s", main)
	}
}

// TestREADME runs the shell lines of the README in their order, on another
// port, and each request must be served.
func TestREADME(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the README's lines need %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	s := server.Start(t)
	script := "set -e\n"
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(text, -1) {
		script += string(block[1])
	}
	if n := strings.Count(script, "curl "); n < 6 {
		t.Fatalf("the README has %d lines of curl", n)
	}
	script = strings.ReplaceAll(script, "http://127.0.0.1:8080", s.REST)
	// As printed, but silent about progress and failing at an error.
	script = strings.ReplaceAll(script, "curl ", "curl --silent --show-error --fail-with-body ")
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = server.Environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	for _, want := range []string{
		`"lifecycleState":"ACTIVE"`, `"content":"first"`, "204 No Content", `"content":"second"`,
		`"dlq":{"visibleMessages":1`, `"deadLetter":{"reason":`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s does not come", want)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", script, out)
	}
}
