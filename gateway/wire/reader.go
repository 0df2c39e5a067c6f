package wire

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/queued-mq/queued/queue"
)

// Kind is what a value is, told by its first octet.
type Kind byte

const (
	Invalid Kind = iota // none: the body is broken or at its end
	Null
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Reader reads one JSON value from a buffer that must not change meanwhile.
// The first error stays: after it every method returns its zero value and
// every loop ends, so that Err need be asked only once. The zero Reader is
// ready for Reset and may be used again and again, by one goroutine at a time.
type Reader struct {
	buf    []byte
	pos    int
	values int
	err    error
	levels []level
	names  [][]byte // of all open objects, innermost last; see level.names
}

// level is one array or object that is open.
type level struct {
	kind  Kind
	count int    // members or elements begun
	names int    // where the names of this object begin in Reader.names
	name  []byte // of the member that is being read
	seen  map[string]struct{}
}

// few is up to how many names of an object are compared one by one; beyond it
// they go into level.seen.
const few = 64

// twice reports whether the object l has had the name, and keeps it.
func (r *Reader) twice(l *level, name []byte) bool {
	mine := r.names[l.names:]
	if len(mine) == few && l.seen == nil {
		l.seen = make(map[string]struct{}, 2*few)
		for _, other := range mine {
			l.seen[string(other)] = struct{}{}
		}
	}
	if l.seen != nil {
		if _, found := l.seen[string(name)]; found {
			return true
		}
		l.seen[string(name)] = struct{}{}
		return false
	}
	for _, other := range mine {
		if bytes.Equal(name, other) {
			return true
		}
	}
	r.names = append(r.names, name)
	return false
}

// Reset begins anew with body.
func (r *Reader) Reset(body []byte) {
	clear(r.levels[:cap(r.levels)])
	clear(r.names[:cap(r.names)])
	*r = Reader{buf: body, levels: r.levels[:0], names: r.names[:0]}
}

// Err is the first error, a *queue.Error: CannotParseRequest for what is no
// JSON, InvalidParameter for what is not the value that was asked for.
func (r *Reader) Err() error { return r.err }

// Values is how many values have been read so far, open ones counted.
func (r *Reader) Values() int { return r.values }

// Empty reports whether the body holds nothing but blanks.
func (r *Reader) Empty() bool {
	r.blanks()
	return r.err == nil && r.pos == len(r.buf)
}

// End checks that nothing stands behind the value and reports the first error.
func (r *Reader) End() error {
	r.blanks()
	if r.err == nil && r.pos < len(r.buf) {
		r.broken("something stands behind the end of the value")
	}
	return r.err
}

// Refuse makes the error "<path> <text>" with the code, unless there is an
// error already. The path is the place of the value read last, and is left out
// at the top.
func (r *Reader) Refuse(code queue.Code, format string, args ...any) {
	if r.err != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if p := r.Path(); p != "" {
		text = p + " " + text
	} else {
		text = "the body " + text
	}
	r.err = &queue.Error{Code: code, Message: text}
}

// Fail makes err the error, unless there is one already.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Path is where the reader stands, as "messages[2].metadata.channelId"; empty
// at the top.
func (r *Reader) Path() string {
	var b []byte
	for i := range r.levels {
		switch l := &r.levels[i]; {
		case l.count == 0:
		case l.kind == Array:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(l.count-1), 10)
			b = append(b, ']')
		default:
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = appendName(b, l.name)
		}
	}
	return string(b)
}

// appendName bounds a name of the client's for an error message.
func appendName(b, name []byte) []byte {
	const most = 64
	if len(name) > most {
		return append(bytes.ToValidUTF8(append(b, name[:most]...), nil), "…"...)
	}
	return append(b, name...)
}

// broken is the error of a body that is no JSON.
func (r *Reader) broken(format string, args ...any) {
	if r.err == nil {
		r.err = queue.Errorf(queue.CannotParseRequest, "the body is not valid JSON: at octet %d %s", r.pos, fmt.Sprintf(format, args...))
	}
}

func (r *Reader) blanks() {
	for r.pos < len(r.buf) {
		switch r.buf[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// Kind looks at the next value without reading it. Where none can begin it is
// Invalid, and the reader has its error.
func (r *Reader) Kind() Kind {
	if r.err != nil {
		return Invalid
	}
	r.blanks()
	if r.pos == len(r.buf) {
		r.broken("it ends where a value should stand")
		return Invalid
	}
	switch c := r.buf[r.pos]; {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '-' || c >= '0' && c <= '9':
		return Number
	case c == 't' || c == 'f':
		return Bool
	case c == 'n':
		return Null
	}
	r.broken("no value begins")
	return Invalid
}

// want reads what kind the next value is and refuses any but the wanted one.
func (r *Reader) want(want Kind) bool {
	switch got := r.Kind(); got {
	case Invalid:
		return false
	case want:
		if r.values++; r.values > MaxValues {
			r.err = queue.Errorf(queue.InvalidParameter, "the body holds more than %d values", MaxValues)
			return false
		}
		return true
	default:
		r.Refuse(queue.InvalidParameter, "must be %s, not %s", want, got)
		return false
	}
}

// Null reads a null if one stands next and reports whether it did. The API
// takes null as absent, so decoders ask this first.
func (r *Reader) Null() bool {
	if r.Kind() != Null {
		return false
	}
	return r.want(Null) && r.word("null")
}

func (r *Reader) word(w string) bool {
	if len(r.buf)-r.pos < len(w) || string(r.buf[r.pos:r.pos+len(w)]) != w {
		r.broken("%s is misspelt", w)
		return false
	}
	r.pos += len(w)
	return true
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	if !r.want(Bool) {
		return false
	}
	if r.buf[r.pos] == 't' {
		return r.word("true")
	}
	r.word("false")
	return false
}

// Object enters an object; then Name gives its members one by one.
//
//	for ok := r.Object(); ok; {
//		var name []byte
//		if name, ok = r.Name(); ok { ... read the value ... }
//	}
func (r *Reader) Object() bool { return r.want(Object) && r.open(Object) }

// Array enters an array; then More tells of its elements one by one.
func (r *Reader) Array() bool { return r.want(Array) && r.open(Array) }

func (r *Reader) open(k Kind) bool {
	if len(r.levels) == MaxDepth {
		r.err = queue.Errorf(queue.CannotParseRequest, "the body is nested deeper than %d levels", MaxDepth)
		return false
	}
	r.pos++
	r.levels = append(r.levels, level{kind: k, names: len(r.names)})
	return true
}

// next stands before the next member or element, or closes the array or object
// and reports false.
func (r *Reader) next(closing byte) bool {
	if r.err != nil {
		return false
	}
	r.blanks()
	l := &r.levels[len(r.levels)-1]
	if r.pos < len(r.buf) && r.buf[r.pos] == closing {
		r.pos++
		r.names = r.names[:l.names]
		r.levels = r.levels[:len(r.levels)-1]
		return false
	}
	if l.count > 0 {
		if r.pos == len(r.buf) || r.buf[r.pos] != ',' {
			r.broken("a comma or %q is missing", closing)
			return false
		}
		r.pos++
		r.blanks()
	}
	if l.count == MaxElements {
		l.count = 0 // the path names the whole
		r.Refuse(queue.InvalidParameter, "has more than %d elements", MaxElements)
		return false
	}
	l.count++
	return true
}

// More stands before the next element of the array entered last; at its end it
// leaves the array and reports false.
func (r *Reader) More() bool { return r.next(']') }

// Name reads the name of the next member of the object entered last; at its
// end it leaves the object and reports false. The name is valid until Reset.
func (r *Reader) Name() ([]byte, bool) {
	if !r.next('}') {
		return nil, false
	}
	if r.pos == len(r.buf) || r.buf[r.pos] != '"' {
		r.broken("a name in quotes is missing")
		return nil, false
	}
	l := &r.levels[len(r.levels)-1]
	l.count-- // until the name is known the path ends at the object
	text := r.text()
	if r.err != nil {
		return nil, false
	}
	name := text.raw
	if text.n != len(text.raw) {
		name = text.Append(nil)
	}
	if r.twice(l, name) {
		r.broken("the name %q stands twice in one object", appendName(nil, name))
		return nil, false
	}
	r.blanks()
	if r.pos == len(r.buf) || r.buf[r.pos] != ':' {
		r.broken("a colon is missing")
		return nil, false
	}
	r.pos++
	l.name = name
	l.count++
	return name, true
}

// Skip reads a value of any kind, as strictly as the others, and drops it.
func (r *Reader) Skip() {
	base := len(r.levels)
	for {
		switch r.Kind() {
		case Invalid:
			return
		case Null:
			r.Null()
		case Bool:
			r.Bool()
		case Number:
			r.Number()
		case String:
			r.Text()
		case Array:
			r.Array()
		case Object:
			r.Object()
		}
		// Close what is at its end, up to where the next value stands.
		for {
			if r.err != nil || len(r.levels) == base {
				return
			}
			if r.levels[len(r.levels)-1].kind == Array {
				if r.More() {
					break
				}
			} else if _, ok := r.Name(); ok {
				break
			}
		}
	}
}
