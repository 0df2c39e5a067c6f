package frame

import (
	"cmp"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limits bound one frame, in octets where nothing else is said. A field that
// is zero has the value given here.
type Limits struct {
	Command     int // 32
	HeaderLines int // lines, repeated names counted too: 100

	// HeaderLine is one header line as it arrives, without its line end: 8 KiB.
	HeaderLine int
	// HeaderBytes is all header lines after decoding, each with its colon and
	// its LF, repeated names counted too: 32 KiB.
	HeaderBytes int
	// Body is also how much is skipped where a command has none: 256 KiB.
	Body int64
	// Frame is the whole frame as it arrives, from its command to its NUL; of
	// the opening frame what stands before it is counted too. Zero: no bound of
	// its own.
	Frame int64
}

func (l Limits) orDefaults() Limits {
	l.Command = cmp.Or(l.Command, 32)
	l.HeaderLines = cmp.Or(l.HeaderLines, 100)
	l.HeaderLine = cmp.Or(l.HeaderLine, 8<<10)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 32<<10)
	l.Body = cmp.Or(l.Body, 256<<10)
	return l
}

// Error is a breach of the protocol, after which nothing more can be read.
type Error struct {
	Message  string // one short stable sentence, safe to show to the peer
	TooLarge bool   // a limit was broken, rather than the form
	Limit    string // what was too large: "body", "header lines", ...; else ""

	// Receipt is the value of the frame's receipt header, if HasReceipt: if the
	// header had been read when the error was found. The opening frame can ask
	// for no receipt and never has one.
	Receipt    string
	HasReceipt bool
}

func (e *Error) Error() string { return e.Message }

// fail ends the decoder with the error and drops what it held.
func (d *Decoder) fail(e *Error) {
	if d.command != Connect && d.command != Stomp {
		for _, s := range d.spans {
			if s.known == receipt {
				e.Receipt, e.HasReceipt = string(d.block[s.value:s.end]), true
			}
		}
	}
	*d = Decoder{err: e, odd: d.odd}
}

func (d *Decoder) invalid(format string, args ...any) {
	d.fail(&Error{Message: fmt.Sprintf(format, args...)})
}

func (d *Decoder) tooLarge(limit, format string, args ...any) {
	d.fail(&Error{Message: fmt.Sprintf(format, args...), TooLarge: true, Limit: limit})
}

// quote makes a piece of the peer's text fit for a message: short, on one line
// and without anything that does not print.
func quote[T string | []byte](text T) string {
	const most = 32
	if len(text) <= most {
		return strconv.Quote(string(text))
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strconv.Quote(string(text[:end]) + "…")
}
