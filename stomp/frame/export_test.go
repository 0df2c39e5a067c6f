package frame

// Held is how many octets of memory the decoder holds, beside itself.
func (d *Decoder) Held() int {
	held := cap(d.block) + cap(d.body) + 40*cap(d.spans)
	if len(d.buf) > firstBuffer {
		held += cap(d.buf)
	}
	return held
}
