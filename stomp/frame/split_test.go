package frame_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/stomp/frame"
)

// outcome is all that a stream gave.
type outcome struct {
	Frames []frame.Frame
	Err    string
	Breach *frame.Error
	Odd    frame.Odd
}

func outcomeOf(d *frame.Decoder) outcome {
	frames, err := readAll(d)
	breach, _ := errors.AsType[*frame.Error](err)
	return outcome{frames, err.Error(), breach, d.Odd()}
}

// TestSplit cuts every sample and every refusal at every octet into two reads,
// and in other ways, and wants the same outcome.
func TestSplit(t *testing.T) {
	t.Parallel()
	type stream struct {
		name     string
		versions []frame.Version
		in       string
	}
	var streams []stream
	for _, s := range samples {
		streams = append(streams, stream{s.name, s.versions, s.in})
	}
	for _, r := range refusals {
		streams = append(streams, stream{r.name, r.versions, r.in + "more\n\n\x00"})
	}
	for _, s := range streams {
		for _, v := range s.versions {
			t.Run(s.name+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				want := outcomeOf(session(t, v, frame.Limits{}, strings.NewReader(s.in)))
				check := func(how string, r io.Reader) {
					// cmp is slow on large bodies.
					if got := outcomeOf(session(t, v, frame.Limits{}, r)); !reflect.DeepEqual(want, got) {
						t.Fatalf("%s (-at once +so):\n%.2000s", how, cmp.Diff(want, got))
					}
				}
				for how, chunk := range chunkings {
					check(how, chunk(strings.NewReader(s.in)))
				}
				step := 1
				if len(s.in) > 1000 {
					step = len(s.in) / 23
				}
				for i := 0; i < len(s.in); i += step {
					check("cut", io.MultiReader(strings.NewReader(s.in[:i]), strings.NewReader(s.in[i:])))
				}
			})
		}
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	const in = "SEND\na:b\ncontent-length:3\n\nabc\x00"
	const open = "SEND\na:b\n\nabc\x00"
	for _, in := range []string{in, open, "ACK\n\nabc\x00"} {
		for n := 1; n < len(in); n++ {
			d := session(t, frame.V12, frame.Limits{}, strings.NewReader(in[:n]))
			for range 2 {
				if err := d.Next(new(frame.Frame)); err != io.ErrUnexpectedEOF {
					t.Errorf("%q: %v", in[:n], err)
				}
			}
			if !d.Begun() {
				t.Errorf("%q: no frame is begun", in[:n])
			}
		}
	}
	broken := errors.New("the line is broken")
	d := session(t, frame.V12, frame.Limits{}, io.MultiReader(strings.NewReader("AC"), iotest.ErrReader(broken)))
	if err := d.Next(new(frame.Frame)); err != broken {
		t.Errorf("an error of the reader: %v", err)
	}
	d = session(t, frame.V12, frame.Limits{}, readerFunc(func([]byte) (int, error) { return 0, nil }))
	if err := d.Next(new(frame.Frame)); err != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPassingError interrupts a stream before every octet: Next goes on where
// it stood.
func TestPassingError(t *testing.T) {
	t.Parallel()
	const in = "\r\nSEND\r\na:b\r\ncontent-length:3\r\n\r\nabc\x00\nSEND\n\nabc\x00ACK\nid:1\n\nx\x00"
	r := strings.NewReader(in)
	passed := false
	d := session(t, frame.V12, frame.Limits{}, readerFunc(func(p []byte) (int, error) {
		if passed = !passed; passed {
			return 0, errPassing
		}
		return r.Read(p[:1])
	}))
	var got []string
	var f frame.Frame
	for {
		err := d.Next(&f)
		if err == io.EOF {
			break
		}
		if err == nil {
			got = append(got, f.Command+" "+string(f.Body))
		} else if err != errPassing {
			t.Fatal(err)
		}
		d.Idle()
	}
	if diff := cmp.Diff([]string{"SEND abc", "SEND abc", "ACK "}, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

// TestBegun asks the decoder at every octet, as the owner of a connection does
// that gives a begun frame less time than an idle one.
func TestBegun(t *testing.T) {
	t.Parallel()
	var in []byte
	var begun []bool // before each octet is read
	for _, part := range []string{"\n\r\n\x00", "SEND\n\nx\x00", "\n", "SEND\ncontent-length:1\n\nx\x00", "\r\n", "ACK\n\nx\x00", "\n"} {
		for i := range len(part) {
			in = append(in, part[i])
			begun = append(begun, i > 0 && part[0] > '\r')
		}
	}
	i := 0
	var d *frame.Decoder
	d = session(t, frame.V12, frame.Limits{}, readerFunc(func(p []byte) (int, error) {
		if i == len(in) {
			return 0, io.EOF
		}
		if d.Begun() != begun[i] {
			t.Errorf("before octet %d, %q: begun %t", i, in[i], d.Begun())
		}
		p[0] = in[i]
		i++
		return 1, nil
	}))
	if _, err := readAll(d); err != io.EOF {
		t.Fatal(err)
	}
}

func TestBuffered(t *testing.T) {
	t.Parallel()
	d := session(t, frame.V12, frame.Limits{}, strings.NewReader("ACK\n\n\x00ACK\n\n\x00\nA"))
	var f frame.Frame
	for _, want := range []int{8, 2} {
		if err := d.Next(&f); err != nil || d.Buffered() != want {
			t.Errorf("%v, buffered %d, want %d", err, d.Buffered(), want)
		}
	}
}

// TestMemory checks what a decoder holds when a peer has announced much, sent
// much, and gone quiet.
func TestMemory(t *testing.T) {
	t.Parallel()
	wait := errors.New("waits for more")
	hold := func(in string) *frame.Decoder {
		r := io.MultiReader(strings.NewReader(in), iotest.ErrReader(wait))
		d := session(t, frame.V12, frame.Limits{Body: 64 << 20}, r)
		if _, err := readAll(d); err != wait {
			t.Fatalf("%.30q: %v", in, err)
		}
		return d
	}
	big := strings.Repeat("b", 300<<10)
	for _, tt := range []struct {
		name, in   string
		held, idle int // at most
	}{
		{"heart-beats", strings.Repeat("\n", 100), 0, 0},
		{"an ACK", "ACK\nid:123456789\n\n\x00", 200, 0},
		{"a body announced", "SEND\ncontent-length:60000000\n\n", 65 << 10, 65 << 10},
		{"a body begun", "SEND\ncontent-length:60000000\n\n" + big, 660 << 10, 620 << 10},
		{"an open body begun", "SEND\n\n" + big, 660 << 10, 620 << 10},
		{"large headers", "SEND\n" + strings.Repeat("a:"+strings.Repeat("v", 8000)+"\n", 3), 50 << 10, 30 << 10},
		{"large headers, ended", "SEND\n" + many(100) + "\nb\x00", 50 << 10, 0},
	} {
		d := hold(tt.in)
		if got := d.Held(); got > tt.held {
			t.Errorf("%s: holds %d octets, want at most %d", tt.name, got, tt.held)
		}
		d.Idle()
		if got := d.Held(); got > tt.idle {
			t.Errorf("%s: holds %d octets when idle, want at most %d", tt.name, got, tt.idle)
		}
	}
}

// TestLongLines has a limit of a line beyond the usual buffer.
func TestLongLines(t *testing.T) {
	t.Parallel()
	l := frame.Limits{HeaderLine: 100 << 10, HeaderBytes: 200 << 10}
	value := strings.Repeat("v", l.HeaderLine-2)
	for _, in := range []string{"SEND\na:" + value + "\n\n\x00", "SEND\r\na:" + value + "\r\n\r\n\x00"} {
		d := session(t, frame.V12, l, strings.NewReader(in))
		got, err := readAll(d)
		if err != io.EOF || len(got) != 1 || got[0].Headers[0].Value != value {
			t.Errorf("%d frames, %v", len(got), err)
		}
	}
	d := session(t, frame.V12, l, strings.NewReader("SEND\na:"+value+"v\n\n\x00"))
	_, err := readAll(d)
	wantError(t, err, tooLarge("header line", "a header line is longer than 102400 octets"))
}

// TestReuse checks that what earlier frames gave is neither changed nor kept
// alive by later ones.
func TestReuse(t *testing.T) {
	t.Parallel()
	d := session(t, frame.V12, frame.Limits{}, strings.NewReader("SEND\na:1\nb:2\ncontent-length:2\n\nxy\x00SEND\nc:3\n\nz\x00"))
	var f frame.Frame
	if err := d.Next(&f); err != nil {
		t.Fatal(err)
	}
	value, body := f.Headers[0].Value, f.Body
	if err := d.Next(&f); err != nil {
		t.Fatal(err)
	}
	if value != "1" || !bytes.Equal(body, []byte("xy")) {
		t.Errorf("the first frame became %q, %q", value, body)
	}
	if diff := cmp.Diff([]frame.Header{{Name: "c", Value: "3"}, {}, {}}, f.Headers[:3]); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if err := d.Next(&f); err != io.EOF || f.Command != frame.Send {
		t.Errorf("an error changed the frame: %v, %v", err, f)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	f := send("", "a", "", "b", "2")
	for _, tt := range []struct {
		name, value string
		found       bool
	}{{"a", "", true}, {"b", "2", true}, {"B", "", false}, {"", "", false}} {
		if value, found := f.Get(tt.name); value != tt.value || found != tt.found {
			t.Errorf("%q: %q, %t", tt.name, value, found)
		}
	}
}
