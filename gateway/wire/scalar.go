package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/queued-mq/queued/queue"
)

// Text is a string as it stands in the body, checked but not yet unescaped. It
// is valid as long as the body is. The zero Text is the empty string.
type Text struct {
	raw []byte // between the quotes
	n   int    // octets when unescaped; equal to len(raw) if there are no escapes
}

// Len is how many octets the text has.
func (t Text) Len() int { return t.n }

// String is the text, in memory of its own.
func (t Text) String() string {
	if t.n == len(t.raw) {
		return string(t.raw)
	}
	return string(t.Append(make([]byte, 0, t.n)))
}

// Append appends the text to dst.
func (t Text) Append(dst []byte) []byte {
	if t.n == len(t.raw) { // every escape is longer than what it stands for
		return append(dst, t.raw...)
	}
	for i := 0; i < len(t.raw); {
		j := i
		for j < len(t.raw) && t.raw[j] != '\\' {
			j++
		}
		dst = append(dst, t.raw[i:j]...)
		if i = j; i == len(t.raw) {
			break
		}
		switch c := t.raw[i+1]; c {
		case 'u':
			u := hex4(t.raw[i+2:])
			i += 6
			if utf16.IsSurrogate(u) {
				u = utf16.DecodeRune(u, hex4(t.raw[i+2:]))
				i += 6
			}
			dst = utf8.AppendRune(dst, u)
		default:
			dst = append(dst, unescape[c])
			i += 2
		}
	}
	return dst
}

// unescape is what stands behind a backslash, and what it means.
var unescape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 is the value of the four hex digits that b begins with, or -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var u rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		u = u<<4 | rune(c)
	}
	return u
}

// Text reads a string.
func (r *Reader) Text() Text {
	if !r.want(String) {
		return Text{}
	}
	return r.text()
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks octets of x that end a plain stretch: quote, backslash,
// control, or above ASCII. The lowest mark is exact, which is the one to use.
func special(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return (x | (x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// text reads the string that begins at pos, checked in full.
func (r *Reader) text() Text {
	b, start := r.buf, r.pos+1
	n, i := 0, start // n counts what escapes shrink by
	for {
		for i+8 <= len(b) {
			if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i == len(b) {
			r.pos = i
			r.broken("it ends inside a string")
			return Text{}
		}
		switch c := b[i]; {
		case c == '"':
			r.pos = i + 1
			return Text{raw: b[start:i], n: i - start - n}
		case c == '\\':
			size, out := r.escape(i)
			if r.err != nil {
				return Text{}
			}
			i += size
			n += size - out
		case c < ' ':
			r.pos = i
			r.broken("a control character (%#02x) stands unescaped in a string", c)
			return Text{}
		case c < utf8.RuneSelf:
			i++
		default:
			_, size := utf8.DecodeRune(b[i:])
			if size == 1 {
				r.pos = i
				r.broken("a string is not UTF-8; content of other octets goes as base64 with contentEncoding")
				return Text{}
			}
			i += size
		}
	}
}

// escape checks the escape at i and reports how long it is and how many octets
// it stands for.
func (r *Reader) escape(i int) (size, out int) {
	b := r.buf
	r.pos = i
	if i+1 == len(b) {
		r.broken("it ends inside a string")
		return 0, 0
	}
	if b[i+1] != 'u' {
		if unescape[b[i+1]] == 0 {
			r.broken("an unknown escape stands in a string")
			return 0, 0
		}
		return 2, 1
	}
	u := hex4(b[i+2:])
	if u < 0 {
		r.broken(`four hex digits are missing behind \u`)
		return 0, 0
	}
	if !utf16.IsSurrogate(u) {
		return 6, utf8.RuneLen(u)
	}
	if rest := b[i+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		if full := utf16.DecodeRune(u, hex4(rest[2:])); full != utf8.RuneError {
			return 12, utf8.RuneLen(full)
		}
	}
	r.broken(`\u%04x is half of a surrogate pair, which is no text; content of such octets goes as base64 with contentEncoding`, u)
	return 0, 0
}

// Number reads a number and returns it as it is spelt, valid as long as the
// body is.
func (r *Reader) Number() []byte {
	if !r.want(Number) {
		return nil
	}
	b, start := r.buf, r.pos
	i := start
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	ok := true
	if i < len(b) && b[i] == '0' {
		i++ // and no further digit
	} else {
		ok = digits()
	}
	if ok && i < len(b) && b[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		ok = digits()
	}
	if r.pos = i; !ok {
		r.broken("a number is misspelt")
		return nil
	}
	return b[start:i]
}

// Int reads a whole number of so many bits, spelt without fraction or exponent.
func (r *Reader) Int(size int) int64 {
	raw := r.Number()
	if r.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, size)
	if err != nil {
		r.Refuse(queue.InvalidParameter, "must be a whole number of at most %d bits", size)
		return 0
	}
	return n
}

// Float reads a number that float64 can hold without losing a digit that was
// given: whole numbers below 2^53, others to 15 digits.
func (r *Reader) Float() float64 {
	raw := r.Number()
	if r.err != nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	digits, whole := 0, true
	for _, c := range raw {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c != '-':
			whole = false
		}
	}
	if err != nil || whole && math.Abs(f) >= 1<<53 || !whole && digits > 15 {
		r.Refuse(queue.InvalidParameter, "is a number that cannot be kept exactly; write it as a string")
		return 0
	}
	return f
}
