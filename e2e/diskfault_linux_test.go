package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/queued-mq/queued/e2e/server"
)

// fileSystem is a folder with a small file system of its own.
func fileSystem(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("queued-e2e", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// resize changes how large it is, and whether it can be written.
func resize(t *testing.T, dir string, size int, flags uintptr) {
	t.Helper()
	if err := unix.Mount("queued-e2e", dir, "tmpfs", unix.MS_REMOUNT|flags, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
}

// refuses starts a server that must end by itself, not with 0, and say why in
// one sentence in which all of these words are.
func refuses(t *testing.T, dir string, words ...string) {
	t.Helper()
	args := []string{"serve", "--data-dir", dir, "--log-format", "text"}
	for _, face := range []string{"rest", "grpc", "stomp", "admin"} {
		args = append(args, "--"+face+"-addr", "127.0.0.1:0")
	}
	cmd := exec.Command(server.Binary(t), args...)
	cmd.Env = server.Environ()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		cmd.Process.Kill()
		<-ended
		t.Fatalf("it does not end:\n%s", out.String())
	}
	if code := cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("exit code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	for _, word := range words {
		if !strings.Contains(last, word) {
			t.Errorf("%q does not tell of %q; all it said:\n%s", last, word, out.String())
		}
	}
	if strings.Contains(out.String(), "goroutine ") {
		t.Errorf("it panicked:\n%s", out.String())
	}
	t.Logf("it said: %s", last)
}

// TestReadOnlyDirectory: a start on a directory that cannot be written is
// refused, a first one as well as a later one, and what is there stays.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	disk := fileSystem(t, size)
	dir := filepath.Join(disk, "data")
	s := server.StartWith(t, server.Options{Dir: dir, Args: []string{"--create-queue", "orders", "--disk-floor-publish-bytes", "1", "--disk-floor-lease-bytes", "1", "--ballast-bytes", "0", "--memtable-bytes", "1MiB"}})
	url := s.REST + "/20210201/queues/orders/messages"
	if status, text := call(t, http.MethodPost, url, `{"messages":[{"content":"kept"}]}`); status != 200 {
		t.Fatal(status, text)
	}
	s.Stop()
	resize(t, disk, size, unix.MS_RDONLY)
	refuses(t, dir, "read-only file system", dir)
	refuses(t, filepath.Join(disk, "new"), "read-only file system", filepath.Join(disk, "new"))
	resize(t, disk, size, 0)
	s.Restart()
	if _, text := call(t, http.MethodGet, s.REST+"/20210201/queues/orders/messages", ""); !strings.Contains(text, "kept") {
		t.Error(text)
	}
}

// TestNoRoomAtStart: a start that finds no room on the disk ends and says so,
// a first one as well as a later one; with room again everything is there.
func TestNoRoomAtStart(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	disk := fileSystem(t, size)
	dir := filepath.Join(disk, "data")
	s := server.StartWith(t, server.Options{Dir: dir, Args: []string{"--create-queue", "orders", "--disk-floor-publish-bytes", "1", "--disk-floor-lease-bytes", "1", "--ballast-bytes", "0"}})
	content := strings.Repeat("x", 100_000)
	const stored = 20
	for i := range stored {
		if status, text := call(t, http.MethodPost, s.REST+"/20210201/queues/orders/messages", fmt.Sprintf(`{"messages":[{"content":"%d %s"}]}`, i, content)); status != 200 {
			t.Fatal(status, text)
		}
	}
	s.Kill() // all of it is in the log, and a start writes it into a table
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	var fs unix.Statfs_t
	if err := unix.Statfs(disk, &fs); err != nil || fs.Bavail != 0 {
		t.Fatalf("%d blocks are free, %v", fs.Bavail, err)
	}
	refuses(t, dir, "no space left on device")
	refuses(t, filepath.Join(disk, "new"), "no space left on device")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if got := contents(t, s); len(got) != stored {
		t.Errorf("%d messages are there, %d were acknowledged", len(got), stored)
	}
}

// TestFlippedBit: one wrong bit in the middle of the log, and a start is
// refused with the name of the file; nothing is changed, and with the bit put
// right everything is there.
func TestFlippedBit(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	content := strings.Repeat("x", 100_000)
	const stored = 10
	for i := range stored {
		if status, text := call(t, http.MethodPost, s.REST+"/20210201/queues/orders/messages", fmt.Sprintf(`{"messages":[{"content":"%d %s"}]}`, i, content)); status != 200 {
			t.Fatal(status, text)
		}
	}
	s.Kill()
	logs, err := filepath.Glob(filepath.Join(s.Dir, "store", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	log := logs[len(logs)-1]
	flip := func() {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 0x10
		if err := os.WriteFile(log, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip()
	refuses(t, s.Dir, log, "is damaged", "nothing was changed")
	flip()
	s.Restart()
	if got := contents(t, s); len(got) != stored {
		t.Errorf("%d messages are there, %d were acknowledged", len(got), stored)
	}
}

// contents takes out all messages and gives the first words of their contents.
func contents(t *testing.T, s *server.Server) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for {
		_, text := call(t, http.MethodGet, s.REST+"/20210201/queues/orders/messages?limit=20&visibilityInSeconds=600&timeoutInSeconds=0", "")
		var answer struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err, text)
		}
		if len(answer.Messages) == 0 {
			return got
		}
		for _, m := range answer.Messages {
			number, _, _ := strings.Cut(m.Content, " ")
			got[number] = true
		}
	}
}

// inject has system calls on some files of the server fail with EIO from here
// on, and returns what tells how many did.
func inject(t *testing.T, s *server.Server, calls string, files []string) func() int {
	t.Helper()
	seen := filepath.Join(t.TempDir(), "calls")
	args := []string{"-f", "-q", "-o", seen, "-e", "trace=" + calls, "-e", "inject=" + calls + ":error=EIO"}
	for _, f := range files {
		args = append(args, "-P", f)
	}
	cmd := exec.Command("strace", append(args, "-p", strconv.Itoa(s.PID()))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("system calls are made to fail with strace, which make setup installs: %v", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	for {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.PID()))
		free := len(tasks)
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err != nil || !strings.Contains(string(text), "TracerPid:\t0\n") {
				free--
			}
		}
		if free == 0 {
			break
		}
		select {
		case <-ended:
			t.Skipf("strace may not trace:\n%s", out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() int {
		<-ended // its process has
		text, err := os.ReadFile(seen)
		if err != nil {
			t.Error(err)
		}
		return strings.Count(string(text), "(INJECTED)")
	}
}

// TestEIO: a write to the log, a sync of it, or a read of a table fails with
// EIO. The process says so and in which folder, and ends, not with 0; nothing
// that was acknowledged is lost.
func TestEIO(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatalf("system calls are made to fail with strace, which make setup installs: %v", err)
	}
	for _, tt := range []struct{ name, calls, pattern string }{
		{"write", "write,pwrite64,writev,pwritev", "*.log"},
		{"sync", "fsync,fdatasync,sync_file_range", "*.log"},
		{"read", "read,pread64", "*.sst"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := server.Start(t, "--create-queue", "orders", "--block-cache-bytes", "1MiB", "--body-cache-bytes", "0")
			content := strings.Repeat("x", 100_000)
			url := s.REST + "/20210201/queues/orders/messages"
			publish := func(i int) error {
				resp, err := http.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"messages":[{"content":"%d %s"}]}`, i, content)))
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("publish %d: %s", i, resp.Status)
				}
				return nil
			}
			const stored = 40
			for i := range stored {
				if err := publish(i); err != nil {
					t.Fatal(err)
				}
			}
			if tt.name == "read" {
				s.Stop() // the next start has it all in tables
				s.Restart()
				url = s.REST + "/20210201/queues/orders/messages"
			}
			files, err := filepath.Glob(filepath.Join(s.Dir, "store", tt.pattern))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			hits := inject(t, s, tt.calls, files)
			if tt.name == "read" {
				resp, err := http.Get(url + "?limit=20&visibilityInSeconds=0")
				if err == nil {
					resp.Body.Close()
					t.Errorf("a get is answered %s", resp.Status)
				}
			} else if publish(stored) == nil {
				t.Error("a publish is answered")
			}
			if code := s.Wait(10 * time.Second); code <= 0 {
				t.Errorf("exit code %d", code)
			}
			if n := hits(); n == 0 {
				t.Error("no system call failed")
			}
			logs := s.Logs()
			if !strings.Contains(logs, "input/output error") || !strings.Contains(logs, filepath.Join(s.Dir, "store")) || strings.Contains(logs, "goroutine ") {
				t.Errorf("the log does not say what is wrong:\n%s", logs)
			}
			s.Restart()
			got := contents(t, s)
			for i := range stored {
				if !got[fmt.Sprint(i)] {
					t.Errorf("message %d was acknowledged and is gone", i)
				}
			}
		})
	}
}
