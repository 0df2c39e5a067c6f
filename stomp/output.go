package stomp

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/queued-mq/queued/queue"
)

// output is what is to be written, in its order.
type output struct {
	chunks []*chunk
	unsent int64         // octets, those that are being written included
	ended  bool          // nothing may be added any more
	broken bool          // nothing can be written any more
	wake   chan struct{} // for the writer, room for one
	beat   time.Duration // the longest silence; 0: any
}

// chunk is some frames: answers, or messages of one subscription.
type chunk struct {
	data     []byte
	sub      *subscription
	messages []queue.Delivery
	ends     []int // of the frames in data, which are the messages if there are any
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

const (
	answerChunk = 16 << 10  // answers gather up to about this size
	keptChunk   = 256 << 10 // larger ones are not used again
	piece       = 64 << 10  // of one write
)

func newChunk() *chunk { return chunks.Get().(*chunk) }

// recycle gives a chunk back; nobody may hold its data any more.
func (k *chunk) recycle() {
	if cap(k.data) > keptChunk {
		return
	}
	clear(k.messages)
	*k = chunk{data: k.data[:0], messages: k.messages[:0], ends: k.ends[:0]}
	chunks.Put(k)
}

// unwritten is the messages of which no octet is among the first n.
func (k *chunk) unwritten(n int) []queue.Delivery {
	start := 0
	for i, end := range k.ends {
		if start >= n {
			return k.messages[i:]
		}
		start = end
	}
	return nil
}

// answer adds an answer.
func (o *output) answer(appendTo func([]byte) []byte) {
	var k *chunk
	if n := len(o.chunks); n > 0 && o.chunks[n-1].sub == nil && len(o.chunks[n-1].data) < answerChunk {
		k = o.chunks[n-1]
	} else {
		k = newChunk()
		o.chunks = append(o.chunks, k)
	}
	before := len(k.data)
	k.data = appendTo(k.data)
	k.ends = append(k.ends, len(k.data))
	o.unsent += int64(len(k.data) - before)
	o.poke()
}

// add adds messages.
func (o *output) add(k *chunk) {
	o.chunks = append(o.chunks, k)
	o.unsent += int64(len(k.data))
	o.poke()
}

// drop takes out what waits of a subscription.
func (o *output) drop(sub *subscription) (dropped []*chunk) {
	kept := o.chunks[:0]
	for _, k := range o.chunks {
		if k.sub == sub {
			dropped = append(dropped, k)
			o.unsent -= int64(len(k.data))
		} else {
			kept = append(kept, k)
		}
	}
	clear(o.chunks[len(kept):])
	o.chunks = kept
	return dropped
}

// take is all that waits.
func (o *output) take() []*chunk {
	all := o.chunks
	o.chunks = nil
	return all
}

// poke wakes the writer.
func (o *output) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// write is the writer: it writes what there is, and a heart-beat when there is
// nothing for long, until the output has ended or the connection breaks.
func (c *conn) write() {
	var buf []byte
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	for {
		c.mu.Lock()
		todo, ended, broken, beat := c.out.take(), c.out.ended, c.out.broken, c.out.beat
		c.mu.Unlock()
		if broken {
			c.wrote(todo, 0)
			return
		}
		if c.socket != nil {
			if err := c.socket.pong(); err != nil {
				c.wrote(todo, 0)
				c.broke(err)
				return
			}
		}
		if len(todo) > 0 {
			n, err := c.writeAll(todo, &buf)
			c.wrote(todo, n)
			if err != nil {
				c.broke(err)
				return
			}
			continue
		}
		if ended {
			c.closeWrite()
			return
		}
		if cap(buf) > 0 && beat == 0 {
			beat = idleTime // and then give the buffer back
		} else if beat == 0 {
			<-c.out.wake
			continue
		}
		quiet.Reset(beat)
		select {
		case <-c.out.wake:
		case <-quiet.C:
			buf = nil
			c.mu.Lock()
			beats := c.out.beat > 0
			c.mu.Unlock()
			if !beats {
				continue
			}
			if _, err := writeSome(c.net, []byte{'\n'}); err != nil {
				c.broke(err)
				return
			}
		}
	}
}

// writeAll writes chunks one behind the other, small ones together, and says
// how many octets have gone.
func (c *conn) writeAll(todo []*chunk, buf *[]byte) (n int, err error) {
	if c.socket != nil {
		return c.socket.writeAll(todo)
	}
	if len(todo) == 1 {
		return writeSome(c.net, todo[0].data)
	}
	b := (*buf)[:0]
	flush := func() bool {
		m, e := writeSome(c.net, b)
		n, err, b = n+m, e, b[:0]
		return err == nil
	}
	for _, k := range todo {
		if len(b)+len(k.data) > piece && len(b) > 0 && !flush() {
			return n, err
		}
		if len(k.data) >= piece/2 {
			if len(b) > 0 && !flush() {
				return n, err
			}
			m, e := writeSome(c.net, k.data)
			if n += m; e != nil {
				return n, e
			}
			continue
		}
		b = append(b, k.data...)
	}
	if len(b) > 0 {
		flush()
	}
	*buf = b[:0]
	return n, err
}

// writeSome writes in pieces, each of which may take writeTime.
func writeSome(nc net.Conn, b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		some := b[:min(len(b), piece)]
		nc.SetWriteDeadline(time.Now().Add(writeTime))
		var m int
		m, err = nc.Write(some)
		n, b = n+m, b[m:]
		if m > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // it reads, if slowly
		}
	}
	return n, err
}

// wrote sees to what has been written, n octets of it, and to the messages that
// have not: those go back, since no octet of them has left.
func (c *conn) wrote(todo []*chunk, n int) {
	for _, k := range todo {
		here := min(n, len(k.data))
		n -= here
		if k.sub != nil {
			if rest := k.unwritten(here); len(rest) > 0 {
				c.takeBack(k.sub, rest)
			}
			if k.sub.mode == auto {
				k.sub.consume(k, here)
			}
		}
		c.mu.Lock()
		was := c.out.unsent
		c.out.unsent -= int64(len(k.data))
		if was >= unsentBytes/2 && c.out.unsent < unsentBytes/2 {
			c.pokeAll()
		}
		if was >= unsentAnswers && c.out.unsent < unsentAnswers {
			c.answered.Signal()
		}
		c.mu.Unlock()
		k.recycle()
	}
}

// broke ends the writing side. The reader goes on for a moment: frames that
// have come completely still count.
func (c *conn) broke(err error) {
	c.log.Debug("cannot write", "error", err)
	c.mu.Lock()
	c.out.ended, c.out.broken = true, true
	rest := c.out.take()
	c.net.SetReadDeadline(time.Now().Add(lingerTime))
	c.answered.Signal()
	c.mu.Unlock()
	c.wrote(rest, 0)
}

// closeWrite tells the peer that all has been said.
func (c *conn) closeWrite() {
	if c.socket != nil {
		c.mu.Lock()
		failure := c.failure
		c.mu.Unlock()
		c.socket.closeWith(closeStatus(failure))
		return
	}
	if half, ok := c.net.(interface{ CloseWrite() error }); ok {
		c.net.SetWriteDeadline(time.Now().Add(writeTime))
		half.CloseWrite()
	}
}
