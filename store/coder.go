package store

import (
	"encoding/binary"
	"errors"
)

// errCorrupt is what a decoder says of bytes that it did not write.
var errCorrupt = errors.New("damaged record")

// coder walks the fields of a record in one order for both directions: a
// record has one method that names its fields, and the coder writes them or
// reads them. So an encoder and its decoder cannot disagree.
//
// Reading takes memory in proportion to the input at most, whatever counts and
// lengths the input claims, and stops at the first thing that is wrong.
type coder struct {
	b       []byte // written so far, or still to read
	reading bool
	bad     bool
}

func (c *coder) fail() { c.bad, c.b = true, nil }

func (c *coder) done() error {
	if c.bad || (c.reading && len(c.b) > 0) {
		return errCorrupt
	}
	return nil
}

func (c *coder) byte(p *byte) {
	if !c.reading {
		c.b = append(c.b, *p)
		return
	}
	if len(c.b) == 0 {
		c.fail()
		return
	}
	*p, c.b = c.b[0], c.b[1:]
}

// version writes v, or reads it and refuses another one.
func (c *coder) version(v byte) {
	got := v
	c.byte(&got)
	if got != v {
		c.fail()
	}
}

func (c *coder) uint(n uint64) uint64 {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, n)
		return n
	}
	n, w := binary.Uvarint(c.b)
	if w <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[w:]
	return n
}

// number codes any integer that is never negative.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int | ~int64](c *coder, p *T) {
	n := c.uint(uint64(*p))
	if c.reading {
		if *p = T(n); uint64(*p) != n || *p < 0 {
			c.fail()
		}
	}
}

func (c *coder) bool(p *bool) {
	var n byte
	if *p {
		n = 1
	}
	c.byte(&n)
	if c.reading {
		if *p = n == 1; n > 1 {
			c.fail()
		}
	}
}

func text[T ~string | ~[]byte](c *coder, p *T) {
	n := c.uint(uint64(len(*p)))
	if !c.reading {
		c.b = append(c.b, *p...)
		return
	}
	if n > uint64(len(c.b)) {
		c.fail()
		return
	}
	if n > 0 { // a length of zero leaves nil
		*p = T(append([]byte(nil), c.b[:n]...))
	}
	c.b = c.b[n:]
}

// list codes a slice; each codes one element. An element takes at least one
// octet, so a count beyond the input is refused before memory is taken.
func list[T any](c *coder, p *[]T, each func(*coder, *T)) {
	n := c.uint(uint64(len(*p)))
	if c.reading {
		if n > uint64(len(c.b)) {
			c.fail()
			return
		}
		if *p = nil; n > 0 {
			*p = make([]T, 0, min(n, 1024))
		}
		for range n {
			var v T
			if each(c, &v); c.bad {
				return
			}
			*p = append(*p, v)
		}
		return
	}
	for i := range *p {
		each(c, &(*p)[i])
	}
}
