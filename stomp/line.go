package stomp

import (
	"cmp"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// answer is what one frame of the client waits for.
type answer struct {
	receipt  string
	asked    bool  // for a RECEIPT
	done     bool  // it may leave as soon as it is the first
	err      error // why the frame failed: an ERROR, and the end
	versions bool  // the ERROR lists the versions we speak
	last     bool  // the end, with or without an ERROR
	bytes    int64 // of memory that the frame holds until it is done
}

// line is the frames that are not answered, in their order. A place in it is a
// number that rises for ever.
type line struct {
	answers []answer
	head    int    // of answers: the first that has not left
	place   uint64 // of answers[head]
	bytes   int64
}

func (l *line) len() int { return len(l.answers) - l.head }

// push gives an answer its place.
func (l *line) push(a answer) uint64 {
	if l.head > 64 && l.head > len(l.answers)/2 {
		n := copy(l.answers, l.answers[l.head:])
		clear(l.answers[n:])
		l.answers, l.head = l.answers[:n], 0
	}
	l.answers = append(l.answers, a)
	l.bytes += a.bytes
	return l.last()
}

// add gives a frame its place: done, unless it is changed.
func (l *line) add(f *frame.Frame, bytes int64) *answer {
	a := answer{done: true, bytes: bytes + headerBytes(f)}
	a.receipt, a.asked = f.Get("receipt")
	l.push(a)
	return &l.answers[len(l.answers)-1]
}

// last is the place that was given last.
func (l *line) last() uint64 { return l.place + uint64(l.len()-1) }

// headerBytes is the memory that the headers of f share: to hold one of them,
// the receipt, is to hold them all.
func headerBytes(f *frame.Frame) (n int64) {
	for i := range f.Headers {
		n += int64(len(f.Headers[i].Name) + len(f.Headers[i].Value))
	}
	return n
}

// at is the answer at a place that has not left.
func (l *line) at(place uint64) *answer { return &l.answers[l.head+int(place-l.place)] }

func (l *line) pop() answer {
	a := l.answers[l.head]
	l.answers[l.head] = answer{}
	l.head++
	l.place++
	l.bytes -= a.bytes
	if l.head == len(l.answers) {
		l.answers, l.head = l.answers[:0], 0
	}
	return a
}

// wait gives a frame a place at which it stands until it is done.
func (c *conn) wait(f *frame.Frame, bytes int64) (place uint64) {
	a := answer{bytes: bytes + headerBytes(f)}
	a.receipt, a.asked = f.Get("receipt")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.push(a)
}

// waitAll gives frames their places, one behind the other, unless the session
// has ended: behind a frame that failed none is served.
func (c *conn) waitAll(answers []answer) (first uint64, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasFailed() {
		return 0, false
	}
	for _, a := range answers {
		c.line.push(a)
	}
	return c.line.last() + 1 - uint64(len(answers)), true
}

// complete is the outcome of frames at places from the first on: those before
// stored are done, the others have failed. The core may call it: it is quick
// and does not block.
func (c *conn) complete(first uint64, from, stored, to int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := from; i < to; i++ {
		a := c.line.at(first + uint64(i))
		a.done = true
		if i >= stored {
			a.err = err
			c.failing, c.failure = true, cmp.Or(c.failure, err)
		}
	}
	c.advance()
}

// answerNow answers a frame that was done at once, in its turn.
func (c *conn) answerNow(f *frame.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.add(f, 0)
	c.advance()
}

// advance sends the answers that are due; mu is held.
func (c *conn) advance() {
	for c.line.len() > 0 && c.line.answers[c.line.head].done {
		a := c.line.pop()
		if c.out.ended {
			continue
		}
		switch {
		case a.err != nil:
			c.failure = a.err
			c.out.answer(func(dst []byte) []byte { return c.appendError(dst, &a) })
			c.end()
		case a.asked:
			c.out.answer(func(dst []byte) []byte {
				dst = frame.AppendCommand(dst, frame.Receipt)
				dst, _ = frame.AppendHeader(dst, c.version, "receipt-id", a.receipt)
				return frame.AppendBody(dst, nil)
			})
		}
		if a.last {
			c.end()
		}
	}
	c.answered.Signal()
}

// end closes the output: what stands in it is written, and nothing more. The
// reader is woken to see it; mu is held.
func (c *conn) end() {
	c.out.ended = true
	c.out.poke()
	c.wakeReader()
}

// wakeReader ends a read or a pause under way, for the reader to see what has
// changed; mu is held.
func (c *conn) wakeReader() {
	c.overOnce.Do(func() { close(c.over) })
	c.net.SetReadDeadline(time.Unix(1, 0))
}

// room waits until the line is short enough for one more frame, and until the
// peer has read most of its answers.
func (c *conn) room() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		full := c.line.len() >= unansweredCount || c.line.bytes >= unansweredBytes
		deaf := c.out.unsent >= unsentAnswers && !c.out.ended && c.cause == nil
		if c.hasFailed() || !full && !deaf {
			break
		}
		c.answered.Wait()
	}
	if c.hasFailed() {
		return errEnded
	}
	return nil
}

// hasFailed reports whether the session is at its end by a frame that failed,
// or will be as soon as what stands before that one is answered; mu is held.
func (c *conn) hasFailed() bool { return c.failing || c.out.ended && !c.out.broken }

// stale is the failure of a receipt that does not hold any more.
func stale(err error) bool { return queue.CodeOf(err) == queue.NotAuthorizedOrNotFound }
