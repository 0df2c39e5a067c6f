package stomp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/service"
)

// The exchanges in testdata/exchanges are what a client and the server say to
// one another, line by line; testdata/exchanges/README tells how to read them.
func TestExchanges(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/exchanges/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := readExchanges(t, file, string(text))
		count += len(all)
		for _, x := range all {
			for _, version := range x.versions {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+x.name+"/"+version, func(t *testing.T) {
					t.Parallel()
					if x.bubble {
						synctest.Test(t, func(t *testing.T) { x.run(t, version) })
					} else {
						x.run(t, version)
					}
				})
			}
		}
	}
	if count < 240 {
		t.Errorf("%d exchanges; some are lost", count)
	}
}

// exchange is one entry of a file.
type exchange struct {
	name     string
	file     string
	versions []string // each is run; "none": nobody has said CONNECT
	headers  string   // of CONNECT
	bubble   bool
	options  Options
	limits   limits.Settings
	queues   []string
	steps    []step
}

// step is one or more lines of an exchange.
type step struct {
	line int
	peer string
	verb string
	rest string
	text []string // of > and <
}

var stepLine = regexp.MustCompile(`^(\w*)([<>])(?: (.*))?$`)

func readExchanges(t *testing.T, file, text string) (all []*exchange) {
	var x *exchange
	var last string
	for i, line := range strings.Split(text, "\n") {
		bad := func() { t.Fatalf("%s:%d: %q is not understood", file, i+1, line) }
		key, value, _ := strings.Cut(line, ": ")
		m := stepLine.FindStringSubmatch(line)
		switch {
		case key == "name":
			x = &exchange{name: value, file: file, versions: []string{"1.2"}, queues: []string{"orders"}, limits: limits.Unthrottled()}
			all = append(all, x)
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			last = ""
			continue
		case x == nil:
			bad()
		case m != nil:
			peer := m[1]
			if peer == "" {
				peer = "1"
			}
			if last != peer+m[2] || strings.HasSuffix(x.steps[len(x.steps)-1].text[len(x.steps[len(x.steps)-1].text)-1], "^@") && m[2] == "<" {
				x.steps = append(x.steps, step{line: i + 1, peer: peer, verb: m[2]})
			}
			s := &x.steps[len(x.steps)-1]
			s.text = append(s.text, m[3])
			last = peer + m[2]
			continue
		case key == "why":
		case key == "version" || key == "versions":
			x.versions = strings.Fields(value)
		case key == "connect":
			x.headers += value + "\n"
		case key == "queues":
			x.queues = strings.Fields(value)
		case key == "time":
			x.bubble = value == "fake"
		case key == "option":
			if !x.option(value) {
				bad()
			}
		default:
			peer, rest := "1", line
			if first, behind, found := strings.Cut(line, " "); found && len(first) == 1 {
				peer, rest = first, behind
			}
			verb, rest, _ := strings.Cut(rest, " ")
			x.steps = append(x.steps, step{line: i + 1, peer: peer, verb: verb, rest: rest})
		}
		last = ""
	}
	return all
}

func (x *exchange) option(text string) bool {
	name, value, _ := strings.Cut(text, "=")
	n := int64(atoi(value))
	switch name {
	case "strict":
		x.options.Strict = true
	case "auto-create":
		x.options.AutoCreate = true
	case "bytes-per-second":
		x.options.BytesPerSecond = n
	case "message-bytes":
		x.options.MessageBytes, x.limits.MessageBytes = n, n
	case "bytes-per-queue":
		x.limits.BytesPerQueue = n
	case "requests-per-second":
		x.limits.RequestsPerSecond = n
	default:
		return false
	}
	return true
}

// play is an exchange under way.
type play struct {
	*exchange
	t       *testing.T
	h       *house
	version string
	peers   map[string]*peer
	stopped bool              // there is no server any more
	words   map[string]string // what $name stands for
}

func (x *exchange) run(t *testing.T, version string) {
	pl := &play{exchange: x, t: t, version: version, peers: map[string]*peer{}, words: map[string]string{"version": version}}
	l := x.limits
	pl.h = openWith(t, x.options, &l, x.bubble, x.queues...)
	for _, q := range x.queues {
		pl.words[q] = q
	}
	for i := range x.steps {
		pl.step(&x.steps[i])
		if t.Failed() {
			t.Fatalf("%s:%d: at this step", x.file, x.steps[i].line)
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
		if pl.version == "none" {
			p = pl.h.dial()
		} else {
			p = pl.h.connect(pl.version, strings.Fields(pl.headers)...)
		}
		pl.peers[name] = p
	}
	return p
}

func (pl *play) step(s *step) {
	h, t := pl.h, pl.t
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s:%d: %s", pl.file, s.line, fmt.Sprintf(format, args...))
	}
	words := strings.Fields(pl.fill(s.rest))
	word := func(i int) string {
		if i >= len(words) {
			fail("%s needs more words", s.verb)
		}
		return words[i]
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s:%d", pl.file, s.line)
		}
	}()
	switch s.verb {
	case ">":
		pl.say(s)
	case "<":
		pl.hear(s, fail)
	case "closed":
		pl.peer(s.peer).closed()
	case "silent":
		pl.peer(s.peer).silent()
	case "beat": // one comes within so much time, and nothing else
		p := pl.peer(s.peer)
		p.net.SetReadDeadline(time.Now().Add(duration(word(0))))
		b := make([]byte, 1)
		if n, err := p.net.Read(b); n != 1 || b[0] != '\n' {
			fail("no heart-beat: %q %v", b[:n], err)
		}
	case "sleep":
		if !pl.bubble {
			fail("sleep needs fake time")
		}
		time.Sleep(duration(word(0)))
	case "close":
		pl.peer(s.peer).net.Close()
	case "half-close":
		if err := pl.peer(s.peer).net.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
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
	case "stopped":
		pl.stopped = true
	case "shutdown":
		if pl.bubble {
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
		fail("unknown step %q", s.verb)
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

var repeated = regexp.MustCompile(`\{(\d+)\*([^}]*)\}`)
var named = regexp.MustCompile(`\$[a-z][a-z0-9]*`)

// fill replaces $name and {9*text}, in which # is the number of the copy.
func (pl *play) fill(text string) string {
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		if !strings.Contains(parts[2], "#") {
			return strings.Repeat(parts[2], n)
		}
		var all strings.Builder
		for i := range n {
			all.WriteString(strings.ReplaceAll(parts[2], "#", strconv.Itoa(i+1)))
		}
		return all.String()
	})
	return named.ReplaceAllStringFunc(text, func(name string) string {
		word, known := pl.words[name[1:]]
		if !known {
			pl.t.Fatalf("%s: %s is not known", pl.file, name)
		}
		return word
	})
}

var octets = strings.NewReplacer("^@", "\x00", "^M", "\r", "^J", "\n", "^I", "\t", "^_", " ")

// hexes are octets that no text can show: ^xFF.
var hexes = regexp.MustCompile(`\^x[0-9A-F]{2}`)

func spell(text string) string {
	text = octets.Replace(text)
	return hexes.ReplaceAllStringFunc(text, func(h string) string {
		n, _ := strconv.ParseUint(h[2:], 16, 8)
		return string([]byte{byte(n)})
	})
}

// say writes what the client says: every line with a LF, but none behind NUL.
func (pl *play) say(s *step) {
	var text strings.Builder
	for _, line := range s.text {
		text.WriteString(pl.fill(line))
		if !strings.HasSuffix(line, "^@") && !strings.HasSuffix(line, "^.") {
			text.WriteString("\n")
		}
	}
	whole := strings.ReplaceAll(text.String(), "^.", "")
	pieces := strings.Split(whole, "^|")
	if len(pieces) == 2 && pieces[0] == "^*" { // every octet by itself
		pieces = strings.Split(spell(pieces[1]), "")
	}
	p := pl.peer(s.peer)
	for i, piece := range pieces {
		if i > 0 {
			time.Sleep(time.Millisecond) // a packet of its own, most likely
		}
		if _, err := io.WriteString(p.net, spell(piece)); err != nil {
			pl.t.Logf("%s:%d: %v", pl.file, s.line, err) // the server may have closed
			return
		}
	}
}

// hear reads one frame and compares it.
func (pl *play) hear(s *step, fail func(string, ...any)) {
	command, alias, _ := strings.Cut(s.text[0], " as ")
	f, err := pl.peer(s.peer).next(patient)
	if err != nil {
		fail("no %s: %v; read %q", command, err, pl.peer(s.peer).rest)
	}
	if f.command != command {
		fail("got %s %v %q, want %s", f.command, f.header, f.body, command)
	}
	if f.command == "ERROR" && (f.header["message"] == "" || f.body == "" || f.header["content-type"] != "text/plain" || f.header["code"] == "") {
		fail("an ERROR that does not say what is wrong: %v %q", f.header, f.body)
	}
	for i, line := range s.text[1:] {
		if line == "" {
			want := spell(pl.fill(strings.TrimSuffix(strings.Join(s.text[i+2:], "\n"), "^@")))
			if f.body != want {
				fail("the body is %.300q, want %.300q", f.body, want)
			}
			break
		}
		pl.compare(&f, line, fail)
	}
	if alias != "" {
		pl.words[alias] = ackOf(pl.version, &f)
		pl.words[alias+"id"] = f.header["message-id"]
		pl.words[alias+"receipt"] = f.header["message-id"]
		if ack := f.header["ack"]; ack != "" {
			pl.words[alias+"receipt"] = ack
		}
	}
}

// compare checks one line: name:value, name:* for any value, name~part, !name
// for a header that must not be there.
func (pl *play) compare(f *heard, line string, fail func(string, ...any)) {
	line = spell(pl.fill(line))
	if absent, found := strings.CutPrefix(line, "!"); found {
		if v, there := f.header[absent]; there {
			fail("%s has %s:%q", f.command, absent, v)
		}
		return
	}
	if name, part, found := strings.Cut(line, "~"); found && !strings.Contains(name, ":") {
		if !strings.Contains(f.header[name], part) {
			fail("%s has %s:%q, which must contain %q; %v", f.command, name, f.header[name], part, f.header)
		}
		return
	}
	name, value, _ := strings.Cut(line, ":")
	got, there := f.header[name]
	if !there || value != "*" && got != value {
		fail("%s has %s:%q (there: %v), want %q; %.300v", f.command, name, got, there, value, f.header)
	}
	if n := count(f.order, name); n > 1 {
		fail("%s has %s %d times", f.command, name, n)
	}
}

// ackOf is the headers by which an ACK names the message.
func ackOf(version string, f *heard) string {
	if version == "1.2" {
		return "id:" + f.header["ack"]
	}
	ack := "message-id:" + f.header["message-id"]
	if sub, there := f.header["subscription"]; there && version == "1.1" {
		ack = "subscription:" + sub + "\n" + ack
	}
	return ack
}

func count(names []string, name string) (n int) {
	for _, one := range names {
		if one == name {
			n++
		}
	}
	return n
}
