package client_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocs checks that the code in docs/client.md is code that runs: a part of
// an example.
func TestDocs(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run := read("example_test.go") + read("../e2e/examples/go-client/main.go")
	blocks := strings.Split(read("../docs/client.md"), "\n```go\n")[1:]
	for _, part := range blocks {
		code, _, _ := strings.Cut(part, "```\n")
		if !strings.Contains(run, code) {
			t.Errorf("no example has\n%s", code)
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%d blocks", len(blocks))
	}
}
