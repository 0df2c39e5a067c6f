package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

// TestKilledBackup kills or interrupts queued backup and queued restore at any
// moment, and they end at once. A
// backup is whole or says that it is not; the server gives its checkpoint up;
// a restore is whole or is done again.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--limits-profile", "unthrottled")
	content := strings.Repeat("x", 100_000)
	for i := range 200 {
		if code, text := call(t, http.MethodPost, s.REST+"/20210201/queues/orders/messages", fmt.Sprintf(`{"messages":[{"content":"%d %s"}]}`, i, content)); code != http.StatusOK {
			t.Fatal(text)
		}
	}
	dir := t.TempDir()
	queued := func(atMost time.Duration, args ...string) error {
		cmd := exec.Command(server.Binary(t), args...)
		cmd.Env = server.Environ()
		if atMost == 0 {
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("queued %s: %w\n%s", strings.Join(args, " "), err, out)
			}
			return nil
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(atMost)
		_ = cmd.Process.Signal([]os.Signal{os.Kill, os.Interrupt}[rand.N(2)])
		return cmd.Wait()
	}
	exists := func(path ...string) bool {
		_, err := os.Stat(filepath.Join(path...))
		return err == nil
	}

	began := time.Now()
	whole := filepath.Join(dir, "whole")
	if err := queued(0, "backup", whole, "--data-dir", s.Dir); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	moment := func() time.Duration { return 1 + rand.N(took) }
	killed, unfinished := 0, 0
	for i := range 10 {
		target := filepath.Join(dir, fmt.Sprint("backup", i))
		if err := queued(moment(), "backup", target, "--data-dir", s.Dir); err != nil {
			killed++
		}
		err := queued(0, "verify", target)
		if exists(target, "backup.json") != (err == nil) {
			t.Errorf("a backup that was killed has a manifest, or not, and verify says: %v", err)
		}
		for deadline := time.Now().Add(10 * time.Second); exists(s.Dir, "checkpoint"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the checkpoint stays")
			}
		}
		if err := os.RemoveAll(target); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		to := filepath.Join(dir, fmt.Sprint("restored", i))
		if err := queued(moment(), "restore", whole, "--data-dir", to); err != nil {
			killed++
		}
		if !exists(to, "store") {
			unfinished++
			if exists(to, "store.restoring") {
				if err := queued(0, "serve", "--data-dir", to); err == nil || !strings.Contains(err.Error(), "holds a restore that was not finished") {
					t.Errorf("serve: %v", err)
				}
			}
			if err := queued(0, "restore", whole, "--data-dir", to); err != nil {
				t.Fatal(err)
			}
		}
		if err := queued(0, "verify", "--data-dir", to); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("a backup takes %v; %d commands were killed, %d restores were unfinished", took, killed, unfinished)
}
