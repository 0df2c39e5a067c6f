package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/queued-mq/queued/api/openapi"
	"github.com/queued-mq/queued/queue"
)

// The table of routes and the API document, made from the proto files and
// gateway.yaml, say the same of every operation.
func TestRoutesMatchDocument(t *testing.T) {
	t.Parallel()
	type parameter struct {
		Name, In string
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []parameter
			RequestBody *struct{ Required bool }
			Responses   map[string]struct {
				Headers map[string]any
			}
		}
	}
	if err := json.Unmarshal(openapi.Document, &doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, methods := range doc.Paths {
		short, api := strings.CutPrefix(path, basePath)
		if !api { // beside the API, see handleOwn
			continue
		}
		short = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(short, "{}")
		for method, op := range methods {
			found++
			i := slices.IndexFunc(routes, func(r route) bool { return r.operation == op.OperationID })
			if i < 0 {
				t.Errorf("%s has no route", op.OperationID)
				continue
			}
			r := routes[i]
			if r.path != short || !strings.EqualFold(r.method, method) {
				t.Errorf("%s is %s %s, documented as %s %s", r.operation, r.method, r.path, method, short)
			}
			var query []string
			match, token := false, false
			for _, p := range op.Parameters {
				switch {
				case p.In == "query":
					query = append(query, p.Name)
				case p.Name == "if-match":
					match = true
				case p.Name == "opc-retry-token":
					token = true
				}
			}
			slices.Sort(query)
			if have := slices.Sorted(slices.Values(r.query)); !slices.Equal(have, query) {
				t.Errorf("%s takes %v, documented are %v", r.operation, have, query)
			}
			if len(r.query) > mostQuery {
				t.Errorf("%s has more parameters than an exchange has room for", r.operation)
			}
			if r.ifMatch != match || r.token != token || r.body != (op.RequestBody != nil) {
				t.Errorf("%s: if-match %v, opc-retry-token %v, body %v; documented %v, %v, %v",
					r.operation, r.ifMatch, r.token, r.body, match, token, op.RequestBody != nil)
			}
			if _, ok := op.Responses[strconv.Itoa(r.status)]; !ok {
				t.Errorf("%s answers %d, which is not documented", r.operation, r.status)
			}
		}
	}
	if found != len(routes) {
		t.Errorf("%d operations are documented, %d have routes", found, len(routes))
	}
}

// Every failure is documented under the status that this face gives its code,
// and every code that this face can give is documented.
func TestStatusesMatchDocument(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						AllOf []struct {
							Properties struct {
								Code struct{ Enum []queue.Code }
							}
						}
					}
				}
			}
			Schemas struct {
				Error struct {
					Properties struct {
						Code struct{ Enum []queue.Code }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(openapi.Document, &doc); err != nil {
		t.Fatal(err)
	}
	for name, response := range doc.Components.Responses {
		of := response.Content["application/json"].Schema.AllOf
		if len(of) != 2 || len(of[1].Properties.Code.Enum) == 0 {
			t.Errorf("%s names no codes", name)
			continue
		}
		for _, code := range of[1].Properties.Code.Enum {
			if status, _, _ := strings.Cut(name, "."); status != strconv.Itoa(statuses[code]) {
				t.Errorf("%s is answered with %d, documented as %s", code, statuses[code], name)
			}
		}
	}
	for code := range statuses {
		if documented := slices.Contains(doc.Components.Schemas.Error.Properties.Code.Enum, code); documented == (code == queue.InvalidFrame) {
			t.Errorf("%s is documented: %v", code, documented)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/queues":                                   "/queues",
		"/queues/a":                                 "/queues/{}",
		"/queues/a b é:x?":                          "/queues/{}",
		"/queues/a/messages":                        "/queues/{}/messages",
		"/queues/a/messages/actions":                "/queues/{}/messages/{}", // a receipt that is none
		"/queues/messages/messages":                 "/queues/{}/messages",
		"/queues/a/messages/actions/updateMessages": "/queues/{}/messages/actions/updateMessages",
		"/workRequests/w/errors":                    "/workRequests/{}/errors",
		"/consumerGroups/g":                         "/consumerGroups/{}",
	} {
		p := find(basePath + path)
		if p == nil || p.routes[0].path != want {
			t.Errorf("%s: found %+v, want %s", path, p, want)
		}
	}
	for _, path := range []string{
		"", "/", basePath, basePath + "/", "/queues", "//" + basePath[1:] + "/queues", basePath + "//queues", basePath + "/queues/",
		basePath + "/queues//messages", basePath + "/queues/./messages", basePath + "/queues/..", basePath + "/../queues", basePath + "/Queues",
		basePath + "/queues/a/messages/r/", basePath + "/queues/a/b", basePath + "/queues/a/messages/actions/updateMessages/x",
		basePath + "/queues/a/messages/actions/update", basePath + "/topics", "/20210202/queues", "*",
	} {
		if p := find(path); p != nil {
			t.Errorf("%q: found %+v", path, p)
		}
	}
	for raw, want := range map[string]bool{"/a%2Fb": true, "/a%2fb": true, "/a%252Fb": false, "/a%": false, "/a%2": false, "/%41": false, "/": false} {
		if hides(raw) != want {
			t.Errorf("hides(%q) is %v", raw, !want)
		}
	}
}

// Every path refuses every other method with the methods that are allowed.
func TestMethods(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, p := range places {
		target := basePath
		for _, s := range p.segments {
			target += "/" + s
			if s == "" {
				target += "x"
			}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
			if slices.ContainsFunc(p.routes, func(r *route) bool { return r.method == method }) {
				continue
			}
			a := ask(t, h.handler, method, target, "")
			wantError(t, method+" "+target, a, http.StatusMethodNotAllowed, "MethodNotAllowed", method)
			if got := a.header.Get("Allow"); got != p.allow[0] || got == "" {
				t.Errorf("%s %s: allow %q", method, target, got)
			}
		}
	}
}
