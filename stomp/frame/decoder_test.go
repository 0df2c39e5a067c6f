package frame_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/stomp/frame"
)

var versions = []frame.Version{frame.V10, frame.V11, frame.V12}

var (
	v10   = versions[:1]
	v11   = versions[1:2]
	v12   = versions[2:]
	upTo1 = versions[:2]
	from1 = versions[1:]
)

// session is a decoder behind its opening frame.
func session(t testing.TB, v frame.Version, l frame.Limits, r io.Reader) *frame.Decoder {
	t.Helper()
	d := frame.NewDecoder(io.MultiReader(strings.NewReader("CONNECT\n\n\x00"), r), frame.Limits{})
	if err := d.Next(new(frame.Frame)); err != nil {
		t.Fatalf("the opening frame: %v", err)
	}
	d.SetVersion(v)
	d.SetLimits(l)
	return d
}

// readAll reads to the first error.
func readAll(d *frame.Decoder) ([]frame.Frame, error) {
	var all []frame.Frame
	var f frame.Frame
	for {
		if err := d.Next(&f); err != nil {
			return all, err
		}
		kept := f
		kept.Headers = append([]frame.Header(nil), f.Headers...)
		all = append(all, kept)
	}
}

// send is a SEND frame with headers in pairs.
func send(body string, headers ...string) frame.Frame {
	f := frame.Frame{Command: frame.Send, Body: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		f.Headers = append(f.Headers, frame.Header{Name: headers[i], Value: headers[i+1]})
	}
	return f
}

// other is a frame of another command.
func other(command string, headers ...string) frame.Frame {
	f := send("", headers...)
	f.Command, f.Body = command, nil
	return f
}

// many is n header lines with different names.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%03d:v\n", i)
	}
	return b.String()
}

type sample struct {
	name     string
	versions []frame.Version
	in       string
	want     []frame.Frame
}

var samples = []sample{
	{"nothing", versions, "", nil},
	{"a frame", versions, "SEND\ndestination:a\n\nhello\x00\n", []frame.Frame{send("hello", "destination", "a")}},
	{"no headers, no body", versions, "SEND\n\n\x00", []frame.Frame{send("")}},
	{"frames side by side", versions, "BEGIN\ntransaction:t\n\n\x00SEND\n\nx\x00COMMIT\ntransaction:t\n\n\x00",
		[]frame.Frame{other("BEGIN", "transaction", "t"), send("x"), other("COMMIT", "transaction", "t")}},
	{"noise between frames", versions, "\n\r\n\x00\x00\nACK\nid:1\n\n\x00\n\n\r\n\x00\r\nNACK\n\n\x00\r\n",
		[]frame.Frame{other("ACK", "id", "1"), other("NACK")}},
	{"half a line end at the end of the stream", versions, "ACK\n\n\x00\r", []frame.Frame{other("ACK")}},
	{"CR LF line ends", versions, "SEND\r\na:b\r\nc:\r\n\r\nx\r\n\x00\r\n", []frame.Frame{send("x\r\n", "a", "b", "c", "")}},
	{"line ends mixed", versions, "SEND\r\na:b\nc:d\r\n\nx\x00", []frame.Frame{send("x", "a", "b", "c", "d")}},
	{"a CR in a value", upTo1, "SEND\na:b\rc\nd:\r\r\n\n\x00", []frame.Frame{send("", "a", "b\rc", "d", "\r")}},
	{"a CR in a name and a command", upTo1, "\rAC\rK\na\rb:c\n\n\x00", []frame.Frame{other("\rAC\rK", "a\rb", "c")}},
	{"commands are case-sensitive", versions, "send\n\nx\x00", []frame.Frame{other("send")}},
	{"names are case-sensitive", versions, "SEND\nDestination:a\ndestination:b\nContent-Length:x\n\ny\x00",
		[]frame.Frame{send("y", "Destination", "a", "destination", "b", "Content-Length", "x")}},
	{"unknown commands", versions, "HELLO world:x\na:b\n\nbody\x00É\n\n\x00", []frame.Frame{other("HELLO world:x", "a", "b"), other("É")}},
	{"commands of the server", versions, "MESSAGE\n\nx\x00ERROR\n\nx\x00CONNECTED\n\n\x00RECEIPT\n\n\x00",
		[]frame.Frame{other("MESSAGE"), other("ERROR"), other("CONNECTED"), other("RECEIPT")}},
	{"all commands of a client", versions, "SUBSCRIBE\n\n\x00UNSUBSCRIBE\n\n\x00ABORT\n\n\x00DISCONNECT\n\n\x00STOMP\n\n\x00CONNECT\n\n\x00",
		[]frame.Frame{other("SUBSCRIBE"), other("UNSUBSCRIBE"), other("ABORT"), other("DISCONNECT"), other("STOMP"), other("CONNECT")}},
	{"the name ends at the first colon", versions, "SEND\na:b:c::\n\n\x00", []frame.Frame{send("", "a", "b:c::")}},
	{"blanks belong to names and values", versions, "SEND\n a : b \nc:\t\n\n\x00", []frame.Frame{send("", " a ", " b ", "c", "\t")}},
	{"UTF-8", versions, "SEND\né:日本😀\n\n\xff\xfe\x00", []frame.Frame{send("\xff\xfe", "é", "日本😀")}},
	{"of repeated headers the first", versions, "SEND\na:1\na:2\nb:3\na:4\ndestination:x\ndestination:y\n\n\x00",
		[]frame.Frame{send("", "a", "1", "b", "3", "destination", "x")}},
	{"repeated by its decoded name", from1, `SEND` + "\n" + `a\cb:1` + "\n" + `a\cb:2` + "\na:3\n\n\x00", []frame.Frame{send("", "a:b", "1", "a", "3")}},

	{"a body up to NUL keeps its LF", versions, "SEND\n\nx\n\x00\n", []frame.Frame{send("x\n")}},
	{"a body that looks like a frame", versions, "SEND\ncontent-length:11\n\nACK\nid:1\n\n\x00\x00", []frame.Frame{send("ACK\nid:1\n\n\x00", "content-length", "11")}},
	{"content-length", versions, "SEND\ncontent-length:3\n\na\x00b\x00SEND\ncontent-length:0\n\n\x00",
		[]frame.Frame{send("a\x00b", "content-length", "3"), send("", "content-length", "0")}},
	{"content-length with zeros before it", versions, "SEND\ncontent-length:00000000000000000000002\n\nab\x00",
		[]frame.Frame{send("ab", "content-length", "00000000000000000000002")}},
	{"content-length twice the same", versions, "SEND\ncontent-length:1\ncontent-length:1\n\n\x00\x00", []frame.Frame{send("\x00", "content-length", "1")}},
	{"content-length where there is no body", versions, "ACK\ncontent-length:5\nid:1\n\n\x00NACK\ncontent-length:x\ncontent-length:0\n\nbody\x00X\ncontent-length:9\n\n\x00",
		[]frame.Frame{other("ACK", "content-length", "5", "id", "1"), other("NACK", "content-length", "x"), other("X", "content-length", "9")}},
	{"a body on SUBSCRIBE is skipped", versions, "SUBSCRIBE\nid:1\n\nab\ncd\x00ACK\n\n\x00", []frame.Frame{other("SUBSCRIBE", "id", "1"), other("ACK")}},

	{"no escapes", v10, `SEND` + "\n" + `a\n:\c\\\t\r` + "\nb:\\\n\n\x00", []frame.Frame{send("", `a\n`, `\c\\\t\r`, "b", `\`)}},
	{"escapes", from1, `SEND` + "\n" + `a\n\c\\b:\\n\c\n\\\\c:\n` + "\n\n\x00", []frame.Frame{send("", "a\n:\\b", "\\n:\n\\\\c:\n")}},
	{"escaped CR", v12, `SEND` + "\n" + `\ra:b\r\n` + "\n\n\x00", []frame.Frame{send("", "\ra", "b\r\n")}},
	{"CONNECT is exempt at any time", versions, "CONNECT\npasscode:a:b\\c\\\n\n\x00STOMP\na\\t:\\r\n\n\x00",
		[]frame.Frame{other("CONNECT", "passcode", `a:b\c\`), other("STOMP", `a\t`, `\r`)}},

	{"a command at its limit", versions, strings.Repeat("c", 32) + "\n\n\x00" + strings.Repeat("d", 32) + "\r\n\n\x00",
		[]frame.Frame{other(strings.Repeat("c", 32)), other(strings.Repeat("d", 32))}},
	{"header lines at their limit, repeated ones", versions, "SEND\n" + strings.Repeat("a:1\n", 100) + "\n\x00", []frame.Frame{send("", "a", "1")}},
	{"a header line at its limit", versions, "SEND\na:" + strings.Repeat("v", 8190) + "\nb:" + strings.Repeat("v", 8190) + "\r\n\n\x00",
		[]frame.Frame{send("", "a", strings.Repeat("v", 8190), "b", strings.Repeat("v", 8190))}},
	{"headers at their limit", versions, "SEND\n" + strings.Repeat("a:"+strings.Repeat("v", 8189)+"\n", 4) + "\n\x00",
		[]frame.Frame{send("", "a", strings.Repeat("v", 8189))}},
	{"decoded headers at their limit", from1, "SEND\n" + strings.Repeat("a:"+strings.Repeat(`\n`, 4000)+"\n", 8) + "\n\x00",
		[]frame.Frame{send("", "a", strings.Repeat("\n", 4000))}},
	{"bodies at their limit", versions, "SEND\ncontent-length:262144\n\n" + strings.Repeat("b", 262144) + "\x00SEND\n\n" + strings.Repeat("b", 262144) + "\x00ACK\n\n" + strings.Repeat("b", 262144) + "\x00",
		[]frame.Frame{send(strings.Repeat("b", 262144), "content-length", "262144"), send(strings.Repeat("b", 262144)), other("ACK")}},
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		for _, v := range s.versions {
			t.Run(s.name+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				d := session(t, v, frame.Limits{}, strings.NewReader(s.in))
				got, err := readAll(d)
				if err != io.EOF {
					t.Errorf("the end: %v, want EOF", err)
				}
				if !reflect.DeepEqual(s.want, got) { // cmp is slow on large bodies
					t.Errorf("frames (-want +got):\n%.2000s", cmp.Diff(s.want, got))
				}
				for i, f := range got {
					if (f.Body != nil) != (f.Command == frame.Send) {
						t.Errorf("frame %d: the body of %s is nil: %t", i, f.Command, f.Body == nil)
					}
					if cap(f.Body) != len(f.Body) {
						t.Errorf("frame %d: a body of %d octets holds %d", i, len(f.Body), cap(f.Body))
					}
				}
			})
		}
	}
}

type refusal struct {
	name     string
	versions []frame.Version
	in       string
	want     frame.Error
}

func invalid(message string) frame.Error { return frame.Error{Message: message} }

func tooLarge(limit, message string) frame.Error {
	return frame.Error{Message: message, TooLarge: true, Limit: limit}
}

func asking(receipt string, e frame.Error) frame.Error {
	e.Receipt, e.HasReceipt = receipt, true
	return e
}

var refusals = []refusal{
	{"a CR in a command", v12, "SE\rND\n", invalid("the command has a CR in it that no LF follows")},
	{"a CR before a command", v12, "\rSEND\n", invalid("the command has a CR in it that no LF follows")},
	{"a CR in a header", v12, "SEND\na:b\rc\n", invalid("a header line has a CR in it that no LF follows")},
	{"two CR before LF", v12, "SEND\na:b\r\r\n", invalid("a header line has a CR in it that no LF follows")},
	{"NUL in a command", versions, "SEND\x00", invalid("the command has a NUL octet in it")},
	{"NUL behind a CR", versions, "\r\x00", invalid("the command has a NUL octet in it")},
	{"NUL in a header", versions, "SEND\nreceipt:1\na:b\x00", asking("1", invalid("a header line has a NUL octet in it"))},
	{"NUL in place of the empty line", versions, "SEND\na:b\n\x00", invalid("a header line has a NUL octet in it")},
	{"a command that is not UTF-8", versions, "S\xffND\n", invalid("the command is not UTF-8")},
	{"a name that is not UTF-8", versions, "SEND\na\xc3:b\n", invalid("a header line is not UTF-8")},
	{"a value that is not UTF-8", versions, "SEND\na:\xed\xa0\x80\n", invalid("a header line is not UTF-8")},
	{"no colon", versions, "SEND\nreceipt:\na:b\nsecret\n", asking("", invalid("header line 3 has no colon"))},
	{"an empty name", versions, "SEND\nreceipt: é \n:b\n", asking(" é ", invalid("header line 2 has an empty name"))},
	{"a blank line", versions, "SEND\n \n", invalid("header line 1 has no colon")},
	{"the first receipt counts", versions, "SEND\nreceipt:1\nreceipt:2\nx\n", asking("1", invalid("header line 3 has no colon"))},
	{"a receipt that comes too late", versions, "SEND\nx\nreceipt:1\n", invalid("header line 1 has no colon")},

	{"an unknown escape", v11, `SEND` + "\nreceipt:" + `a\cb` + "\n" + `a:b\t` + "\n", asking("a:b", invalid(`the header "a" has an escape that STOMP 1.1 does not know`))},
	{"an unknown escape", v12, `SEND` + "\n" + `a:b\t` + "\n", invalid(`the header "a" has an escape that STOMP 1.2 does not know`)},
	{"an escaped CR", v11, `SEND` + "\n" + `a:b\r` + "\n", invalid(`the header "a" has an escape that STOMP 1.1 does not know`)},
	{"a capital escape", v12, `SEND` + "\n" + `a:b\N` + "\n", invalid(`the header "a" has an escape that STOMP 1.2 does not know`)},
	{"a backslash at the end", from1[1:], "SEND\na:b\\\r\n", invalid(`the header "a" has an escape that STOMP 1.2 does not know`)},
	{"a backslash at the end", v11, "SEND\na:b\\\n", invalid(`the header "a" has an escape that STOMP 1.1 does not know`)},
	{"an unknown escape in a name", v12, `SEND` + "\n" + `a\:b` + "\n", invalid(`the header "a\\" has an escape that STOMP 1.2 does not know`)},
	{"a long name is not echoed in full", v12, "SEND\n" + strings.Repeat("é\u202e\a", 40) + ":\\x\n",
		invalid(`the header "` + strings.Repeat(`é\u202e\a`, 5) + `é…" has an escape that STOMP 1.2 does not know`)},

	{"too little before NUL", versions, "SEND\nreceipt:1\ncontent-length:2\n\nabc", asking("1", invalid("no NUL octet stands behind the body, whose content-length is 2"))},
	{"an LF before NUL", versions, "SEND\ncontent-length:0\n\n\n", invalid("no NUL octet stands behind the body, whose content-length is 0")},
	{"content-length twice and different", versions, "SEND\ncontent-length:1\ncontent-length:2\nreceipt:1\n\n", asking("1", invalid("content-length stands twice with different values"))},
	{"content-length twice, written differently", versions, "SEND\ncontent-length:1\ncontent-length:01\n\n", invalid("content-length stands twice with different values")},
	{"content-length over 2^63-1", versions, "SEND\ncontent-length:9223372036854775808\n\n", invalid(`content-length must be a number in digits, not "9223372036854775808"`)},
	{"content-length of letters", versions, "SEND\ncontent-length:abc\nreceipt:1\n\n", asking("1", invalid(`content-length must be a number in digits, not "abc"`))},
	{"content-length below zero", versions, "SEND\ncontent-length:-1\n\n", invalid(`content-length must be a number in digits, not "-1"`)},
	{"content-length with plus", versions, "SEND\ncontent-length:+1\n\n", invalid(`content-length must be a number in digits, not "+1"`)},
	{"content-length with a line", versions, "SEND\ncontent-length:1_0\n\n", invalid(`content-length must be a number in digits, not "1_0"`)},
	{"content-length in other digits", versions, "SEND\ncontent-length:٣\n\n", invalid(`content-length must be a number in digits, not "٣"`)},
	{"content-length empty", versions, "SEND\ncontent-length:\n\n", invalid(`content-length must be a number in digits, not ""`)},
	{"content-length behind a blank", versions, "SEND\ncontent-length: 1\n\n", invalid(`content-length must be a number in digits, not " 1"`)},
	{"content-length before a blank", versions, "SEND\ncontent-length:1 \n\n", invalid(`content-length must be a number in digits, not "1 "`)},

	{"a long command", versions, strings.Repeat("c", 33), tooLarge("command", "the command is longer than 32 octets")},
	{"a long command with CR", versions, strings.Repeat("c", 32) + "\rx", tooLarge("command", "the command is longer than 32 octets")},
	{"NUL behind a long command", versions, strings.Repeat("c", 33) + "\x00", tooLarge("command", "the command is longer than 32 octets")},
	{"a long header line", versions, "SEND\na:" + strings.Repeat("v", 8191), tooLarge("header line", "a header line is longer than 8192 octets")},
	{"a long header line, ended", versions, "SEND\nreceipt:r\na:" + strings.Repeat("v", 8191) + "\n", asking("r", tooLarge("header line", "a header line is longer than 8192 octets"))},
	{"a header line, long before decoding", from1, "SEND\na:" + strings.Repeat(`\n`, 4096), tooLarge("header line", "a header line is longer than 8192 octets")},
	{"too many header lines", versions, "SEND\n" + many(101), tooLarge("header lines", "the frame has more than 100 header lines")},
	{"too many repeated header lines", versions, "SEND\n" + strings.Repeat("receipt:1\n", 101), asking("1", tooLarge("header lines", "the frame has more than 100 header lines"))},
	{"headers too large", versions, "SEND\n" + strings.Repeat("a:"+strings.Repeat("v", 8189)+"\n", 4) + "b:\n", tooLarge("headers", "the headers are larger than 32768 octets")},
	{"content-length over the limit", versions, "SEND\nreceipt:1\ncontent-length:262145\n\n", asking("1", tooLarge("body", "the body is larger than 262144 octets"))},
	{"content-length far over the limit", versions, "SEND\ncontent-length:9223372036854775807\n\n", tooLarge("body", "the body is larger than 262144 octets")},
	{"a body over the limit", versions, "SEND\nreceipt:1\n\n" + strings.Repeat("b", 262145), asking("1", tooLarge("body", "the body is larger than 262144 octets"))},
	{"a skipped body over the limit", versions, "ACK\n\n" + strings.Repeat("b", 262145), tooLarge("body", "the body is larger than 262144 octets")},
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range refusals {
		for _, v := range tt.versions {
			t.Run(tt.name+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				// Behind the octet that breaks a rule the stream does not end: the
				// error must not wait for anything.
				r := io.MultiReader(strings.NewReader(tt.in), iotest.ErrReader(errors.New("waits for more")))
				d := session(t, v, frame.Limits{}, r)
				got, err := readAll(d)
				if len(got) > 0 {
					t.Errorf("frames: %v", got)
				}
				wantError(t, err, tt.want)
				checkDead(t, d, err)
			})
		}
	}
}

func wantError(t *testing.T, err error, want frame.Error) {
	t.Helper()
	got, ok := errors.AsType[*frame.Error](err)
	if !ok {
		t.Fatalf("error: %v, want %q", err, want.Message)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// checkDead checks that a decoder that has given the *Error err gives it for
// ever and holds nothing.
func checkDead(t *testing.T, d *frame.Decoder, err error) {
	t.Helper()
	d.SetVersion(frame.V11)
	d.SetLimits(frame.Limits{})
	d.Idle()
	for range 3 {
		if again := d.Next(new(frame.Frame)); again != err {
			t.Errorf("after %q: %v", err, again)
		}
	}
	if d.Held() != 0 || d.Buffered() != 0 || d.Begun() {
		t.Errorf("after %q: holds %d, buffers %d, begun %t", err, d.Held(), d.Buffered(), d.Begun())
	}
}

// TestFrameLimit is about Limits.Frame, for each of the places where a frame
// can pass it.
func TestFrameLimit(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"SEND\na:b\n\nbody\x00",
		"SEND\ncontent-length:4\n\nbody\x00",
		"ACK\r\na:b\r\n\r\nskipped\x00",
		"SEND\n\n\x00",
	} {
		for _, v := range versions {
			size := int64(len(in))
			// Two frames, for each is counted anew.
			d := session(t, v, frame.Limits{Frame: size}, strings.NewReader(in+"\n\n"+in))
			if got, err := readAll(d); err != io.EOF || len(got) != 2 {
				t.Errorf("%q of %d: %d frames, %v", in, size, len(got), err)
			}
			for limit := int64(1); limit < size; limit++ {
				got, err := readAll(session(t, v, frame.Limits{Frame: limit}, strings.NewReader(in)))
				if len(got) > 0 {
					t.Errorf("%q of %d: frames %v", in, limit, got)
				}
				wantError(t, err, tooLarge("frame", fmt.Sprintf("the frame is larger than %d octets", limit)))
			}
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	const first = "the first frame must be CONNECT or STOMP"
	for _, tt := range []struct {
		name, in string
		want     []frame.Frame
		refused  *frame.Error
	}{
		{"CONNECT", "CONNECT\nlogin:a\n\n\x00", []frame.Frame{other("CONNECT", "login", "a")}, nil},
		{"STOMP", "STOMP\r\nlogin:a\r\n\r\n\x00", []frame.Frame{other("STOMP", "login", "a")}, nil},
		{"behind noise", "\n\r\n\n\x00CONNECT\n\n\x00", []frame.Frame{other("CONNECT")}, nil},
		{"nothing is decoded", "STOMP\npasscode:a:b\\c\\x\\\n\n\x00", []frame.Frame{other("STOMP", "passcode", `a:b\c\x\`)}, nil},
		{"a CR in the middle", "STOMP\npasscode:a\rb\n\n\x00", []frame.Frame{other("STOMP", "passcode", "a\rb")}, nil},
		{"a body is skipped", "CONNECT\ncontent-length:9\n\nx\x00", []frame.Frame{other("CONNECT", "content-length", "9")}, nil},
		{"any frame behind it", "CONNECT\n\n\x00SEND\n\nx\x00", []frame.Frame{other("CONNECT"), send("x")}, nil},
		{"no receipt", "CONNECT\nreceipt:1\nx\n", nil, &frame.Error{Message: "header line 2 has no colon"}},
		{"TLS", "\x16\x03\x01", nil, &frame.Error{Message: first + "; this port does not speak TLS"}},
		{"the first octet of TLS", "\x16", nil, &frame.Error{Message: first + "; this port does not speak TLS"}},
		{"HTTP", "G", nil, &frame.Error{Message: first}},
		{"a proxy's CONNECT", "CONNECT ", nil, &frame.Error{Message: first}},
		{"SEND", "SE", nil, &frame.Error{Message: first}},
		{"small letters", "c", nil, &frame.Error{Message: first}},
		{"more letters", "STOMPX", nil, &frame.Error{Message: first}},
		{"CONNECTED", "CONNECTE", nil, &frame.Error{Message: first}},
		{"a lone CR before it", "\rC", nil, &frame.Error{Message: first}},
		{"a lone CR behind it", "CONNECT\rx", nil, &frame.Error{Message: first}},
		{"NUL in it", "CONN\x00", nil, &frame.Error{Message: first}},
		{"a blank before it", "\n ", nil, &frame.Error{Message: first}},
		{"too large", "CONNECT\n" + strings.Repeat(strings.Repeat("a", 1022)+":\n", 16), nil,
			&frame.Error{Message: "the frame is larger than 16384 octets", TooLarge: true, Limit: "frame"}},
		{"noise counts", strings.Repeat("\n", 16385), nil, &frame.Error{Message: "the frame is larger than 16384 octets", TooLarge: true, Limit: "frame"}},
		{"noise counts together with the frame", strings.Repeat("\n", 16380) + "CONNX", nil,
			&frame.Error{Message: "the frame is larger than 16384 octets", TooLarge: true, Limit: "frame"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, chunk := range chunkings {
				end := io.EOF
				if tt.refused != nil {
					end = errors.New("waits for more")
				}
				r := io.MultiReader(strings.NewReader(tt.in), iotest.ErrReader(end))
				got, err := readAll(frame.NewDecoder(chunk(r), frame.Limits{Frame: 16 << 10}))
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: frames (-want +got):\n%s", name, diff)
				}
				if tt.refused != nil {
					wantError(t, err, *tt.refused)
				} else if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// chunkings are ways to deliver a stream.
var chunkings = map[string]func(io.Reader) io.Reader{
	"at once":         func(r io.Reader) io.Reader { return r },
	"octet by octet":  iotest.OneByteReader,
	"by halves":       iotest.HalfReader,
	"error with data": iotest.DataErrReader,
	"empty reads too": func(r io.Reader) io.Reader { return &stutter{r: r} },
	"random pieces":   func(r io.Reader) io.Reader { return &pieces{r: r, random: rand.New(rand.NewPCG(1, 2))} },
}

// stutter gives nothing before every octet.
type stutter struct {
	r    io.Reader
	next bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.next = !s.next; s.next {
		return 0, nil
	}
	return s.r.Read(p[:1])
}

// pieces reads up to 40 octets at a time.
type pieces struct {
	r      io.Reader
	random *rand.Rand
}

func (s *pieces) Read(p []byte) (int, error) {
	return s.r.Read(p[:min(len(p), 1+s.random.IntN(40))])
}
