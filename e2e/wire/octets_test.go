package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// everyOctet is 0 to 255.
var everyOctet = func() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}()

// bodies are those of field case FC-19.
var bodies = map[string]string{
	"empty":             "",
	"one blank":         " ",
	"every octet":       everyOctet,
	"ASCII":             everyOctet[:128],
	"controls":          everyOctet[:32] + "\x7f",
	"NUL":               "\x00",
	"line ends":         "a\r\nb\r\n\r\n\n\r",
	"escapes":           `&quot; <tag> \c \n \\ \u0041 "quoted" 'single' /slash/ \/`,
	"HTML":              "<script>&amp;\u2028\u2029</script>",
	"JSON in JSON":      `{"messages":[{"content":"\"\\u0000\""}]}`,
	"U+FFFE":            "\ufffe\uffff",
	"BOM":               "\ufefftext\ufeff",
	"replacement":       "\ufffd",
	"emoji":             "😀👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿",
	"right to left":     "\u202eשלום مرحبا\u202c",
	"combining":         "e\u0301 é",
	"last code point":   "\U0010ffff",
	"CJK":               "消息队列",
	"invalid UTF-8":     "abc\xff\xfe\x80def",
	"cut rune":          "é"[:1],
	"overlong":          "\xc0\xaf",
	"surrogate octets":  "\xed\xa0\x80",
	"beyond Unicode":    "\xf4\x90\x80\x80",
	"Latin-1":           "caf\xe9",
	"base64 text":       base64.StdEncoding.EncodeToString([]byte("text")),
	"base64 of octets":  base64.StdEncoding.EncodeToString([]byte("\xff\xfe")),
	"long with escapes": strings.Repeat("\"\\\n\t\x01é😀", 5000),
}

// spellings are ways to write a body into the JSON of a publish; ok is false
// where this way cannot hold it.
var spellings = map[string]func(body string) (fields string, ok bool){
	"text": func(body string) (string, bool) {
		if !utf8.ValidString(body) {
			return "", false
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(body)
		return `"content":` + strings.TrimSpace(b.String()), true
	},
	"all escaped": func(body string) (string, bool) {
		if !utf8.ValidString(body) {
			return "", false
		}
		var b strings.Builder
		for _, r := range body {
			if r > 0xffff {
				fmt.Fprintf(&b, `\u%04X\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		return `"content":"` + b.String() + `"`, true
	},
	"base64": func(body string) (string, bool) {
		return `"contentEncoding":"base64","content":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `"`, true
	},
	"BASE64": func(body string) (string, bool) {
		return `"content":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `","contentEncoding":"BASE64"`, true
	},
}

// body is the octets of a message, after the checks of how it is spelled.
func body(t *testing.T, m rest.Message, asked bool) string {
	t.Helper()
	mark := m.Metadata.CustomProperties["content-encoding"]
	switch m.ContentEncoding {
	case "":
		if asked || mark != "" {
			t.Errorf("text, with base64 asked (%v) or the mark %q", asked, mark)
		}
		return m.Content
	case "base64":
		octets, err := base64.StdEncoding.DecodeString(m.Content)
		if err != nil {
			t.Error(err)
		}
		if mark != "base64" {
			t.Errorf("base64, with the mark %q", mark)
		}
		if !asked && utf8.Valid(octets) {
			t.Errorf("text came as base64: %.40q", octets)
		}
		return string(octets)
	}
	t.Errorf("contentEncoding is %q", m.ContentEncoding)
	return ""
}

// TestOctets is field case FC-19 over REST: the same octets come out as went
// in, however they are spelled, and a spelling that cannot hold them is
// refused before anything is stored.
func TestOctets(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "archive", "--limits-profile", "unthrottled")
	c := rest.Dial(t, s.REST)
	for name, want := range bodies {
		for how, spell := range spellings {
			fields, ok := spell(want)
			if !ok {
				continue
			}
			what := name + " as " + how
			c.Must(t, 200, "POST", "/queues/archive/messages", `{"messages":[{`+fields+`}]}`)
			if n := c.Stats(t, "archive").Queue.Bytes; n != int64(len(want)) {
				t.Errorf("%s: %d octets are stored, want %d", what, n, len(want))
			}
			for _, asked := range []bool{false, true} {
				query := "visibilityInSeconds=0&timeoutInSeconds=0"
				if asked {
					query += "&contentEncoding=base64"
				}
				m := c.Get(t, "archive", query)
				if len(m) != 1 {
					t.Fatalf("%s: %d messages", what, len(m))
				}
				if got := body(t, m[0], asked); got != want {
					t.Errorf("%s: got %.60q, want %.60q", what, got, want)
				}
			}
			m := c.Get(t, "archive", "timeoutInSeconds=0")
			c.Delete(t, 204, "archive", m[0].Receipt)
		}
	}
}

// TestUnspeakable: what JSON text cannot hold is refused by name, and nothing
// is stored of it, whatever stands beside it.
func TestUnspeakable(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "archive")
	c := rest.Dial(t, s.REST)
	for _, tt := range []struct{ fields, code, say string }{
		{`"content":"\ud800"`, "CannotParseRequest", `\ud800 is half of a surrogate pair`},
		{`"content":"a\udc00b"`, "CannotParseRequest", `\udc00 is half of a surrogate pair`},
		{`"content":"\ud83dx"`, "CannotParseRequest", `\ud83d is half of a surrogate pair`},
		{`"content":"\ud83d\ud83d"`, "CannotParseRequest", `\ud83d is half of a surrogate pair`},
		{"\"content\":\"\xff\"", "CannotParseRequest", "not UTF-8"},
		{"\"content\":\"\xed\xa0\x80\"", "CannotParseRequest", "not UTF-8"},
		{"\"content\":\"a\nb\"", "CannotParseRequest", "control character"},
		{`"content":"a","metadata":{"customProperties":{"p":"\ud800"}}`, "CannotParseRequest", "half of a surrogate pair"},
		{"\"content\":\"a\",\"metadata\":{\"customProperties\":{\"p\":\"\xff\"}}", "CannotParseRequest", "not UTF-8"},
		{`"content":"a","metadata":{"channelId":"\ud800"}`, "CannotParseRequest", "half of a surrogate pair"},

		{`"content":"abc","contentEncoding":"base64"`, "InvalidParameter", "messages[1]: content is not base64"},
		{`"content":"YQ","contentEncoding":"base64"`, "InvalidParameter", "content is not base64"},
		{`"content":"YR==","contentEncoding":"base64"`, "InvalidParameter", "content is not base64"},
		{`"content":"YWJj\nYWJj","contentEncoding":"base64"`, "InvalidParameter", "content is not base64"},
		{`"content":"_w==","contentEncoding":"base64"`, "InvalidParameter", "content is not base64"},
		{`"content":"a","contentEncoding":"gzip"`, "InvalidParameter", "contentEncoding must be base64"},

		{`"content":"a","metadata":{"channelId":"a/b"}`, "InvalidParameter", "a letter, a digit or one of _ . : @ = + -"},
		{`"content":"a","metadata":{"channelId":"a b"}`, "InvalidParameter", "1 to 64 characters"},
		{`"content":"a","metadata":{"channelId":"a*"}`, "InvalidParameter", "channelId"},
		{`"content":"a","metadata":{"channelId":"é"}`, "InvalidParameter", "channelId"},
		{`"content":"a","metadata":{"channelId":"` + strings.Repeat("c", 65) + `"}`, "InvalidParameter", "channelId"},
		{`"content":"a","metadata":{"channelId":"a\r\nb"}`, "InvalidParameter", "channelId"},
		{`"content":"a","metadata":{"channelId":"\u0000"}`, "InvalidParameter", "channelId"},
		{`"content":"a","metadata":{"customProperties":{"a b":"x"}}`, "InvalidParameter", "a letter, a digit or one of _ . -"},
		{`"content":"a","metadata":{"customProperties":{"":"x"}}`, "InvalidParameter", "1 to 64 characters"},
		{`"content":"a","metadata":{"customProperties":{"ä":"x"}}`, "InvalidParameter", "a letter, a digit"},
		{`"content":"a","metadata":{"customProperties":{"content-encoding":"gzip"}}`, "InvalidParameter", "reserved"},
	} {
		a := c.Must(t, 0, "POST", "/queues/archive/messages", `{"messages":[{"content":"good"},{`+tt.fields+`},{"content":"good too"}]}`)
		proper(t, tt.fields, a)
		code, message, err := a.Error()
		if err != nil || a.Status != 400 || code != tt.code || !strings.Contains(message, tt.say) {
			t.Errorf("%q: %d %s (%s) %v", tt.fields, a.Status, code, message, err)
		}
	}
	if err := holds(t, c, "archive", rest.Stats{}); err != nil {
		t.Error(err)
	}
}

// TestProperties: values of properties and names of channels come back as they
// were.
func TestProperties(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "archive", "--limits-profile", "unthrottled")
	c := rest.Dial(t, s.REST)
	for name, value := range bodies {
		if !utf8.ValidString(value) || len(value) > 4096 {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		c.Must(t, 200, "POST", "/queues/archive/messages",
			fmt.Sprintf(`{"messages":[{"content":"x","metadata":{"customProperties":{"p":%s,"P":"","a.b-c_9":"é"}}}]}`, text))
		m := c.Get(t, "archive", "timeoutInSeconds=0")
		p := m[0].Metadata.CustomProperties
		if len(p) != 3 || p["p"] != value || p["P"] != "" || p["a.b-c_9"] != "é" {
			t.Errorf("%s: %q", name, p)
		}
		c.Delete(t, 204, "archive", m[0].Receipt)
	}
	const channel = "aZ09_.:@=+-"
	for _, id := range []string{channel, strings.Repeat("c", 64), "-", "=", "Case", "case"} {
		c.Must(t, 200, "POST", "/queues/archive/messages", fmt.Sprintf(`{"messages":[{"content":%q,"metadata":{"channelId":%q}}]}`, id, id))
	}
	for _, id := range []string{channel, strings.Repeat("c", 64), "-", "=", "Case", "case"} {
		m := c.Get(t, "archive", "timeoutInSeconds=0&channelFilter="+escape(id))
		if len(m) != 1 || m[0].Metadata.ChannelID != id || m[0].Content != id {
			t.Errorf("channel %s gave %+v", id, m)
		}
		if n := field(t, field(t, c.Must(t, 200, "GET", "/queues/archive/stats?channelId="+escape(id), "").Body, "queue"), "inFlightMessages"); string(n) != "1" {
			t.Errorf("channel %s has %s in flight", id, n)
		}
	}
}

// TestHandedBack: who knows only OCI's fields and hands back what it was given
// (a redrive from a dead letter queue) stores the same octets again.
func TestHandedBack(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "archive")
	c := rest.Dial(t, s.REST)
	c.Must(t, 200, "POST", "/queues/archive/messages", `{"messages":[{"content":"/wAB","contentEncoding":"base64","metadata":{"customProperties":{"k":"v"}}}]}`)
	for range 2 {
		m := c.Get(t, "archive", "timeoutInSeconds=0")
		if got := body(t, m[0], false); got != "\xff\x00\x01" || m[0].Metadata.CustomProperties["k"] != "v" {
			t.Fatalf("%q %v", got, m[0].Metadata.CustomProperties)
		}
		c.Delete(t, 204, "archive", m[0].Receipt)
		again, err := json.Marshal(map[string]any{"messages": []any{map[string]any{
			"content": m[0].Content, "metadata": map[string]any{"customProperties": m[0].Metadata.CustomProperties},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		c.Must(t, 200, "POST", "/queues/archive/messages", string(again))
		if n := c.Stats(t, "archive").Queue.Bytes; n != 5 {
			t.Errorf("%d octets are stored, want 5", n)
		}
	}
}

// TestLostAnswer is step 4 of FC-19: the answer to a publish is lost after the
// message was stored. Sent again under the same retry token it is one message,
// without one it is two.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "archive", "--create-queue", "other")
	c := rest.Dial(t, s.REST)
	for _, tt := range []struct {
		headers []string
		want    int64
	}{
		{[]string{"opc-retry-token: 5c1f"}, 1},
		{nil, 2},
	} {
		before := c.Stats(t, "archive").Queue.Visible
		lost := rest.Dial(t, s.REST)
		const body = `{"messages":[{"content":"caf\u00e9 \u00ff"}]}`
		if err := lost.Send("POST", "/queues/archive/messages", body, tt.headers...); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, func() error {
			if n := c.Stats(t, "archive").Queue.Visible; n != before+1 {
				return fmt.Errorf("%d messages", n)
			}
			return nil
		})
		lost.Reset()
		first := rest.IDs(t, c.Must(t, 200, "POST", "/queues/archive/messages", body, tt.headers...))
		if n := c.Stats(t, "archive").Queue.Visible - before; n != tt.want {
			t.Errorf("%v: %d messages, want %d", tt.headers, n, tt.want)
		}
		if tt.headers == nil {
			continue
		}
		// And after kill -9 too.
		s.Kill()
		s.Restart()
		c = rest.Dial(t, s.REST)
		again := rest.IDs(t, c.Must(t, 200, "POST", "/queues/archive/messages", body, tt.headers...))
		if again[0] != first[0] {
			t.Errorf("ids %d and %d", first[0], again[0])
		}
		if n := c.Stats(t, "archive").Queue.Visible - before; n != 1 {
			t.Errorf("%d messages after a restart, want 1", n)
		}
		// Other messages under the same token are a mistake; on another queue
		// it is another token.
		a := c.Must(t, 0, "POST", "/queues/archive/messages", `{"messages":[{"content":"x"}]}`, tt.headers...)
		a.Is(t, 400, "InvalidParameter")
		c.Must(t, 200, "POST", "/queues/other/messages", body, tt.headers...)
	}
}
