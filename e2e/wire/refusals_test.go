package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestPaths: a path that is not there is a 404 and never a redirect.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a")
	for _, path := range []string{
		"///", "//queues", "//20210201", "//20210201/", "//20210202/queues", "//20210201queues",
		"/queues/", "//20210201//queues", "///20210201/queues", "/Queues", "/queues/orders/",
		"/queues/orders/messages/", "/queues//messages", "/queues/orders/message", "/queues/orders/messages/x/y",
		"/queues/orders/messages/actions/purge", "/queues/./orders", "/queues/../queues", "/queues/orders/..",
		"/queues/%2e%2e/messages", "/queues/orders%2fmessages", "/queues/orders%2Fmessages?timeoutInSeconds=0",
		"/queues/a/b/c/d/e/f", "/consumerGroups/", "/workRequests/x/results", "/messages",
		"//healthz/", "//debug/pprof/", "//metrics", "//openapi.yaml", "//favicon.ico",
		"/queues;a=b", "/" + strings.Repeat("q", 8000),
	} {
		for _, method := range []string{"GET", "POST"} {
			a := c.Must(t, 0, method, path, "")
			what := method + " " + path
			proper(t, what, a)
			a.Is(t, 404, "NotFound")
		}
	}
	if n := c.Stats(t, "orders").Queue.Visible; n != 1 {
		t.Errorf("%d messages are left of 1", n)
	}

	// What is no HTTP at all gets an answer in the same shape, then the
	// connection is closed.
	for _, raw := range []string{
		"GET /20210201/queues/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /20210201/queues HTTP/1.1\r\n\r\n",
		"GET /20210201/queues HTTP/1.1\r\nHost: localhost\r\nX: \x01\r\n\r\n",
		"GET /20210201/queues HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"hello, is anybody there?\r\n\r\n",
	} {
		c := rest.Dial(t, s.REST)
		if _, err := c.Write([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		a, err := c.Receive("GET")
		if err != nil {
			t.Errorf("%q: %v", raw, err)
			continue
		}
		proper(t, raw, a)
		if code, _, _ := a.Error(); a.Status != 400 || code != "CannotParseRequest" || !a.Closes {
			t.Errorf("%q: %d %s, closes %v", raw, a.Status, a.Body, a.Closes)
		}
	}
	a := rest.Dial(t, s.REST).Must(t, 431, "GET", "/queues", "", "X: "+strings.Repeat("x", 100<<10))
	proper(t, "long headers", a)
	if message := a.Is(t, 431, "InvalidParameter"); !strings.Contains(message, "limits.header-bytes") {
		t.Error(message)
	}
}

// TestMethods: another method on a path that is there is a 405, and HEAD is
// one of them: it never takes a message.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a")
	for path, legal := range map[string]string{
		"/queues":        "GET, POST",
		"/queues/orders": "GET, PUT, DELETE",
		"/queues/orders/actions/changeCompartment":       "POST",
		"/queues/orders/actions/purge":                   "POST",
		"/queues/orders/messages":                        "POST, GET",
		"/queues/orders/messages/AAAA":                   "PUT, DELETE",
		"/queues/orders/messages/actions/updateMessages": "POST",
		"/queues/orders/messages/actions/deleteMessages": "POST",
		"/queues/orders/stats":                           "GET",
		"/queues/orders/channels":                        "GET",
		"/consumerGroups":                                "GET, POST",
		"/consumerGroups/g":                              "GET, PUT, DELETE",
		"/workRequests":                                  "GET",
		"/workRequests/w":                                "GET",
		"/workRequests/w/errors":                         "GET",
		"/workRequests/w/logs":                           "GET",
	} {
		allowed := strings.Split(legal, ", ")
		slices.Sort(allowed)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			if slices.Contains(allowed, method) {
				continue
			}
			what := method + " " + path
			a := c.Must(t, 405, method, path+"?timeoutInSeconds=0", "")
			got := strings.Split(a.Header.Get("allow"), ", ")
			slices.Sort(got)
			if !slices.Equal(got, allowed) {
				t.Errorf("%s: allow is %v, want %v", what, got, allowed)
			}
			if method == "HEAD" { // the answer has no body to look at
				continue
			}
			proper(t, what, a)
			a.Is(t, 405, "MethodNotAllowed")
		}
	}
	if n := c.Stats(t, "orders").Queue.Visible; n != 1 {
		t.Errorf("%d messages are visible, want the one that nobody asked for", n)
	}
	if m := c.Get(t, "orders", "timeoutInSeconds=0"); len(m) != 1 || m[0].DeliveryCount != 1 {
		t.Errorf("got %+v", m)
	}
	// Overrides that other servers honour do nothing here.
	a := c.Must(t, 405, "PATCH", "/queues/orders", "", "X-HTTP-Method-Override: DELETE")
	a.Is(t, 405, "MethodNotAllowed")
	c.Must(t, 202, "PUT", "/queues/orders", "{}", "X-HTTP-Method-Override: DELETE")
	c.Must(t, 200, "GET", "/queues/orders", "")
}

// TestBrokenBodies: what is no JSON is refused as that, and nothing is stored
// of it.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	for _, body := range []string{
		`{`, `}`, `{"messages"`, `{"messages":`, `{"messages":[`, `{"messages":[{"content":"a"}`, `{"messages":[{"content":"a"}]`,
		`{"messages":[{"content":"a"}]}x`, `{"messages":[{"content":"a"}]}{}`, `{"messages":[{"content":"a"},]}`, `{messages:[]}`,
		`{'messages':[{'content':'a'}]}`, `{"messages":[{"content":a}]}`, `{"messages":[{"content":"a"}],}`, `{"messages":[{"content":"a",}]}`,
		`{"messages":[{"content":"a" "x":1}]}`, `{"messages":[{"content":"a"} {"content":"b"}]}`,
		"\xef\xbb\xbf" + `{"messages":[{"content":"a"}]}`, "\x00", `{"messages":[{"content":"a` + "\x00" + `"}]}`,
		`{"messages":[{"content":"\x"}]}`, `{"messages":[{"content":"\u12"}]}`, `{"messages":[{"content":"\u12G4"}]}`,
		`{"messages":[{"content":"a","delayInSeconds":01}]}`, `{"messages":[{"content":"a","delayInSeconds":+1}]}`,
		`{"messages":[{"content":"a","delayInSeconds":1.}]}`, `{"messages":[{"content":"a","delayInSeconds":.5}]}`,
		`{"messages":[{"content":"a","delayInSeconds":NaN}]}`, `{"messages":[{"content":"a","x":tru}]}`,
		`{"messages":[{"content":"a"}]} // and more`, `/**/{}`, `<messages/>`, `messages=a`, `a`, `undefined`,
		`{"messages":[{"content":"a","content":"b"}]}`,
		`{"x":` + strings.Repeat("[", 10_000), `{"messages":[{"content":"a","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}]}`,
	} {
		a := c.Must(t, 0, "POST", "/queues/orders/messages", body)
		what := fmt.Sprintf("%.60q", body)
		proper(t, what, a)
		if code, message, err := a.Error(); a.Status != 400 || code != "CannotParseRequest" {
			t.Errorf("%s: %d %s (%s) %v", what, a.Status, code, message, err)
		}
	}
	for _, body := range []string{`[]`, `"a"`, `1`, `true`, `[{"content":"a"}]`} {
		c.Must(t, 0, "POST", "/queues/orders/messages", body).Is(t, 400, "InvalidParameter")
	}
	for _, body := range []string{``, `null`, ` `} {
		c.Must(t, 0, "POST", "/queues/orders/messages", body).Is(t, 400, "MissingParameter")
	}
	// Many small values cost more memory than octets.
	many := `{"messages":[{"content":"a","x":[` + strings.Repeat("[],", 1_000_000) + `[]]}]}`
	c.Must(t, 0, "POST", "/queues/orders/messages", many).Is(t, 400, "InvalidParameter")
	// The operations that go through the generated handlers are as strict.
	for _, body := range []string{`{`, `{"displayName":"x"}}`, `{"displayName":"x","displayName":"y"}`, `{"displayName":"` + "\xff" + `"}`} {
		c.Must(t, 0, "POST", "/queues", body).Is(t, 400, "CannotParseRequest")
		c.Must(t, 0, "PUT", "/queues/orders", body).Is(t, 400, "CannotParseRequest")
	}
	if err := holds(t, c, "orders", rest.Stats{}); err != nil {
		t.Error(err)
	}
}

// TestOversizeBodies: a body over the bound is refused before it is read, or
// at the bound.
func TestOversizeBodies(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	const bound = 6*512<<10 + 64<<10

	// Announced, and none of it sent: the answer does not wait for it.
	c := rest.Dial(t, s.REST)
	for _, headers := range [][]string{
		{"Content-Length: 3211265"}, {"Content-Length: 99999999999"}, {"Content-Length: 3211265", "Expect: 100-continue"},
	} {
		c := rest.Dial(t, s.REST)
		began := time.Now()
		a := c.Must(t, 413, "POST", "/queues/orders/messages", "", headers...)
		proper(t, fmt.Sprint(headers), a)
		if message := a.Is(t, 413, "PayloadTooLarge"); !strings.Contains(message, "limits.request-bytes") {
			t.Error(message)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%v: answered after %v", headers, took)
		}
		if !a.Closes {
			t.Errorf("%v: the connection stays open, with the body to come", headers)
		}
	}

	// Not announced: it is cut at the bound.
	chunked := rest.Dial(t, s.REST)
	if err := chunked.Send("POST", "/queues/orders/messages", "", "Transfer-Encoding: chunked"); err != nil {
		t.Fatal(err)
	}
	go func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
		for range 16 * bound / (64 << 10) {
			if _, err := chunked.Write([]byte(chunk)); err != nil {
				return
			}
		}
	}()
	a, err := chunked.Receive("POST")
	if err != nil {
		t.Fatal(err)
	}
	proper(t, "chunked", a)
	a.Is(t, 413, "PayloadTooLarge")

	// At the bound any spelling fits: a full request, each octet an escape.
	escaped := strings.Repeat(`\u0061`, 256<<10)
	a = c.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[{"content":"`+escaped+`"},{"content":"`+escaped+`"}]}`)
	if n := len(rest.IDs(t, a)); n != 2 {
		t.Errorf("%d ids", n)
	}
	if n := c.Stats(t, "orders").Queue; n.Visible != 2 || n.Bytes != 512<<10 {
		t.Errorf("stored %+v", n)
	}
	// And the connection serves on.
	c.Must(t, 200, "GET", "/queues", "")

	// A body that does not arrive whole stores nothing.
	short := rest.Dial(t, s.REST)
	if err := short.Send("POST", "/queues/orders/messages", `{"messages":[{"content":"never"}]}`, "Content-Length: 1000"); err != nil {
		t.Fatal(err)
	}
	short.Reset()
	time.Sleep(100 * time.Millisecond)
	if n := c.Stats(t, "orders").Queue.Visible; n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// TestQueries: wrong parameters are refused by name.
func TestQueries(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--create-queue", "parcels")
	c := rest.Dial(t, s.REST)
	c.Must(t, 202, "PUT", "/queues/orders", "{}")
	c.Put(t, "orders", "a")
	for range 3 {
		c.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[{"content":"a","metadata":{"channelId":"c1"}},{"content":"a","metadata":{"channelId":"c2"}}]}`)
	}
	pages := map[string]string{}
	for _, list := range []string{"/queues", "/workRequests", "/queues/orders/channels"} {
		pages[list] = c.Must(t, 200, "GET", list+"?limit=1", "").Header.Get("opc-next-page")
		if pages[list] == "" {
			t.Fatalf("no next page of %s", list)
		}
		c.Must(t, 200, "GET", list+"?limit=1&page="+pages[list], "")
	}
	work := "/workRequests/" + c.Must(t, 202, "PUT", "/queues/orders", "{}").Header.Get("opc-work-request-id")

	for _, tt := range []struct{ path, names string }{
		{"/queues?page=x", "page"}, {"/queues?page=", "page"}, {"/queues?page=AAAAAAAAAAAAAAAA", "page"},
		{"/queues?page=" + pages["/queues"] + "A", "page"},
		{"/queues?page=" + pages["/workRequests"], "page"},
		{"/queues?page=" + pages["/queues"] + "&sortOrder=ASC", "page"},
		{"/queues?page=" + pages["/queues"] + "&displayName=orders", "page"},
		{"/consumerGroups?page=x", "page"},
		{"/workRequests?page=x", "page"}, {"/workRequests?page=" + pages["/queues"], "page"},
		{work + "/errors?page=x", "page"}, {work + "/logs?page=1", "page"},
		{"/queues/orders/channels?page=x", "page"},
		{"/queues/parcels/channels?page=" + pages["/queues/orders/channels"], "page"},
		{"/queues/orders_dlq/channels?page=" + pages["/queues/orders/channels"], "page"},
		{"/queues?limit=0", "limit"}, {"/queues?limit=1001", "limits.list-page"}, {"/queues?limit=-1", "limit"}, {"/queues?limit=x", "limit"},
		{"/queues?limit=1.0", "limit"}, {"/queues?limit=%2B1", "limit"}, {"/queues?limit=", "limit"}, {"/queues?limit=1&limit=2", "limit"},
		{"/queues?limit=99999999999", "limit"}, {"/queues?sortBy=id", "sortBy"}, {"/queues?sortOrder=up", "sortOrder"}, {"/queues?displayName=%ff", "displayName"},
		{"/queues?x=%zz", "percent"}, {"/queues?displayName=%2", "percent"},
		{"/workRequests?limit=0", "limit"}, {work + "/logs?limit=1001", "limits.list-page"}, {work + "/errors?limit=0", "limit"},
		{"/queues/orders/channels?limit=0", "limit"}, {"/queues/orders/channels?channelFilter=a/b", "channelFilter"},
		{"/queues/orders/stats?channelId=a*", "channelId"}, {"/queues/orders/stats?consumerGroupId=g", "CONSUMER_GROUPS"},
		{"/queues/orders/messages?visibilityInSeconds=-1", "visibilityInSeconds"}, {"/queues/orders/messages?visibilityInSeconds=43201", "visibilityInSeconds"},
		{"/queues/orders/messages?timeoutInSeconds=31", "timeoutInSeconds"}, {"/queues/orders/messages?timeoutInSeconds=-1", "timeoutInSeconds"},
		{"/queues/orders/messages?limit=0", "limit"}, {"/queues/orders/messages?limit=21", "limits.batch-messages"},
		{"/queues/orders/messages?channelFilter=" + strings.Repeat("c", 65), "channelFilter"}, {"/queues/orders/messages?consumerGroupId=g", "CONSUMER_GROUPS"},
		{"/queues/orders/messages?contentEncoding=gzip", "contentEncoding"}, {"/queues/orders/messages?limit=1&limit=1", "limit"},
	} {
		a := c.Must(t, 0, "GET", tt.path, "")
		proper(t, tt.path, a)
		code, message, err := a.Error()
		if err != nil || a.Status != 400 || code != "InvalidParameter" || !strings.Contains(message, tt.names) {
			t.Errorf("%s: %d %s (%s) %v", tt.path, a.Status, code, message, err)
		}
	}
	if n := c.Stats(t, "orders").Queue.Visible; n != 7 {
		t.Errorf("%d messages are visible, want 7: a refused get has taken some", n)
	}
	for _, header := range []string{"If-Match", "Opc-Retry-Token"} {
		method, path, body := "PUT", "/queues/orders", "{}"
		if header == "Opc-Retry-Token" {
			method, path, body = "POST", "/queues/orders/messages", `{"messages":[{"content":"a"}]}`
		}
		a := c.Must(t, 0, method, path, body, header+": a", header+": b")
		if message := a.Is(t, 400, "InvalidParameter"); !strings.Contains(message, strings.ToLower(header)) {
			t.Error(message)
		}
	}
	for _, token := range []string{strings.Repeat("t", 65), "ü", ""} {
		a := c.Must(t, 0, "POST", "/queues/orders/messages", `{"messages":[{"content":"a"}]}`, "opc-retry-token: "+token)
		if message := a.Is(t, 400, "InvalidParameter"); !strings.Contains(message, "opc-retry-token") {
			t.Error(message)
		}
	}
}

// TestExpect: who asks first gets "100 Continue", and who would be refused
// anyhow need not send the body.
func TestExpect(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	body := `{"messages":[{"content":"a"}]}`
	c := rest.Dial(t, s.REST)
	length := fmt.Sprintf("Content-Length: %d", len(body))
	if err := c.Send("POST", "/queues/orders/messages", "", length, "Expect: 100-continue"); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := c.Read(line); err != nil || string(line) != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := c.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Receive("POST"); err != nil || a.Status != 200 {
		t.Fatalf("%+v %v", a, err)
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/nothing", 404}, {"PATCH", "/queues", 405}, {"POST", "/queues/orders/messages?x=%zz", 400},
	} {
		a := rest.Dial(t, s.REST).Must(t, tt.status, tt.method, tt.path, "", length, "Expect: 100-continue")
		proper(t, tt.path, a)
	}
	a := rest.Dial(t, s.REST).Must(t, 417, "POST", "/queues/orders/messages", body, "Expect: miracles")
	proper(t, "417", a)
	a.Is(t, 417, "InvalidParameter")
}

// TestNames: path parameters arrive percent-encoded, as the TypeScript SDK
// sends them, or not, as the Go SDK does.
func TestNames(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := rest.Dial(t, s.REST)
	names := []string{"Orders North", "a+b=c&d", "50%", "Straße/Süd", "x_dlq", "ocid1.queue.mine", "é:@!$'()*,;~", "日本"}
	for _, name := range names {
		a := c.Must(t, 202, "POST", "/queues", fmt.Sprintf(`{"displayName":%q}`, name))
		var made struct{ ID string }
		a.JSON(t, &made)
		byName := "/queues/" + escape(name)
		if strings.Contains(name, "/") || strings.HasSuffix(name, "_dlq") || strings.HasPrefix(name, "ocid1.") {
			a := c.Must(t, 404, "GET", byName+"/stats", "") // by OCID only
			proper(t, name, a)
		} else {
			c.Must(t, 200, "GET", byName, "")
			c.Must(t, 200, "GET", byName+"/stats", "")
			c.Must(t, 200, "GET", byName+"_dlq/stats", "")
			c.Must(t, 200, "POST", byName+"/messages", `{"messages":[{"content":"a"}]}`)
			m := rest.Messages(t, c.Must(t, 200, "GET", byName+"/messages", ""))
			c.Must(t, 204, "DELETE", byName+"/messages/"+escape(m[0].Receipt), "")
		}
		byID := "/queues/" + made.ID
		c.Must(t, 200, "GET", byID, "")
		c.Must(t, 200, "GET", "/queues/"+escape(made.ID)+"/stats", "")
		c.Must(t, 200, "POST", byID+"/messages", `{"messages":[{"content":"a"}]}`)
		m := rest.Messages(t, c.Must(t, 200, "GET", byID+"/messages", ""))
		c.Must(t, 204, "DELETE", "/queues/"+escape(made.ID)+"/messages/"+escape(m[0].Receipt), "")

		found := c.Must(t, 200, "GET", "/queues?displayName="+escape(name), "")
		if !strings.Contains(string(found.Body), made.ID) {
			t.Errorf("%q is not found by its name: %s", name, found.Body)
		}
		c.Must(t, 202, "DELETE", byID, "")
	}
	// A blank is "+" in a query only.
	c.Must(t, 202, "POST", "/queues", `{"displayName":"a b"}`)
	c.Must(t, 404, "GET", "/queues/a+b", "")
	if got := c.Must(t, 200, "GET", "/queues?displayName=a+b", ""); !strings.Contains(string(got.Body), `"a b"`) {
		t.Errorf("not found: %s", got.Body)
	}
	// The oldest live queue that bears the name.
	c.Must(t, 202, "POST", "/queues", `{"displayName":"a b","retentionInSeconds":60}`)
	if r := string(field(t, c.Must(t, 200, "GET", "/queues/a%20b", "").Body, "retentionInSeconds")); r != "86400" {
		t.Errorf("the younger one was found: retention %s", r)
	}
	c.Must(t, 202, "DELETE", "/queues/a%20b", "")
	if r := string(field(t, c.Must(t, 200, "GET", "/queues/a%20b", "").Body, "retentionInSeconds")); r != "60" {
		t.Errorf("the deleted one was found: retention %s", r)
	}
}

// escape spells every octet as %XX, which is the hardest that is legal.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02X", text[i])
	}
	return b.String()
}

// TestBrowsers: no page of another site can use a server on the machine of who
// looks at it.
func TestBrowsers(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--public-url", "http://mq.example:8080")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a")
	host := strings.TrimPrefix(s.REST, "http://")
	port := host[strings.LastIndex(host, ":"):]
	for _, tt := range []struct {
		headers []string
		ok      bool
	}{
		{nil, true},
		{[]string{"Host: localhost"}, true},
		{[]string{"Host: LOCALHOST" + port}, true},
		{[]string{"Host: 127.8.9.10:1"}, true},
		{[]string{"Host: [::1]" + port}, true},
		{[]string{"Host: mq.example"}, true},
		{[]string{"Host: evil.example"}, false},
		{[]string{"Host: evil.example" + port}, false},
		{[]string{"Host: 127.0.0.1.evil.example"}, false},
		{[]string{"Host: localhost.evil.example"}, false},
		{[]string{"Host: 192.168.1.1" + port}, false},
		{[]string{"Host: 0.0.0.0" + port}, false},
		{[]string{"Host: "}, false},
		{[]string{"Origin: http://" + host}, true},
		{[]string{"Origin: http://mq.example:8080"}, true},
		{[]string{"Origin: https://evil.example"}, false},
		{[]string{"Origin: http://localhost:1"}, false},
		{[]string{"Origin: null"}, false},
		{[]string{"Origin: http://" + host + ".evil.example"}, false},
		{[]string{"Sec-Fetch-Site: same-origin"}, true},
		{[]string{"Sec-Fetch-Site: none"}, true},
		{[]string{"Sec-Fetch-Site: cross-site"}, false},
		{[]string{"Sec-Fetch-Site: same-site"}, false},
		{[]string{"Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"}, false},
		{[]string{"Sec-Fetch-Site: same-origin", "Origin: https://evil.example"}, false},
	} {
		for _, r := range []struct{ method, path, body string }{
			{"GET", "/queues/orders/stats", ""},
			{"GET", "/queues", ""},
			{"GET", "//healthz", ""},
			{"GET", "//openapi.json", ""},
			{"PUT", "/queues/orders", "{}"},
		} {
			what := fmt.Sprint(tt.headers, r)
			a := c.Must(t, 0, r.method, r.path, r.body, tt.headers...)
			proper(t, what, a)
			if tt.ok != (a.Status < 300) {
				t.Errorf("%s: %d %s", what, a.Status, rest.Clip(a.Body))
			}
			if !tt.ok {
				a.Is(t, 403, "NotAuthorized")
			}
		}
		if !tt.ok { // nor does it take or store anything
			c.Must(t, 403, "GET", "/queues/orders/messages", "", tt.headers...)
			c.Must(t, 403, "POST", "/queues/orders/messages", `{"messages":[{"content":"b"}]}`, tt.headers...)
			c.Must(t, 403, "OPTIONS", "/queues/orders/messages", "", tt.headers...)
		}
	}
	if err := holds(t, c, "orders", rest.Stats{Queue: rest.Counters{Visible: 1, Bytes: 1}}); err != nil {
		t.Error(err)
	}
	// Nothing invites a page in either.
	a := c.Must(t, 200, "GET", "/queues", "")
	for name := range a.Header {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Access-Control-") {
			t.Errorf("there is a header %s", name)
		}
	}
}

// TestAnyAuthorization: with auth none whatever stands there is accepted.
func TestAnyAuthorization(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := rest.Dial(t, s.REST)
	for _, header := range []string{"Authorization: Basic eA==", "Authorization: Signature keyId=x", "Authorization: ", "Authorization: \xff"} {
		c.Must(t, 200, "GET", "/queues", "", header)
	}
}
