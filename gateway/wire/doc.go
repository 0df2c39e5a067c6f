// Package wire is the JSON of the REST face as bytes: a strict reader that
// makes one pass over a request body, and functions that append an answer to a
// buffer. It knows no message of the API; the two decoders of package gateway,
// the one for every operation and the hand-written one for the hot ones, are
// both built on it, and so refuse the same bodies with the same words.
//
// Strict means RFC 8259 and more: no invalid UTF-8, no half of a surrogate
// pair, no name twice in one object, nothing behind the value, and bounded
// depth and number of values. Nothing is ever replaced or guessed: what a
// body cannot say clearly is an error.
//
// The idea to hold: a Reader keeps its first error and the path to where it
// stands, so a decoder is a plain loop and asks for the error once, at the end.
package wire

// Bounds of a body, beside the size, which is cut before it is read.
const (
	MaxDepth    = 32      // arrays and objects inside one another
	MaxElements = 10_000  // elements of one array, members of one object: the greatest that any setting allows
	MaxValues   = 1 << 17 // values in the whole body, members and elements counted
)
