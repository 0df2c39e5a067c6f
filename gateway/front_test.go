package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/queued-mq/queued/api/openapi"
	"github.com/queued-mq/queued/grpcapi"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// Every code of the domain has a status, and comes back the same whether the
// service gave it or a gRPC server did.
func TestErrorsWalkAllCodes(t *testing.T) {
	t.Parallel()
	want := map[queue.Code]int{ // the reference's table and the contract, spelt out
		"CannotParseRequest": 400, "InvalidParameter": 400, "MissingParameter": 400, "LimitExceeded": 400, "QuotaExceeded": 400,
		"RelatedResourceNotAuthorizedOrNotFound": 400, "InvalidFrame": 400, "NotAuthenticated": 401, "NotAuthorized": 403,
		"NotAuthorizedOrNotFound": 404, "NotFound": 404, "MethodNotAllowed": 405, "IncorrectState": 409, "Conflict": 409,
		"InvalidatedRetryToken": 409, "NotAuthorizedOrResourceAlreadyExists": 409, "NoEtagMatch": 412, "PayloadTooLarge": 413,
		"TooManyRequests": 429, "InternalServerError": 500, "MethodNotImplemented": 501, "ServiceUnavailable": 503, "InsufficientStorage": 507,
	}
	if len(statuses) != len(queue.Codes) {
		t.Errorf("the table has %d codes, the domain %d", len(statuses), len(queue.Codes))
	}
	for _, code := range queue.Codes {
		plain := queue.Errorf(code, "say why: %s", code)
		for _, err := range []error{plain, fmt.Errorf("put messages: %w", plain), grpcapi.Status(plain)} {
			x := &exchange{header: http.Header{}}
			x.refuse(err)
			text := "say why: " + string(code)
			if code == queue.InternalServerError && errors.As(err, new(interface{ GRPCStatus() *status.Status })) {
				text = "internal error"
			}
			if x.status != want[code] || string(x.out) != `{"code":"`+string(code)+`","message":"`+text+`"}` {
				t.Errorf("%v: %d %s", err, x.status, x.out)
			}
			if after := x.header.Get("Retry-After"); (after != "") != (code == "InsufficientStorage" || code == "ServiceUnavailable" || code == "TooManyRequests") {
				t.Errorf("%s: retry-after %q", code, after)
			} else if after != "" && !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(after) {
				t.Errorf("%s: retry-after %q is no plain integer", code, after)
			}
		}
	}
}

func TestErrorsOfOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		body   string
		fault  bool
	}{
		{errors.New("pebble: /var/lib/secret: broken"), 500, `{"code":"InternalServerError","message":"internal error"}`, true},
		{grpcapi.Status(errors.New("pebble: secret")), 500, `{"code":"InternalServerError","message":"internal error"}`, true},
		{status.Error(codes.Internal, "secret"), 500, `{"code":"InternalServerError","message":"internal error"}`, true},
		{status.Error(codes.InvalidArgument, "secret: of the mux"), 500, `{"code":"InternalServerError","message":"internal error"}`, true},
		{status.Error(codes.InvalidArgument, "InternalServerError: secret"), 500, `{"code":"InternalServerError","message":"internal error"}`, true},
		{status.Errorf(codes.InvalidArgument, "%v", queue.Errorf(queue.InvalidParameter, "limit: is %q", "\xff")), 400, `{"code":"InvalidParameter","message":"limit: is \"\\xff\""}`, false},
		{context.Canceled, 503, `{"code":"ServiceUnavailable","message":"the request was given up: the client has gone or the server is stopping"}`, false},
		{grpcapi.Status(context.DeadlineExceeded), 503, `{"code":"ServiceUnavailable","message":"the request was given up: the client has gone or the server is stopping"}`, false},
		{&queue.Error{Code: queue.InvalidParameter, Message: "raw \xff octets\n"}, 400, `{"code":"InvalidParameter","message":"raw � octets\n"}`, false},
	} {
		x := &exchange{header: http.Header{}}
		x.refuse(tt.err)
		if x.status != tt.status || string(x.out) != tt.body || (x.fault != nil) != tt.fault {
			t.Errorf("%v: %d %s, fault %v", tt.err, x.status, x.out, x.fault)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.queue("orders")
	h.queue("a b/c") // reachable by OCID alone
	id := h.queue("späte Züge 100% ☂")
	for _, path := range []string{
		"/", "/20210201", basePath + "/", basePath + "/queues/", basePath + "//queues", "//20210201/queues", basePath + "/./queues", basePath + "/queues/../queues",
		basePath + "/queues/orders/", basePath + "/queues/orders//stats", basePath + "/queues/a%20b%2Fc", basePath + "/queues/a%20b%2fc/stats", basePath + "/queues/%2e%2e/stats",
		basePath + "/queues/orders/messages/x/y", "/favicon.ico", "/healthz/", "/HEALTHZ", "/metrics", basePath + "/queues%3Flimit=1",
	} {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			a := ask(t, h.handler, method, path, "")
			wantError(t, method+" "+path, a, http.StatusNotFound, "NotFound", "")
			if l := a.header.Get("Location"); l != "" {
				t.Errorf("%s: redirected to %s", path, l)
			}
		}
	}
	// Each segment is decoded once.
	for path, status := range map[string]int{
		"/queues/sp%C3%A4te%20Z%C3%BCge%20100%25%20%E2%98%82":   200,
		"/queues/sp%C3%A4te%20Z%C3%BCge%20100%2525%20%E2%98%82": 404,
		"/queues/%6Frders":        200,
		"/queues/%256Frders":      404,
		"/queues/" + string(id):   200,
		"/queues/orders?limit=x":  200, // not a parameter of GetQueue
		"/queues/%FF":             404,
		"/queues/%00":             404,
		"/queues/orders:messages": 404,
	} {
		if a := ask(t, h.handler, "GET", basePath+path, ""); a.status != status {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.body, status)
		} else if status == 404 {
			wantError(t, path, a, 404, "NotAuthorizedOrNotFound", "")
		}
	}
	for _, hidden := range []string{"%2F", "x%2fy"} {
		wantError(t, hidden, ask(t, h.handler, "POST", basePath+"/queues/orders%2Fmessages", `{}`), 404, "NotFound", "")
	}
}

// A query sets nothing but the documented parameters.
func TestQuerySetsNoHeaders(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.queue("orders")
	q := basePath + "/queues/orders"
	for _, query := range []string{"ifMatch=zzz", "if_match=zzz", "if-match=zzz", "queueId=other", "updateQueueDetails.displayName=x"} {
		if a := ask(t, h.handler, "PUT", q+"?"+query, `{"visibilityInSeconds":9}`); a.status != 202 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	wantError(t, "if-match", ask(t, h.handler, "PUT", q, `{"visibilityInSeconds":9}`, "if-match: zzz"), 412, "NoEtagMatch", "")
	wantError(t, "if-match twice", ask(t, h.handler, "PUT", q, `{}`, "if-match: a", "if-match: b"), 400, "InvalidParameter", "if-match is given more than once")
	wantError(t, "if-match", ask(t, h.handler, "PUT", q, `{}`, "if-match: \xff"), 400, "InvalidParameter", "not UTF-8")
	etag := ask(t, h.handler, "GET", q, "").header.Get("Etag")
	if a := ask(t, h.handler, "PUT", q, `{"visibilityInSeconds":9}`, "if-match: "+etag); a.status != 202 || a.header.Get("Opc-Work-Request-Id") == "" || a.body != "" {
		t.Errorf("if-match %s: %d %s %v", etag, a.status, a.body, a.header)
	}
	// A body cannot set what comes from elsewhere either.
	body := `{"displayName":"twice","retryToken":"t","retry_token":"t","opc-retry-token":"t"}`
	one, two := ask(t, h.handler, "POST", basePath+"/queues?retryToken=t&retry_token=t", body), ask(t, h.handler, "POST", basePath+"/queues?retryToken=t", body)
	if one.status != 202 || two.status != 202 || one.body == two.body {
		t.Errorf("a retry token came from query or body: %v %v", one, two)
	}
	one, two = ask(t, h.handler, "POST", basePath+"/queues", body, "opc-retry-token: t"), ask(t, h.handler, "POST", basePath+"/queues", body, "opc-retry-token: t")
	if one.body != two.body || one.header.Get("Opc-Work-Request-Id") != two.header.Get("Opc-Work-Request-Id") {
		t.Errorf("the retry token of the header is not used: %v %v", one, two)
	}
	// What the mux would do with headers of its own is off.
	for _, header := range []string{"grpc-timeout: 1n", "grpc-timeout: nonsense", "x-http-method-override: DELETE", "grpc-metadata-x: y", "content-type: application/x-www-form-urlencoded", "te: trailers", "accept: text/html"} {
		if a := ask(t, h.handler, "POST", q+"/actions/purge", `{"purgeType":"both"}`, header); a.status != 202 || a.header.Get("Trailer") != "" {
			t.Errorf("%s: %d %s %v", header, a.status, a.body, a.header)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	seen := map[string]bool{}
	for sent, first := range map[string]string{
		"":                                     `[0-9A-F]{16}`,
		"abc":                                  `abc`,
		"2b1d7a1e-6f1c-4c39-8c0f-0f4dd2a3b7c1": `2b1d7a1e-6f1c-4c39-8c0f-0f4dd2a3b7c1`,
		"A/B/C":                                `A/B/C`,
		"has space\"<é>\x01":                   `has_space_____[_]+`,
		strings.Repeat("x", 5000):              `x{128}`,
	} {
		for _, path := range []string{"/healthz", "/nothing", basePath + "/queues", basePath + "/queues/unknown/messages"} {
			a := ask(t, h.handler, "GET", path, "", "opc-request-id: "+sent)
			got := a.header.Get("Opc-Request-Id")
			if !regexp.MustCompile(`^` + first + `/[0-9A-F]{16}/[0-9A-F]{16}$`).MatchString(got) {
				t.Errorf("%.80q: %q", sent, got)
			}
			if seen[got] {
				t.Errorf("%s came twice", got)
			}
			seen[got] = true
		}
	}
}

// Between them the gateway and the service are told of every request once.
func TestObserve(t *testing.T) {
	t.Parallel()
	var refused []string
	h := newHouse(t, Options{Loopback: true, Observe: func(face, operation string, code queue.Code, seconds float64) {
		if face != service.FaceREST || seconds < 0 {
			t.Errorf("face %s, %v s", face, seconds)
		}
		refused = append(refused, operation+" "+string(code))
	}})
	h.queue("orders")
	for _, tt := range []struct{ method, target, body, want string }{
		{"GET", "/nothing", "", " NotFound"},
		{"PATCH", basePath + "/queues", "", " MethodNotAllowed"},
		{"POST", orders + "/messages", "{", "PutMessages CannotParseRequest"},
		{"POST", basePath + "/queues", "[]", "CreateQueue InvalidParameter"},
		{"GET", basePath + "/queues?limit=x", "", "ListQueues InvalidParameter"},
		{"GET", orders + "/messages?limit=x", "", "GetMessages InvalidParameter"},
		// The service is told of these.
		{"POST", orders + "/messages", `{"messages":[]}`, ""},
		{"POST", orders + "/messages", `{"messages":[{"content":"a"}]}`, ""},
		{"POST", basePath + "/queues", "{}", ""},
		{"GET", basePath + "/queues/unknown", "", ""},
		{"GET", orders, "", ""},
		{"DELETE", orders + "/messages/x", "", ""},
		{"GET", "/healthz", "", ""},
	} {
		refused = nil
		ask(t, h.handler, tt.method, tt.target, tt.body)
		if got := strings.Join(refused, ", "); got != tt.want {
			t.Errorf("%s %s %s: told of %q, want %q", tt.method, tt.target, tt.body, got, tt.want)
		}
	}
}

func TestOwnPaths(t *testing.T) {
	t.Parallel()
	ready := true
	h := newHouse(t, Options{Ready: func() bool { return ready }})
	for path, body := range map[string]string{"/healthz": `{"status":"alive"}`, "/readyz": `{"status":"ready"}`, "/openapi.json": string(openapi.Document)} {
		if a := ask(t, h.handler, "GET", path, ""); a.status != 200 || a.body != body || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %.80s", path, a.status, a.body)
		}
		if a := ask(t, h.handler, "HEAD", path, ""); a.status != 200 {
			t.Errorf("HEAD %s: %d", path, a.status)
		}
		a := ask(t, h.handler, "POST", path, "")
		wantError(t, path, a, 405, "MethodNotAllowed", "")
		if a.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: allow %q", path, a.header.Get("Allow"))
		}
	}
	ready = false
	wantError(t, "not ready", ask(t, h.handler, "GET", "/readyz", ""), 503, "ServiceUnavailable", "not ready")
}

// panicking is a service that breaks.
type panicking struct {
	hotService
	given     []queue.Delivery
	undeliver [][]queue.Delivery
}

func (p *panicking) DeleteMessage(context.Context, service.DeleteMessageRequest) (service.DeleteMessageResponse, error) {
	panic("broken: secret")
}

func (p *panicking) GetMessages(context.Context, service.GetMessagesRequest) (service.GetMessagesResponse, error) {
	return service.GetMessagesResponse{Messages: p.given}, nil
}

func (p *panicking) Undeliver(m []queue.Delivery) {
	if len(m) > 0 {
		p.undeliver = append(p.undeliver, m)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	s := &panicking{}
	g, err := newGateway(s, nil, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.handleHot(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantError(t, "panic", ask(t, g, "DELETE", basePath+"/queues/q/messages/r", ""), 500, "InternalServerError", "internal error")
		wantError(t, "nil server", ask(t, g, "GET", basePath+"/queues/q", ""), 500, "InternalServerError", "internal error")
	}
	if n := g.pending.used.Load(); n != 0 {
		t.Errorf("%d octets are still counted", n)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"mq.example", "://", "http://"} {
		if _, err := newGateway(nil, nil, nil, Options{PublicURL: u}); err == nil {
			t.Errorf("%q is taken", u)
		}
	}
}
