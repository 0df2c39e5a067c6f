package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The errors of the API: the status that each code has, and when it is given.
// The gateway's own table says the same of the statuses; a test compares them.
var codes = []struct {
	status string
	code   string
	when   string
}{
	{"400", "CannotParseRequest", "the request is no HTTP, or its body no JSON"},
	{"400", "InvalidParameter", "a value is out of its range or ill-formed"},
	{"400", "MissingParameter", "a required field is absent"},
	{"400", "LimitExceeded", "a limit of the service is reached; the message names its setting"},
	{"400", "QuotaExceeded", "an administrator's quota is reached"},
	{"400", "RelatedResourceNotAuthorizedOrNotFound", "a resource that the body names is not known, or the caller may not use it"},
	{"401", "NotAuthenticated", "who is calling cannot be told; only where the server asks"},
	{"403", "NotAuthorized", "the caller may not do this: the request comes from a page of another site, or its host is not served here"},
	{"404", "NotAuthorizedOrNotFound", "what the path or a parameter names is not known, or the caller may not use it so"},
	{"404", "NotFound", "no operation is at this path"},
	{"405", "MethodNotAllowed", "the path has no such method"},
	{"409", "IncorrectState", "not in the state that the resource is in now; try later"},
	{"409", "Conflict", "never with what there is"},
	{"409", "InvalidatedRetryToken", "what the retry token made has been deleted since"},
	{"409", "NotAuthorizedOrResourceAlreadyExists", "the name is taken"},
	{"412", "NoEtagMatch", "if-match names another version than the one there is"},
	{"413", "PayloadTooLarge", "the body, a message or all messages together are over their size"},
	{"429", "TooManyRequests", "a rate of the queue is exceeded; wait as retry-after says"},
	{"500", "InternalServerError", "a fault of the server, which its log tells"},
	{"501", "MethodNotImplemented", "this is not built yet; asking again is no use"},
	{"503", "ServiceUnavailable", "the server is stopping or has too much to do; wait as retry-after says"},
	{"507", "InsufficientStorage", "the disk has no room; reads, updates, deletes and purges go on"},
}

// statusTexts are the names of the statuses of failures.
var statusTexts = map[string]string{
	"400": "The request is at fault",
	"401": "Nobody has signed in",
	"403": "Refused",
	"404": "Not there",
	"405": "No such method",
	"409": "Not in this state",
	"412": "Another version",
	"413": "Too large",
	"429": "Too fast",
	"500": "A fault of the server",
	"501": "Not built yet",
	"503": "Not now",
	"507": "No room",
}

// everyCode is what every operation can answer.
var everyCode = []string{
	"CannotParseRequest", "InvalidParameter", "NotAuthenticated", "NotAuthorized",
	"InternalServerError", "ServiceUnavailable",
}

// moreCodes is what an operation can answer beside what failuresOf tells by its
// shape.
var moreCodes = map[protoreflect.Name][]string{
	"CreateQueue": {"LimitExceeded", "NotAuthorizedOrNotFound", "InvalidatedRetryToken"},
	"CreateConsumerGroup": {"LimitExceeded", "RelatedResourceNotAuthorizedOrNotFound", "NotAuthorizedOrNotFound", "IncorrectState",
		"InvalidatedRetryToken", "NotAuthorizedOrResourceAlreadyExists"},
	"GetConsumerGroup":    {"Conflict"},
	"UpdateConsumerGroup": {"Conflict", "NotAuthorizedOrResourceAlreadyExists"},
	"DeleteConsumerGroup": {"Conflict"},
	"PutMessages":         {"LimitExceeded", "TooManyRequests", "InsufficientStorage"},
	"GetMessages":         {"TooManyRequests", "InsufficientStorage"},
	"UpdateMessage":       {"TooManyRequests"},
	"DeleteMessage":       {"TooManyRequests"},
	"UpdateMessages":      {"TooManyRequests"},
	"DeleteMessages":      {"TooManyRequests"},
	"GetStats":            {"TooManyRequests"},
	"ListChannels":        {"TooManyRequests"},
}

// readsDeleted are the operations that show what has been deleted too, so that
// no state is the wrong one.
var readsDeleted = []protoreflect.Name{"GetQueue", "GetConsumerGroup"}

// failuresOf are the codes that an operation can answer, in the order of codes.
func failuresOf(rpc protoreflect.MethodDescriptor, r rule) []string {
	all := slices.Concat(everyCode, moreCodes[rpc.Name()])
	if strings.Contains(r.path, "{") {
		all = append(all, "NotFound", "NotAuthorizedOrNotFound")
		if !strings.Contains(r.path, "{work_request_id}") && !slices.Contains(readsDeleted, rpc.Name()) {
			all = append(all, "IncorrectState")
		}
	}
	if r.body != "" {
		all = append(all, "MissingParameter", "PayloadTooLarge")
	}
	if rpc.Input().Fields().ByName("if_match") != nil {
		all = append(all, "NoEtagMatch")
	}
	var sorted []string
	for _, c := range codes {
		if slices.Contains(all, c.code) {
			sorted = append(sorted, c.code)
		}
	}
	return sorted
}

// addFailures adds an answer for every status that the codes have. Answers with
// the same codes are one component, which is named for them.
func (d *document) addFailures(responses *object, all []string) {
	for status := range statuses {
		var here []string
		for _, c := range codes {
			if c.status == status && slices.Contains(all, c.code) {
				here = append(here, c.code)
			}
		}
		if here == nil {
			continue
		}
		name := status + "." + strings.Join(here, ".")
		if !d.failures.has(name) {
			d.failures.set(name, failure(status, here))
		}
		responses.set(status, obj("$ref", "#/components/responses/"+name))
	}
}

// statuses are those of codes, each once.
func statuses(yield func(string) bool) {
	last := ""
	for _, c := range codes {
		if c.status != last && !yield(c.status) {
			return
		}
		last = c.status
	}
}

// failure is the answer with the status that bears one of these codes.
func failure(status string, here []string) *object {
	text := statusTexts[status] + ":\n"
	for _, c := range codes {
		if slices.Contains(here, c.code) {
			text += fmt.Sprintf("\n- `%s`: %s", c.code, c.when)
		}
	}
	headers := obj("opc-request-id", obj("$ref", "#/components/headers/RequestId"))
	switch status {
	case "429", "503", "507":
		headers.set("retry-after", obj("$ref", "#/components/headers/RetryAfter"))
	}
	return obj(
		"description", text,
		"headers", headers,
		"content", obj("application/json", obj(
			"schema", obj("allOf", []any{
				ref("Error"),
				obj("type", "object", "properties", obj("code", obj("type", "string", "enum", here))),
			}),
			"example", obj("code", here[0], "message", "what went wrong and what to change"),
		)),
	)
}

// errorSchema is the body of every failure.
func errorSchema() *object {
	var all []string
	for _, c := range codes {
		all = append(all, c.code)
	}
	return obj(
		"type", "object",
		"description", "Error is why a request failed.",
		"required", []string{"code", "message"},
		"properties", obj(
			"code", obj("type", "string", "description", "What kind of failure it is, for programs.", "enum", all),
			"message", obj("type", "string", "description", "What went wrong and what to change, for a person."),
		),
	)
}
