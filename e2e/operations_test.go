package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

// TestOperations runs the blocks marked "sh" of docs/operations.md as printed,
// but for the folders, while a server runs; then the restore that stands there
// as a console session, without systemctl.
func TestOperations(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatal("the commands of the page need sh")
	}
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(kind string) (out []string) {
		for _, part := range strings.Split(string(text), "\n```"+kind+"\n")[1:] {
			block, _, ok := strings.Cut(part, "\n```\n")
			if !ok {
				t.Fatal("a block has no end")
			}
			out = append(out, block)
		}
		return out
	}
	s := server.Start(t, "--create-queue", "orders")
	_, put := call(t, "POST", s.REST+"/20210201/queues/orders/messages", `{"messages":[{"content":"kept"}]}`)
	if !strings.Contains(put, `"id":1,`) {
		t.Fatal(put)
	}
	elsewhere := t.TempDir()
	run := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("/var/lib/queued", s.Dir, "/backup/", elsewhere+"/backup/", "/tmp/drill", elsewhere+"/drill").Replace(script)
		cmd := exec.Command("sh", "-eux")
		cmd.Stdin = strings.NewReader(script)
		cmd.Env = append(server.Environ(), fmt.Sprintf("PATH=%s%c%s", filepath.Dir(server.Binary(t)), os.PathListSeparator, os.Getenv("PATH")))
		var trace strings.Builder
		cmd.Stderr = &trace
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, trace.String())
		}
		return string(out)
	}
	rest := run(strings.Join(blocks("sh"), "\n"))
	for _, want := range []string{
		"1 queue, 1 message, recounted",
		"everything is in order",
		"restored ", "1 queue, 1 message",
		"everything is in order",
		`"differences": []`,
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%s is not where it should be in the output:\n%s", want, rest)
		}
		rest = after
	}

	var commands []string
	for line := range strings.Lines(strings.Join(blocks("console"), "\n")) {
		if !strings.HasPrefix(line, "systemctl ") {
			commands = append(commands, line)
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the session is %q", commands)
	}
	if code := s.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if out := run(blocks("sh")[0] + "\n" + strings.Join(commands, "")); !strings.HasPrefix(out, "restored ") {
		t.Fatal(out)
	}
	s.Restart()
	if _, got := call(t, "GET", s.REST+"/20210201/queues/orders/messages", ""); !strings.Contains(got, `"content":"kept"`) {
		t.Fatal(got)
	}
}
