package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// exchange is one request and its answer. It is the http.ResponseWriter that
// the mux and its handlers see: what they write is kept until send.
type exchange struct {
	ctx    context.Context // of the request, with its service.Caller
	caller *service.Caller
	route  *route
	query  [mostQuery]param // in the order of route.query
	token  *string          // opc-retry-token
	match  *string          // if-match
	in     []byte           // the body of the request
	read   int64            // octets of it that are counted in gateway.pending

	header  http.Header // of the real answer
	status  int
	out     []byte     // the body of the answer
	refused queue.Code // why, if the service was not asked
	served  bool       // the service was asked
	taken   bool       // the connection is no longer HTTP
	fault   error      // what the log must know and the client must not

	// delivered is what out holds of deliveries. Until an octet of out has
	// been handed to the socket they can be taken back.
	delivered []queue.Delivery
	polled    bool // the get waited for them

	bare   http.Request // what the mux routes by
	reader wire.Reader
	put    putDecoder
	batch  batchDecoder
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// mostKept is the greatest buffer that an exchange keeps for the next request.
const mostKept = 1 << 20

// release gives x back. Nothing that a handler passed on may point into it.
func (x *exchange) release() {
	in, out, put, batch := x.in[:0], x.out[:0], x.put, x.batch
	if cap(in) > mostKept {
		in = nil
	}
	if cap(out) > mostKept {
		out = nil
	}
	put.reset()
	batch.reset()
	x.reader.Reset(nil)
	*x = exchange{in: in, out: out, put: put, batch: batch, reader: x.reader}
	exchanges.Put(x)
}

// Header is the header of the answer.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader notes the status of the answer.
func (x *exchange) WriteHeader(status int) { x.status = status }

// Write adds to the body of the answer.
func (x *exchange) Write(b []byte) (int, error) {
	x.out = append(x.out, b...)
	return len(b), nil
}

var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	closing  = []string{"close"}
)

// fail makes err the answer, in place of whatever there is.
func (x *exchange) fail(err *queue.Error) {
	x.status = statuses[err.Code]
	if !x.served {
		x.refused = err.Code
	}
	if after := retryAfter[err.Code]; after != nil {
		x.header["Retry-After"] = after
	}
	x.out = appendError(x.out[:0], err.Code, err.Message)
}

// send writes the answer to w. It reports false when the socket refused the
// very first octets: then the deliveries in it may be taken back.
func (x *exchange) send(w http.ResponseWriter, timeout time.Duration) (handed bool) {
	if len(x.out) > 0 {
		x.header["Content-Type"] = jsonType
	} else {
		delete(x.header, "Content-Type")
	}
	if x.status != http.StatusNoContent {
		x.header["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	socket := http.NewResponseController(w)
	_ = socket.SetWriteDeadline(time.Now().Add(timeout)) // a writer without deadlines is a test's
	w.WriteHeader(x.status)
	if len(x.delivered) == 0 {
		_, _ = w.Write(x.out) // an error has no one left to tell
		return true
	}
	// Flushed by hand, an error of the socket shows here. The first piece is
	// small, so that it is one write, which fails with nothing sent.
	const first = 2 << 10
	n := min(first, len(x.out))
	_, err := w.Write(x.out[:n])
	if err == nil {
		err = socket.Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errors.Is(err, os.ErrDeadlineExceeded) // it may have sent a part
	}
	_, _ = w.Write(x.out[n:])
	return true
}
