package server_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func TestServer(t *testing.T) {
	s := server.Start(t, "--create-queue", "orders")
	first := s.PID()
	if !strings.Contains(s.Logs(), "queued is ready: ") {
		t.Errorf("no start line:\n%s", s.Logs())
	}
	s.Kill()
	if s.Running() {
		t.Fatal("running after a kill")
	}
	if code := s.Wait(time.Second); code != -1 {
		t.Errorf("exit code %d after a kill, want -1", code)
	}
	s.Restart()
	if s.PID() == first {
		t.Error("the same process after a restart")
	}
	resp, err := http.Get(s.REST + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz is %s", resp.Status)
	}
	if !strings.Contains(s.Logs(), "(opened, 1 queue)") {
		t.Errorf("the queue is gone:\n%s", s.Logs())
	}
	if code := s.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, s.Logs())
	}
}
