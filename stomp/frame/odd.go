package frame

// Odd is a set of things that a client should not write, and that are read all
// the same.
type Odd uint32

const (
	StrayNul          Odd = 1 << iota // a NUL between frames
	TrailingCR                        // a CR before the LF of a line, before 1.2
	RawColon                          // a colon in a value that is not spelled as an escape, from 1.1 on
	RepeatedHeader                    // a name for the second time
	LengthWithoutBody                 // a content-length on a command that has no body
	BodyIgnored                       // a body on such a command
)

// Odd is what was odd in the frames that Next has returned, and between them,
// since it was asked for the last time.
func (d *Decoder) Odd() Odd {
	odd := d.odd
	d.odd = 0
	return odd
}
