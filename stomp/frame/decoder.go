package frame

import (
	"bytes"
	"io"
	"math"
	"unicode/utf8"
)

const (
	// A buffer of firstBuffer octets is part of the Decoder: heart-beats and a
	// lone ACK need no more, so an idle connection holds nothing else.
	firstBuffer = 256
	// A buffer that one read has filled is too small for this peer, and grows
	// to nextBuffer and then to fullBuffer. Beyond that it grows only for one
	// header line, if the limit of a line asks for it.
	nextBuffer = 4 << 10
	fullBuffer = 16 << 10
)

// place is where in a frame a Decoder stands.
type place uint8

const (
	between   place = iota // before a frame, among line ends
	inCommand              // in its first line
	inHeaders              // at the begin of a header line or of the empty line
	inSized                // in a body of known length
	atEnd                  // behind such a body, before its NUL
	inOpen                 // in a body that ends at the first NUL
	inSkipped              // in what stands before the NUL of a command without a body
)

// Decoder reads a client's frames from a stream. It belongs to one goroutine;
// its reader may ask Begun and Buffered within a Read.
type Decoder struct {
	r       io.Reader
	late    error // came with the octets read last, to be told after them
	limits  Limits
	version Version // 0 until SetVersion
	opening bool    // the first frame has not been read yet
	err     *Error
	odd     Odd

	buf        []byte // first[:], or larger; nil before the first read
	start, end int    // what is read and not consumed is buf[start:end]
	filled     bool   // the last read filled buf
	first      [firstBuffer]byte

	// The frame that is being read.
	at      place
	used    int64 // octets consumed, for Limits.Frame
	command string
	lines   int    // header lines
	decoded int    // octets of them, for Limits.HeaderBytes
	block   []byte // names that are not known, and values, decoded
	spans   []span // the headers, in block
	differ  bool   // content-length stands twice with two values
	left    int64  // octets of a sized body to come
	got     int64  // octets of an open or skipped body
	body    []byte
}

// span is a header of the frame that is being read: its name is known, else
// block[name:value], its value is block[value:end].
type span struct {
	known            string
	name, value, end int
}

// NewDecoder reads from r, which may return less than it is asked for, and
// errors that pass (see Next). The first frame must be CONNECT or STOMP, and
// the first octet that cannot belong to one is an error at once.
func NewDecoder(r io.Reader, l Limits) *Decoder {
	return &Decoder{r: r, limits: l.orDefaults(), opening: true}
}

// SetVersion makes the following frames be read with the rules of v. Before
// it, and for CONNECT and STOMP at any time, no escapes are decoded.
func (d *Decoder) SetVersion(v Version) { d.version = v }

// SetLimits sets the limits of the following frames.
func (d *Decoder) SetLimits(l Limits) { d.limits = l.orDefaults() }

// Buffered is how many octets have been read and not consumed. If there are
// any, Next may return without reading.
func (d *Decoder) Buffered() int { return d.end - d.start }

// Begun reports whether a frame is begun and not ended. It knows of octets
// that Next has seen: what lies in the buffer behind a frame that Next has just
// returned may be the begin of another, which the next call will see before it
// reads.
func (d *Decoder) Begun() bool { return d.at != between }

// Idle gives back the memory that an idle connection does not need, as far as
// nothing lies in it. The next octets are read without it, and only a peer
// that sends much makes it come again: call it when a connection has been
// quiet for a while, not after every frame.
func (d *Decoder) Idle() {
	if d.start == d.end {
		d.buf, d.start, d.end, d.filled = nil, 0, 0, false
	}
	if d.at == between {
		d.block, d.spans = nil, nil
	}
}

// Next reads the next frame into f, whose Headers it uses again; f is changed
// only if the error is nil. Line ends and NULs between frames are skipped. The
// error is
//
//   - io.EOF at the end of the stream between frames, io.ErrUnexpectedEOF
//     within one;
//   - an *Error for a breach of the protocol, and then for ever;
//   - any other error of the reader as it is. The Decoder has lost nothing by
//     it: after a time-out, say, Next may be called again and goes on.
func (d *Decoder) Next(f *Frame) error {
	for {
		done := d.err == nil && d.advance()
		if d.err != nil {
			return d.err
		}
		if done {
			d.handOver(f)
			return nil
		}
		if err := d.more(); err != nil {
			if err == io.EOF && d.at != between {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// advance goes on through what is buffered. It reports whether the frame is
// complete; if not there is an error, or it needs more octets.
func (d *Decoder) advance() bool {
	for {
		var on bool // to the next place, d.at
		switch d.at {
		case between:
			on = d.skipLineEnds()
		case inCommand:
			on = d.commandLine()
		case inHeaders:
			on = d.headerLines()
		case inSized:
			on = d.sizedBody()
		case atEnd:
			on = d.endOfSized()
		case inOpen:
			on = d.openBody()
		case inSkipped:
			on = d.skippedBody()
		}
		if !on || d.at == between {
			return on
		}
	}
}

// handOver makes f the frame that is complete, and d ready for the next.
func (d *Decoder) handOver(f *Frame) {
	block := string(d.block) // the one allocation for all headers
	old := f.Headers
	f.Headers = old[:0]
	for _, s := range d.spans {
		name := s.known
		if name == "" {
			name = block[s.name:s.value]
		}
		f.Headers = append(f.Headers, Header{name, block[s.value:s.end]})
	}
	// Headers of earlier frames would keep alive a block each.
	if len(old) > len(f.Headers) {
		clear(old[len(f.Headers):])
	}
	f.Command, f.Body = d.command, d.body

	d.opening = false
	d.used, d.command, d.lines, d.decoded, d.differ, d.left, d.got, d.body = 0, "", 0, 0, false, 0, 0, nil
	d.block, d.spans = d.block[:0], d.spans[:0]
}

// more reads once: into the buffer, or straight into a body that would not fit
// there anyway.
func (d *Decoder) more() error {
	if d.at == inSized && d.start == d.end && d.left >= int64(max(len(d.buf), nextBuffer)) {
		d.growSized()
		n, err := d.read(d.body[len(d.body):cap(d.body)])
		d.body = d.body[:len(d.body)+n]
		d.left -= int64(n)
		d.used += int64(n)
		return err
	}
	d.makeRoom()
	n, err := d.read(d.buf[d.end:])
	d.end += n
	d.filled = d.end == len(d.buf)
	return err
}

// read reads at least one octet or tells why not.
func (d *Decoder) read(p []byte) (int, error) {
	if err := d.late; err != nil {
		d.late = nil
		return 0, err
	}
	for range 100 {
		n, err := d.r.Read(p)
		if n > 0 {
			d.late = err
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// makeRoom moves what is buffered to the front and sees to it that the buffer
// is neither full nor too small for this peer.
func (d *Decoder) makeRoom() {
	rest := d.buf[d.start:d.end]
	size := len(d.buf)
	switch full := len(rest) == size; {
	case size == 0:
		d.buf = d.first[:]
	case size < nextBuffer && (d.filled || full):
		d.buf = make([]byte, nextBuffer)
	case size < fullBuffer && (d.filled || full):
		d.buf = make([]byte, fullBuffer)
	case full:
		// Only a line that is not decided yet can fill it; see line.
		d.buf = make([]byte, min(2*size, max(d.limits.Command, d.limits.HeaderLine)+2))
	}
	d.end = copy(d.buf, rest)
	d.start = 0
}

// skipLineEnds reads up to the first octet of a frame.
func (d *Decoder) skipLineEnds() bool {
	i := d.start
	for i < d.end && (d.buf[i] == '\n' || d.buf[i] == 0 || d.buf[i] == '\r' && i+1 < d.end && d.buf[i+1] == '\n') {
		if d.buf[i] == 0 {
			d.odd |= StrayNul
		}
		i++
	}
	if d.opening {
		// Else a peer could stay for ever before its sign-in.
		if d.used += int64(i - d.start); d.room() < 0 {
			d.frameTooLarge()
			return false
		}
	}
	d.start = i
	// The LF of a CR may be on the way. Until then no frame is begun.
	if i == d.end || d.buf[i] == '\r' && i+1 == d.end {
		return false
	}
	d.at = inCommand
	return true
}

// room is how many octets more the frame may have.
func (d *Decoder) room() int64 {
	if d.limits.Frame == 0 {
		return math.MaxInt64
	}
	return d.limits.Frame - d.used
}

func (d *Decoder) frameTooLarge() {
	d.tooLarge("frame", "the frame is larger than %d octets", d.limits.Frame)
}

// line takes the next line, without its end, out of the buffer, where it lies
// until the next read. It is judged octet by octet, so that the same error is
// found wherever the reads have ended, and none waits for an LF that may never
// come.
func (d *Decoder) line(most int, limit, what string) ([]byte, bool) {
	window := d.buf[d.start:d.end]
	room := d.room()
	seen := window[:min(int64(len(window)), int64(most)+2, room)]
	at := bytes.IndexByte(seen, '\n')
	nul := seen
	if at >= 0 {
		nul = seen[:at]
	}
	if i := bytes.IndexByte(nul, 0); i >= 0 {
		at = i
	}
	// One octet more than the limit is right only if it is the CR of CR LF.
	long := at > most || at < 0 && len(seen) > most
	switch {
	case long && (seen[most] != '\r' || at < 0 && len(seen) > most+1):
		d.tooLarge(limit, "%s is longer than %d octets", what, most)
		return nil, false
	case at < 0 && int64(len(window)) > room:
		d.frameTooLarge()
		return nil, false
	case at < 0:
		return nil, false
	case seen[at] == 0:
		d.invalid("%s has a NUL octet in it", what)
		return nil, false
	}
	d.start += at + 1
	d.used += int64(at) + 1
	// By the letter the CR belongs to the line in 1.0 and 1.1, but every broker
	// takes it away.
	line := bytes.TrimSuffix(seen[:at], []byte{'\r'})
	if len(line) < at && d.version < V12 && d.version > 0 {
		d.odd |= TrailingCR
	}
	if d.version == V12 && bytes.IndexByte(line, '\r') >= 0 {
		d.invalid("%s has a CR in it that no LF follows", what)
		return nil, false
	}
	if !utf8.Valid(line) {
		d.invalid("%s is not UTF-8", what)
		return nil, false
	}
	return line, true
}

func (d *Decoder) commandLine() bool {
	if d.opening && !d.opens() {
		return false
	}
	line, ok := d.line(d.limits.Command, "command", "the command")
	if !ok {
		return false
	}
	if d.command = knownCommand(line); d.command == "" {
		d.command = string(line)
	}
	d.at = inHeaders
	return true
}

// opens checks that what has arrived can begin a CONNECT or STOMP frame, and
// fails if not: a peer of another protocol would wait with us for ever.
func (d *Decoder) opens() bool {
	window := d.buf[d.start:d.end]
	window = window[:min(int64(len(window)), d.room())]
	for _, line := range [...]string{Connect + "\n", Connect + "\r\n", Stomp + "\n", Stomp + "\r\n"} {
		if n := min(len(line), len(window)); string(window[:n]) == line[:n] {
			return true
		}
	}
	if window[0] == 0x16 { // a handshake record; no text begins so
		d.invalid("the first frame must be CONNECT or STOMP; this port does not speak TLS")
	} else {
		d.invalid("the first frame must be CONNECT or STOMP")
	}
	return false
}
