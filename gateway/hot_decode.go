package gateway

import (
	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// putDecoder reads the body of PutMessages in one pass. The pass notes where
// things stand; only then is memory made, in a few pieces of just the right
// size, since what comes out lives on in the service. It is used again for the
// next body.
type putDecoder struct {
	entries    []putEntry
	properties []putProperty
}

// putEntry is one message as it stands in the body.
type putEntry struct {
	content, encoding, channel          wire.Text
	hasContent, hasEncoding, hasChannel bool
	hasRetention, hasDelay, hasVisible  bool
	retention, delay, visibility        int32
	properties                          int // how many, in putDecoder.properties
}

type putProperty struct {
	name  []byte
	value wire.Text
}

// reset lets go of the last body, and of buffers that one odd body has blown up.
func (d *putDecoder) reset() {
	const most = 1024
	if cap(d.entries) > most || cap(d.properties) > most {
		*d = putDecoder{}
		return
	}
	clear(d.entries)
	clear(d.properties)
	d.entries, d.properties = d.entries[:0], d.properties[:0]
}

// decode reads body. The messages share no memory with it; nil are none.
//
// Errors: as unmarshal, to the letter.
func (d *putDecoder) decode(r *wire.Reader, body []byte) ([]service.PutMessage, error) {
	d.reset()
	r.Reset(body)
	if beginBody(r) {
		for {
			name, ok := r.Name()
			if !ok {
				break
			}
			switch {
			case string(name) != "messages":
				r.Skip()
			case r.Null():
			default:
				for ok := r.Array() && r.More(); ok; ok = r.More() {
					d.entry(r)
				}
			}
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return d.build(), nil
}

func (d *putDecoder) entry(r *wire.Reader) {
	d.entries = append(d.entries, putEntry{})
	e := &d.entries[len(d.entries)-1]
	if r.Null() || !r.Object() {
		return
	}
	for {
		name, ok := r.Name()
		if !ok {
			return
		}
		switch string(name) {
		case "content":
			e.content, e.hasContent = optionalString(r)
		case "contentEncoding":
			e.encoding, e.hasEncoding = optionalString(r)
		case "metadata":
			if !r.Null() && r.Object() {
				d.metadata(r, e)
			}
		case "retentionInSeconds":
			e.retention, e.hasRetention = optionalInt32(r)
		case "delayInSeconds":
			e.delay, e.hasDelay = optionalInt32(r)
		case "visibilityInSeconds":
			e.visibility, e.hasVisible = optionalInt32(r)
		default:
			r.Skip()
		}
	}
}

func (d *putDecoder) metadata(r *wire.Reader, e *putEntry) {
	for {
		name, ok := r.Name()
		if !ok {
			return
		}
		switch string(name) {
		case "channelId":
			e.channel, e.hasChannel = optionalString(r)
		case "customProperties":
			if r.Null() || !r.Object() {
				continue
			}
			for {
				name, ok := r.Name()
				if !ok {
					break
				}
				if value, ok := optionalString(r); ok {
					d.properties = append(d.properties, putProperty{name, value})
					e.properties++
				}
			}
		default:
			r.Skip()
		}
	}
}

// build makes the messages: the contents in one piece of memory, all other
// text in another.
func (d *putDecoder) build() []service.PutMessage {
	if len(d.entries) == 0 {
		return nil
	}
	contents, words, channels := 0, 0, 0
	for i := range d.entries {
		e := &d.entries[i]
		contents += e.content.Len()
		words += e.channel.Len()
		if e.hasChannel {
			channels++
		}
	}
	for i := range d.properties {
		words += len(d.properties[i].name) + d.properties[i].value.Len()
	}
	octets, text := make([]byte, 0, contents), make([]byte, 0, words)
	for i := range d.entries {
		text = d.entries[i].channel.Append(text)
	}
	for i := range d.properties {
		p := &d.properties[i]
		text = p.value.Append(append(text, p.name...))
	}
	all := string(text)
	cut := func(n int) (s string) {
		s, all = all[:n], all[n:]
		return s
	}

	messages := make([]service.PutMessage, len(d.entries))
	ids := make([]string, channels)
	for i := range d.entries {
		e, m := &d.entries[i], &messages[i]
		if e.hasContent {
			from := len(octets)
			octets = e.content.Append(octets)
			m.Content = octets[from:len(octets):len(octets)]
		}
		if e.hasEncoding {
			s := e.encoding.String()
			m.ContentEncoding = &s
		}
		if e.hasChannel {
			ids[0] = cut(e.channel.Len())
			m.ChannelID, ids = &ids[0], ids[1:]
		}
		if e.hasRetention {
			n := e.retention
			m.RetentionInSeconds = &n
		}
		if e.hasDelay {
			n := e.delay
			m.DelayInSeconds = &n
		}
		if e.hasVisible {
			n := e.visibility
			m.VisibilityInSeconds = &n
		}
	}
	if len(d.properties) > 0 {
		properties := make([]queue.Property, len(d.properties))
		for i := range d.properties {
			p := &d.properties[i]
			properties[i] = queue.Property{Name: cut(len(p.name)), Value: cut(p.value.Len())}
		}
		for i := range d.entries {
			if n := d.entries[i].properties; n > 0 {
				messages[i].Properties, properties = properties[:n:n], properties[n:]
			}
		}
	}
	return messages
}

// optionalString reads a string; ok is false for null, which is absent.
func optionalString(r *wire.Reader) (t wire.Text, ok bool) {
	if r.Null() {
		return t, false
	}
	t = r.Text()
	return t, r.Err() == nil
}

// optionalInt32 reads a whole number; ok is false for null, which is absent.
func optionalInt32(r *wire.Reader) (n int32, ok bool) {
	if r.Null() {
		return 0, false
	}
	n = int32(r.Int(32))
	return n, r.Err() == nil
}

// decodeUpdate reads the body of UpdateMessage: visibilityInSeconds, nil if it
// is absent.
func decodeUpdate(r *wire.Reader, body []byte) (*int32, error) {
	var visibility *int32
	r.Reset(body)
	if beginBody(r) {
		for {
			name, ok := r.Name()
			if !ok {
				break
			}
			if string(name) != "visibilityInSeconds" {
				r.Skip()
			} else if n, ok := optionalInt32(r); ok {
				visibility = &n
			}
		}
	}
	return visibility, r.End()
}

// batchDecoder reads the body of UpdateMessages or DeleteMessages, as
// putDecoder does that of PutMessages.
type batchDecoder struct{ entries []batchEntry }

type batchEntry struct {
	receipt    wire.Text
	visibility int32
	hasVisible bool
}

// reset lets go of the last body, and of a buffer that one odd body has blown
// up.
func (d *batchDecoder) reset() {
	const most = 1024
	if cap(d.entries) > most {
		d.entries = nil
	}
	clear(d.entries)
	d.entries = d.entries[:0]
}

// updates reads the body of UpdateMessages; nil are none.
func (d *batchDecoder) updates(r *wire.Reader, body []byte) ([]service.UpdateMessagesEntry, error) {
	if err := d.decode(r, body, true); err != nil || len(d.entries) == 0 {
		return nil, err
	}
	entries := make([]service.UpdateMessagesEntry, len(d.entries))
	times := make([]int32, len(d.entries))
	all := d.receipts()
	for i := range d.entries {
		e := &d.entries[i]
		entries[i].Receipt, all = all[:e.receipt.Len()], all[e.receipt.Len():]
		if e.hasVisible {
			times[i] = e.visibility
			entries[i].VisibilityInSeconds = &times[i]
		}
	}
	return entries, nil
}

// deletes reads the body of DeleteMessages; nil are none.
func (d *batchDecoder) deletes(r *wire.Reader, body []byte) ([]queue.Receipt, error) {
	if err := d.decode(r, body, false); err != nil || len(d.entries) == 0 {
		return nil, err
	}
	receipts := make([]queue.Receipt, len(d.entries))
	all := d.receipts()
	for i := range d.entries {
		n := d.entries[i].receipt.Len()
		receipts[i], all = all[:n], all[n:]
	}
	return receipts, nil
}

// receipts are those of all entries, one behind the other.
func (d *batchDecoder) receipts() queue.Receipt {
	n := 0
	for i := range d.entries {
		n += d.entries[i].receipt.Len()
	}
	octets := make([]byte, 0, n)
	for i := range d.entries {
		octets = d.entries[i].receipt.Append(octets)
	}
	return queue.Receipt(octets)
}

func (d *batchDecoder) decode(r *wire.Reader, body []byte, times bool) error {
	d.reset()
	r.Reset(body)
	if beginBody(r) {
		for {
			name, ok := r.Name()
			if !ok {
				break
			}
			switch {
			case string(name) != "entries":
				r.Skip()
			case r.Null():
			default:
				for ok := r.Array() && r.More(); ok; ok = r.More() {
					d.entry(r, times)
				}
			}
		}
	}
	return r.End()
}

func (d *batchDecoder) entry(r *wire.Reader, times bool) {
	d.entries = append(d.entries, batchEntry{})
	e := &d.entries[len(d.entries)-1]
	if r.Null() || !r.Object() {
		return
	}
	for {
		name, ok := r.Name()
		switch {
		case !ok:
			return
		case string(name) == "receipt":
			e.receipt, _ = optionalString(r)
		case times && string(name) == "visibilityInSeconds":
			e.visibility, e.hasVisible = optionalInt32(r)
		default:
			r.Skip()
		}
	}
}
