package gateway

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Octets in, the same octets out, in every form that can carry them; and where
// a form cannot, a named error before anything is stored.
func TestOctetsInOctetsOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.queue("octets")
	const target = basePath + "/queues/octets/messages"
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	bodies := map[string]string{
		"octets 0 to 255": string(all), "line ends": "\r\n\r\n\n\r", "markup": `&quot; <tag> \c \n \\`, "U+FFFE": "\ufffe", "emoji": "😀👩‍👩‍👧",
		"invalid UTF-8": "ok\xff\xc0\x80ok", "a surrogate in UTF-8": "\xed\xa0\x80", "right to left": "שלום עולם مرحبا", "empty": "", "controls": "\x00\x01\x1f\x7f\u0085\u2028",
		"base64 look": "AP8=", "a megabyte of nothing": strings.Repeat("\x00", 200<<10),
	}
	type message struct {
		Content         string
		ContentEncoding string
		Receipt         string
		Metadata        struct{ CustomProperties map[string]string }
	}
	next := func(query string) (m message, octets string) {
		t.Helper()
		var got struct{ Messages []message }
		a := ask(t, h.handler, "GET", target+"?timeoutInSeconds=0"+query, "")
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Messages) != 1 {
			t.Fatalf("%d %.200s %v", a.status, a.body, err)
		}
		m = got.Messages[0]
		octets = m.Content
		if m.ContentEncoding == "base64" {
			b, err := base64.StdEncoding.DecodeString(m.Content)
			if err != nil {
				t.Fatal(err)
			}
			octets = string(b)
		}
		if a := ask(t, h.handler, "DELETE", target+"/"+m.Receipt, ""); a.status != 204 || a.body != "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return m, octets
	}
	for name, body := range bodies {
		forms := []string{`{"content":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `","contentEncoding":"base64"}`}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(body) {
			property := body[:min(len(body), 1000)]
			p, _ := json.Marshal(property)
			forms = append(forms, `{"content":`+string(text)+`,"metadata":{"customProperties":{"p":`+string(p)+`}}}`)
		} else {
			raw := `{"messages":[{"content":"` + strings.NewReplacer("\\", `\\`, `"`, `\"`).Replace(body) + `"}]}`
			wantError(t, name, ask(t, h.handler, "POST", target, raw), 400, "CannotParseRequest", "")
		}
		for _, form := range forms {
			for _, query := range []string{"", "&contentEncoding=base64"} {
				if a := ask(t, h.handler, "POST", target, `{"messages":[`+form+`]}`); a.status != 200 {
					t.Fatalf("%s: %d %s", name, a.status, a.body)
				}
				m, octets := next(query)
				if octets != body {
					t.Errorf("%s%s: %d octets came back as %d: %.60q", name, query, len(body), len(octets), octets)
				}
				coded := query != "" || !utf8.ValidString(body)
				if (m.ContentEncoding == "base64") != coded || (m.Metadata.CustomProperties["content-encoding"] == "base64") != coded {
					t.Errorf("%s%s: encoding %q, properties %v", name, query, m.ContentEncoding, m.Metadata.CustomProperties)
				}
				if p, ok := m.Metadata.CustomProperties["p"]; ok && p != body[:min(len(body), 1000)] {
					t.Errorf("%s: the property came back as %q", name, p)
				}
			}
		}
	}
	for _, bad := range []string{`"\ud800"`, `"\udfff\ud800"`, "\"\xff\"", "\"\x01\""} {
		for _, body := range []string{`{"messages":[{"content":` + bad + `}]}`, `{"messages":[{"content":"a","metadata":{"channelId":` + bad + `}}]}`, `{"messages":[{"content":"a","metadata":{"customProperties":{"p":` + bad + `}}}]}`} {
			wantError(t, bad, ask(t, h.handler, "POST", target, body), 400, "CannotParseRequest", "the body is not valid JSON: at octet ")
		}
	}
	if a := ask(t, h.handler, "GET", target+"?timeoutInSeconds=0", ""); a.body != `{"messages":[]}` {
		t.Errorf("something refused was stored: %s", a.body)
	}
}
