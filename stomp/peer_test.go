package stomp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// house is a whole server in memory, with its STOMP face.
type house struct {
	t       testing.TB
	service *service.Service
	broker  *broker.Broker
	server  *Server
	wire    func() net.Conn // a new connection
	addr    string
	disk    *testdisk.Disk
	before  atomic.Pointer[func(testdisk.Step)] // called ahead of what changes the disk; in a bubble only
	log     *lines
}

// lines is a log that tests can read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open makes the queues and serves over loopback sockets.
func open(t testing.TB, o Options, queues ...string) *house {
	t.Helper()
	l := limits.Unthrottled()
	return openWith(t, o, &l, false, queues...)
}

// inBubble runs f with a house in fake time, whose sessions run in memory.
func inBubble(t *testing.T, o Options, f func(h *house), queues ...string) {
	t.Helper()
	l := limits.Unthrottled()
	inBubbleWith(t, o, &l, f, queues...)
}

func inBubbleWith(t *testing.T, o Options, l *limits.Settings, f func(h *house), queues ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(openWith(t, o, l, true, queues...)) })
}

func openWith(t testing.TB, o Options, l *limits.Settings, inBubble bool, queues ...string) *house {
	t.Helper()
	return openHouse(t, o, l, inBubble, true, queues...)
}

func openHouse(t testing.TB, o Options, l *limits.Settings, inBubble, checked bool, queues ...string) *house {
	t.Helper()
	memtable := int64(1 << 20)
	if !checked {
		memtable = 64 << 20
	}
	disk := testdisk.New()
	disk.SetFree(1 << 40)
	h := &house{t: t, disk: disk, log: &lines{}}
	so := store.Options{FS: disk, QuietScheduler: true, MemtableBytes: memtable}
	if inBubble {
		so.FS = disk.Watch(func(s testdisk.Step) error {
			if before := h.before.Load(); before != nil {
				(*before)(s)
			}
			return nil
		})
	}
	st, err := store.Open("data", so)
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.Open(st, broker.Options{Limits: l, Checked: checked, KeepUnrouted: true})
	if err != nil {
		t.Fatal(err)
	}
	h.broker, h.service = b, service.New(b, service.Options{Limits: l, KeepUnrouted: true})
	for _, q := range queues {
		h.queue(q, nil)
	}
	o.Logger = logTo(h.log)
	h.server = New(h.service, o)
	var ln net.Listener
	if inBubble {
		w := newWires()
		ln, h.wire = w, func() net.Conn { c, _ := w.dial(64 << 10); return c }
	} else {
		var err error
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		h.wire = func() net.Conn {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	h.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(ln) }()
	t.Cleanup(func() {
		h.server.Close()
		for _, err := range []error{<-served, b.Close(), st.Check(), st.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

// queue makes a queue.
func (h *house) queue(name string, change func(*service.CreateQueueRequest)) queue.ID {
	h.t.Helper()
	r := service.CreateQueueRequest{DisplayName: &name}
	if change != nil {
		change(&r)
	}
	id, _, err := h.service.EnsureQueue(context.Background(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// stats are the counters of a queue and its dead letter queue.
func (h *house) stats(name string) (main, dead queue.Stats) {
	h.t.Helper()
	q, ok := h.broker.Lookup(queue.Ref{Name: name}, nil)
	if !ok {
		h.t.Fatal("no queue", name)
	}
	return h.broker.Stats(q.ID, "", nil)
}

// put publishes by the service.
func (h *house) put(name string, bodies ...string) {
	h.t.Helper()
	for _, body := range bodies {
		_, err := h.service.PutMessages(context.Background(), service.PutMessagesRequest{QueueRef: name, Messages: []service.PutMessage{{Content: []byte(body)}}})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// get receives by the service, without waiting.
func (h *house) get(name string) []queue.Delivery {
	h.t.Helper()
	got, err := h.service.GetMessages(context.Background(), service.GetMessagesRequest{QueueRef: name, TimeoutInSeconds: new(int32)})
	if err != nil {
		h.t.Fatal(err)
	}
	return got.Messages
}

// peer is the client's side of a connection, by hand.
type peer struct {
	t        testing.TB
	net      net.Conn
	rest     []byte          // read and not looked at
	answered map[string]bool // receipts that a RECEIPT or an ERROR has named
}

func (h *house) dial() *peer {
	h.t.Helper()
	c := h.wire()
	h.t.Cleanup(func() { c.Close() })
	return &peer{t: h.t, net: c}
}

// connect opens a session of that version.
func (h *house) connect(version string, headers ...string) *peer {
	h.t.Helper()
	p := h.dial()
	p.send("CONNECT\naccept-version:" + version + "\nhost:here\n" + joined(headers) + "\n^@")
	if f := p.frame(); f.command != "CONNECTED" || f.header["version"] != version {
		h.t.Fatalf("CONNECT is answered %v", f)
	}
	return p
}

func joined(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	return strings.Join(headers, "\n") + "\n"
}

// send writes text, in which ^@ stands for NUL.
func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := p.net.Write([]byte(strings.ReplaceAll(text, "^@", "\x00"))); err != nil {
		p.t.Fatal(err)
	}
}

// heard is a frame of the server, its headers as they are spelled.
type heard struct {
	command string
	header  map[string]string
	order   []string // names of the headers
	body    string
}

const patient = 10 * time.Second

// frame reads one frame.
func (p *peer) frame() heard {
	p.t.Helper()
	f, err := p.next(patient)
	if err != nil {
		p.t.Fatalf("no frame: %v; read %q", err, p.rest)
	}
	return f
}

// next reads one frame, for so long.
func (p *peer) next(wait time.Duration) (heard, error) {
	p.net.SetReadDeadline(time.Now().Add(wait))
	for {
		if f, ok := p.parse(); ok {
			return f, nil
		}
		b := make([]byte, 64<<10)
		n, err := p.net.Read(b)
		p.rest = append(p.rest, b[:n]...)
		if err != nil && n == 0 {
			return heard{}, err
		}
	}
}

func (p *peer) parse() (f heard, ok bool) {
	b := bytes.TrimLeft(p.rest, "\n")
	head, body, found := bytes.Cut(b, []byte("\n\n"))
	if !found {
		return f, false
	}
	lines := strings.Split(string(head), "\n")
	f.command, f.header = lines[0], map[string]string{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		f.header[name] = value
		f.order = append(f.order, name)
	}
	end := bytes.IndexByte(body, 0)
	if n, given := f.header["content-length"]; given {
		end = atoi(n)
		if len(body) <= end {
			return f, false
		}
		if body[end] != 0 {
			p.t.Fatalf("content-length is %d, and no NUL is behind the body in %q", end, body)
		}
	}
	if end < 0 {
		return f, false
	}
	f.body = string(body[:end])
	p.rest = body[end+1:]
	if r, named := f.header["receipt-id"]; named {
		if p.answered[r] {
			p.t.Errorf("the receipt %q is answered twice", r)
		}
		if p.answered == nil {
			p.answered = make(map[string]bool)
		}
		p.answered[r] = true
	}
	return f, true
}

func atoi(text string) (n int) {
	for _, c := range text {
		n = 10*n + int(c-'0')
	}
	return n
}

// expect reads a frame of that command and checks headers, "name:value" each.
func (p *peer) expect(command string, headers ...string) heard {
	p.t.Helper()
	f := p.frame()
	if f.command != command {
		p.t.Fatalf("got %s %v %q, want %s", f.command, f.header, f.body, command)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if got, there := f.header[name]; !there || got != value {
			p.t.Fatalf("%s has %s:%q (there: %v), want %q; %v", command, name, got, there, value, f.header)
		}
	}
	return f
}

// silent checks that nothing comes for a moment.
func (p *peer) silent() {
	p.t.Helper()
	if f, err := p.next(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("got %v %v, want silence", f, err)
	}
}

// closed checks that the server has said all and closes in good order.
func (p *peer) closed() {
	p.t.Helper()
	if f, err := p.next(patient); err != io.EOF {
		p.t.Fatalf("got %v %v, want the end", f, err)
	}
	if len(bytes.TrimLeft(p.rest, "\n")) > 0 {
		p.t.Fatalf("half a frame: %q", p.rest)
	}
}

// fails checks that the next frame is an ERROR of that code, and the last.
func (p *peer) fails(code queue.Code, headers ...string) heard {
	p.t.Helper()
	f := p.expect("ERROR", append(headers, "code:"+string(code))...)
	if f.header["message"] == "" || f.body == "" || f.header["content-type"] != "text/plain" {
		p.t.Errorf("an ERROR that does not say what is wrong: %v %q", f.header, f.body)
	}
	p.closed()
	return f
}

// works checks that another connection is served, whatever has happened on one.
func (h *house) works() {
	h.t.Helper()
	h.queue("elsewhere", nil)
	p := h.connect("1.2")
	p.send("SUBSCRIBE\ndestination:elsewhere\nid:1\nack:client-individual\n\n^@SEND\ndestination:elsewhere\nreceipt:s\n\nstill here^@")
	p.expect("RECEIPT", "receipt-id:s")
	m := p.expect("MESSAGE", "subscription:1", "delivery-count:1")
	if m.body != "still here" {
		h.t.Fatalf("body %q", m.body)
	}
	p.send("ACK\nid:" + m.header["ack"] + "\nreceipt:a\n\n^@DISCONNECT\nreceipt:d\n\n^@")
	p.expect("RECEIPT", "receipt-id:a")
	p.expect("RECEIPT", "receipt-id:d")
	p.closed()
}
