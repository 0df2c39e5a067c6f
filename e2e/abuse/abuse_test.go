// Package abuse treats the real server as no client should, over every face:
// it does not read, it drips octets, it says nothing, it announces what never
// comes, it sends headers without end, it resets streams by the ten thousand.
//
// Each abuse is one row of a table. The server must answer as the protocol
// says or hang up; clients that behave must be served meanwhile, as if nothing
// were; and what the abuse took must be bounded while it lasts and given back
// when it is over. No row counts that did not show that it was really done.
package abuse

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(8) // some rows wait until the server's patience is over
	os.Exit(server.Main(m))
}

const (
	// grown is how much memory an abuse may take of the server while it lasts.
	grown = 64 << 20

	// waitFor is how long the server may take to do what it must, patience
	// of 10 s included, on a machine that is busy.
	waitFor = 60 * time.Second

	// meanwhile is how many messages each polite client publishes, receives
	// and deletes while an abuse lasts, at least.
	meanwhile = 10
)

// row is one abuse.
type row struct {
	name  string
	prey  int // messages of 250 KiB that lie in the queue of that name before
	abuse func(a *abuser)
	most  int64 // how much memory it may take; 0: grown
}

// run does each row to a server of its own, side by side.
func run(t *testing.T, rows []row, args ...string) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, args...)
			if r.most == 0 {
				r.most = grown
			}
			h.suffer(r)
		})
	}
}

// house is a server with polite clients on all faces.
type house struct {
	t      *testing.T
	s      *server.Server
	secure *tls.Config // nil: no TLS
	polite []*polite
}

func newHouse(t *testing.T, args ...string) *house {
	t.Helper()
	args = append([]string{"--limits-profile", "unthrottled", "--log-level", "warn",
		"--create-queue", "rest", "--create-queue", "grpc", "--create-queue", "stomp", "--create-queue", "prey,dlq=0,visibility=600"}, args...)
	h := &house{t: t}
	for _, arg := range args {
		if arg == "--tls-cert" {
			// The certificate was made a moment ago for this server and nobody else.
			h.secure = &tls.Config{InsecureSkipVerify: true}
		}
	}
	h.s = server.Start(t, args...)
	h.politely()
	return h
}

// dial connects to a face, by TLS if that is what it serves.
func (h *house) dial(addr string) (net.Conn, error) {
	addr = strings.TrimPrefix(strings.TrimPrefix(addr, "http://"), "https://")
	c, err := net.DialTimeout("tcp", addr, waitFor)
	if err != nil || h.secure == nil {
		return c, err
	}
	return tls.Client(c, h.secure), nil
}

// suffer does the abuse and checks what everybody else has of it.
func (h *house) suffer(r row) {
	h.t.Helper()
	h.fill(r.prey)
	h.served(1) // what it takes to serve at all
	var before usage
	h.eventually("nobody is connected", func() error {
		if before = h.usage(); before.connections > 0 {
			return fmt.Errorf("%v connections are open", before.connections)
		}
		return nil
	})
	peak := h.peak()
	a := &abuser{T: h.t, house: h}
	defer a.leave()
	counts := h.counts()
	r.abuse(a)
	if a.count.Load() < many {
		h.t.Fatalf("the abuse was done %d times", a.count.Load())
	}
	// What it has left open is open still.
	for i, p := range h.polite {
		if n := int(p.rounds.Load()) - counts[i]; n < meanwhile {
			h.await(p, meanwhile-n)
		}
		h.t.Logf("%s: %d messages meanwhile", p.face, int(p.rounds.Load())-counts[i])
	}
	if at, ok := peak(); ok {
		h.t.Logf("%d done; %.1f MiB resident, %.1f at most; %.0f goroutines, then %.0f",
			a.count.Load(), before.resident/(1<<20), float64(at)/(1<<20), before.goroutines, h.usage().goroutines)
		if took := at - int64(before.resident); took > r.most {
			h.t.Errorf("the abuse took %d MiB of memory, more than %d", took>>20, r.most>>20)
		}
	}
	a.leave()
	h.eventually("what the abuse took is given back", func() error {
		now := h.usage()
		if now.connections > 0 {
			return fmt.Errorf("%v connections are open", now.connections)
		}
		// The server's own work in the background comes and goes.
		if now.goroutines > before.goroutines+8 {
			return fmt.Errorf("%v goroutines, there were %v", now.goroutines, before.goroutines)
		}
		return nil
	})
}

// usage is what the server takes, by its own metrics.
type usage struct{ resident, goroutines, connections float64 }

// usage does not count the connections of polite clients, which come and go.
func (h *house) usage() (u usage) {
	h.t.Helper()
	h.pause(true)
	defer h.pause(false)
	for name, to := range map[string]*float64{"process_resident_memory_bytes": &u.resident, "go_goroutines": &u.goroutines} {
		*to, _ = h.s.Metric(name) // there is no resident memory to be had on some systems
	}
	if u.goroutines == 0 {
		h.t.Fatal("the number of goroutines is not told")
	}
	for _, face := range []string{"rest", "grpc", "stomp"} {
		n, ok := h.s.Metric(`queued_connections{face="` + face + `"}`)
		if !ok {
			h.t.Fatalf("the number of connections of %s is not told", face)
		}
		u.connections += n
	}
	return u
}

var hwm = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak forgets the most memory that the server has had, and gives what reads
// the most since. It is not known on every system.
func (h *house) peak() func() (int64, bool) {
	h.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", h.s.PID())
	if os.WriteFile(proc+"clear_refs", []byte("5"), 0) != nil {
		return func() (int64, bool) { return 0, false }
	}
	return func() (int64, bool) {
		text, err := os.ReadFile(proc + "status")
		if err != nil {
			h.t.Fatal(err)
		}
		var kib int64
		if _, err := fmt.Sscan(string(hwm.FindSubmatch(text)[1]), &kib); err != nil {
			h.t.Fatal(err)
		}
		return kib << 10, true
	}
}

// eventually waits until f has nothing to say against it.
func (h *house) eventually(what string, f func() error) {
	h.t.Helper()
	for deadline := time.Now().Add(waitFor); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) // not to be one more flood
	}
}

// abuser is who does it.
type abuser struct {
	*testing.T
	*house
	count atomic.Int64 // how often it was done, in whatever the row counts

	mu    sync.Mutex
	conns []net.Conn
}

// open connects; the connection stays until the abuser leaves.
func (a *abuser) open(addr string) net.Conn {
	a.Helper()
	c, err := a.dial(addr)
	if err != nil {
		a.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, c)
	return c
}

// leave closes what is open.
func (a *abuser) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = rest.Close(c)
	}
	a.conns = nil
}

// said reads all that the server says until it hangs up, which it must.
func (a *abuser) said(c net.Conn) string {
	a.Helper()
	_ = c.SetReadDeadline(time.Now().Add(waitFor))
	text, err := io.ReadAll(c)
	if err != nil && !gone(err) {
		a.Errorf("the server has not hung up: %v; it said %.300q", err, text)
	}
	return string(text)
}

// must is said, and wants each of these texts in it.
func (a *abuser) must(c net.Conn, texts ...string) {
	a.Helper()
	said := a.said(c)
	for _, text := range texts {
		if !strings.Contains(said, text) {
			a.Errorf("the server said %.400q, without %q", said, text)
		}
	}
}

// gone reports whether err is that of a connection the other side has ended.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// flood writes pieces until the server hangs up or there are no more of them,
// and counts the octets that went.
func (a *abuser) flood(c net.Conn, pieces int, piece []byte) (octets int) {
	a.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(waitFor))
	for range pieces {
		n, err := c.Write(piece)
		octets += n
		if err != nil {
			if !gone(err) {
				a.Errorf("behind %d octets: %v", octets, err)
			}
			break
		}
	}
	return octets
}

// flooded is flood, of which so many octets must have gone.
func (a *abuser) flooded(c net.Conn, pieces int, piece []byte, least int) {
	a.Helper()
	if n := a.flood(c, pieces, piece); n < least {
		a.Errorf("only %d octets went", n)
	}
}

// drip writes text one octet at a time, with a pause behind each, until the
// server hangs up; behind the end it begins again with again, unless that is
// empty. It counts what went.
func (a *abuser) drip(c net.Conn, text, again string, pause time.Duration) (octets int) {
	a.Helper()
	deadline := time.Now().Add(waitFor)
	for len(text) > 0 {
		if time.Now().After(deadline) {
			a.Errorf("the server takes octet by octet for ever, %d by now", octets)
			break
		}
		_ = c.SetWriteDeadline(deadline)
		if _, err := c.Write([]byte(text[:1])); err != nil {
			break // the server has hung up, which who reads will see
		}
		octets++
		if text = text[1:]; text == "" {
			text = again
		}
		time.Sleep(pause) // the abuse itself
	}
	return octets
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
	dir := t.TempDir()
	crt, sec := filepath.Join(dir, "crt.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{crt: {Type: "CERTIFICATE", Bytes: der}, sec: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--tls-cert", crt, "--tls-key", sec}
}
