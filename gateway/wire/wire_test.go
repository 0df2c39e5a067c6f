package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
)

// skip reads body as any value and reports the error.
func skip(body string) error {
	var r wire.Reader
	r.Reset([]byte(body))
	r.Skip()
	return r.End()
}

// members begins an object with n members n0, n1, ...
func members(n int) string {
	b := []byte{'{'}
	for i := range n {
		b = fmt.Appendf(b, `"n%d":%d,`, i, i)
	}
	return strings.TrimSuffix(string(b), ",")
}

func TestSkip(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `-1.5e+10`, `1E-2`, `""`, ` { } `, "\t[\r\n1 , 2 ]",
		`{"a":{"a":{"a":[{},[],{"b":null}]}}}`, `"\u0000\ud83d\ude00\uFFFE\/\b\f\n\r\t\"\\"`, `"é\u00e9 日本 😀"`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32),
		`[` + strings.Repeat(`1,`, 9999) + `1]`, members(63) + `}`, members(9999) + `}`, `[` + members(80) + `},` + members(80) + `}]`,
	} {
		if err := skip(body); err != nil {
			t.Errorf("%.60s: %v", body, err)
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%.60s: encoding/json refuses it", body)
		}
	}
}

func TestSkipRefuses(t *testing.T) {
	for _, tt := range []struct {
		body string
		code queue.Code
		text string // part of the message
	}{
		{``, queue.CannotParseRequest, "at octet 0 it ends where a value should stand"},
		{`  `, queue.CannotParseRequest, "ends where"},
		{`nul`, queue.CannotParseRequest, "null is misspelt"},
		{`True`, queue.CannotParseRequest, "no value begins"},
		{`'a'`, queue.CannotParseRequest, "no value begins"},
		{`{"a":1}x`, queue.CannotParseRequest, "at octet 7 something stands behind"},
		{`{} {}`, queue.CannotParseRequest, "behind"},
		{`{"a":1,}`, queue.CannotParseRequest, "a name in quotes is missing"},
		{`{a:1}`, queue.CannotParseRequest, "a name in quotes"},
		{`{"a" 1}`, queue.CannotParseRequest, "a colon is missing"},
		{`{"a":1 "b":2}`, queue.CannotParseRequest, "a comma or '}' is missing"},
		{`[1,]`, queue.CannotParseRequest, "no value begins"},
		{`[1 2]`, queue.CannotParseRequest, "a comma or ']' is missing"},
		{`[1`, queue.CannotParseRequest, "a comma or ']'"},
		{`[`, queue.CannotParseRequest, "ends where"},
		{`{`, queue.CannotParseRequest, "a name in quotes"},
		{`[}`, queue.CannotParseRequest, "no value begins"},
		{`{"a":1,"b":2,"a":3}`, queue.CannotParseRequest, `the name "a" stands twice`},
		{`{"a":1,"\u0061":3}`, queue.CannotParseRequest, `the name "a" stands twice`},
		{members(100) + `,"n99":0}`, queue.CannotParseRequest, `the name "n99" stands twice`},
		{members(64) + `,"n0":0}`, queue.CannotParseRequest, `the name "n0" stands twice`},
		{`{"x":` + members(100) + `},"x":0}`, queue.CannotParseRequest, `the name "x" stands twice`},
		{`01`, queue.CannotParseRequest, "behind"},
		{`-`, queue.CannotParseRequest, "a number is misspelt"},
		{`1.`, queue.CannotParseRequest, "a number is misspelt"},
		{`1e`, queue.CannotParseRequest, "a number is misspelt"},
		{`+1`, queue.CannotParseRequest, "no value begins"},
		{`.5`, queue.CannotParseRequest, "no value begins"},
		{`NaN`, queue.CannotParseRequest, "no value begins"},
		{`"abc`, queue.CannotParseRequest, "ends inside a string"},
		{`"abcdefghijk`, queue.CannotParseRequest, "ends inside a string"},
		{`"abc\`, queue.CannotParseRequest, "ends inside a string"},
		{`"\x41"`, queue.CannotParseRequest, "unknown escape"},
		{`"\u12g4"`, queue.CannotParseRequest, "four hex digits"},
		{`"\u12`, queue.CannotParseRequest, "four hex digits"},
		{`"\ud800"`, queue.CannotParseRequest, `\ud800 is half of a surrogate pair`},
		{`"\udc00\ud800"`, queue.CannotParseRequest, `\udc00 is half`},
		{`"\ud800\u0041"`, queue.CannotParseRequest, "half"},
		{`"\ud800\n"`, queue.CannotParseRequest, "half"},
		{"\"a\nb\"", queue.CannotParseRequest, "control character (0x0a)"},
		{"\"\x00\"", queue.CannotParseRequest, "control character (0x00)"},
		{"\"\xff\"", queue.CannotParseRequest, "not UTF-8"},
		{"\"\xed\xa0\x80\"", queue.CannotParseRequest, "not UTF-8"}, // a surrogate in UTF-8 clothing
		{"\"\xc0\x80\"", queue.CannotParseRequest, "not UTF-8"},
		{"\"1234567\xf0\x9f\x98\"", queue.CannotParseRequest, "not UTF-8"},
		{"{\"\xff\":1}", queue.CannotParseRequest, "not UTF-8"},
		{"\ufeff{}", queue.CannotParseRequest, "no value begins"}, // byte order mark
		{strings.Repeat("[", 33), queue.CannotParseRequest, "deeper than 32"},
		{`{"a":[` + strings.Repeat(`1,`, 10000) + `1]}`, queue.InvalidParameter, "a has more than 10000 elements"},
		{`[` + strings.Repeat(`[`+strings.Repeat(`1,`, 9000)+`1],`, 15) + `1]`, queue.InvalidParameter, "more than 131072 values"},
	} {
		err := skip(tt.body)
		if queue.CodeOf(err) != tt.code || !strings.Contains(queue.MessageOf(err), tt.text) {
			t.Errorf("%.60q: got %v, want %s with %q", tt.body, err, tt.code, tt.text)
		}
	}
}

func TestPathAndTypes(t *testing.T) {
	var r wire.Reader
	for _, tt := range []struct{ body, text string }{
		{`{"a":[0,{"b":{"c":true}}]}`, "a[1].b.c must be a string, not a boolean"},
		{`{"a":[0,{"b":{"c":null}}]}`, "a[1].b.c must be a string, not null"},
		{`{"a":[0,{"b":[]}]}`, "a[1].b must be an object, not an array"},
		{`{"a":[0,"x"]}`, "a[1] must be an object, not a string"},
		{`{"a":7}`, "a must be an array, not a number"},
		{`"x"`, "the body must be an object, not a string"},
	} {
		r.Reset([]byte(tt.body))
		for ok := r.Object(); ok; {
			if _, ok = r.Name(); !ok {
				break
			}
			r.Array()
			r.More()
			r.Int(32)
			r.More()
			r.Object()
			r.Name()
			r.Object()
			r.Name()
			r.Text()
		}
		if err := r.Err(); queue.CodeOf(err) != queue.InvalidParameter || queue.MessageOf(err) != tt.text {
			t.Errorf("%s: got %v, want %q", tt.body, err, tt.text)
		}
	}
}

func TestNumbers(t *testing.T) {
	var r wire.Reader
	for body, want := range map[string]int64{"0": 0, "-0": 0, "2147483647": 1<<31 - 1, "-2147483648": -1 << 31} {
		r.Reset([]byte(body))
		if got := r.Int(32); r.End() != nil || got != want {
			t.Errorf("%s: %d %v", body, got, r.Err())
		}
	}
	for _, body := range []string{"2147483648", "1.0", "1e3", "99999999999999999999"} {
		r.Reset([]byte(body))
		if r.Int(32); queue.CodeOf(r.Err()) != queue.InvalidParameter {
			t.Errorf("%s: %v", body, r.Err())
		}
	}
	for body, want := range map[string]float64{"0.1": 0.1, "9007199254740991": 1<<53 - 1, "1e300": 1e300, "-2.5": -2.5} {
		r.Reset([]byte(body))
		if got := r.Float(); r.End() != nil || got != want {
			t.Errorf("%s: %v %v", body, got, r.Err())
		}
	}
	for _, body := range []string{"9007199254740992", "9007199254740993", "0.1234567890123456", "1e999"} {
		r.Reset([]byte(body))
		if r.Float(); queue.CodeOf(r.Err()) != queue.InvalidParameter {
			t.Errorf("%s: %v", body, r.Err())
		}
	}
}

// Every text comes back as it went, through our reader and through Go's own.
func TestStringRoundTrip(t *testing.T) {
	texts := []string{"", "a", `"`, `\`, "\x00\x01\x1f\x7f", "&quot; <tag> \\c \\n \\\\", "\r\n\r\n", "\u2028\u2029\ufffe\uffff", "\U0001F600", "שלום", "12345678\"12345678\\1234567\n"}
	for n := range 64 {
		texts = append(texts, strings.Repeat("x", n)+"\n"+strings.Repeat("é", n%9)+`"`)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var b strings.Builder
		for range rng.IntN(40) {
			switch rng.IntN(4) {
			case 0:
				b.WriteByte(byte(rng.IntN(128)))
			case 1:
				b.WriteRune(rune(rng.IntN(utf8.MaxRune)))
			default:
				b.WriteByte('a')
			}
		}
		texts = append(texts, strings.ToValidUTF8(b.String(), "?"))
	}
	var r wire.Reader
	for _, s := range texts {
		out := wire.AppendString(nil, s)
		if !bytes.Equal(out, wire.AppendString(nil, []byte(s))) {
			t.Fatalf("%q: string and octets differ", s)
		}
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != s {
			t.Fatalf("%q spelt %s reads back as %q, %v", s, out, back, err)
		}
		goes, _ := json.Marshal(s)
		for _, spelling := range [][]byte{out, goes} {
			r.Reset(spelling)
			got := r.Text()
			if err := r.End(); err != nil || got.String() != s || got.Len() != len(s) || string(got.Append([]byte("x"))) != "x"+s {
				t.Fatalf("%s: read %q (%d octets), %v", spelling, got.String(), got.Len(), err)
			}
		}
	}
}

func TestAppendInstant(t *testing.T) {
	at := []time.Time{
		time.Unix(0, 0), time.Date(2000, 2, 29, 23, 59, 59, 999e6, time.UTC), time.Date(2100, 3, 1, 0, 0, 0, 1e6, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 1e6, time.UTC),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		at = append(at, time.UnixMilli(rng.Int64N(8e12)-2e12))
	}
	for _, i := range at {
		want := i.UTC().Format(`"2006-01-02T15:04:05.000Z"`)
		if got := string(wire.AppendInstant(nil, queue.InstantOf(i))); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// The reader is never laxer than Go's own, never panics, and never stops
// without an error short of the end.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,{"b":"\u00e9\ud83d\ude00"}],"c":null}`, `[true,false,"\\"]`, `"\ud800"`, "\"\xff\"", `{"a":1,"a":2}`, strings.Repeat("[", 40)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := skip(string(body))
		if err == nil && !json.Valid(body) {
			t.Fatalf("took %q, which is no JSON", body)
		}
		if err != nil {
			if c := queue.CodeOf(err); c != queue.CannotParseRequest && c != queue.InvalidParameter || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v", body, err)
			}
		}
	})
}

func BenchmarkText(b *testing.B) {
	body := wire.AppendString(nil, strings.Repeat("the quick brown fox jumps ", 400))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var r wire.Reader
	for b.Loop() {
		r.Reset(body)
		r.Text()
	}
}

func BenchmarkAppendString(b *testing.B) {
	s := []byte(strings.Repeat("the quick brown fox jumps ", 400))
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = wire.AppendString(dst[:0], s)
	}
}

func BenchmarkAppendInstant(b *testing.B) {
	var dst []byte
	for b.Loop() {
		dst = wire.AppendInstant(dst[:0], 1_764_500_000_123)
	}
}
