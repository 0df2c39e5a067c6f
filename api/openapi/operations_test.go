package openapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

const (
	queuePath   = "/20210201/queues/{queueId}"
	groupPath   = "/20210201/consumerGroups/{consumerGroupId}"
	requestPath = "/20210201/workRequests/{workRequestId}"
	listQuery   = "limit page"
	sortQuery   = "limit page sortBy sortOrder"
)

// reference is what section 2 of the reference says of every operation, and
// the contract where it adds something: contentEncoding, the body of the answer
// to CreateQueue, opc-retry-token of PutMessages. opc-request-id goes in and out
// everywhere. Names are sorted.
var reference = []struct {
	id, at      string
	query       string
	headersIn   string
	body        string
	status      string
	answer      string
	headersOut  string
	codesBeside string // those of section 6 that not every operation gives
}{
	{"ListQueues", "GET /20210201/queues", "compartmentId displayName id lifecycleState " + sortQuery, "", "", "200", "QueueCollection", "opc-next-page", ""},
	{"CreateQueue", "POST /20210201/queues", "", "opc-retry-token", "CreateQueueDetails", "202", "CreatedQueue", "opc-work-request-id",
		body + "NotAuthorizedOrNotFound LimitExceeded InvalidatedRetryToken"},
	{"GetQueue", "GET " + queuePath, "", "", "", "200", "Queue", "etag", path},
	{"UpdateQueue", "PUT " + queuePath, "", "if-match", "UpdateQueueDetails", "202", "", "opc-work-request-id", change + body},
	{"DeleteQueue", "DELETE " + queuePath, "", "if-match", "", "202", "", "opc-work-request-id", change},
	{"ChangeQueueCompartment", "POST " + queuePath + "/actions/changeCompartment", "", "if-match", "ChangeQueueCompartmentDetails", "202", "", "opc-work-request-id", change + body},
	{"PurgeQueue", "POST " + queuePath + "/actions/purge", "", "if-match", "PurgeQueueDetails", "202", "", "opc-work-request-id", change + body},

	{"ListConsumerGroups", "GET /20210201/consumerGroups", "displayName id lifecycleState queueId " + sortQuery, "", "", "200", "ConsumerGroupCollection", "opc-next-page", ""},
	{"CreateConsumerGroup", "POST /20210201/consumerGroups", "", "opc-retry-token", "CreateConsumerGroupDetails", "202", "", "opc-work-request-id",
		body + "NotAuthorizedOrNotFound LimitExceeded RelatedResourceNotAuthorizedOrNotFound IncorrectState InvalidatedRetryToken NotAuthorizedOrResourceAlreadyExists"},
	{"GetConsumerGroup", "GET " + groupPath, "", "", "", "200", "ConsumerGroup", "etag", path + "Conflict"},
	{"UpdateConsumerGroup", "PUT " + groupPath, "", "if-match", "UpdateConsumerGroupDetails", "202", "", "opc-work-request-id",
		change + body + "Conflict NotAuthorizedOrResourceAlreadyExists"},
	{"DeleteConsumerGroup", "DELETE " + groupPath, "", "if-match", "", "202", "", "opc-work-request-id", change + "Conflict"},

	{"ListWorkRequests", "GET /20210201/workRequests", "compartmentId workRequestId " + listQuery, "", "", "200", "WorkRequestSummaryCollection", "opc-next-page", ""},
	{"GetWorkRequest", "GET " + requestPath, "", "", "", "200", "WorkRequest", "retry-after", path},
	{"ListWorkRequestErrors", "GET " + requestPath + "/errors", listQuery, "", "", "200", "WorkRequestErrorCollection", "opc-next-page", path},
	{"ListWorkRequestLogs", "GET " + requestPath + "/logs", listQuery, "", "", "200", "WorkRequestLogEntryCollection", "opc-next-page", path},

	{"PutMessages", "POST " + queuePath + "/messages", "", "opc-retry-token", "PutMessagesDetails", "200", "PutMessages", "", message + body + "LimitExceeded InsufficientStorage"},
	{"GetMessages", "GET " + queuePath + "/messages", "channelFilter consumerGroupId contentEncoding limit timeoutInSeconds visibilityInSeconds", "", "", "200", "GetMessages", "cache-control", message + "InsufficientStorage"},
	{"UpdateMessage", "PUT " + queuePath + "/messages/{messageReceipt}", "consumerGroupId", "", "UpdateMessageDetails", "200", "UpdatedMessage", "", message + body},
	{"DeleteMessage", "DELETE " + queuePath + "/messages/{messageReceipt}", "consumerGroupId", "", "", "204", "", "", message},
	{"UpdateMessages", "POST " + queuePath + "/messages/actions/updateMessages", "consumerGroupId", "", "UpdateMessagesDetails", "200", "UpdateMessagesResult", "", message + body},
	{"DeleteMessages", "POST " + queuePath + "/messages/actions/deleteMessages", "consumerGroupId", "", "DeleteMessagesDetails", "200", "DeleteMessagesResult", "", message + body},
	{"GetStats", "GET " + queuePath + "/stats", "channelId consumerGroupId", "", "", "200", "QueueStats", "", message},
	{"ListChannels", "GET " + queuePath + "/channels", "channelFilter consumerGroupId " + listQuery, "", "", "200", "ChannelCollection", "opc-next-page", message},
}

// The codes that operations of one shape have in common.
const (
	every   = "CannotParseRequest InvalidParameter NotAuthenticated NotAuthorized InternalServerError ServiceUnavailable "
	path    = "NotAuthorizedOrNotFound NotFound "
	change  = path + "IncorrectState NoEtagMatch "
	message = path + "IncorrectState TooManyRequests "
	body    = "MissingParameter PayloadTooLarge "
)

func words(text string) []string { return slices.Sorted(slices.Values(strings.Fields(text))) }

// TestReference holds the document against the table above, which must have
// every RPC of the services but the streams.
func TestReference(t *testing.T) {
	t.Parallel()
	got := operations(t)
	for _, want := range reference {
		op, ok := got[want.id]
		if !ok {
			t.Errorf("%s is missing", want.id)
			continue
		}
		delete(got, want.id)
		t.Run(want.id, func(t *testing.T) {
			if op.at != want.at {
				t.Errorf("it is at %s, want %s", op.at, want.at)
			}
			same(t, "parameters in the query", parameters(op.Operation, "query"), words(want.query))
			same(t, "headers in", parameters(op.Operation, "header"), words(want.headersIn+" opc-request-id"))
			in := ""
			if op.RequestBody != nil {
				in = schemaName(op.RequestBody.Value.Content)
				if !op.RequestBody.Value.Required {
					t.Error("the body may be left out")
				}
			}
			if in != want.body {
				t.Errorf("the body is %q, want %q", in, want.body)
			}
			response := op.Responses.Value(want.status)
			if response == nil {
				t.Fatalf("there is no answer %s", want.status)
			}
			if out := schemaName(response.Value.Content); out != want.answer {
				t.Errorf("the body of the answer is %q, want %q", out, want.answer)
			}
			same(t, "headers out", sortedKeys(response.Value.Headers), words(want.headersOut+" opc-request-id"))
			failures(t, op.Operation, want.status, words(every+want.codesBeside))
		})
	}
	for id := range got {
		t.Errorf("the document has %s, which the reference has not", id)
	}
}

// failures compares the codes of the answers that are no success. Which status
// each must have is for the gateway's own test.
func failures(t *testing.T, op *openapi3.Operation, success string, want []string) {
	t.Helper()
	var codes []string
	for status, response := range op.Responses.Map() {
		if status == success {
			continue
		}
		media := response.Value.Content["application/json"]
		if media == nil || len(media.Schema.Value.AllOf) != 2 || media.Schema.Value.AllOf[0].Ref != "#/components/schemas/Error" {
			t.Errorf("the body of %s is no Error", status)
			continue
		}
		for _, code := range media.Schema.Value.AllOf[1].Value.Properties["code"].Value.Enum {
			codes = append(codes, code.(string))
		}
		headers := []string{"opc-request-id"}
		if status == "429" || status == "503" || status == "507" {
			headers = append(headers, "retry-after")
		}
		same(t, "headers of "+status, sortedKeys(response.Value.Headers), headers)
	}
	slices.Sort(codes)
	same(t, "codes", codes, want)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are %v, want %v", what, got, want)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// parameters are the names of those of one kind, sorted.
func parameters(op *openapi3.Operation, in string) []string {
	var names []string
	for _, p := range op.Parameters {
		if p.Value.In == in {
			names = append(names, p.Value.Name)
		}
	}
	slices.Sort(names)
	return names
}

// schemaName is the component that a body is, "" if there is no body.
func schemaName(content openapi3.Content) string {
	media := content["application/json"]
	if media == nil {
		return ""
	}
	return strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")
}

// TestStreams: REST has every RPC but the streams, and none of their messages.
func TestStreams(t *testing.T) {
	t.Parallel()
	got := operations(t)
	var streams []string
	for _, services := range []protoreflect.ServiceDescriptors{
		queuev1.File_queue_v1_queue_admin_service_proto.Services(),
		queuev1.File_queue_v1_queue_service_proto.Services(),
	} {
		for i := range services.Len() {
			for j := range services.Get(i).Methods().Len() {
				rpc := services.Get(i).Methods().Get(j)
				if rpc.IsStreamingClient() || rpc.IsStreamingServer() {
					streams = append(streams, string(rpc.Name()))
				} else if _, ok := got[string(rpc.Name())]; !ok {
					t.Errorf("the RPC %s is not in the document", rpc.FullName())
				} else {
					delete(got, string(rpc.Name()))
				}
			}
		}
	}
	for id := range got {
		t.Errorf("the document has %s, which no service has", id)
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

// TestLinks: what a link fills in is a parameter of the operation it leads to.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := operations(t)
	reached := map[string]bool{}
	for id, op := range all {
		for status, response := range op.Responses.Map() {
			for name, link := range response.Value.Links {
				to, ok := all[link.Value.OperationID]
				if !ok {
					t.Errorf("%s %s: the link %s leads to no operation", id, status, name)
					continue
				}
				reached[link.Value.OperationID] = true
				for parameter := range link.Value.Parameters {
					if !slices.ContainsFunc(to.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == parameter }) {
						t.Errorf("%s %s: the link %s fills in %s, which is no parameter", id, status, name, parameter)
					}
				}
			}
		}
	}
	for id, op := range all {
		if strings.Contains(op.at, "{") && !reached[id] {
			t.Errorf("no link leads to %s", id)
		}
	}
}
