package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/api/openapi"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// Options are the settings of the gateway. The zero value serves with OCI's
// sizes on a listener that anyone may reach.
type Options struct {
	// RequestBytes is limits.request-bytes. The raw body of a request may have
	// six times as many octets and 64 KiB, so that any spelling in JSON fits;
	// 0: 512 KiB. LargeRequestBytes is limits.large-request-bytes, for publishes
	// to queues with the capability LARGE_MESSAGES; 0: 1 MiB.
	RequestBytes      int64
	LargeRequestBytes int64

	// PendingBytes is limits.pending-bytes-total: the octets of all bodies
	// being read or worked on at once; beyond it ServiceUnavailable. 0: 256 MiB.
	PendingBytes int64

	// BodyTimeout is how long a client may take to send a body, and WriteTimeout
	// to take an answer; then the connection is cut. 0: 30 s and 60 s. A long
	// poll is neither.
	BodyTimeout  time.Duration
	WriteTimeout time.Duration

	// Loopback says that the listener can be reached from this machine alone.
	// Then only loopback names and the host of PublicURL are accepted in Host.
	Loopback bool

	// PublicURL is scheme://host[:port], the server's own origin for browsers;
	// "": none but the host of each request.
	PublicURL string

	// WebSocket takes over the connection of a request at /stomp that asks for
	// one; after an error nothing has been written, and the error is the answer.
	// nil: there is nothing at that path. SocketOrigins are the origins, as
	// scheme://host[:port], whose pages may do so beside the server's own.
	WebSocket     func(http.ResponseWriter, *http.Request) error
	SocketOrigins []string

	// Observe is told of every request that is refused before the service sees
	// it, in the manner of service.Options.Observe, so that together the two are
	// told of all: the face, the operation ("" if the path or the method has
	// none), the code, how long it took. nil: nobody asks.
	Observe func(face, operation string, code queue.Code, seconds float64)

	// Ready is asked by GET /readyz; nil: always ready.
	Ready func() bool

	// Logger takes faults of the gateway itself (the service logs its own);
	// nil: none are logged.
	Logger *slog.Logger
}

// gateway is the handler. It keeps nothing between requests but buffers.
type gateway struct {
	mux     *runtime.ServeMux
	hot     map[string]bool // operations whose handlers need nothing but the exchange
	service hotService
	guard   guard
	ids     requestIDs
	ready   func() bool
	socket  func(http.ResponseWriter, *http.Request) error
	observe func(face, operation string, code queue.Code, seconds float64)
	log     *slog.Logger

	plainBody    bodyLimit
	largeBody    bodyLimit
	bodyTimeout  time.Duration
	writeTimeout time.Duration
	pending      budget
}

// New is the REST face. The hot operations go to svc, all others to admin and
// data, which must serve the same svc. It fails if a path cannot be registered
// or PublicURL is no URL.
func New(svc *service.Service, admin queuev1.QueueAdminServiceServer, data queuev1.QueueServiceServer, o Options) (http.Handler, error) {
	g, err := newGateway(svc, admin, data, o)
	if err != nil {
		return nil, err
	}
	if err := g.handleHot(); err != nil {
		return nil, err
	}
	return g, nil
}

// newGateway is the gateway with the generated handlers alone.
func newGateway(svc hotService, admin queuev1.QueueAdminServiceServer, data queuev1.QueueServiceServer, o Options) (*gateway, error) {
	g := &gateway{
		mux:          newMux(),
		service:      svc,
		guard:        guard{loopback: o.Loopback},
		ids:          newRequestIDs(),
		ready:        o.Ready,
		socket:       o.WebSocket,
		observe:      o.Observe,
		log:          o.Logger,
		plainBody:    bodyLimit{6*cmp.Or(o.RequestBytes, 512<<10) + 64<<10, "limits.request-bytes"},
		largeBody:    bodyLimit{6*cmp.Or(o.LargeRequestBytes, 1<<20) + 64<<10, "limits.large-request-bytes"},
		bodyTimeout:  cmp.Or(o.BodyTimeout, 30*time.Second),
		writeTimeout: cmp.Or(o.WriteTimeout, 60*time.Second),
	}
	g.pending.most = cmp.Or(o.PendingBytes, 256<<20)
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("public URL %q is not scheme://host[:port]", o.PublicURL)
		}
		g.guard.publicURL = strings.ToLower(u.Host)
	}
	for _, origin := range o.SocketOrigins {
		g.guard.socketOrigins = append(g.guard.socketOrigins, canonicalOrigin(origin))
	}
	ctx := context.Background()
	if err := queuev1.RegisterQueueAdminServiceHandlerServer(ctx, g.mux, admin); err != nil {
		return nil, fmt.Errorf("register the control plane: %w", err)
	}
	if err := queuev1.RegisterQueueServiceHandlerServer(ctx, g.mux, data); err != nil {
		return nil, fmt.Errorf("register the data plane: %w", err)
	}
	return g, nil
}

// ServeHTTP answers one request.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	x := exchanges.Get().(*exchange)
	x.ctx, x.header = r.Context(), w.Header()
	x.caller = &service.Caller{Face: service.FaceREST, RequestID: g.ids.of(r.Header)}
	x.header[requestIDHeader] = []string{x.caller.RequestID}
	g.handle(x, w, r)
	if x.taken {
		x.release()
		return
	}
	if x.fault != nil {
		g.log.LogAttrs(x.ctx, slog.LevelError, "internal error",
			slog.String("opc_request_id", x.caller.RequestID), slog.Any("error", x.fault))
	}
	if x.refused != "" && g.observe != nil {
		operation := ""
		if x.route != nil {
			operation = x.route.operation
		}
		g.observe(service.FaceREST, operation, x.refused, time.Since(began).Seconds())
	}
	if len(x.delivered) > 0 && (x.polled && !presence(r) || x.ctx.Err() != nil) {
		// Nothing has left, so nothing was delivered: the messages go back,
		// uncounted. If it is the server that stops, the client reads why.
		g.service.Undeliver(x.delivered)
		x.delivered = nil
		x.refuse(errGone)
	}
	release, ok := holdAnswer(r, int64(cap(x.out)))
	if !ok {
		g.service.Undeliver(x.delivered)
		x.delivered, x.out = nil, nil // the refusal may have to wait too
		x.refuse(ErrUnread)
	}
	defer release()
	if !x.send(w, g.writeTimeout) {
		g.service.Undeliver(x.delivered)
	}
	g.pending.give(x.read)
	x.release()
}

// handle makes the answer in x. A panic becomes an internal error; what was
// delivered before it is taken back, for the client will not see it.
func (g *gateway) handle(x *exchange, w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			x.fault = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			g.service.Undeliver(x.delivered)
			x.delivered = nil
			x.fail(&queue.Error{Code: queue.InternalServerError, Message: "internal error"})
		}
	}()
	if r.URL.Path == socketPath && g.socket != nil {
		g.serveSocket(x, w, r)
		return
	}
	if err := g.guard.check(r); err != nil {
		x.refuse(err)
		return
	}
	if !strings.HasPrefix(r.URL.Path, basePath) && g.handleOwn(x, r) {
		return
	}
	p := find(r.URL.Path)
	if p == nil || hides(r.URL.RawPath) {
		x.refuse(queue.Errorf(queue.NotFound, "no operation is at this path"))
		return
	}
	for _, route := range p.routes {
		if route.method == r.Method {
			x.route = route
		}
	}
	if x.route == nil {
		x.header["Allow"] = p.allow
		x.refuse(queue.Errorf(queue.MethodNotAllowed, "the method %s is not allowed here, only %s", clip(r.Method), p.allow[0]))
		return
	}
	if err := g.readRequest(x, w, r); err != nil {
		x.refuse(err)
		return
	}
	x.ctx = service.WithCaller(x.ctx, x.caller)
	x.status = x.route.status
	if g.hot[x.route.operation] {
		// The mux needs these two alone, and the handler nothing but x.
		x.bare.Method, x.bare.URL = r.Method, r.URL
		g.mux.ServeHTTP(x, &x.bare)
		return
	}
	x.caller.BaseURL = baseURL(r)
	in, err := x.inner(r)
	if err != nil {
		x.refuse(err)
		return
	}
	g.mux.ServeHTTP(x, in)
}

// readRequest reads what comes beside the path: query, headers, body.
func (g *gateway) readRequest(x *exchange, w http.ResponseWriter, r *http.Request) (err error) {
	if x.route.noStore {
		x.header["Cache-Control"] = noStore
	}
	if err := parseQuery(r.URL.RawQuery, x.route.query, &x.query); err != nil {
		return err
	}
	if x.route.operation == "GetMessages" {
		if err := checkEncoding(&x.query[getEncoding]); err != nil {
			return err
		}
	}
	if x.route.ifMatch {
		if x.match, err = oneHeader(r.Header, "If-Match"); err != nil {
			return err
		}
	}
	if x.route.token {
		if x.token, err = oneHeader(r.Header, "Opc-Retry-Token"); err != nil {
			return err
		}
	}
	if !x.route.body {
		return nil
	}
	return g.readBody(x, w, r)
}

// checkEncoding checks the parameter contentEncoding and gives it its one
// spelling; empty is absent.
func checkEncoding(p *param) error {
	switch {
	case p.value == "":
		*p = param{}
	case strings.EqualFold(p.value, base64Encoding):
		p.value = base64Encoding
	default:
		return queue.Errorf(queue.InvalidParameter, "contentEncoding must be %s, or absent for text", base64Encoding)
	}
	return nil
}

// oneHeader is the value of a header that may stand once; nil if it does not.
func oneHeader(h http.Header, name string) (*string, error) {
	values := h[name]
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 {
		return nil, queue.Errorf(queue.InvalidParameter, "the header %s is given more than once", strings.ToLower(name))
	}
	if !utf8.ValidString(values[0]) {
		return nil, queue.Errorf(queue.InvalidParameter, "the header %s is not UTF-8", strings.ToLower(name))
	}
	return &values[0], nil
}

// inner is r as the handlers see it: nothing in it that the gateway has not
// read and checked, no headers among it, so that none reaches the mux's own
// ideas of what a header may do (grpc-timeout, method override, metadata).
func (x *exchange) inner(r *http.Request) (*http.Request, error) {
	form, err := x.form()
	if err != nil {
		return nil, err
	}
	in := r.WithContext(x.ctx)
	in.Header = http.Header{}
	in.Form = form
	in.PostForm = url.Values{} // or ParseForm would look into the body
	in.Body = io.NopCloser(bytes.NewReader(x.in))
	in.RemoteAddr = ""
	return in, nil
}

// baseURL is the origin the request was sent to.
func baseURL(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// handleOwn answers the paths beside the API, and reports whether this is one.
func (g *gateway) handleOwn(x *exchange, r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/openapi.json":
	default:
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.header["Allow"] = []string{"GET, HEAD"}
		x.refuse(queue.Errorf(queue.MethodNotAllowed, "the method %s is not allowed here, only GET and HEAD", clip(r.Method)))
		return true
	}
	x.status = http.StatusOK
	switch r.URL.Path {
	case "/healthz":
		x.out = append(x.out, `{"status":"alive"}`...)
	case "/readyz":
		if g.ready != nil && !g.ready() {
			x.refuse(queue.Errorf(queue.ServiceUnavailable, "the server is not ready"))
			break
		}
		x.out = append(x.out, `{"status":"ready"}`...)
	case "/openapi.json":
		x.out = append(x.out, openapi.Document...)
	}
	return true
}
