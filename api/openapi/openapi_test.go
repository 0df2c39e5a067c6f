package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/queued-mq/queued/api/openapi"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := load(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// operations are all operations of the document by their operationId, each as
// "METHOD path" and the operation.
func operations(t *testing.T) map[string]struct {
	at string
	*openapi3.Operation
} {
	t.Helper()
	all := map[string]struct {
		at string
		*openapi3.Operation
	}{}
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			all[op.OperationID] = struct {
				at string
				*openapi3.Operation
			}{method + " " + path, op}
		}
	}
	return all
}

// TestExamples holds JSON as it goes over the wire against the schemas.
func TestExamples(t *testing.T) {
	t.Parallel()
	tests := []struct {
		schema, json string
		bad          string // what the refusal must name, "" for a good one
	}{
		{"PutMessagesDetails", `{"messages":[{"content":"a","metadata":{"channelId":"c1","customProperties":{"type":"order"}}}]}`, ""},
		{"PutMessagesDetails", `{"messages":[{"content":"","delayInSeconds":5}]}`, ""},
		{"PutMessagesDetails", `{"messages":[]}`, "messages"},
		{"PutMessagesDetails", `{"messages":[{}]}`, "content"},
		{"PutMessages", `{"messages":[{"id":1201,"expireAfter":"2026-01-03T03:04:05.006Z"}]}`, ""},
		{"PutMessages", `{"messages":[{"id":"1201"}]}`, "id"},
		{"GetMessages", `{"messages":[]}`, ""},
		{"GetMessages", `{}`, "messages"},
		{"GetMessages", `{"messages":[{"id":1201,"content":"a","receipt":"AgEB","deliveryCount":1,"visibleAfter":"2026-01-02T03:04:35.006Z","expireAfter":"2026-01-03T03:04:05.006Z","createdAt":"2026-01-02T03:04:05.006Z","deadLetter":{"reason":"DELIVERY_COUNT_REACHED","deliveryCount":5,"at":"2026-01-02T03:04:05.006Z"}}]}`, ""},
		{"DeleteMessagesResult", `{"serverFailures":0,"clientFailures":1,"entries":[{},{"errorCode":404,"errorMessage":"receipt is stale"}]}`, ""},
		{"QueueStats", `{"queue":{"visibleMessages":3,"inFlightMessages":1,"sizeInBytes":412,"delayedMessages":0},"dlq":{"visibleMessages":0,"inFlightMessages":0,"sizeInBytes":0,"delayedMessages":0}}`, ""},
		{"ChannelCollection", `{"items":["c1","c2"]}`, ""},
		{"Queue", `{"id":"ocid1.queue.oc1.local.aaaa","lifecycleState":"GONE"}`, "lifecycleState"},
		{"CreateQueueDetails", `{"displayName":"orders","capabilities":[{"type":"CONSUMER_GROUPS"}],"freeformTags":{"team":"a"},"definedTags":{"ns":{"cost":7}}}`, ""},
		{"CreateQueueDetails", `{"displayName":"orders","retentionInSeconds":9}`, "retentionInSeconds"},
		{"PurgeQueueDetails", `{"purgeType":"BOTH"}`, ""},
		{"PurgeQueueDetails", `{}`, "purgeType"},
		{"PurgeQueueDetails", `{"purgeType":"PURGE_TYPE_UNSPECIFIED"}`, "purgeType"},
		{"CreatedQueue", `{"id":"ocid1.queue.oc1.local.aaaa","displayName":"orders","lifecycleState":"ACTIVE"}`, ""},
		{"Error", `{"code":"NotAuthorizedOrNotFound","message":"no such queue"}`, ""},
	}
	doc := load(t)
	for _, tt := range tests {
		var value any
		if err := json.Unmarshal([]byte(tt.json), &value); err != nil {
			t.Fatal(err)
		}
		err := doc.Components.Schemas[tt.schema].Value.VisitJSON(value, openapi3.MultiErrors())
		switch {
		case tt.bad == "" && err != nil:
			t.Errorf("%s refuses %s: %v", tt.schema, tt.json, err)
		case tt.bad != "" && err == nil:
			t.Errorf("%s takes %s", tt.schema, tt.json)
		case tt.bad != "" && !strings.Contains(err.Error(), tt.bad):
			t.Errorf("%s refuses %s without naming %s: %v", tt.schema, tt.json, tt.bad, err)
		}
	}
}

// Every operation has an example of its body and of its answer, and every
// parameter one of itself, which its schema takes.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	check := func(where string, schema *openapi3.SchemaRef, example any) {
		if example == nil {
			t.Errorf("%s has no example", where)
		} else if err := schema.Value.VisitJSON(example, openapi3.MultiErrors()); err != nil {
			t.Errorf("%s: the example is refused: %v", where, err)
		}
	}
	for id, op := range operations(t) {
		if op.RequestBody != nil {
			media := op.RequestBody.Value.Content["application/json"]
			check(id+", its body", media.Schema, media.Example)
		}
		for status, response := range op.Responses.Map() {
			if media := response.Value.Content["application/json"]; media != nil {
				check(id+" "+status, media.Schema, media.Example)
			}
		}
		for _, p := range op.Parameters {
			if p.Value.Name != "page" { // a made-up token is refused
				check(id+" "+p.Value.Name, p.Value.Schema, p.Value.Example)
			}
		}
	}
}
