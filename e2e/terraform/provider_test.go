package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(8)
	os.Exit(server.Main(m))
}

// provider is one run of the provider.
type provider struct {
	*rest.Conn
	t      *testing.T
	tokens int
}

func connect(t *testing.T, s *server.Server) *provider {
	return &provider{Conn: rest.Dial(t, s.REST), t: t}
}

// fields is a JSON object.
type fields map[string]any

func (f fields) text(name string) string { s, _ := f[name].(string); return s }

// ask sends a request with a JSON body, or none, and wants this status.
func (p *provider) ask(status int, method, path string, body fields, headers ...string) *rest.Answer {
	p.t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			p.t.Fatal(err)
		}
		text = string(b)
	}
	return p.Must(p.t, status, method, path, text, headers...)
}

// read is the object that a path answers with.
func (p *provider) read(path string) (f fields) {
	p.t.Helper()
	p.ask(200, "GET", path, nil).JSON(p.t, &f)
	return f
}

// list is all pages of a list, as data sources read it.
func (p *provider) list(path string) (all []fields) {
	p.t.Helper()
	for page := ""; ; {
		a := p.ask(200, "GET", path+page, nil)
		var r struct{ Items []fields }
		a.JSON(p.t, &r)
		if r.Items == nil {
			p.t.Fatalf("%s: no items in %s", path, rest.Clip(a.Body))
		}
		all = append(all, r.Items...)
		next := a.Header.Get("opc-next-page")
		if next == "" {
			return all
		}
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		page = separator + "page=" + next
	}
}

// retryToken is a header with a new token: the provider sends one with each
// creation.
func (p *provider) retryToken() string {
	p.tokens++
	return fmt.Sprintf("opc-retry-token: terraform-%s-%d", p.t.Name()[4:], p.tokens)
}

// workRequest is the work request that an operation was answered with.
func (p *provider) workRequest(a *rest.Answer) string {
	p.t.Helper()
	id := a.Header.Get("opc-work-request-id")
	if id == "" {
		p.t.Fatalf("an answer without opc-work-request-id: %d %s", a.Status, rest.Clip(a.Body))
	}
	return id
}

// work is a work request as the provider reads it.
type work struct {
	ID, OperationType, Status, CompartmentID string
	PercentComplete                          float64
	TimeAccepted, TimeStarted, TimeFinished  *time.Time
	Resources                                []struct{ EntityType, ActionType, Identifier, EntityURI string }
}

func (p *provider) readWork(id string) (w work) {
	p.t.Helper()
	p.ask(200, "GET", "/workRequests/"+id, nil).JSON(p.t, &w)
	return w
}

// first is the identifier of the first resource whose type contains entity, in
// any case: where the provider finds the id of what it has created.
func (w *work) first(entity string) string {
	for _, r := range w.Resources {
		if strings.Contains(strings.ToLower(r.EntityType), entity) {
			return r.Identifier
		}
	}
	return ""
}

// wait follows a work request until timeFinished is set and is the identifier
// of the resource that has had this done to it.
func (p *provider) wait(id, operation, entity, action string) string {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	w := p.readWork(id)
	for w.TimeFinished == nil {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is not finished: %+v", operation, w)
		}
		w = p.readWork(id)
	}
	if w.ID != id || w.OperationType != operation || w.Status != "SUCCEEDED" || w.PercentComplete != 100 ||
		w.CompartmentID == "" || w.TimeAccepted == nil || w.TimeStarted == nil {
		p.t.Errorf("work request %+v, want %s and success", w, operation)
	}
	for _, r := range w.Resources {
		if strings.Contains(strings.ToLower(r.EntityType), entity) && r.ActionType == action {
			p.ask(200, "GET", strings.TrimPrefix(r.EntityURI, rest.Base), nil)
			return r.Identifier
		}
	}
	p.t.Fatalf("work request %+v names no %s that was %s", w, entity, action)
	return ""
}

// create makes a thing: the id is there at once, and the same at the end.
func (p *provider) create(path, operation, entity string, details fields) string {
	p.t.Helper()
	request := p.workRequest(p.ask(202, "POST", path, details, p.retryToken()))
	w := p.readWork(request)
	id := w.first(entity)
	if id == "" {
		p.t.Fatalf("no %s in %+v, right after the 202", entity, w)
	}
	if at := p.wait(request, operation, entity, "CREATED"); at != id {
		p.t.Fatalf("the work request named %s first and %s at its end", id, at)
	}
	return id
}

// change is an operation on a thing that is there.
func (p *provider) change(method, path, operation, entity, action, id string, details fields) {
	p.t.Helper()
	request := p.workRequest(p.ask(202, method, path, details))
	if got := p.wait(request, operation, entity, action); got != id {
		p.t.Errorf("the work request names %s, not %s", got, id)
	}
}

// refresh reads a thing into the state: all of want must be there.
func (p *provider) refresh(path string, want fields) fields {
	p.t.Helper()
	got := p.read(path)
	for name, value := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(value) {
			p.t.Errorf("%s: %s is %v, want %v", path, name, got[name], value)
		}
	}
	return got
}

// gone is the destroy check: 404, or the state DELETED.
func (p *provider) gone(path string) {
	p.t.Helper()
	a := p.ask(0, "GET", path, nil)
	if a.Status == 404 {
		return
	}
	var f fields
	a.JSON(p.t, &f)
	if a.Status != 200 || f.text("lifecycleState") != "DELETED" {
		p.t.Errorf("%s is not gone: %d %s", path, a.Status, rest.Clip(a.Body))
	}
}
