package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// headersIn are the request fields that REST takes from headers.
var headersIn = map[protoreflect.Name]string{
	"retry_token": "opc-retry-token",
	"if_match":    "if-match",
}

// headersOut are the response fields that REST gives out as headers.
var headersOut = map[protoreflect.Name]string{
	"work_request_id": "opc-work-request-id",
	"next_page":       "opc-next-page",
	"etag":            "etag",
	"retry_after":     "retry-after",
}

const about = `A message queue that speaks the REST API of OCI Queue, so that its SDKs work with only their endpoint set.

Instants are RFC 3339 in UTC with milliseconds. Durations are whole seconds. Whatever is optional and not set is left out of an answer; null in a request is the same as absent; unknown fields of a request are ignored. Enum values of a request are read in any case of letters.

Every answer has the header opc-request-id, and one with a body is application/json. A path of this document with a method that it does not list there is answered 405 MethodNotAllowed with the header allow; any other path 404 NotFound. What is no request at all for HTTP (a broken percent-encoding, headers over 64 KiB, an expectation or a transfer encoding that is not served) is answered 400, 431, 417 or 501 in the shape of Error, and the connection is closed.`

// document is the whole OpenAPI document while it is made.
type document struct {
	schemas  schemas
	failures *object // answers, by their status and codes
	paths    *object
	tags     []any
	examples examples
}

// newDocument makes the document of the services. Every RPC must have an HTTP
// rule, unless it is a stream, and every rule an RPC.
func newDocument(services []protoreflect.ServiceDescriptor, rules map[protoreflect.FullName]rule) (*object, error) {
	d := document{schemas: schemas{components: obj(), sent: map[protoreflect.FullName]bool{}}, failures: obj(), paths: obj()}
	var err error
	if d.examples, err = readExamples(); err != nil {
		return nil, err
	}
	d.schemas.markSent(services, rules)
	left := maps.Clone(rules)
	for _, service := range services {
		d.tags = append(d.tags, obj("name", string(service.Name()), "description", paragraphs(service)))
		for i := range service.Methods().Len() {
			rpc := service.Methods().Get(i)
			r, ok := rules[rpc.FullName()]
			if !ok {
				if rpc.IsStreamingClient() || rpc.IsStreamingServer() {
					continue
				}
				return nil, fmt.Errorf("%s has no HTTP rule", rpc.FullName())
			}
			delete(left, rpc.FullName())
			if err := d.add(rpc, r); err != nil {
				return nil, fmt.Errorf("%s: %w", rpc.FullName(), err)
			}
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("rules without an RPC: %v", slices.Sorted(maps.Keys(left)))
	}
	if left := d.schemas.unformed(); len(left) > 0 {
		return nil, fmt.Errorf("forms without a field: %v", left)
	}
	d.schemas.components.set("Error", errorSchema())
	return obj(
		"openapi", "3.0.3",
		"info", obj(
			"title", "queued",
			"version", "20210201",
			"description", about,
			"license", obj("name", "Apache 2.0", "url", "https://www.apache.org/licenses/LICENSE-2.0"),
		),
		"servers", []any{obj("url", "/")},
		"security", []any{obj(), obj("token", []string{})},
		"tags", d.tags,
		"paths", d.paths,
		"components", obj(
			"schemas", d.schemas.components,
			"responses", d.failures,
			"parameters", obj("RequestId", obj(
				"name", "opc-request-id",
				"in", "header",
				"description", "A name for the request, for tracing. The answer's begins with it.",
				"schema", obj("type", "string"),
				"example", d.examples.Parameters["opc-request-id"],
			)),
			"headers", obj(
				"RequestId", obj(
					"description", "The name of the request, for tracing: the client's own part, the server's, and a random one.",
					"required", true,
					"schema", obj("type", "string", "pattern", `^[!-~]+/[0-9A-F]{16}/[0-9A-F]{16}$`),
					"example", "B1C2D3/0123456789ABCDEF/FEDCBA9876543210",
				),
				"RetryAfter", obj(
					"description", "When to try again, in whole seconds.",
					"required", true,
					"schema", obj("type", "integer", "minimum", 1),
				),
				"NoStore", obj(
					"description", "No cache may keep the answer: it delivers messages.",
					"required", true,
					"schema", obj("type", "string", "enum", []string{"no-store"}),
				),
			),
			"securitySchemes", obj("token", obj(
				"type", "http",
				"scheme", "bearer",
				"description", "The secret of the server, where it was started with --auth token.",
			)),
		),
	), nil
}

// add adds the operation of an RPC.
func (d *document) add(rpc protoreflect.MethodDescriptor, r rule) error {
	parameters, err := d.parameters(rpc.Input(), r)
	if err != nil {
		return err
	}
	operation := obj(
		"operationId", string(rpc.Name()),
		"tags", []string{string(rpc.Parent().Name())},
		"summary", summary(rpc),
		"description", comment(rpc),
		"parameters", parameters,
	)
	if r.body != "" {
		f := rpc.Input().Fields().ByName(protoreflect.Name(r.body))
		if f == nil || f.Message() == nil {
			return fmt.Errorf("the body %s is no message of the request", r.body)
		}
		schema, err := d.schemas.message(f.Message())
		if err != nil {
			return err
		}
		operation.set("requestBody", obj(
			"required", true,
			"description", comment(f),
			"content", obj("application/json", obj("schema", schema, "example", d.examples.Operations[string(rpc.Name())].Request)),
		))
	}
	status, response, err := d.success(rpc, r)
	if err != nil {
		return err
	}
	addLinks(response, string(rpc.Name()))
	responses := obj(status, response)
	d.addFailures(responses, failuresOf(rpc, r))
	operation.set("responses", responses)
	path := pathParameter.ReplaceAllStringFunc(r.path, func(p string) string {
		return "{" + rpc.Input().Fields().ByName(protoreflect.Name(p[1:len(p)-1])).JSONName() + "}"
	})
	if d.paths.at(path).has(r.method) {
		return fmt.Errorf("%s %s is taken", r.method, path)
	}
	d.paths.at(path).set(r.method, operation)
	return nil
}

var pathParameter = regexp.MustCompile(`\{[a-z_]+\}`)

// summary is the first sentence of the comment, without the name of the RPC.
func summary(rpc protoreflect.MethodDescriptor) string {
	text := strings.TrimPrefix(comment(rpc), string(rpc.Name())+" ")
	text, _, _ = strings.Cut(text, ". ")
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".")
}

// parameters are the fields of the request that are not its body: in the path,
// in a header, in the query.
func (d *document) parameters(m protoreflect.MessageDescriptor, r rule) ([]any, error) {
	var all []any
	inPath := map[string]bool{}
	for _, p := range pathParameter.FindAllString(r.path, -1) {
		inPath[p[1:len(p)-1]] = true
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if string(f.Name()) == r.body {
			continue
		}
		schema, err := d.schemas.fieldType(f)
		if err != nil {
			return nil, err
		}
		if m := defaultPhrase.FindStringSubmatch(comment(f)); m != nil && schema.has("$ref") && defaultValue(f, m[1]) != nil {
			schema = obj("allOf", []any{schema})
		}
		constrain(schema, f)
		if err := d.schemas.form(schema, f); err != nil {
			return nil, err
		}
		p := obj("name", f.JSONName(), "in", "query", "description", comment(f))
		if inPath[string(f.Name())] {
			delete(inPath, string(f.Name()))
			p.set("in", "path")
			p.set("required", true)
			schema.set("minLength", 1)
		} else if header, ok := headersIn[f.Name()]; ok {
			p.set("name", header)
			p.set("in", "header")
		}
		p.set("schema", schema)
		if example, ok := d.examples.Parameters[p.values["name"].(string)]; ok {
			p.set("example", example)
		} else if f.Name() != "page" { // a made-up token is refused
			return nil, fmt.Errorf("%s has no example", p.values["name"])
		}
		all = append(all, p)
	}
	if len(inPath) > 0 {
		return nil, fmt.Errorf("%s names a field that the request does not have", r.path)
	}
	return append(all, obj("$ref", "#/components/parameters/RequestId")), nil
}

// success is the status and the answer when all went well: 202 for a change
// that a work request records, 204 when there is nothing to say, else 200.
func (d *document) success(rpc protoreflect.MethodDescriptor, r rule) (string, *object, error) {
	m := rpc.Output()
	headers := obj("opc-request-id", obj("$ref", "#/components/headers/RequestId"))
	if rpc.Name() == "GetMessages" {
		headers.set("cache-control", obj("$ref", "#/components/headers/NoStore"))
	}
	response := obj("description", comment(m), "headers", headers)
	status := "200"
	if m.Fields().Len() == 0 {
		status = "204"
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if header, ok := headersOut[f.Name()]; ok {
			schema, err := d.schemas.fieldType(f)
			if err != nil {
				return "", nil, err
			}
			if err := d.schemas.form(schema, f); err != nil {
				return "", nil, err
			}
			h := obj("description", comment(f))
			if required(f) && header != "retry-after" { // there is none for what has ended
				h.set("required", true)
			}
			h.set("schema", schema)
			headers.set(header, h)
			if f.Name() == "work_request_id" {
				status = "202"
			}
			continue
		}
		if string(f.Name()) != r.responseBody {
			return "", nil, fmt.Errorf("%s of the answer is neither its body nor a header", f.Name())
		}
		schema, err := d.schemas.message(f.Message())
		if err != nil {
			return "", nil, err
		}
		response.set("content", obj("application/json", obj("schema", schema, "example", d.examples.Operations[string(rpc.Name())].Response)))
	}
	return status, response, nil
}
