package frame

import "bytes"

// reserve is how much memory a body gets on the word of its content-length
// alone. From there on it doubles as octets arrive, so that ten thousand
// connections that announce a large body and fall silent hold little; and
// nearly all bodies are smaller, and are reserved once and read in place.
const reserve = 64 << 10

// beginBody decides behind the empty line how the frame goes on.
func (d *Decoder) beginBody() bool {
	if d.command != Send {
		// Some clients put content-length:0 on every frame: here it says nothing.
		d.at = inSkipped
		return true
	}
	n, sized := d.length()
	switch {
	case d.err != nil:
		return false
	case !sized:
		d.at = inOpen
		return true
	case n > d.limits.Body:
		d.bodyTooLarge()
		return false
	case n >= d.room(): // no room for the NUL
		d.frameTooLarge()
		return false
	}
	d.at = inSized
	d.left = n
	d.body = make([]byte, 0, min(n, reserve))
	return true
}

func (d *Decoder) bodyTooLarge() {
	d.tooLarge("body", "the body is larger than %d octets", d.limits.Body)
}

// take consumes n octets of the buffer.
func (d *Decoder) take(n int) []byte {
	taken := d.buf[d.start : d.start+n]
	d.start += n
	d.used += int64(n)
	return taken
}

// growSized makes room for octets to come in a sized body. Its capacity never
// passes the announced length, and is that length at the end.
func (d *Decoder) growSized() {
	if have := int64(len(d.body)); d.left > 0 && have == int64(cap(d.body)) {
		grown := make([]byte, have, min(2*have, have+d.left))
		copy(grown, d.body)
		d.body = grown
	}
}

func (d *Decoder) sizedBody() bool {
	for d.left > 0 && d.start < d.end {
		d.growSized()
		piece := d.take(min(d.Buffered(), cap(d.body)-len(d.body)))
		d.body = append(d.body, piece...)
		d.left -= int64(len(piece))
	}
	if d.left > 0 {
		return false
	}
	d.at = atEnd
	return true
}

func (d *Decoder) endOfSized() bool {
	if d.start == d.end {
		return false
	}
	if d.take(1)[0] != 0 {
		d.invalid("no NUL octet stands behind the body, whose content-length is %d", len(d.body))
		return false
	}
	d.at = between
	return true
}

// upToNul takes a piece of a body that ends at the first NUL, and reports
// whether the NUL has been taken too. The body has d.got octets so far.
func (d *Decoder) upToNul() (piece []byte, ended bool) {
	n := bytes.IndexByte(d.buf[d.start:d.end], 0)
	if ended = n >= 0; !ended {
		n = d.Buffered()
	}
	// Where both limits are passed, the one that is passed first.
	inBody, inFrame := d.limits.Body-d.got, d.room()-1
	switch {
	case int64(n) > inBody && inBody <= inFrame:
		d.bodyTooLarge()
		return nil, false
	case int64(n) > inFrame:
		d.frameTooLarge()
		return nil, false
	}
	d.got += int64(n)
	piece = d.take(n)
	if ended {
		d.take(1)
		d.at = between
	}
	return piece, ended
}

func (d *Decoder) openBody() bool {
	piece, ended := d.upToNul()
	if d.err != nil {
		return false
	}
	need := len(d.body) + len(piece)
	if need > cap(d.body) || ended {
		// At the end as large as the body, for it may be kept for long; before
		// the end twice what has arrived.
		room := need
		if !ended {
			room = int(min(2*int64(need), d.limits.Body))
		}
		if room != cap(d.body) || d.body == nil {
			grown := make([]byte, len(d.body), room)
			copy(grown, d.body)
			d.body = grown
		}
	}
	d.body = append(d.body, piece...)
	return ended
}

func (d *Decoder) skippedBody() bool {
	_, ended := d.upToNul()
	if ended && d.got > 0 {
		d.odd |= BodyIgnored
	}
	return d.err == nil && ended
}
