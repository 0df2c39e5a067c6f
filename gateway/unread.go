package gateway

import (
	"net/http"

	"github.com/queued-mq/queued/queue"
)

// UnreadBytes is how much of its answers a connection with many streams may
// leave unread: those of a dozen gets of the greatest size, and more. Without a
// bound a client that asks on a thousand streams and takes nothing would have
// the server keep a thousand answers of 2 MiB, for as long as it may take an
// answer. HTTP/1.1 has one answer at a time.
const UnreadBytes = 32 << 20

// ErrUnread is the answer to a request whose own answer would be too much.
var ErrUnread = queue.Errorf(queue.ServiceUnavailable, "%d MiB of answers wait for this connection to read them; read them, or use another connection", UnreadBytes>>20)

// smallAnswer is the size from which answers are counted.
const smallAnswer = 16 << 10

// holdAnswer counts the memory of an answer until release, or reports false if
// its connection has too much of it already.
func holdAnswer(r *http.Request, octets int64) (release func(), ok bool) {
	if r.ProtoMajor < 2 || octets < smallAnswer {
		return func() {}, true
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return func() {}, true // a listener of a test, or one that was not wrapped
	}
	if c.unread.Add(octets) > UnreadBytes {
		c.unread.Add(-octets)
		return func() {}, false
	}
	return func() { c.unread.Add(-octets) }, true
}
