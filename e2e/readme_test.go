package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

// TestReadme runs the blocks marked "sh" of the README as printed, but for the
// port: what a newcomer types works, and shows what the text says.
func TestReadme(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the commands of the README need %s", tool)
		}
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if !ok {
			t.Fatal("a block has no end")
		}
		script.WriteString(block + "\necho\n")
	}
	s := server.Start(t)
	cmd := exec.Command("sh", "-euxc", strings.ReplaceAll(script.String(), "http://127.0.0.1:8080", s.REST))
	cmd.Env = server.Environ()
	var trace strings.Builder
	cmd.Stderr = &trace
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, trace.String())
	}
	rest := string(out)
	for _, want := range []string{
		`"displayName":"orders","lifecycleState":"ACTIVE"}`,
		`{"messages":[{"id":1,`,
		`"content":"first"`,
		`200 OK`, `"visibleAfter":`,
		`204 No Content`,
		`"content":"second"`,
		`{"queue":{"visibleMessages":0,"inFlightMessages":0,`, `"dlq":{"visibleMessages":1,`,
		`"content":"second"`, `"deadLetter":`,
		`"displayName":"events","lifecycleState":"ACTIVE"}`,
		`"content":"big"`,
		`{"queue":{"visibleMessages":2,`,
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%s is not where it should be in the output:\n%s\n%s", want, out, trace.String())
		}
		rest = after
	}
}
