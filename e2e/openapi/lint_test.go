package openapi

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

// TestLint: the document breaks none of the rules in redocly.yaml.
func TestLint(t *testing.T) {
	t.Parallel()
	lint := filepath.Join(installed, "lint")
	cmd := exec.CommandContext(t.Context(), filepath.Join(lint, "node"), filepath.Join(lint, "node_modules", "@redocly", "cli", "bin", "cli.js"),
		"lint", "--config", "redocly.yaml", filepath.Join("..", "..", "api", "openapi", "openapi.json"))
	cmd.Env = append(server.Environ(), "HOME="+t.TempDir(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("redocly lint: %v (make setup installs it)\n%s", err, text)
	}
}
