package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/queue"
)

// budget bounds the octets of all request bodies in memory.
type budget struct {
	most int64
	used atomic.Int64
}

// take reserves n octets, or reports false and reserves nothing.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// bodyLimit is how many octets a body may have, and the setting that says so.
type bodyLimit struct {
	octets int64
	key    string
}

// bodyLimit is that of r. The queue is looked at only if the body is, or may
// be, larger than any other's.
func (g *gateway) bodyLimit(x *exchange, r *http.Request) bodyLimit {
	if x.route.operation != "PutMessages" || r.ContentLength >= 0 && r.ContentLength <= g.plainBody.octets {
		return g.plainBody
	}
	ref, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, queuesPath), "/")
	if g.service.TakesLarge(x.ctx, ref) {
		return g.largeBody
	}
	return g.plainBody
}

// queuesPath is before the queue in every path that names one.
const queuesPath = basePath + "/queues/"

// readBody reads the body of r into x.in: at most as many octets as bodyLimit
// says, within g.bodyTimeout. What is too long is not read; the connection then closes.
//
// Errors: PayloadTooLarge, ServiceUnavailable (too many bodies at once),
// CannotParseRequest (it did not arrive whole or in time).
func (g *gateway) readBody(x *exchange, w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	giveUp := func() {
		if r.ProtoMajor == 1 { // over HTTP/2 it is the stream alone that ends
			x.header["Connection"] = closing
		}
	}
	limit := g.bodyLimit(x, r)
	tooLarge := func() error {
		giveUp()
		return queue.Errorf(queue.PayloadTooLarge, "the body of the request may have %d octets (six times %s and 64 KiB)", limit.octets, limit.key)
	}
	if r.ContentLength > limit.octets {
		return tooLarge()
	}
	socket := http.NewResponseController(w)
	_ = socket.SetReadDeadline(time.Now().Add(g.bodyTimeout)) // a writer without deadlines is a test's
	body := http.MaxBytesReader(w, r.Body, limit.octets)
	for {
		if len(x.in) == cap(x.in) {
			more := max(firstBody, len(x.in))
			if r.ContentLength > 0 { // and one octet, to see the end in
				more = min(more, max(int(r.ContentLength)-len(x.in), 0)+1)
			}
			if !g.book(x, len(x.in)+more) { // before the memory is taken
				giveUp()
				return errTooManyBodies
			}
			x.in = slices.Grow(x.in, more)
		}
		n, err := body.Read(x.in[len(x.in):cap(x.in)])
		x.in = x.in[:len(x.in)+n]
		if !g.book(x, len(x.in)) {
			giveUp()
			return errTooManyBodies
		}
		if err == io.EOF {
			break
		}
		if err == nil {
			continue
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge()
		}
		giveUp()
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return queue.Errorf(queue.CannotParseRequest, "the body of the request did not arrive within %v", g.bodyTimeout)
		}
		return queue.Errorf(queue.CannotParseRequest, "the body of the request did not arrive whole")
	}
	_ = socket.SetReadDeadline(time.Time{}) // the poll that follows may be long
	return nil
}

var errTooManyBodies = queue.Errorf(queue.ServiceUnavailable, "too many request bodies are being read at once (limits.pending-bytes-total)")

// book counts n octets for the body of x in all.
func (g *gateway) book(x *exchange, n int) bool {
	more := int64(n) - x.read
	if more <= 0 {
		return true
	}
	if !g.pending.take(more) {
		return false
	}
	x.read += more
	return true
}

// firstBody is the buffer a body gets first: it grows with what arrives, not
// with what was announced.
const firstBody = 4 << 10
