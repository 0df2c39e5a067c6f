package frame

import (
	"bytes"
	"strconv"
)

// headerLines reads the header lines that are buffered, and the empty line.
func (d *Decoder) headerLines() bool {
	for {
		line, ok := d.line(d.limits.HeaderLine, "header line", "a header line")
		if !ok {
			return false
		}
		if len(line) == 0 {
			return d.beginBody()
		}
		if !d.header(line) {
			return false
		}
	}
}

// header adds one line to the headers of the frame.
func (d *Decoder) header(line []byte) bool {
	if d.lines++; d.lines > d.limits.HeaderLines {
		d.tooLarge("header lines", "the frame has more than %d header lines", d.limits.HeaderLines)
		return false
	}
	name, value, found := bytes.Cut(line, []byte{':'})
	if !found {
		// The line is not shown: it may be the rest of a passcode.
		d.invalid("header line %d has no colon", d.lines)
		return false
	}
	if len(name) == 0 {
		d.invalid("header line %d has an empty name", d.lines)
		return false
	}

	s := span{known: knownName(name), name: len(d.block)}
	if s.known == "" && !d.decode(name, name) {
		return false
	}
	s.value = len(d.block)
	if !d.decode(value, name) {
		return false
	}
	s.end = len(d.block)
	if d.escaped() && bytes.IndexByte(value, ':') >= 0 {
		d.odd |= RawColon
	}
	if s.known == contentLength && d.command != Send {
		d.odd |= LengthWithoutBody
	}

	d.decoded += len(s.known) + s.end - s.name + len(":\n")
	if d.decoded > d.limits.HeaderBytes {
		d.tooLarge("headers", "the headers are larger than %d octets", d.limits.HeaderBytes)
		return false
	}
	if first := d.find(s); first != nil {
		d.odd |= RepeatedHeader
		if s.known == contentLength && string(d.text(*first)) != string(d.text(s)) {
			d.differ = true
		}
		d.block = d.block[:s.name]
		return true
	}
	d.spans = append(d.spans, s)
	return true
}

// text is the value of a header of the frame that is being read.
func (d *Decoder) text(s span) []byte { return d.block[s.value:s.end] }

// find is the header read before with the name of s, if there is one. There
// are so few that to compare all is cheaper than to keep order among them.
func (d *Decoder) find(s span) *span {
	name := d.block[s.name:s.value]
	for i := range d.spans {
		o := &d.spans[i]
		if s.known == o.known && (s.known != "" || bytes.Equal(name, d.block[o.name:o.value])) {
			return o
		}
	}
	return nil
}

// escaped reports whether the headers of the frame have escapes.
func (d *Decoder) escaped() bool {
	return d.version >= V11 && d.command != Connect && d.command != Stomp
}

// decode appends text to the block with its escapes resolved, once. name is
// the raw name of the line, for the error.
func (d *Decoder) decode(text, name []byte) bool {
	if !d.escaped() {
		d.block = append(d.block, text...)
		return true
	}
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			d.block = append(d.block, text...)
			return true
		}
		d.block = append(d.block, text[:at]...)
		var c byte
		if at+1 < len(text) {
			switch e := text[at+1]; {
			case e == 'n':
				c = '\n'
			case e == 'c':
				c = ':'
			case e == '\\':
				c = '\\'
			case e == 'r' && d.version >= V12:
				c = '\r'
			}
		}
		if c == 0 {
			d.invalid("the header %s has an escape that STOMP %s does not know", quote(name), d.version)
			return false
		}
		d.block = append(d.block, c)
		text = text[at+2:]
	}
}

// length is the content-length of the frame, or false if it has none. One that
// is wrong is an error, never as good as none: two ways to read one stream let
// a body smuggle in a frame.
func (d *Decoder) length() (int64, bool) {
	s := d.find(span{known: contentLength})
	if s == nil {
		return 0, false
	}
	if d.differ {
		d.invalid("content-length stands twice with different values")
		return 0, false
	}
	text := d.text(*s)
	for _, c := range text {
		if c < '0' || c > '9' {
			text = nil
		}
	}
	n, err := strconv.ParseInt(string(text), 10, 64) // "" for anything but digits
	if err != nil {
		d.invalid("content-length must be a number in digits, not %s", quote(d.text(*s)))
		return 0, false
	}
	return n, true
}
