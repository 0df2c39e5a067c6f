package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// h2c is a client that speaks HTTP/2 without TLS, all on one connection.
func h2c(t *testing.T) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: rest.Timeout}
}

// over2 sends one request over HTTP/2.
func over2(ctx context.Context, client *http.Client, method, url, body string) (*rest.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		return nil, fmt.Errorf("the answer came over %s", resp.Proto)
	}
	text, err := io.ReadAll(resp.Body)
	return &rest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: text}, err
}

// TestHTTP2 is the life of a message over HTTP/2 with prior knowledge, with
// many polls on the one connection.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	client := h2c(t)
	do := func(status int, method, path, body string) *rest.Answer {
		t.Helper()
		a, err := over2(t.Context(), client, method, s.REST+rest.Base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		proper(t, method+" "+path, a)
		if a.Status != status {
			t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
		}
		return a
	}
	do(404, "GET", "/nothing", "")
	do(405, "PATCH", "/queues", "")
	do(400, "POST", "/queues/orders/messages", "{")
	do(413, "POST", "/queues/orders/messages", strings.Repeat(" ", 4<<20))

	var wg sync.WaitGroup
	got := make(chan rest.Message, 100)
	for range 100 {
		wg.Go(func() {
			a, err := over2(t.Context(), client, "GET", s.REST+rest.Base+"/queues/orders/messages?limit=1&timeoutInSeconds=20", "")
			if err != nil || a.Status != 200 {
				t.Errorf("%+v %v", a, err)
				return
			}
			for _, m := range rest.Messages(t, a) {
				got <- m
			}
		})
	}
	eventually(t, 5*time.Second, func() error { return waiting(t, s, 100) })
	for i := range 5 {
		entries := make([]string, 20)
		for j := range entries {
			entries[j] = fmt.Sprintf(`{"content":"%d/%d"}`, i, j)
		}
		do(200, "POST", "/queues/orders/messages", `{"messages":[`+strings.Join(entries, ",")+`]}`)
	}
	wg.Wait()
	close(got)
	seen := map[string]bool{}
	for m := range got {
		seen[m.Content] = true
		do(200, "PUT", "/queues/orders/messages/"+m.Receipt, `{"visibilityInSeconds":60}`)
		do(204, "DELETE", "/queues/orders/messages/"+m.Receipt, "")
	}
	if len(seen) != 100 {
		t.Errorf("100 polls got %d messages of 100", len(seen))
	}
	if err := holds(t, rest.Dial(t, s.REST), "orders", rest.Stats{}); err != nil {
		t.Error(err)
	}
}

// waiting is nil when so many polls are open.
func waiting(t *testing.T, s *server.Server, want float64) error {
	t.Helper()
	n, ok := s.Metric("queued_waiters")
	if !ok {
		t.Fatal("there is no queued_waiters")
	}
	if n != want {
		return fmt.Errorf("%v polls wait, want %v", n, want)
	}
	return nil
}

const pollQuery = "/queues/bay-doors/messages?timeoutInSeconds=20&visibilityInSeconds=600"

// The test binary is a process that polls, and nothing else, when this names a
// server.
const pollVariable = "E2E_WIRE_POLL"

func init() {
	addr := os.Getenv(pollVariable)
	if addr == "" {
		return
	}
	c, err := rest.Open(addr)
	if err == nil {
		err = c.Send("GET", pollQuery, "")
	}
	if err == nil {
		fmt.Println("polling")
		_, err = c.Receive("GET")
	}
	fmt.Println("ended", err)
	os.Exit(0)
}

// TestGonePolls is field case FC-05 over REST: a poll whose client has gone
// takes nothing, however it went.
func TestGonePolls(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]poll{
		"process killed":      pollProcess,
		"connection closed":   pollConns(1, func(c *rest.Conn) { c.Close() }),
		"connection reset":    pollConns(1, func(c *rest.Conn) { c.Reset() }),
		"TLS":                 pollConns(1, func(c *rest.Conn) { c.Close() }),
		"TLS cut":             pollConns(1, func(c *rest.Conn) { _ = rest.Close(c.Conn.(*tls.Conn).NetConn()) }),
		"sending half closed": pollConns(1, func(c *rest.Conn) { _ = c.Conn.(*net.TCPConn).CloseWrite() }),
		"stream reset":        pollStreams(1),
		"200 connections":     pollConns(200, func(c *rest.Conn) { c.Reset() }),
		"200 streams":         pollStreams(200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--create-queue", "bay-doors,visibility=600", "--limits-profile", "unthrottled"}
			if strings.HasPrefix(name, "TLS") {
				args = append(args, certificate(t)...)
			}
			s := server.Start(t, args...)
			c, second := dial(t, s), dial(t, s)
			for round := range 6 {
				begin(t, s)()
				// At once, when the server may not have seen yet that the client
				// is gone, and when it has. Then nothing is in flight for a moment.
				calm := round%2 == 1
				if calm {
					eventually(t, 2*time.Second, func() error { return waiting(t, s, 0) })
				}
				content := fmt.Sprintf("door %d open", round)
				c.Put(t, "bay-doors", content)
				if n := c.Stats(t, "bay-doors").Queue.InFlight; n != 0 && calm {
					t.Errorf("%d messages are in flight, and nobody is there", n)
				}
				began := time.Now()
				m := second.Get(t, "bay-doors", "timeoutInSeconds=5")
				if took := time.Since(began); took > time.Second {
					t.Errorf("round %d: the message took %v", round, took)
				}
				if len(m) != 1 || m[0].Content != content || m[0].DeliveryCount != 1 {
					t.Fatalf("round %d: got %+v; %+v is there", round, m, c.Stats(t, "bay-doors"))
				}
				second.Delete(t, 204, "bay-doors", m[0].Receipt)
				eventually(t, 2*time.Second, func() error { return waiting(t, s, 0) })
			}
		})
	}
}

// dial connects to a server, by TLS if that is what it serves.
func dial(t *testing.T, s *server.Server) *rest.Conn {
	t.Helper()
	addr, secure := strings.CutPrefix(s.REST, "https://")
	if !secure {
		return rest.Dial(t, s.REST)
	}
	// The certificate was made a moment ago for this server and nobody else.
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return rest.Over(c, addr)
}

// certificate makes one for a server, and the flags that name it.
func certificate(t *testing.T) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for flag, block := range map[string]*pem.Block{
		"tls-cert": {Type: "CERTIFICATE", Bytes: der}, "tls-key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		file := filepath.Join(t.TempDir(), flag+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+flag, file)
	}
	return flags
}

// poll begins polls and returns, when the server knows of them, what makes
// their clients go away.
type poll func(t *testing.T, s *server.Server) (end func())

// pollProcess polls from a process of its own, which is then killed.
func pollProcess(t *testing.T, s *server.Server) func() {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), pollVariable+"="+s.REST)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("polling\n"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "polling\n" {
		t.Errorf("%q %v", line, err)
	}
	eventually(t, 5*time.Second, func() error { return waiting(t, s, 1) })
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}
}

// pollConns polls on n connections, which end as end does it.
func pollConns(n int, end func(*rest.Conn)) poll {
	return func(t *testing.T, s *server.Server) func() {
		t.Helper()
		conns := make([]*rest.Conn, n)
		for i := range conns {
			conns[i] = dial(t, s)
			if err := conns[i].Send("GET", pollQuery, ""); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 10*time.Second, func() error { return waiting(t, s, float64(n)) })
		return func() {
			for _, c := range conns {
				end(c)
			}
		}
	}
}

// pollStreams polls on n streams of one HTTP/2 connection, frame by frame. They
// end by a reset of the streams alone, and the connection lives on.
func pollStreams(n int) poll {
	return func(t *testing.T, s *server.Server) func() {
		t.Helper()
		c := rest.Dial(t, s.REST)
		const headers, reset, settings, ping = 1, 3, 4, 6
		var out []byte
		frame := func(kind, flags byte, stream int, payload string) {
			out = append(out, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
			out = binary.BigEndian.AppendUint32(out, uint32(stream))
			out = append(out, payload...)
		}
		flush := func() {
			if _, err := c.Write(out); err != nil {
				t.Error(err)
			}
			out = nil
		}
		// Headers as they are, none of them from a table, none compressed.
		get := ""
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", rest.Base + pollQuery}} {
			get += "\x00" + string(rune(len(h[0]))) + h[0] + string(rune(len(h[1]))) + h[1]
		}
		out = append(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"...)
		frame(settings, 0, 0, "")
		for i := range n {
			frame(headers, 0x5, 1+2*i, get) // end of stream, end of headers
		}
		flush()
		eventually(t, 10*time.Second, func() error { return waiting(t, s, float64(n)) })
		return func() {
			for i := range n {
				frame(reset, 0, 1+2*i, "\x00\x00\x00\x08") // CANCEL
			}
			flush()
			t.Cleanup(func() {
				// The connection is of use still.
				frame(ping, 0, 0, "how fare")
				flush()
				for {
					head := make([]byte, 9)
					if _, err := io.ReadFull(c, head); err != nil {
						t.Errorf("the connection is of no use any more: %v", err)
						return
					}
					if _, err := io.CopyN(io.Discard, c, int64(head[1])<<8|int64(head[2])); err != nil {
						t.Error(err)
					}
					if head[3] == ping {
						return
					}
				}
			})
		}
	}
}

// TestDeletedQueue: deleting a queue ends its polls with 404, within 2 s.
func TestDeletedQueue(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	polls := make([]*rest.Conn, 20)
	for i := range polls {
		polls[i] = rest.Dial(t, s.REST)
		query := "timeoutInSeconds=30"
		if i%3 == 1 {
			query += "&channelFilter=c*"
		}
		name := "orders"
		if i%3 == 2 {
			name += "_dlq"
		}
		if err := polls[i].Send("GET", "/queues/"+name+"/messages?"+query, ""); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 5*time.Second, func() error { return waiting(t, s, float64(len(polls))) })
	began := time.Now()
	rest.Dial(t, s.REST).Must(t, 202, "DELETE", "/queues/orders", "")
	for _, c := range polls {
		a, err := c.Receive("GET")
		if err != nil {
			t.Fatal(err)
		}
		proper(t, "a poll", a)
		a.Is(t, 404, "NotAuthorizedOrNotFound")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the polls ended after %v", took)
	}
}

// TestStoppedServer: a stop in order answers its polls. Nothing is delivered to
// them any more.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	polls := make([]*rest.Conn, 20)
	for i := range polls {
		polls[i] = rest.Dial(t, s.REST)
		if err := polls[i].Send("GET", "/queues/orders/messages?timeoutInSeconds=30", ""); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 5*time.Second, func() error { return waiting(t, s, float64(len(polls))) })
	began := time.Now()
	if code := s.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for _, c := range polls {
		a, err := c.Receive("GET")
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 200 {
			var r struct{ Messages []json.RawMessage }
			a.JSON(t, &r)
			if len(r.Messages) != 0 {
				t.Errorf("%s", a.Body)
			}
		} else {
			a.Is(t, 503, "ServiceUnavailable")
		}
	}
}
