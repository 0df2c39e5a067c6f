package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
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

// TestOperations compares the document with the reference's tables of
// operations and with the RPCs of the services.
func TestOperations(t *testing.T) {
	t.Parallel()
	const (
		queue   = "/20210201/queues/{queueId}"
		group   = "/20210201/consumerGroups/{consumerGroupId}"
		request = "/20210201/workRequests/{workRequestId}"
	)
	want := map[string]struct{ at, status, headers string }{
		"ListQueues":             {"GET /20210201/queues", "200", "opc-next-page"},
		"CreateQueue":            {"POST /20210201/queues", "202", "opc-work-request-id"},
		"GetQueue":               {"GET " + queue, "200", "etag"},
		"UpdateQueue":            {"PUT " + queue, "202", "opc-work-request-id"},
		"DeleteQueue":            {"DELETE " + queue, "202", "opc-work-request-id"},
		"ChangeQueueCompartment": {"POST " + queue + "/actions/changeCompartment", "202", "opc-work-request-id"},
		"PurgeQueue":             {"POST " + queue + "/actions/purge", "202", "opc-work-request-id"},
		"ListConsumerGroups":     {"GET /20210201/consumerGroups", "200", "opc-next-page"},
		"CreateConsumerGroup":    {"POST /20210201/consumerGroups", "202", "opc-work-request-id"},
		"GetConsumerGroup":       {"GET " + group, "200", "etag"},
		"UpdateConsumerGroup":    {"PUT " + group, "202", "opc-work-request-id"},
		"DeleteConsumerGroup":    {"DELETE " + group, "202", "opc-work-request-id"},
		"ListWorkRequests":       {"GET /20210201/workRequests", "200", "opc-next-page"},
		"GetWorkRequest":         {"GET " + request, "200", "retry-after"},
		"ListWorkRequestErrors":  {"GET " + request + "/errors", "200", "opc-next-page"},
		"ListWorkRequestLogs":    {"GET " + request + "/logs", "200", "opc-next-page"},
		"PutMessages":            {"POST " + queue + "/messages", "200", ""},
		"GetMessages":            {"GET " + queue + "/messages", "200", ""},
		"UpdateMessage":          {"PUT " + queue + "/messages/{messageReceipt}", "200", ""},
		"DeleteMessage":          {"DELETE " + queue + "/messages/{messageReceipt}", "204", ""},
		"UpdateMessages":         {"POST " + queue + "/messages/actions/updateMessages", "200", ""},
		"DeleteMessages":         {"POST " + queue + "/messages/actions/deleteMessages", "200", ""},
		"GetStats":               {"GET " + queue + "/stats", "200", ""},
		"ListChannels":           {"GET " + queue + "/channels", "200", "opc-next-page"},
	}
	got := operations(t)
	for id, w := range want {
		op, ok := got[id]
		if !ok {
			t.Errorf("%s is missing", id)
			continue
		}
		if op.at != w.at {
			t.Errorf("%s is at %s, want %s", id, op.at, w.at)
		}
		response := op.Responses.Value(w.status)
		if response == nil {
			t.Errorf("%s has no answer %s", id, w.status)
			continue
		}
		headers := slices.DeleteFunc(slices.Sorted(maps.Keys(response.Value.Headers)),
			func(h string) bool { return h == "opc-request-id" })
		if len(headers)+1 != len(response.Value.Headers) {
			t.Errorf("%s answers without opc-request-id", id)
		}
		if h := strings.Join(headers, " "); h != w.headers {
			t.Errorf("%s answers with the headers %q, want %q", id, h, w.headers)
		}
		for _, failure := range []string{"4XX", "5XX"} {
			if op.Responses.Value(failure) == nil {
				t.Errorf("%s has no answer %s", id, failure)
			}
		}
	}

	rpcs := map[string]bool{}
	var streams []string
	for _, services := range []protoreflect.ServiceDescriptors{
		queuev1.File_queue_v1_queue_admin_service_proto.Services(),
		queuev1.File_queue_v1_queue_service_proto.Services(),
	} {
		for i := range services.Len() {
			for j := range services.Get(i).Methods().Len() {
				rpc := services.Get(i).Methods().Get(j)
				if rpc.IsStreamingClient() || rpc.IsStreamingServer() {
					streams = append(streams, string(rpc.Name())) // REST has no streams
					continue
				}
				rpcs[string(rpc.Name())] = true
				if _, ok := got[string(rpc.Name())]; !ok {
					t.Errorf("the RPC %s is not in the document", rpc.FullName())
				}
			}
		}
	}
	for id := range got {
		if !rpcs[id] {
			t.Errorf("the document has %s, which no service has", id)
		}
	}
	if s := strings.Join(streams, " "); s != "ConsumeMessages PublishMessages" {
		t.Errorf("the streams are %q", s)
	}
	for _, name := range streams {
		for schema := range load(t).Components.Schemas {
			if strings.HasPrefix(schema, name) {
				t.Errorf("the document has %s, a message of a stream", schema)
			}
		}
	}
}

// TestHeadersIn checks which operations take which header.
func TestHeadersIn(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"CreateQueue": "opc-retry-token", "CreateConsumerGroup": "opc-retry-token", "PutMessages": "opc-retry-token",
		"UpdateQueue": "if-match", "DeleteQueue": "if-match", "ChangeQueueCompartment": "if-match", "PurgeQueue": "if-match",
		"UpdateConsumerGroup": "if-match", "DeleteConsumerGroup": "if-match",
	}
	for id, op := range operations(t) {
		var got []string
		requestID := false
		for _, p := range op.Parameters {
			switch {
			case p.Value.In == "header" && p.Value.Name == "opc-request-id":
				requestID = true
			case p.Value.In == "header":
				got = append(got, p.Value.Name)
			case p.Value.Name == "retryToken" || p.Value.Name == "ifMatch":
				t.Errorf("%s takes %s in the query", id, p.Value.Name)
			}
		}
		if !requestID {
			t.Errorf("%s takes no opc-request-id", id)
		}
		if g := strings.Join(got, " "); g != want[id] {
			t.Errorf("%s takes the headers %q, want %q", id, g, want[id])
		}
	}
}

// TestRanges pins a few of the schemas that are read out of the comments.
func TestRanges(t *testing.T) {
	t.Parallel()
	tests := []struct{ schema, field, want string }{
		{"CreateQueueDetails", "retentionInSeconds", `{"default":86400,"format":"int32","maximum":604800,"minimum":10,"type":"integer"}`},
		{"CreateQueueDetails", "displayName", `{"maxLength":255,"minLength":1,"type":"string"}`},
		{"UpdateQueueDetails", "freeformTags", `{"additionalProperties":{"type":"string"},"type":"object"}`},
		{"UpdateConsumerGroupDetails", "deadLetterQueueDeliveryCount", `{"format":"int32","maximum":20,"minimum":-1,"type":"integer"}`},
		{"CapabilityDetails", "primaryConsumerGroupDisplayName", `{"default":"Primary Consumer Group","maxLength":255,"minLength":1,"type":"string"}`},
		{"CapabilityDetails", "isPrimaryConsumerGroupEnabled", `{"default":true,"type":"boolean"}`},
		{"PutMessagesDetailsEntry", "content", `{"type":"string"}`},
		{"GetMessage", "id", `{"format":"int64","type":"integer"}`},
		{"GetMessage", "createdAt", `{"format":"date-time","type":"string"}`},
		{"DeleteMessagesDetails", "entries", `{"items":{"$ref":"#/components/schemas/DeleteMessagesDetailsEntry"},"maxItems":20,"minItems":1,"type":"array"}`},
	}
	doc := load(t)
	for _, tt := range tests {
		schema := *doc.Components.Schemas[tt.schema].Value.Properties[tt.field].Value
		if schema.Description == "" {
			t.Errorf("%s.%s has no description", tt.schema, tt.field)
		}
		schema.Description = ""
		if got := marshal(t, &schema); got != tt.want {
			t.Errorf("%s.%s is %s, want %s", tt.schema, tt.field, got, tt.want)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var sorted any // with the names of every object in one order
	if err := json.Unmarshal(b, &sorted); err != nil {
		t.Fatal(err)
	}
	if b, err = json.Marshal(sorted); err != nil {
		t.Fatal(err)
	}
	return string(b)
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
