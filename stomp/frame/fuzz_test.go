package frame_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queued-mq/queued/stomp/frame"
)

// small are limits that a few random octets can pass.
var small = frame.Limits{Command: 12, HeaderLines: 4, HeaderLine: 24, HeaderBytes: 60, Body: 40, Frame: 120}

func addSeeds(f *testing.F) {
	for seed, s := range []string{
		"\n\r\nSEND\na:b\\n\ncontent-length:3\n\na\x00b\x00\nACK\r\nid:1\r\n\r\nbody\x00",
		"SEND\ncontent-length:1\ncontent-length:2\n\n\x00", "CONNECT\nlogin:a\\b\n\n\x00SEND\nreceipt:1\n:\n", "SEND\na:b\rc\na:\\r\\c\\\\\n\nb",
		"SEND\ncontent-length:39\n\n" + strings.Repeat("x", 39) + "\x00", "SUBSCRIBERS\r\n\n" + strings.Repeat("x", 41), "\x16\x03\x01", "STOMP\r\n\n\x00\r\r",
		"SEND\na:1\na:2\na\\c:3\nb:" + strings.Repeat("\\n", 12) + "\n\n\xff\x00", "SEND\né:\xc3\n", strings.Repeat("\n", 120) + "C",
	} {
		for i := range uint8(8) {
			f.Add([]byte(s), i, uint64(seed))
		}
	}
}

// decoderFor makes a decoder by the bits of mode: the version, or the opening
// frame, and the limits.
func decoderFor(t *testing.T, mode uint8, r io.Reader) (d *frame.Decoder, v frame.Version, l frame.Limits) {
	if mode&4 == 0 {
		l = small
	}
	if mode &= 3; mode == 3 {
		return frame.NewDecoder(r, l), 0, l
	}
	v = versions[mode]
	return session(t, v, l, r), v, l
}

// FuzzDecoder reads random octets in random pieces, with the owner giving back
// memory now and then, and wants what one read gives.
func FuzzDecoder(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, in []byte, mode uint8, seed uint64) {
		d, _, l := decoderFor(t, mode, strings.NewReader(string(in)))
		want := outcomeOf(d)
		if want.Breach != nil {
			if m := want.Breach.Message; len(m) > 250 || !utf8.ValidString(m) || strings.ContainsAny(m, "\n\r\x00") {
				t.Errorf("the message %q", m)
			}
		}

		random := rand.New(rand.NewPCG(seed, 0))
		most := 40<<10 + 4*len(in)
		if l.Body == 0 {
			most += 64 << 10
		}
		source := &pieces{r: strings.NewReader(string(in)), random: random}
		var cut *frame.Decoder
		cut, _, _ = decoderFor(t, mode, readerFunc(func(p []byte) (int, error) {
			if cut != nil && cut.Held() > most {
				t.Errorf("holds %d octets of %d", cut.Held(), len(in))
			}
			if cut != nil && random.IntN(4) == 0 {
				return 0, errPassing
			}
			return source.Read(p)
		}))
		var got outcome
		for {
			part := outcomeOf(cut)
			got.Frames = append(got.Frames, part.Frames...)
			got.Err, got.Breach, got.Odd = part.Err, part.Breach, got.Odd|part.Odd
			if part.Err != errPassing.Error() {
				break
			}
			if random.IntN(2) == 0 {
				cut.Idle()
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("in pieces (-at once +in pieces):\n%s", diff)
		}
		if got.Breach != nil {
			checkDead(t, cut, cut.Next(new(frame.Frame)))
		}
	})
}

// errPassing is an error after which a reader goes on.
var errPassing = errors.New("passes")

// FuzzAgainstNaive compares the decoder with a parser that knows nothing of
// buffers: it is fed octet by octet.
func FuzzAgainstNaive(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, in []byte, mode uint8, _ uint64) {
		d, v, l := decoderFor(t, mode, strings.NewReader(string(in)))
		frames, err := readAll(d)
		got := naive{version: v, frames: frames}
		switch breach, ok := errors.AsType[*frame.Error](err); {
		case ok:
			got.broken = breach
		case err == io.ErrUnexpectedEOF:
			got.inside = true
		case err != io.EOF:
			t.Fatal(err)
		}
		if l == (frame.Limits{}) {
			l = frame.Limits{Command: 32, HeaderLines: 100, HeaderLine: 8 << 10, HeaderBytes: 32 << 10, Body: 256 << 10}
		}
		want := naive{version: v, limits: l, opening: v == 0}
		for _, c := range in {
			if want.broken == nil {
				want.feed(c)
			}
		}
		if got.broken != nil && want.broken != nil { // their texts are ours alone
			want.broken.Message = got.broken.Message
		}
		type result struct {
			Frames []frame.Frame
			Broken *frame.Error
			Inside bool
		}
		if diff := cmp.Diff(result{want.frames, want.broken, want.inside && want.broken == nil}, result{got.frames, got.broken, got.inside}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q in %s (-naive +decoder):\n%s", in, v, diff)
		}
	})
}

// naive is STOMP as one would tell it: each octet is kept, and looked at again
// and again.
type naive struct {
	version frame.Version
	limits  frame.Limits
	opening bool

	frames []frame.Frame
	broken *frame.Error
	inside bool // of a frame

	lines   []string // that are complete, the command first, the empty one last
	line    string   // that is being read
	body    string
	headers bool // the empty line has been read
	size    int64
	cr      bool // before a frame
}

func (n *naive) fail(limit string) {
	n.broken = &frame.Error{Limit: limit, TooLarge: limit != ""}
	for _, h := range n.parsed() {
		if h.Name == "receipt" && n.command() != "CONNECT" && n.command() != "STOMP" && !n.broken.HasReceipt {
			n.broken.Receipt, n.broken.HasReceipt = h.Value, true
		}
	}
}

func (n *naive) command() string {
	if len(n.lines) == 0 {
		return ""
	}
	return n.lines[0]
}

// parsed are all complete header lines, repeated ones too; none of them is
// wrong but perhaps the last.
func (n *naive) parsed() []frame.Header {
	var all []frame.Header
	for i, line := range n.lines {
		if name, value, ok := strings.Cut(line, ":"); i > 0 && ok && name != "" {
			name, ok1 := n.unescape(name)
			value, ok2 := n.unescape(value)
			if ok1 && ok2 && i <= n.limits.HeaderLines {
				all = append(all, frame.Header{Name: name, Value: value})
			}
		}
	}
	return all
}

func (n *naive) unescape(s string) (string, bool) {
	if n.version < frame.V11 || n.command() == "CONNECT" || n.command() == "STOMP" {
		return s, true
	}
	known := []string{`\\`, `\`, `\n`, "\n", `\c`, ":"}
	if n.version == frame.V12 {
		known = append(known, `\r`, "\r")
	}
	var dropped []string
	for i := 0; i < len(known); i += 2 {
		dropped = append(dropped, known[i], "")
	}
	if strings.Contains(strings.NewReplacer(dropped...).Replace(s), `\`) {
		return "", false
	}
	return strings.NewReplacer(known...).Replace(s), true
}

func (n *naive) feed(c byte) {
	if !n.inside {
		if !n.opening {
			n.size = 0
		}
		if c == '\n' || c == 0 && !n.cr {
			n.size++
			if n.cr {
				n.size++
			}
			n.cr = false
			if n.opening && n.limits.Frame > 0 && n.size > n.limits.Frame {
				n.fail("frame")
			}
			return
		}
		if c == '\r' && !n.cr {
			n.cr = true
			return
		}
		n.inside = true
		if n.cr { // it was no line end but belongs to the command
			n.cr = false
			n.feed('\r')
			if n.broken != nil {
				return
			}
		}
	}
	n.size++
	over := n.limits.Frame > 0 && n.size > n.limits.Frame
	if n.headers {
		n.feedBody(c) // for which beginBody and feedBody have left room
		return
	}
	limit, most := "command", n.limits.Command
	if len(n.lines) > 0 {
		limit, most = "header line", n.limits.HeaderLine
	}
	if !over && n.opening && len(n.lines) == 0 {
		begun := n.line + string(rune(c))
		if !slices.ContainsFunc([]string{"CONNECT\n", "STOMP\n", "CONNECT\r\n", "STOMP\r\n"}, func(s string) bool { return strings.HasPrefix(s, begun) }) {
			n.fail("")
			return
		}
	}
	long := len(n.line) == most && c != '\n' && c != '\r' && c != 0 || len(n.line) > most && (c != '\n' && c != 0 || n.line[most] != '\r')
	switch {
	case over:
		n.fail("frame")
	case len(n.line) == most && c == 0:
		n.fail("")
	case long:
		n.fail(limit)
	case c == 0:
		n.fail("")
	case c != '\n':
		n.line += string([]byte{c})
	default:
		n.endLine()
	}
}

func (n *naive) endLine() {
	line := strings.TrimSuffix(n.line, "\r")
	n.line = ""
	if n.version == frame.V12 && strings.Contains(line, "\r") || !utf8.ValidString(line) {
		n.fail("")
		return
	}
	n.lines = append(n.lines, line)
	if len(n.lines) == 1 {
		return
	}
	if line == "" {
		n.headers = true
		n.beginBody()
		return
	}
	name, value, ok := strings.Cut(line, ":")
	name, ok1 := n.unescape(name)
	_, ok2 := n.unescape(value)
	switch size := 0; {
	case len(n.lines)-1 > n.limits.HeaderLines:
		n.fail("header lines")
	case !ok || name == "" || !ok1 || !ok2:
		n.fail("")
	default:
		for _, h := range n.parsed() {
			size += len(h.Name) + len(h.Value) + 2
		}
		if size > n.limits.HeaderBytes {
			n.lines = n.lines[:len(n.lines)-1]
			n.fail("headers")
		}
	}
}

// length is -1 without a content-length that counts, -2 with a wrong one.
func (n *naive) length() int64 {
	if n.command() != "SEND" {
		return -1
	}
	length := int64(-1)
	text := ""
	for _, h := range n.parsed() {
		if h.Name != "content-length" {
			continue
		}
		v, err := strconv.ParseUint(h.Value, 10, 63)
		if err != nil || length >= 0 && h.Value != text {
			return -2
		}
		length, text = int64(v), h.Value
	}
	return length
}

func (n *naive) beginBody() {
	length := n.length()
	switch {
	case length == -2:
		n.fail("")
	case length > n.limits.Body:
		n.fail("body")
	case n.limits.Frame > 0 && n.size+max(length, 0)+1 > n.limits.Frame:
		n.fail("frame")
	}
}

func (n *naive) feedBody(c byte) {
	length := n.length()
	switch {
	case length >= 0 && int64(len(n.body)) < length:
		n.body += string([]byte{c})
		return
	case length >= 0 && c != 0:
		n.fail("")
		return
	case c != 0:
		n.body += string([]byte{c})
		if int64(len(n.body)) > n.limits.Body {
			n.fail("body")
		} else if n.limits.Frame > 0 && n.size+1 > n.limits.Frame { // no room for NUL
			n.fail("frame")
		}
		return
	}
	f := frame.Frame{Command: n.command()}
	for _, h := range n.parsed() {
		if _, twice := f.Get(h.Name); !twice {
			f.Headers = append(f.Headers, h)
		}
	}
	if f.Command == "SEND" {
		f.Body = []byte(n.body)
	}
	n.frames = append(n.frames, f)
	*n = naive{version: n.version, limits: n.limits, frames: n.frames}
}
