package store

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
)

// What is on disk must be readable for ever, so its bytes are pinned:
// go test ./store -update writes them anew, and the diff shows what an old
// store would no longer be read by.
var update = flag.Bool("update", false, "write testdata anew")

// golden compares lines with a file of testdata, or writes it.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not what it was (-pinned +now); a change needs a new Format or version:\n%s", path, diff)
	}
}

// pinned reads the lines "name: hex" or "name: quoted text" of a file of
// testdata.
func pinned(t testing.TB, name string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		b, err := hex.DecodeString(strings.ReplaceAll(value, " ", ""))
		if strings.HasPrefix(value, "`") {
			value, err = strconv.Unquote(value)
			b = append([]byte{rowVersion}, value...)
		}
		if !ok || err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out[name] = b
	}
	return out
}

// fields is hex with a space behind each field; what is left is the last.
func fields(b []byte, lengths ...int) string {
	var out []string
	for _, n := range lengths {
		n = min(n, len(b))
		out, b = append(out, hex.EncodeToString(b[:n])), b[n:]
	}
	if len(b) > 0 {
		out = append(out, hex.EncodeToString(b))
	}
	return strings.Join(out, " ")
}

// keyExamples are one key of each kind, as docs/keys.md shows them.
func keyExamples() []string {
	at := queue.Instant(1_767_225_600_000) // 2026-01-01T00:00:00Z
	const lane, id = LaneID(7), queue.MessageID(42)
	line := func(name, key string) string { return name + ": " + key }
	return []string{
		line("m", fields(rowKey(nil, kindMessage, lane, id), 1, 8, 8)),
		line("l", fields(rowKey(nil, kindLease, lane, id), 1, 8, 8)),
		line("v", fields(rowKey(nil, kindReturned, lane, id), 1, 8, 8)),
		line("t", fields(timerKey(nil, kindDue, at, lane, id), 1, 8, 8, 8)),
		line("x", fields(timerKey(nil, kindExpiry, at, lane, id), 1, 8, 8, 8)),
		line("c queue", fields(laneKey(nil, LaneKey{Queue: 3}), 1, 8, 4, 1)),
		line("c channel", fields(laneKey(nil, LaneKey{Queue: 3, Channel: "eu"}), 1, 8, 4, 1)),
		line("c dead", fields(laneKey(nil, LaneKey{Queue: 3, Dead: true, Channel: "eu"}), 1, 8, 4, 1)),
		line("c group", fields(laneKey(nil, LaneKey{Queue: 3, Group: 5, Channel: "eu"}), 1, 8, 4, 1)),
		line("d", fields(deadLaneKey(nil, lane), 1, 8)),
		line("c unrouted", fields(laneKey(nil, LaneKey{Queue: 3, Group: 1<<32 - 1, Channel: "eu"}), 1, 8, 4, 1)),
		line("z", fields(removalKey(nil, lane), 1, 8)),
		line("b", fields(idKey(nil, kindBody, id), 1, 8)),
		line("h", fields(idKey(nil, kindHolders, id), 1, 8)),
		line("u queue", fields(sharedKey(nil, 3, ""), 1, 8)),
		line("u channel", fields(sharedKey(nil, 3, "eu"), 1, 8)),
		line("q", fields(queueKey(nil, 3), 1, 8)),
		line("w 1", fields(workKey(nil, at, "wr.1"), 1, 1, 8)),
		line("w 2", fields(workIDKey(nil, "wr.1"), 1, 1)),
		line("r 1", fields(tokenHourKey(nil, hourOf(at), "publish/3", "abc"), 1, 1, 8, 9, 1)),
		line("r 2", fields(tokenKey(nil, "publish/3", "abc"), 1, 1, 9, 1)),
		line("s format", fields(storeKey("format"), 1)),
		line("s key", fields(storeKey("key"), 1)),
		line("s generation", fields(storeKey("generation"), 1)),
		line("s state", fields(storeKey("state"), 1)),
	}
}

func TestKeysArePinned(t *testing.T) { golden(t, "keys.golden", keyExamples()) }

// TestKeysAreDocumented finds every example in the page that explains it.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range keyExamples() {
		if name, key, _ := strings.Cut(line, ": "); !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/keys.md does not show the key %s: %s", name, key)
		}
	}
}

// rowExample is one value: how it is written, and how it is read back.
type rowExample struct {
	name  string
	bytes []byte
	want  any
	read  func([]byte) (any, error)
}

// sized is an m row as a whole.
type sized struct {
	Message
	Size uint32
}

func encodeMessage(m *Message, size uint32) []byte {
	c := coder{}
	m.codeHead(&c, &size)
	return append(c.b, m.Body...)
}

func encodeBody(b *Body) []byte {
	c := coder{}
	b.codeHead(&c)
	return append(c.b, b.Body...)
}

func encodeEntry(e Entry) []byte {
	c := coder{}
	c.version(rowVersion)
	e.code(&c)
	return c.b
}

func encoded[T any](v T, code func(*T, *coder)) []byte {
	c := coder{}
	code(&v, &c)
	return c.b
}

func readAs[T any](b []byte, code func(*T, *coder)) (any, error) {
	var v T
	c := coder{b: b, reading: true}
	code(&v, &c)
	return v, c.done()
}

func rowExamples() []rowExample {
	at := queue.Instant(1_767_225_600_000)
	message := func(name string, change func(*Message)) rowExample {
		m := Message{Message: queue.Message{Body: []byte("body")}, CreatedAt: at, ExpireAfter: at + 86_400_000}
		change(&m)
		return rowExample{"m " + name, encodeMessage(&m, 300), sized{m, 300}, func(b []byte) (any, error) {
			m, size, err := decodeMessage(b)
			return sized{m, size}, err
		}}
	}
	due := func(m *Message) { m.DueAt = at + 1000 }
	vis := func(m *Message) { m.Visibility = 300 }
	indexed := func(m *Message) { m.Indexed = true }
	dead := func(m *Message) { m.Dead = &Dead{queue.DeliveryCountReached, 5, at + 2000} }
	content := func(m *Message) { m.ContentType = "text/plain" }
	properties := func(m *Message) { m.Properties = []queue.Property{{Name: "a", Value: "1"}, {Name: "b", Value: ""}} }

	shared := func(m *Message) { m.Shared, m.Message = true, queue.Message{} }

	entry := Entry{ExpireAfter: at + 86_400_000, Lease: 9, Size: 300, Deliveries: 2, Visibility: 300, Indexed: true}
	returned := func(name string, e Entry) rowExample {
		return rowExample{"v " + name, encodeEntry(e), e, func(b []byte) (any, error) { return decodeReturned(0, b) }}
	}
	lease := func(name string, l Lease) rowExample {
		return rowExample{"l " + name, encoded(l, (*Lease).code), l, func(b []byte) (any, error) { return readAs(b, (*Lease).code) }}
	}
	lane := func(name string, l Lane) rowExample {
		return rowExample{"c " + name, encoded(l, (*Lane).code), l, func(b []byte) (any, error) { return readAs(b, (*Lane).code) }}
	}
	state := func(name string, s State) rowExample {
		return rowExample{"s state " + name, encoded(s, (*State).code), s, func(b []byte) (any, error) { return readAs(b, (*State).code) }}
	}
	body := &Body{ID: 42, Queue: 3, Channel: "eu", Message: queue.Message{
		Body: []byte("body"), ContentType: "text/plain", Properties: []queue.Property{{Name: "a", Value: "1"}, {Name: "b", Value: ""}},
	}}
	token := RetryToken{At: at, Value: []byte{1, 2, 3}}
	q, w := queueExample(), workExample()
	qj, _ := appendJSON(nil, q)
	wj, _ := appendJSON(nil, w)
	return []rowExample{
		message("plain", func(*Message) {}),
		message("empty", func(m *Message) { m.Body = nil }),
		message("due", due),
		message("visibility", vis),
		message("indexed", indexed),
		message("dead", dead),
		message("content type", content),
		message("properties", properties),
		message("all", func(m *Message) {
			for _, f := range []func(*Message){due, vis, indexed, dead, content, properties} {
				f(m)
			}
		}),
		message("shared", shared),
		message("shared, all", func(m *Message) {
			for _, f := range []func(*Message){due, vis, indexed, dead, shared} {
				f(m)
			}
		}),
		lease("long", Lease{entry, at + 30_000}),
		lease("plain", Lease{Entry{ExpireAfter: at, Lease: 1, Deliveries: 1}, at + 1}),
		returned("long", entry),
		returned("due", Entry{ExpireAfter: at, Size: 1}),
		returned("shared", Entry{ExpireAfter: at, Size: 1, Shared: true}),
		returned("shared and indexed", Entry{ExpireAfter: at, Size: 1, Indexed: true, Shared: true}),
		lane("long", Lane{ID: 7, Cursor: 42, Oldest: 40, Returning: 41, LastAfter: at, Fresh: 1, Returned: 2, InFlight: 3, Delayed: 4, Indexed: 5, Bytes: 6000}),
		lane("sharing", Lane{ID: 7, Cursor: 42, Oldest: 40, Returning: 41, LastAfter: at, Fresh: 1, Bytes: 6000, Shared: 5000}),
		lane("empty", Lane{ID: 7, Cursor: 42, Oldest: 43, Returning: 1<<64 - 1}),
		state("long", State{Position: 1, Now: at, Message: 42, Lease: 9, Lane: 7, Queue: 3, DueFrom: at + 1, ExpiryFrom: at + 2}),
		state("new", State{}),
		{"b", encodeBody(body), body, func(b []byte) (any, error) { return decodeBody(42, b) }},
		{"b plain", encodeBody(&Body{ID: 42, Queue: 3}), &Body{ID: 42, Queue: 3}, func(b []byte) (any, error) { return decodeBody(42, b) }},
		{"h", []byte{rowVersion, 3}, uint32(3), func(b []byte) (any, error) { return decodeHolders(b) }},
		{"u", []byte{rowVersion, 0xac, 0x02}, int64(300), func(b []byte) (any, error) { return decodeShared(b) }},
		{"r", encoded(token, (*RetryToken).code), token, func(b []byte) (any, error) { return readAs(b, (*RetryToken).code) }},
		{"q", qj, q, func(b []byte) (any, error) { var q Queue; err := parseJSON(b, &q); return q, err }},
		{"w", wj, w, func(b []byte) (any, error) { var w queue.WorkRequest; err := parseJSON(b, &w); return w, err }},
	}
}

func TestRowsArePinned(t *testing.T) {
	var lines []string
	for _, r := range rowExamples() {
		value := hex.EncodeToString(r.bytes)
		if r.bytes[1] == '{' { // JSON behind the version
			value = "`" + string(r.bytes[1:]) + "`"
		}
		lines = append(lines, r.name+": "+value)
	}
	golden(t, "rows.golden", lines)

	old := pinned(t, "rows.golden")
	for _, r := range rowExamples() {
		got, err := r.read(old[r.name])
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s read back (-written +read):\n%s", r.name, diff)
		}
	}
}

// TestRowsRefuse cuts every row short, adds to it, and gives it another
// version.
func TestRowsRefuse(t *testing.T) {
	for _, r := range rowExamples() {
		wrong := append([]byte(nil), r.bytes...)
		wrong[0]++
		if _, err := r.read(wrong); err == nil {
			t.Errorf("%s: version %d was read", r.name, wrong[0])
		}
		if r.name[0] == 'm' { // the body is the rest, however long
			wrong = append([]byte(nil), r.bytes...)
			wrong[1] |= knownFlags + 1
			if _, err := r.read(wrong); err == nil {
				t.Errorf("%s: unknown flags were read", r.name)
			}
			continue
		}
		if r.name[0] == 'b' { // here too
			continue
		}
		for n := range r.bytes {
			if _, err := r.read(r.bytes[:n]); err == nil {
				t.Errorf("%s: the first %d of %d octets were read", r.name, n, len(r.bytes))
			}
		}
		if _, err := r.read(append(append([]byte(nil), r.bytes...), 'x')); err == nil {
			t.Errorf("%s: one octet too many was read", r.name)
		}
	}
}
