package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

// call sends a request on a connection of its own and is its status and body.
func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// hold sends the headers of a publish and keeps the server waiting for its
// body.
func hold(t *testing.T, s *server.Server, length int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.REST, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = fmt.Fprintf(c, "POST /20210201/queues/orders/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", length)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n') // the body is being waited for
	if err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	return c
}

// TestStopAnswersPolls: an open poll is answered, with nothing, and the
// process ends with 0 at once.
func TestStopAnswersPolls(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	answers := make(chan string, 10)
	for range cap(answers) {
		go func() {
			resp, err := http.Get(s.REST + "/20210201/queues/orders/messages?timeoutInSeconds=30")
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			answers <- fmt.Sprint(resp.StatusCode, " ", string(text), err)
		}()
	}
	waitFor(t, "ten waiters", func() bool {
		_, text := call(t, http.MethodGet, s.Admin+"/metrics", "")
		return strings.Contains(text, "\nqueued_waiters 10\n")
	})
	began := time.Now()
	if code := s.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for range cap(answers) {
		if got := <-answers; got != `200 {"messages":[]}<nil>` {
			t.Errorf("a poll was answered with %s", got)
		}
	}
	if !strings.Contains(s.Logs(), "cut=false") {
		t.Errorf("something was cut:\n%s", s.Logs())
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "addresses.json")); !os.IsNotExist(err) {
		t.Errorf("addresses.json: %v", err)
	}
}

// TestStopTellsSTOMP: a session is answered for what it sent, told that the
// server stops, and does not hold it up.
func TestStopTellsSTOMP(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c, err := net.Dial("tcp", s.STOMP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONNECT\naccept-version:1.2\nhost:x\n\n\x00SUBSCRIBE\nid:1\ndestination:orders/none\nack:client\n\n\x00SEND\ndestination:orders\nreceipt:sent\n\nhello\x00")
	r := bufio.NewReader(c)
	for line := ""; line != "receipt-id:sent\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	s.Signal(syscall.SIGTERM)
	text, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(text), "ERROR\n") || !strings.Contains(string(text), "code:ServiceUnavailable\n") {
		t.Errorf("the session ends with %q, %v", text, err)
	}
	c.Close()
	if code := s.Wait(10 * time.Second); code != 0 || !strings.Contains(s.Logs(), "cut=false") {
		t.Errorf("exit code %d\n%s", code, s.Logs())
	}
	s.Restart()
	if _, text := call(t, http.MethodGet, s.REST+"/20210201/queues/orders/messages", ""); !strings.Contains(text, "hello") {
		t.Errorf("the message is gone: %s", text)
	}
}

// TestStopFinishesWork: while a request is under way the server says that it
// is not ready and takes no connection, and the request is still answered.
func TestStopFinishesWork(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--shutdown-timeout", "1m")
	const body = `{"messages":[{"content":"last words"}]}`
	c := hold(t, s, len(body))
	s.Signal(syscall.SIGTERM)
	waitFor(t, "not ready", func() bool {
		status, _ := call(t, http.MethodGet, s.Admin+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	waitFor(t, "no more connections", func() bool {
		other, err := net.Dial("tcp", strings.TrimPrefix(s.REST, "http://"))
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	if status, _ := call(t, http.MethodGet, s.Admin+"/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz is %d", status)
	}
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(text), "HTTP/1.1 200 OK") {
		t.Errorf("the publish was answered with %q, %v", text, err)
	}
	if code := s.Wait(10 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.Restart()
	if _, text := call(t, http.MethodGet, s.REST+"/20210201/queues/orders/messages", ""); !strings.Contains(text, "last words") {
		t.Errorf("the message is gone: %s", text)
	}
}

// TestStopCutsWhatIsLeft: after shutdown-timeout what is left is cut, and that
// is a clean stop too.
func TestStopCutsWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--shutdown-timeout", "500ms")
	hold(t, s, 100)
	began := time.Now()
	s.Signal(syscall.SIGTERM)
	if code := s.Wait(5 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took < 400*time.Millisecond || took > 4*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if !strings.Contains(s.Logs(), "cut=true") {
		t.Errorf("nothing was cut:\n%s", s.Logs())
	}
}

// TestSecondSignal ends the process at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--shutdown-timeout", "1m")
	hold(t, s, 100)
	s.Signal(syscall.SIGTERM)
	waitFor(t, "not ready", func() bool {
		status, _ := call(t, http.MethodGet, s.Admin+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	s.Signal(syscall.SIGINT)
	if code := s.Wait(2 * time.Second); code == 0 {
		t.Error("exit code 0 after a second signal")
	}
	s.Restart() // nothing is in the way
}

// waitFor waits until done is true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
