package frame_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/stomp/frame"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	b := []byte("before")
	b = frame.AppendCommand(b, frame.Message)
	b, _ = frame.AppendHeader(b, frame.V12, "destination", "a:b")
	b = frame.AppendContentLength(b, 3)
	b = frame.AppendBody(b, []byte("a\x00b"))
	b = frame.AppendCommand(b, frame.Receipt)
	b, _ = frame.AppendHeader(b, frame.V10, "receipt-id", "a:b\\c")
	b = frame.AppendBody(b, nil)
	const want = "beforeMESSAGE\ndestination:a\\cb\ncontent-length:3\n\na\x00b\x00\nRECEIPT\nreceipt-id:a:b\\c\n\n\x00\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestAppendHeader(t *testing.T) {
	t.Parallel()
	const cannot = ""
	for _, tt := range []struct {
		name, value string
		want        [3]string // by version
	}{
		{"a", "", [3]string{"a:", "a:", "a:"}},
		{" a ", " b\t", [3]string{" a : b\t", " a : b\t", " a : b\t"}},
		{"é", "日本\x01\x7f", [3]string{"é:日本\x01\x7f", "é:日本\x01\x7f", "é:日本\x01\x7f"}},
		{"a", "b:c", [3]string{"a:b:c", `a:b\cc`, `a:b\cc`}},
		{"a:b", "c", [3]string{cannot, `a\cb:c`, `a\cb:c`}},
		{`a\`, `\n`, [3]string{`a\:\n`, `a\\:\\n`, `a\\:\\n`}},
		{"a", "b\nc", [3]string{cannot, `a:b\nc`, `a:b\nc`}},
		{"a\n", "b", [3]string{cannot, `a\n:b`, `a\n:b`}},
		{"a", "b\r", [3]string{cannot, cannot, `a:b\r`}},
		{"a\rb", "c", [3]string{cannot, cannot, `a\rb:c`}},
		{"a", ":\n\\\r:", [3]string{cannot, cannot, `a:\c\n\\\r\c`}},
		{"", "a", [3]string{cannot, cannot, cannot}},
		{"a", "b\x00", [3]string{cannot, cannot, cannot}},
		{"a\x00", "b", [3]string{cannot, cannot, cannot}},
		{"a", "\xff", [3]string{cannot, cannot, cannot}},
		{"a\xed\xa0\x80", "b", [3]string{cannot, cannot, cannot}},
	} {
		for i, v := range versions {
			got, ok := frame.AppendHeader([]byte("x"), v, tt.name, tt.value)
			want := "x"
			if tt.want[i] != cannot {
				want += tt.want[i] + "\n"
			}
			if string(got) != want || ok != (tt.want[i] != cannot) {
				t.Errorf("%q:%q in %s: %q, %t, want %q", tt.name, tt.value, v, got, ok, want)
			}
		}
	}
}

// TestRoundTrip writes every octet that a header can have, in every version,
// and reads it again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		var texts []string
		for r := rune(0); r < 0x250; r++ {
			texts = append(texts, string(r), "a"+string(r), string(r)+"a", strings.Repeat(string(r), 3))
		}
		texts = append(texts, `\`+"n", `\\`+"\n", "日本😀", "\uffff", "\ufeff")
		said := 0
		for _, text := range texts {
			for _, h := range []frame.Header{{Name: "x" + text, Value: "v"}, {Name: "n", Value: text}, {Name: text, Value: text}} {
				b, ok := frame.AppendHeader(frame.AppendCommand(nil, frame.Send), v, h.Name, h.Value)
				if !ok {
					continue
				}
				said++
				b = frame.AppendBody(b, []byte(text[:len(text)-1]))
				if strings.Contains(text, "\x00") {
					t.Fatalf("NUL has been said: %q", b)
				}
				got, err := readAll(session(t, v, frame.Limits{}, strings.NewReader(string(b))))
				want := []frame.Frame{send(text[:len(text)-1], h.Name, h.Value)}
				if diff := cmp.Diff(want, got); err != io.EOF || diff != "" {
					t.Fatalf("%q in %s: %v (-want +got):\n%s", h, v, err, diff)
				}
			}
		}
		// All but NUL; and LF, CR and a colon in a name where v has no escape.
		all := 3 * len(texts)
		want := map[frame.Version]int{
			frame.V10: all - 3*12 - 2*4 - 3, // and a text with an LF
			frame.V11: all - 2*12,
			frame.V12: all - 12,
		}[v]
		if said != want {
			t.Errorf("in %s %d of %d headers could be said, want %d", v, said, all, want)
		}
	}
}

// TestAllocations holds the figures that the package is written for.
func TestAllocations(t *testing.T) {
	body := make([]byte, 1024)
	for _, tt := range []struct {
		name, in string
		most     float64
	}{
		{"SEND", "SEND\ndestination:q\ncontent-type:text/plain\nx-custom:a\\cb\ncontent-length:1024\n\n" + string(body) + "\x00\n", 2},
		{"SEND without content-length", "SEND\ndestination:q\n\nhello\x00\n", 2},
		{"SEND without headers and body", "SEND\n\n\x00\n", 0},
		{"ACK", "ACK\nid:0123456789\nreceipt:1\n\n\x00\n", 1},
		{"heart-beats", "\n\n\n\nBEGIN\n\n\x00", 0},
	} {
		d := session(t, frame.V12, frame.Limits{}, &endless{text: tt.in})
		var f frame.Frame
		got := testing.AllocsPerRun(200, func() {
			if err := d.Next(&f); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.most)
		}
	}
	dst := make([]byte, 0, 4096)
	if got := testing.AllocsPerRun(200, func() { _ = appendMessage(dst, body) }); got > 0 {
		t.Errorf("MESSAGE: %v allocations", got)
	}
}

// endless repeats its text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], e.text[e.at:])
		n += c
		e.at = (e.at + c) % len(e.text)
	}
	return n, nil
}

func appendMessage(dst, body []byte) []byte {
	dst = frame.AppendCommand(dst, frame.Message)
	for _, h := range [...]frame.Header{
		{Name: "destination", Value: "orders/eu"}, {Name: "message-id", Value: "0123456789abcdef"}, {Name: "subscription", Value: "1"},
		{Name: "ack", Value: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, {Name: "content-type", Value: "application/json"},
		{Name: "x-source", Value: "https://example.com/a"},
	} {
		dst, _ = frame.AppendHeader(dst, frame.V12, h.Name, h.Value)
	}
	dst = frame.AppendContentLength(dst, len(body))
	return frame.AppendBody(dst, body)
}

func BenchmarkDecodeSend(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("body=%dKiB", size>>10), func(b *testing.B) {
			text := fmt.Sprintf("SEND\ndestination:orders/eu\ncontent-type:application/json\nreceipt:r-12345\nx-source:https\\c//example.com/a\ncontent-length:%d\n\n%s\x00\n",
				size, strings.Repeat("b", size))
			benchmarkDecode(b, text)
		})
	}
}

func BenchmarkDecodeAck(b *testing.B) {
	benchmarkDecode(b, "ACK\nid:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nreceipt:r-12345\n\n\x00\n")
}

func benchmarkDecode(b *testing.B, text string) {
	d := session(b, frame.V12, frame.Limits{}, &endless{text: text})
	var f frame.Frame
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := d.Next(&f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeMessage(b *testing.B) {
	body := make([]byte, 1024)
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(appendMessage(dst, body))))
	for b.Loop() {
		_ = appendMessage(dst, body)
	}
}
