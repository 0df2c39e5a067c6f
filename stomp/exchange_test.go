package stomp

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/internal/exchange"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/service"
)

// The exchanges in testdata/exchanges are what a client and the server say to
// one another, line by line; testdata/exchanges/README tells how to read them.
func TestExchanges(t *testing.T) {
	t.Parallel()
	playAll(t, func(*exchange.Exchange, *house) {})
}

// The same over WebSocket, in messages of text or of octets.
func TestExchangesOverWebSocket(t *testing.T) {
	t.Parallel()
	playAll(t, func(x *exchange.Exchange, h *house) {
		h.overWebSocket(x.Fake, func(b *browser) { b.text = len(x.Name)%2 == 0 })
	})
}

// playAll plays all exchanges in houses made ready by change.
func playAll(t *testing.T, change func(*exchange.Exchange, *house)) {
	all, err := exchange.Read("testdata/exchanges/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	everywhere := 0
	for _, x := range all {
		if x.Plain() && len(x.Versions) == 3 {
			everywhere++
		}
		for _, version := range x.Versions {
			t.Run(x.Title()+"/"+version, func(t *testing.T) {
				t.Parallel()
				if x.Fake {
					synctest.Test(t, func(t *testing.T) { run(t, x, version, change) })
				} else {
					run(t, x, version, change)
				}
			})
		}
	}
	if len(all) < 240 {
		t.Errorf("%d exchanges; some are lost", len(all))
	}
	if everywhere < 80 {
		t.Errorf("%d exchanges need nothing but a socket and run in all three versions; want 80", everywhere)
	}
}

// option sets a setting of the server.
func option(text string, o *Options, l *limits.Settings) bool {
	name, value, _ := strings.Cut(text, "=")
	n := int64(atoi(value))
	switch name {
	case "strict":
		o.Strict = true
	case "auto-create":
		o.AutoCreate = true
	case "bytes-per-second":
		o.BytesPerSecond = n
	case "message-bytes":
		o.MessageBytes, l.MessageBytes = n, n
	case "transaction-bytes":
		o.TransactionBytes = n
	case "bytes-per-queue":
		l.BytesPerQueue = n
	case "requests-per-second":
		l.RequestsPerSecond = n
	default:
		return false
	}
	return true
}

// play is an exchange under way.
type play struct {
	*exchange.Exchange
	t       *testing.T
	h       *house
	version string
	peers   map[string]*peer
	stopped bool           // there is no server any more
	words   exchange.Words // what $name stands for
}

func run(t *testing.T, x *exchange.Exchange, version string, change func(*exchange.Exchange, *house)) {
	pl := &play{Exchange: x, t: t, version: version, peers: map[string]*peer{}, words: exchange.Words{"version": version}}
	var o Options
	l := limits.Unthrottled()
	for _, text := range x.Options {
		if !option(text, &o, &l) {
			t.Fatalf("%s: %s: no such option: %s", x.File, x.Name, text)
		}
	}
	pl.h = openWith(t, o, &l, x.Fake, x.Queues...)
	change(x, pl.h)
	for _, q := range x.Queues {
		pl.words[q] = q
	}
	for _, s := range x.Steps(version) {
		pl.step(&s)
		if t.Failed() {
			t.Fatalf("%s:%d: at this step", x.File, s.Line)
		}
	}
	if !pl.stopped {
		pl.h.works()
	}
}

// peer is the connection of that name, made when it is first named.
func (pl *play) peer(name string) *peer {
	p := pl.peers[name]
	if p == nil {
		if pl.ByHand {
			p = pl.h.dial()
		} else {
			p = pl.h.connect(pl.version, pl.Headers...)
		}
		pl.peers[name] = p
	}
	return p
}

func (pl *play) step(s *exchange.Step) {
	h, t := pl.h, pl.t
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s:%d: %s", pl.File, s.Line, fmt.Sprintf(format, args...))
	}
	words := strings.Fields(pl.fill(s.Rest))
	word := func(i int) string {
		if i >= len(words) {
			fail("%s needs more words", s.Verb)
		}
		return words[i]
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s:%d", pl.File, s.Line)
		}
	}()
	switch s.Verb {
	case ">":
		pl.say(s, fail)
	case "<":
		pl.hear(s, fail)
	case "closed":
		pl.peer(s.Peer).closed()
	case "silent":
		pl.peer(s.Peer).silent()
	case "beat": // one comes within so much time, and nothing else
		p := pl.peer(s.Peer)
		p.net.SetReadDeadline(time.Now().Add(duration(word(0))))
		b := make([]byte, 1)
		if n, err := p.net.Read(b); n != 1 || b[0] != '\n' {
			fail("no heart-beat: %q %v", b[:n], err)
		}
	case "sleep":
		if !pl.Fake {
			fail("sleep needs fake time")
		}
		time.Sleep(duration(word(0)))
	case "close":
		pl.peer(s.Peer).net.Close()
	case "half-close":
		if err := pl.peer(s.Peer).net.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			fail("%v", err)
		}
	case "put":
		h.put(word(0), strings.Join(words[1:], " "))
	case "get": // by the service, without waiting; the bodies in any order
		var got []string
		for _, m := range h.get(word(0)) {
			got = append(got, string(m.Body))
			pl.words["got"] = string(m.Receipt)
		}
		want := slices.Clone(words[1:])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			fail("the service gives %q, want %q", got, want)
		}
	case "queue": // queue NAME visibility=2 dlq=1
		h.queue(word(0), func(r *service.CreateQueueRequest) {
			for _, w := range words[1:] {
				k, v, _ := strings.Cut(w, "=")
				n := int32(atoi(v))
				switch k {
				case "visibility":
					r.VisibilityInSeconds = &n
				case "retention":
					r.RetentionInSeconds = &n
				case "groups":
					r.Capabilities = append(r.Capabilities, service.CapabilityDetails{Type: "CONSUMER_GROUPS"})
				case "large":
					r.Capabilities = append(r.Capabilities, service.CapabilityDetails{Type: "LARGE_MESSAGES"})
				case "dlq":
					r.DeadLetterQueueDeliveryCount = &n
				default:
					fail("%q", w)
				}
			}
		})
	case "group": // group QUEUE NAME FILTER...
		filter := strings.Join(words[2:], " ")
		if _, err := h.service.CreateConsumerGroup(context.Background(), service.CreateConsumerGroupRequest{
			QueueID: &words[0], DisplayName: &words[1], Filter: &filter,
		}); err != nil {
			fail("%v", err)
		}
	case "disable-group":
		no := false
		if _, err := h.service.UpdateConsumerGroup(context.Background(), service.UpdateConsumerGroupRequest{ConsumerGroupID: strings.Join(words, " "), IsEnabled: &no}); err != nil {
			fail("%v", err)
		}
	case "delete-group":
		if _, err := h.service.DeleteConsumerGroup(context.Background(), service.DeleteConsumerGroupRequest{ConsumerGroupID: strings.Join(words, " ")}); err != nil {
			fail("%v", err)
		}
	case "stats": // stats NAME visible=1 inflight=0 dead=0, soon
		pl.stats(word(0), words[1:], fail)
	case "delete-queue":
		if _, err := h.service.DeleteQueue(context.Background(), service.DeleteQueueRequest{QueueRef: word(0)}); err != nil {
			fail("%v", err)
		}
	case "purge":
		if _, err := h.service.PurgeQueue(context.Background(), service.PurgeQueueRequest{QueueRef: word(0), PurgeType: new("BOTH")}); err != nil {
			fail("%v", err)
		}
	case "stopped":
		pl.stopped = true
	case "shutdown":
		if pl.Fake {
			synctest.Wait() // else the connection may not be accepted yet
		}
		ended := make(chan error, 1)
		go func() { ended <- h.server.Shutdown(context.Background()) }()
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	case "logged": // logged 1 level=WARN
		if n := strings.Count(h.log.String(), strings.Join(words[1:], " ")); n != atoi(word(0)) {
			fail("%q is logged %d times\n%s", words[1:], n, h.log.String())
		}
	default:
		fail("unknown step %q", s.Verb)
	}
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func (pl *play) stats(name string, want []string, fail func(string, ...any)) {
	var got string
	for range 100 {
		main, dead := pl.h.stats(name)
		got = fmt.Sprintf("visible=%d inflight=%d dead=%d", main.Visible, main.InFlight, dead.Visible+dead.InFlight)
		ok := true
		for _, w := range want {
			ok = ok && slices.Contains(strings.Fields(got), w)
		}
		if ok {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fail("the queue has %s, want %v", got, want)
}

// fill replaces $name and {9*text}.
func (pl *play) fill(text string) string {
	text, err := pl.words.Fill(text)
	if err != nil {
		pl.t.Fatalf("%s: %v", pl.File, err)
	}
	return text
}

// say writes what the client says.
func (pl *play) say(s *exchange.Step, fail func(string, ...any)) {
	packets, err := pl.words.Packets(s)
	if err != nil {
		fail("%v", err)
	}
	p := pl.peer(s.Peer)
	for i, packet := range packets {
		if i > 0 {
			time.Sleep(time.Millisecond) // a packet of its own, most likely
		}
		if _, err := io.WriteString(p.net, packet); err != nil {
			pl.t.Logf("%s:%d: %v", pl.File, s.Line, err) // the server may have closed
			return
		}
	}
}

// hear reads one frame and compares it.
func (pl *play) hear(s *exchange.Step, fail func(string, ...any)) {
	want, err := pl.words.Wants(s)
	if err != nil {
		fail("%v", err)
	}
	got, err := pl.peer(s.Peer).next(patient)
	if err != nil {
		fail("no %s: %v; read %q", want.Command, err, pl.peer(s.Peer).rest)
	}
	f := &exchange.Frame{Command: got.command, Header: got.header, Order: got.order, Body: got.body}
	if f.Command != want.Command {
		fail("got %s %v %q, want %s", f.Command, f.Header, f.Body, want.Command)
	}
	if f.Command == "ERROR" && (f.Header["message"] == "" || f.Body == "" || f.Header["content-type"] != "text/plain" || f.Header["code"] == "") {
		fail("an ERROR that does not say what is wrong: %v %q", f.Header, f.Body)
	}
	for _, condition := range want.Headers {
		if differs := f.Differs(condition); differs != "" {
			fail("%s has %.300s, want %.300s; %.300v", f.Command, differs, condition, f.Header)
		}
	}
	if want.HasBody && f.Body != want.Body {
		fail("the body is %.300q, want %.300q", f.Body, want.Body)
	}
	if want.Alias != "" {
		pl.words.Learn(want.Alias, pl.version, f)
	}
}
