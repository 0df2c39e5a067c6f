package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/queued-mq/queued/queue"
)

// Whatever is asked, the answer has one of our statuses and an OCI body, and
// the server never says that it broke.
func FuzzRequest(f *testing.F) {
	for _, r := range routes {
		path := basePath + strings.ReplaceAll(r.path, "{}", "orders")
		f.Add(r.method, path, "limit=5&timeoutInSeconds=0", `{}`, "id")
	}
	for i, body := range bodies {
		f.Add("POST", []string{orders + "/messages", basePath + "/queues", orders + "/actions/purge", orders + "/messages/actions/updateMessages"}[i%4], "", body, "")
	}
	f.Add("PUT", orders, "ifMatch=x", `{"definedTags":{"a":{"b":[1,{"c":null}]}},"freeformTags":{"x":"y"}}`, "a/b c")
	f.Add("GET", basePath+"/queues/%2e%2e//x%2Fy", "limit=%zz&&=", "", "\xff")
	f.Add("BREW", "*", ";", "\x00", "\n")

	h := newHouse(f, Options{})
	h.queue("orders")
	f.Fuzz(func(t *testing.T, method, path, query, body, id string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" || method == "" {
			return // net/http answers that, see Listener
		}
		u.RawQuery = query
		if strings.HasPrefix(u.Path, orders) && strings.HasSuffix(u.Path, "/messages") && method == http.MethodGet {
			u.RawQuery = "timeoutInSeconds=0&" + query // who names it again is refused
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Method, r.URL, r.Host = method, u, "localhost"
		r.Header.Set("Opc-Request-Id", id)
		r.Header.Set("Opc-Retry-Token", id)
		r.Header.Set("If-Match", id)
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)

		out := w.Body.Bytes()
		if len(out) > 0 && !json.Valid(out) {
			t.Fatalf("%s %s: no JSON: %q", method, u, out)
		}
		if got := w.Header().Get("Opc-Request-Id"); strings.Count(got, "/") < 2 || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("opc-request-id %q", got)
		}
		if w.Code < 400 {
			return
		}
		var e map[string]string
		if err := json.Unmarshal(out, &e); err != nil || len(e) != 2 || e["message"] == "" {
			t.Fatalf("%s %s: %d %s", method, u, w.Code, out)
		}
		if code := queue.Code(e["code"]); !slices.Contains(queue.Codes, code) || statuses[code] != w.Code || w.Code == 500 {
			t.Fatalf("%s %s %q: %d %s", method, u, body, w.Code, out)
		}
	})
}
