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

Instants are RFC 3339 in UTC with milliseconds. Durations are whole seconds. Whatever is optional and not set is left out of an answer; null in a request is the same as absent; unknown fields of a request are ignored. Enum values of a request are read in any case of letters.`

const clientErrors = `The request is at fault; nothing was stored or changed. The codes:

- 400: CannotParseRequest, InvalidParameter, MissingParameter, LimitExceeded, QuotaExceeded, RelatedResourceNotAuthorizedOrNotFound
- 401: NotAuthenticated
- 403: NotAuthorized
- 404: NotAuthorizedOrNotFound, NotFound
- 405: MethodNotAllowed
- 409: IncorrectState, Conflict, InvalidatedRetryToken, NotAuthorizedOrResourceAlreadyExists
- 412: NoEtagMatch
- 413: PayloadTooLarge
- 429: TooManyRequests`

const serverErrors = `The server could not do it. The codes:

- 500: InternalServerError
- 501: MethodNotImplemented
- 503: ServiceUnavailable
- 507: InsufficientStorage`

// document is the whole OpenAPI document while it is made.
type document struct {
	schemas schemas
	paths   *object
	tags    []any
}

// newDocument makes the document of the services. Every RPC must have an HTTP
// rule, unless it is a stream, and every rule an RPC.
func newDocument(services []protoreflect.ServiceDescriptor, rules map[protoreflect.FullName]rule) (*object, error) {
	d := document{schemas: schemas{components: obj()}, paths: obj()}
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
	d.schemas.components.set("Error", obj(
		"type", "object",
		"description", "Error is why a request failed.",
		"required", []string{"code", "message"},
		"properties", obj(
			"code", obj("type", "string", "description", "What kind of failure it is, for programs."),
			"message", obj("type", "string", "description", "What went wrong and what to change, for a person."),
		),
	))
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
			"responses", obj(
				"ClientError", failure(clientErrors),
				"ServerError", failure(serverErrors),
			),
			"parameters", obj("RequestId", obj(
				"name", "opc-request-id",
				"in", "header",
				"description", "A name for the request, for tracing. The answer's begins with it.",
				"schema", obj("type", "string"),
			)),
			"headers", obj("RequestId", obj(
				"description", "The name of the request, for tracing.",
				"required", true,
				"schema", obj("type", "string"),
			)),
			"securitySchemes", obj("token", obj(
				"type", "http",
				"scheme", "bearer",
				"description", "The secret of the server, where it was started with --auth token.",
			)),
		),
	), nil
}

func failure(description string) *object {
	return obj(
		"description", description,
		"headers", obj(
			"opc-request-id", obj("$ref", "#/components/headers/RequestId"),
			"retry-after", obj("description", "When to try again, in whole seconds; only where that may help.", "schema", obj("type", "integer")),
		),
		"content", obj("application/json", obj("schema", ref("Error"))),
	)
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
			"content", obj("application/json", obj("schema", schema)),
		))
	}
	status, response, err := d.success(rpc.Output(), r)
	if err != nil {
		return err
	}
	operation.set("responses", obj(
		status, response,
		"4XX", obj("$ref", "#/components/responses/ClientError"),
		"5XX", obj("$ref", "#/components/responses/ServerError"),
	))
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
		if schema.has("$ref") && defaultPhrase.MatchString(comment(f)) {
			schema = obj("allOf", []any{schema})
		}
		constrain(schema, f)
		p := obj("name", f.JSONName(), "in", "query", "description", comment(f))
		if inPath[string(f.Name())] {
			delete(inPath, string(f.Name()))
			p.set("in", "path")
			p.set("required", true)
		} else if header, ok := headersIn[f.Name()]; ok {
			p.set("name", header)
			p.set("in", "header")
		}
		p.set("schema", schema)
		all = append(all, p)
	}
	if len(inPath) > 0 {
		return nil, fmt.Errorf("%s names a field that the request does not have", r.path)
	}
	return append(all, obj("$ref", "#/components/parameters/RequestId")), nil
}

// success is the status and the answer when all went well: 202 for a change
// that a work request records, 204 when there is nothing to say, else 200.
func (d *document) success(m protoreflect.MessageDescriptor, r rule) (string, *object, error) {
	headers := obj("opc-request-id", obj("$ref", "#/components/headers/RequestId"))
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
			h := obj("description", comment(f))
			if required(f) {
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
		response.set("content", obj("application/json", obj("schema", schema)))
	}
	return status, response, nil
}
