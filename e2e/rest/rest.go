// Package rest is a bare HTTP/1.1 client of the REST face for tests: one
// connection, one request at a time, and nothing behind the caller's back. No
// request is ever sent twice, no connection is shared, and the caller says how
// a connection ends. So a test knows what it sent, what was answered, and what
// it must call in doubt.
//
//	c := rest.Dial(t, s.REST)
//	a := c.Must(t, 200, "GET", "/queues/orders/stats", "")
//	c.Reset() // the connection ends hard, as that of a process that was killed
package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Base is before the paths of the API.
const Base = "/20210201"

// Timeout is how long an answer may take: a long poll and some more.
const Timeout = 60 * time.Second

// Conn is a connection. It is for one goroutine at a time.
type Conn struct {
	net.Conn
	addr string
	r    *bufio.Reader
}

// Answer is what a request was answered with.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Closes bool // the server said "Connection: close"
}

// Open connects to an address, host:port or http://host:port.
func Open(addr string) (*Conn, error) {
	addr = strings.TrimPrefix(addr, "http://")
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return Over(c, addr), nil
}

// Over speaks over a connection that is there already; addr is what Host says.
func Over(c net.Conn, addr string) *Conn {
	return &Conn{Conn: c, addr: addr, r: bufio.NewReader(c)}
}

// Dial is Open for a test, which fails if there is no connection and closes
// it at its end.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Close closes the connection.
func (c *Conn) Close() error { return Close(c.Conn) }

// Close closes a connection, and has closed it when it returns: a child that
// is just being started would hold it open until it has become another program.
func Close(c net.Conn) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return c.Close()
}

// Reset ends the connection hard: the server sees a reset, whatever it was
// doing.
func (c *Conn) Reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Send writes a request without waiting for its answer. The path is that of
// the API behind Base; one that begins with "//" is sent as it stands from the
// second "/" on. Headers are "Name: value"; Host, Content-Type and
// Content-Length are added unless given.
func (c *Conn) Send(method, path, body string, headers ...string) error {
	if raw, ok := strings.CutPrefix(path, "//"); ok {
		path = "/" + raw
	} else {
		path = Base + path
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, path)
	given := map[string]bool{}
	for _, h := range headers {
		name, _, _ := strings.Cut(h, ":")
		given[strings.ToLower(name)] = true
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	add := func(name, value string) {
		if !given[strings.ToLower(name)] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	add("Host", c.addr)
	add("Content-Type", "application/json")
	if (body != "" || method == http.MethodPost || method == http.MethodPut) && !given["transfer-encoding"] {
		add("Content-Length", strconv.Itoa(len(body)))
	}
	b.WriteString("\r\n")
	b.WriteString(body)
	_ = c.SetDeadline(time.Now().Add(Timeout))
	_, err := c.Write(b.Bytes())
	return err
}

// Receive reads the answer to a request of this method.
func (c *Conn) Receive(method string) (*Answer, error) {
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the body of a %d: %w", resp.StatusCode, err)
	}
	return &Answer{resp.StatusCode, resp.Header, body, resp.Close}, nil
}

// Do sends a request and reads its answer. After an error the connection is of
// no use, and whether the request was carried out is in doubt.
func (c *Conn) Do(method, path, body string, headers ...string) (*Answer, error) {
	if err := c.Send(method, path, body, headers...); err != nil {
		return nil, err
	}
	return c.Receive(method)
}

// Must is Do for a test that wants an answer with this status, else it fails.
// Status 0 is any.
func (c *Conn) Must(t testing.TB, status int, method, path, body string, headers ...string) *Answer {
	t.Helper()
	a, err := c.Do(method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if status != 0 && a.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, a.Status, Clip(a.Body), status)
	}
	return a
}

// Put publishes texts to a queue, in one request, and is their ids.
func (c *Conn) Put(t testing.TB, queue string, texts ...string) []int64 {
	t.Helper()
	type entry struct {
		Content string `json:"content"`
	}
	var r struct {
		Messages []entry `json:"messages"`
	}
	for _, text := range texts {
		r.Messages = append(r.Messages, entry{text})
	}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return IDs(t, c.Must(t, 200, "POST", "/queues/"+queue+"/messages", string(body)))
}

// Get receives from a queue; query is what stands behind the "?".
func (c *Conn) Get(t testing.TB, queue, query string) []Message {
	t.Helper()
	return Messages(t, c.Must(t, 200, "GET", "/queues/"+queue+"/messages?"+query, ""))
}

// Stats are the counters of a queue.
func (c *Conn) Stats(t testing.TB, queue string) Stats {
	t.Helper()
	var s Stats
	c.Must(t, 200, "GET", "/queues/"+queue+"/stats", "").JSON(t, &s)
	return s
}

// Delete deletes a message by its receipt and wants this status.
func (c *Conn) Delete(t testing.TB, status int, queue, receipt string) {
	t.Helper()
	c.Must(t, status, "DELETE", "/queues/"+queue+"/messages/"+receipt, "")
}

// Update sets the visibility of a delivered message and wants this status.
func (c *Conn) Update(t testing.TB, status int, queue, receipt string, seconds int) *Answer {
	t.Helper()
	return c.Must(t, status, "PUT", "/queues/"+queue+"/messages/"+receipt, fmt.Sprintf(`{"visibilityInSeconds":%d}`, seconds))
}

// Message is a message as GetMessages gives it.
type Message struct {
	ID              int64     `json:"id"`
	Content         string    `json:"content"`
	ContentEncoding string    `json:"contentEncoding"`
	Receipt         string    `json:"receipt"`
	DeliveryCount   int       `json:"deliveryCount"`
	VisibleAfter    time.Time `json:"visibleAfter"`
	ExpireAfter     time.Time `json:"expireAfter"`
	CreatedAt       time.Time `json:"createdAt"`
	Metadata        struct {
		ChannelID        string            `json:"channelId"`
		CustomProperties map[string]string `json:"customProperties"`
	} `json:"metadata"`
	DeadLetter *DeadLetter `json:"deadLetter"`
}

// DeadLetter tells how a message came into the dead letter queue.
type DeadLetter struct {
	Reason        string    `json:"reason"`
	DeliveryCount int       `json:"deliveryCount"`
	ChannelID     string    `json:"channelId"`
	At            time.Time `json:"at"`
}

// Stats are the counters of a queue and of its dead letter queue.
type Stats struct {
	Queue Counters `json:"queue"`
	DLQ   Counters `json:"dlq"`
}

// Counters are one half of Stats.
type Counters struct {
	Visible  int64 `json:"visibleMessages"`
	InFlight int64 `json:"inFlightMessages"`
	Delayed  int64 `json:"delayedMessages"`
	Bytes    int64 `json:"sizeInBytes"`
}

// Messages reads the answer to a GetMessages.
func Messages(t testing.TB, a *Answer) []Message {
	t.Helper()
	var r struct {
		Messages []Message `json:"messages"`
	}
	a.JSON(t, &r)
	if r.Messages == nil {
		t.Fatalf("no messages in %s", Clip(a.Body))
	}
	return r.Messages
}

// IDs reads the answer to a PutMessages.
func IDs(t testing.TB, a *Answer) (ids []int64) {
	t.Helper()
	for _, m := range Messages(t, a) {
		ids = append(ids, m.ID)
	}
	return ids
}

// JSON reads the body into v.
func (a *Answer) JSON(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("answer %d %s: %v", a.Status, Clip(a.Body), err)
	}
}

// Error is code and message of an answer that is an error.
func (a *Answer) Error() (code, message string, err error) {
	var e struct{ Code, Message string }
	if err := json.Unmarshal(a.Body, &e); err != nil {
		return "", "", fmt.Errorf("error %d %s: %w", a.Status, Clip(a.Body), err)
	}
	if e.Code == "" || e.Message == "" {
		return "", "", errors.New("an error without code or message: " + Clip(a.Body))
	}
	return e.Code, e.Message, nil
}

// Is reports whether the answer is an error of this status and code; else the
// test fails. It gives the message.
func (a *Answer) Is(t testing.TB, status int, code string) string {
	t.Helper()
	got, message, err := a.Error()
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != status || got != code {
		t.Fatalf("%d %s (%s), want %d %s", a.Status, got, message, status, code)
	}
	return message
}

// Clip is a body short enough for a message.
func Clip(body []byte) string {
	const most = 400
	if len(body) > most {
		return fmt.Sprintf("%s… (%d octets)", body[:most], len(body))
	}
	return string(body)
}
