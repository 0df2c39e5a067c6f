package store

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

// frugal runs a decoder and fails if it takes more memory than a fixed
// multiple of its input: what is damaged must not be able to ask for more.
func frugal(t *testing.T, input []byte, decode func()) {
	t.Helper()
	var before, afterwards runtime.MemStats
	runtime.ReadMemStats(&before)
	decode()
	runtime.ReadMemStats(&afterwards)
	// JSON is the greediest: two octets of "{}" become an element of a list.
	if took, most := afterwards.TotalAlloc-before.TotalAlloc, uint64(300*len(input)+128<<10); took > most {
		t.Errorf("reading %d octets took %d of memory", len(input), took)
	}
}

// seed adds the pinned values of one kind, cut and garbled ones too.
func seed(f *testing.F, prefix string) {
	for name, b := range pinned(f, "rows.golden") {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(append([]byte(nil), b...), 0xff))
		wrong := append([]byte(nil), b...)
		wrong[len(wrong)/2] ^= 0x80
		f.Add(wrong)
	}
	f.Add([]byte{})
	f.Add([]byte{rowVersion})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add(append([]byte{rowVersion}, bytes.Repeat([]byte{0x80}, 40)...))
}

// again fails unless v, written and read, is v: whatever a decoder accepts
// means one thing.
func again[T any](t *testing.T, v T, write func(T) []byte, read func([]byte) (T, error)) {
	t.Helper()
	b := write(v)
	got, err := read(b)
	if err != nil {
		t.Fatalf("%x was accepted as %+v, and its new form is refused: %v", b, v, err)
	}
	if !reflect.DeepEqual(v, got) {
		t.Fatalf("%+v comes back as %+v", v, got)
	}
}

func FuzzMessageRow(f *testing.F) {
	seed(f, "m ")
	// A count of properties that no memory could hold.
	f.Add([]byte{rowVersion, flagProperties, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (sized, error) {
			m, size, err := decodeMessage(b)
			return sized{m, size}, err
		}
		var m sized
		var err error
		frugal(t, b, func() { m, err = read(b) })
		if err != nil {
			return
		}
		if len(m.Body) > 0 && &m.Body[0] == &b[len(b)-len(m.Body)] {
			t.Fatal("the message does not own its octets")
		}
		again(t, m, func(m sized) []byte { return encodeMessage(&m.Message, m.Size) }, read)
	})
}

func FuzzReturnedRow(f *testing.F) {
	seed(f, "v ")
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (Entry, error) { return decodeReturned(5, b) }
		var e Entry
		var err error
		frugal(t, b, func() { e, err = read(b) })
		if err == nil {
			again(t, e, encodeEntry, read)
		}
	})
}

// fuzzRow fuzzes a row that has a code method.
func fuzzRow[T any](f *testing.F, prefix string, code func(*T, *coder)) {
	seed(f, prefix)
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (T, error) {
			v, err := readAs(b, code)
			return v.(T), err
		}
		var v T
		var err error
		frugal(t, b, func() { v, err = read(b) })
		if err == nil {
			again(t, v, func(v T) []byte { return encoded(v, code) }, read)
		}
	})
}

func FuzzLeaseRow(f *testing.F) { fuzzRow(f, "l ", (*Lease).code) }
func FuzzLaneRow(f *testing.F)  { fuzzRow(f, "c ", (*Lane).code) }
func FuzzStateRow(f *testing.F) { fuzzRow(f, "s state", (*State).code) }
func FuzzTokenRow(f *testing.F) { fuzzRow(f, "r", (*RetryToken).code) }

// FuzzBodyRow reads what several groups have.
func FuzzBodyRow(f *testing.F) {
	seed(f, "b")
	f.Add([]byte{rowVersion, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}) // properties that no memory could hold
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (*Body, error) { return decodeBody(42, b) }
		var m *Body
		var err error
		frugal(t, b, func() { m, err = read(b) })
		if err != nil {
			return
		}
		if len(m.Body) > 0 && &m.Body[0] == &b[len(b)-len(m.Body)] {
			t.Fatal("the body does not own its octets")
		}
		again(t, m, encodeBody, read)
	})
}

func FuzzHoldersRow(f *testing.F) { fuzzNumber(f, "h", decodeHolders) }
func FuzzSharedRow(f *testing.F)  { fuzzNumber(f, "u", decodeShared) }

// fuzzNumber fuzzes a row that is one number.
func fuzzNumber[N uint32 | int64](f *testing.F, prefix string, read func([]byte) (N, error)) {
	seed(f, prefix)
	f.Fuzz(func(t *testing.T, b []byte) {
		var n N
		var err error
		frugal(t, b, func() { n, err = read(b) })
		if err == nil {
			again(t, n, func(n N) []byte { return encoded(n, numberRow) }, read)
		}
	})
}

func numberRow[N uint32 | int64](n *N, c *coder) {
	c.version(rowVersion)
	number(c, n)
}

// FuzzJSONRow reads queues and work requests. JSON may lose what it cannot
// say (two spellings of a name, octets that are not UTF-8), but not twice.
func FuzzJSONRow(f *testing.F) {
	seed(f, "q")
	seed(f, "w")
	for _, s := range []string{`{}`, `[]`, `null`, `{"Number":-1}`, `{"Number":1e3}`, `{"Logs":[{},{},{}]}`, `{"DefinedTags":{"a":{"b":null}}}`, `{"Percent":1e99}`, `{"ID":"\ud800"}`} {
		f.Add(append([]byte{rowVersion}, s...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzJSON[Queue](t, b)
		fuzzJSON[queue.WorkRequest](t, b)
	})
}

func fuzzJSON[T any](t *testing.T, b []byte) {
	var v T
	var err error
	frugal(t, b, func() { err = parseJSON(b, &v) })
	if err != nil {
		return
	}
	first, err := appendJSON(nil, v)
	if err != nil {
		t.Fatalf("%q was accepted and cannot be written: %v", b, err)
	}
	var w T
	if err := parseJSON(first, &w); err != nil {
		t.Fatalf("%q was accepted, and its new form %q is refused: %v", b, first, err)
	}
	if second, err := appendJSON(nil, w); err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%q is written as %q and then as %q", b, first, second)
	}
}

// TestNumbersKeepToTheirType: a number that its field cannot hold is damage,
// not another number.
func TestNumbersKeepToTheirType(t *testing.T) {
	try := func(n uint64, read func(*coder)) bool {
		w := coder{}
		w.uint(n)
		r := coder{b: w.b, reading: true}
		read(&r)
		return r.done() == nil
	}
	for _, tt := range []struct {
		name string
		read func(*coder)
		most uint64
	}{
		{"uint8", func(c *coder) { number(c, new(Kind)) }, math.MaxUint8},
		{"uint16", func(c *coder) { number(c, new(uint16)) }, math.MaxUint16},
		{"uint32", func(c *coder) { number(c, new(uint32)) }, math.MaxUint32},
		{"int64", func(c *coder) { number(c, new(queue.Instant)) }, math.MaxInt64},
		{"uint64", func(c *coder) { number(c, new(LaneID)) }, math.MaxUint64},
	} {
		if !try(0, tt.read) || !try(tt.most, tt.read) {
			t.Errorf("%s: 0 or %d is refused", tt.name, tt.most)
		}
		if tt.most < math.MaxUint64 && (try(tt.most+1, tt.read) || try(math.MaxUint64, tt.read)) {
			t.Errorf("%s: more than %d is read", tt.name, tt.most)
		}
	}
}
