package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
)

// methods are all RPCs that REST has.
func methods(t *testing.T) (all []protoreflect.MethodDescriptor) {
	t.Helper()
	for _, file := range []protoreflect.FileDescriptor{queuev1.File_queue_v1_queue_admin_service_proto, queuev1.File_queue_v1_queue_service_proto} {
		ms := file.Services().Get(0).Methods()
		for i := range ms.Len() {
			if m := ms.Get(i); !m.IsStreamingClient() && !m.IsStreamingServer() {
				all = append(all, m)
			}
		}
	}
	if len(all) != len(routes) {
		t.Errorf("%d RPCs, %d routes", len(all), len(routes))
	}
	return all
}

// fill sets every field of m to something that is not its zero value.
func fill(m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *timestamppb.Timestamp:
		v.Seconds, v.Nanos = 1_767_323_045, 6_999_999
		return
	case *structpb.Struct:
		v.Fields = map[string]*structpb.Value{
			"s": structpb.NewStringValue("x"), "n": structpb.NewNumberValue(123456789), "f": structpb.NewNumberValue(-0.5), "b": structpb.NewBoolValue(true), "z": structpb.NewNullValue(),
			"l": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(1), structpb.NewStringValue("y")}}),
			"o": structpb.NewStructValue(&structpb.Struct{}), "e": structpb.NewNumberValue(1e30),
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsMap():
			v := m.Mutable(fd).Map()
			if fd.MapValue().Message() != nil {
				fill(v.Mutable(protoreflect.ValueOfString("k").MapKey()).Message())
			} else {
				v.Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString("v"))
			}
		case fd.IsList() && fd.Message() != nil:
			fill(m.Mutable(fd).List().AppendMutable().Message())
		case fd.IsList():
			m.Mutable(fd).List().Append(protoreflect.ValueOfString("e"))
		case fd.Message() != nil:
			fill(m.Mutable(fd).Message())
		default:
			m.Set(fd, map[protoreflect.Kind]protoreflect.Value{
				protoreflect.StringKind: protoreflect.ValueOfString("s"), protoreflect.BytesKind: protoreflect.ValueOfBytes([]byte("b")),
				protoreflect.BoolKind: protoreflect.ValueOfBool(true), protoreflect.Int32Kind: protoreflect.ValueOfInt32(7), protoreflect.Int64Kind: protoreflect.ValueOfInt64(1 << 52),
				protoreflect.FloatKind: protoreflect.ValueOfFloat32(12.5), protoreflect.EnumKind: protoreflect.ValueOfEnum(1),
			}[fd.Kind()])
		}
	}
}

// Every field of every answer is spelled, and nothing else is.
func TestEveryAnswer(t *testing.T) {
	t.Parallel()
	for _, method := range methods(t) {
		m := newMessage(t, method.Output())
		fill(m)
		var got map[string]any
		out := appendMessage(nil, m)
		if err := json.Unmarshal(out, &got); err != nil {
			t.Errorf("%s: %v: %s", method.Name(), err, out)
		}
		sameFields(t, string(method.Name()), m, got)
	}
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) protoreflect.Message {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mt.New()
}

func sameFields(t *testing.T, path string, m protoreflect.Message, got map[string]any) {
	t.Helper()
	fields := m.Descriptor().Fields()
	if len(got) != fields.Len() {
		t.Errorf("%s: %d fields are spelled of %d: %v", path, len(got), fields.Len(), got)
	}
	for i := range fields.Len() {
		fd := fields.Get(i)
		v, ok := got[fd.JSONName()]
		at := path + "." + fd.JSONName()
		if !ok {
			t.Errorf("%s is not spelled", at)
			continue
		}
		switch {
		case fd.IsMap():
			if _, ok := v.(map[string]any)["k"]; !ok {
				t.Errorf("%s: %v", at, v)
			}
		case fd.IsList():
			if list, ok := v.([]any); !ok || len(list) != 1 {
				t.Errorf("%s: %v", at, v)
			} else if fd.Message() != nil {
				sameFields(t, at, m.Get(fd).List().Get(0).Message(), list[0].(map[string]any))
			}
		case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Timestamp":
			if v != "2026-01-02T03:04:05.006Z" {
				t.Errorf("%s: %v", at, v)
			}
		case fd.Message() != nil:
			sameFields(t, at, m.Get(fd).Message(), v.(map[string]any))
		case fd.Kind() == protoreflect.Int32Kind || fd.Kind() == protoreflect.Int64Kind || fd.Kind() == protoreflect.FloatKind:
			if _, ok := v.(float64); !ok {
				t.Errorf("%s is no number: %v", at, v)
			}
		case fd.Kind() == protoreflect.EnumKind:
			if v != string(fd.Enum().Values().ByNumber(1).Name()) {
				t.Errorf("%s: %v", at, v)
			}
		}
	}
}

// Every field of every body is read, whatever the case of enums; null and
// absent are the same.
func TestEveryBody(t *testing.T) {
	t.Parallel()
	for _, method := range methods(t) {
		fields := method.Input().Fields()
		for i := range fields.Len() {
			d := fields.Get(i).Message()
			if d == nil {
				continue
			}
			want := newMessage(t, d)
			fill(want)
			body := appendMessage(nil, want)
			got := newMessage(t, d)
			if err := unmarshal([]byte(strings.ReplaceAll(string(body), `"NORMAL"`, `"nOrMaL"`)), got.Interface()); err != nil {
				t.Errorf("%s: %v", d.Name(), err)
			}
			// In tags null is absent, and that is all that may differ.
			if again := appendMessage(nil, got); string(again) != strings.ReplaceAll(string(body), `,"z":null`, "") {
				t.Errorf("%s:\nsent %s\nread %s", d.Name(), body, again)
			}
			var nulls []string
			for j := range d.Fields().Len() {
				nulls = append(nulls, fmt.Sprintf("%q:null", d.Fields().Get(j).JSONName()))
			}
			got = newMessage(t, d)
			if err := unmarshal([]byte("{"+strings.Join(nulls, ",")+"}"), got.Interface()); err != nil {
				t.Errorf("%s with nulls: %v", d.Name(), err)
			}
			got.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
				t.Errorf("%s.%s is set by null", d.Name(), fd.Name())
				return true
			})
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    protoreflect.ProtoMessage
		body string
		text string
	}{
		{&queuev1.CreateQueueDetails{}, `{"displayName":7}`, "displayName must be a string, not a number"},
		{&queuev1.CreateQueueDetails{}, `{"retentionInSeconds":"60"}`, "retentionInSeconds must be a number, not a string"},
		{&queuev1.CreateQueueDetails{}, `{"retentionInSeconds":60.0}`, "retentionInSeconds must be a whole number of at most 32 bits"},
		{&queuev1.CreateQueueDetails{}, `{"retentionInSeconds":2147483648}`, "retentionInSeconds must be a whole number of at most 32 bits"},
		{&queuev1.CreateQueueDetails{}, `{"freeformTags":{"a":7}}`, "freeformTags.a must be a string, not a number"},
		{&queuev1.CreateQueueDetails{}, `{"definedTags":{"a":"x"}}`, "definedTags.a must be an object, not a string"},
		{&queuev1.CreateQueueDetails{}, `{"definedTags":{"a":{"b":[{"c":12345678901234567890}]}}}`, "definedTags.a.b[0].c is a number that cannot be kept exactly; write it as a string"},
		{&queuev1.CreateQueueDetails{}, `{"definedTags":{"a":{"b":[` + strings.Repeat("1,", 5000) + `1]}}}`, "definedTags.a.b[4093] stands behind more than 4096 values, too many for tags"},
		{&queuev1.CreateQueueDetails{}, `{"capabilities":["LARGE_MESSAGES"]}`, "capabilities[0] must be an object, not a string"},
		{&queuev1.CreateQueueDetails{}, `{"capabilities":[{"isPrimaryConsumerGroupEnabled":"yes"}]}`, "capabilities[0].isPrimaryConsumerGroupEnabled must be a boolean, not a string"},
		{&queuev1.PurgeQueueDetails{}, `{"purgeType":"SOME"}`, "purgeType must be one of NORMAL, DLQ, BOTH"},
		{&queuev1.PurgeQueueDetails{}, `{"purgeType":"PURGE_TYPE_UNSPECIFIED"}`, "purgeType must be one of NORMAL, DLQ, BOTH"},
		{&queuev1.PurgeQueueDetails{}, `{"purgeType":1}`, "purgeType must be a string, not a number"},
		{&queuev1.PurgeQueueDetails{}, `{"channelIds":["a",null]}`, "channelIds[1] must be a string, not null"},
		{&queuev1.PurgeQueueDetails{}, `{"channelIds":"a"}`, "channelIds must be an array, not a string"},
	} {
		if err := unmarshal([]byte(tt.body), tt.m); queue.CodeOf(err) != queue.InvalidParameter || queue.MessageOf(err) != tt.text {
			t.Errorf("%.100s: %v, want %q", tt.body, err, tt.text)
		}
	}
}

// Mandatory fields are there when they are zero, mandatory lists when they are
// empty; optional ones are left out.
func TestZeroAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    protoreflect.ProtoMessage
		want string
	}{
		{&queuev1.GetMessages{}, `{"messages":[]}`},
		{&queuev1.QueueCollection{}, `{"items":[]}`},
		{&queuev1.ChannelCollection{Items: []string{"a", "b"}}, `{"items":["a","b"]}`},
		{&queuev1.DeleteMessagesResult{Entries: []*queuev1.DeleteMessagesResultEntry{{}, {}}}, `{"serverFailures":0,"clientFailures":0,"entries":[{},{}]}`},
		{&queuev1.Stats{}, `{"visibleMessages":0,"inFlightMessages":0,"sizeInBytes":0,"delayedMessages":0}`},
		{&queuev1.QueueStats{Queue: &queuev1.Stats{}}, `{"queue":{"visibleMessages":0,"inFlightMessages":0,"sizeInBytes":0,"delayedMessages":0}}`},
		{&queuev1.WorkRequest{Status: queuev1.WorkRequest_SUCCEEDED, PercentComplete: 100}, `{"status":"SUCCEEDED","id":"","compartmentId":"","resources":[],"percentComplete":100}`},
		{&queuev1.Queue{}, `{"id":"","compartmentId":"","messagesEndpoint":"","retentionInSeconds":0,"visibilityInSeconds":0,"timeoutInSeconds":0,"deadLetterQueueDeliveryCount":0}`},
		{&queuev1.GetMessage{Id: 1<<53 - 1}, `{"id":9007199254740991,"content":"","receipt":"","deliveryCount":0}`},
	} {
		if got := string(appendMessage(nil, tt.m.ProtoReflect())); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// The control plane as its clients see it.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		do := func(method, path, body string, headers ...string) answer {
			t.Helper()
			return ask(t, h.handler, method, basePath+path, body, headers...)
		}
		made := do("POST", "/queues", `{"displayName":"orders","compartmentId":"ocid1.compartment.x","freeformTags":{"b":"2","a":"1"},"definedTags":{"ops":{"cost":42,"note":"<&>"}}}`)
		id := string(h.queueID("orders"))
		if want := `{"id":"` + id + `","displayName":"orders","lifecycleState":"ACTIVE"}`; made.status != 202 || made.body != want {
			t.Fatalf("%d %s", made.status, made.body)
		}
		work := do("GET", "/workRequests/"+made.header.Get("Opc-Work-Request-Id"), "")
		for _, want := range []string{`"operationType":"CREATE_QUEUE"`, `"status":"SUCCEEDED"`, `"percentComplete":100`, `"timeFinished":"2000-01-01T00:00:00.000Z"`,
			`"resources":[{"entityType":"queue","actionType":"CREATED","identifier":"` + id + `","entityUri":"/20210201/queues/` + id + `"}]`} {
			if work.status != 200 || !strings.Contains(work.body, want) {
				t.Errorf("work request without %s: %d %s", want, work.status, work.body)
			}
		}
		got := do("GET", "/queues/orders", "")
		if want := `{"id":"` + id + `","compartmentId":"ocid1.compartment.x","timeCreated":"2000-01-01T00:00:00.000Z","timeUpdated":"2000-01-01T00:00:00.000Z","lifecycleState":"ACTIVE",` +
			`"messagesEndpoint":"http://localhost:8080","retentionInSeconds":86400,"visibilityInSeconds":30,"timeoutInSeconds":30,"deadLetterQueueDeliveryCount":5,"displayName":"orders",` +
			`"channelConsumptionLimit":100,"freeformTags":{"a":"1","b":"2"},"definedTags":{"ops":{"cost":42,"note":"<&>"}}}`; got.status != 200 || got.body != want {
			t.Errorf("got  %s\nwant %s", got.body, want)
		}
		time.Sleep(time.Second)
		changed := do("PUT", "/queues/"+id, `{"visibilityInSeconds":7,"freeformTags":{},"definedTags":null,"displayName":"renamed"}`, "if-match: "+got.header.Get("Etag"))
		again := do("GET", "/queues/renamed", "")
		if changed.status != 202 || changed.body != "" || changed.header.Get("Content-Type") != "" || changed.header.Get("Content-Length") != "0" || again.header.Get("Etag") == got.header.Get("Etag") ||
			strings.Contains(again.body, "freeformTags") || !strings.Contains(again.body, `"definedTags":{"ops":`) || !strings.Contains(again.body, `"timeUpdated":"2000-01-01T00:00:01.000Z"`) {
			t.Errorf("%d %v %s", changed.status, changed.header, again.body)
		}
		wantError(t, "old etag", do("DELETE", "/queues/"+id, "", "if-match: "+got.header.Get("Etag")), 412, "NoEtagMatch", "")
		wantError(t, "no body", do("PUT", "/queues/"+id, ""), 400, "MissingParameter", "the body is missing")
		wantError(t, "retention", do("POST", "/queues", `{"displayName":"x","retentionInSeconds":5}`), 400, "InvalidParameter", "retentionInSeconds is 5; it must be 10 to 604800")
		wantError(t, "no name", do("POST", "/queues", `{}`), 400, "MissingParameter", "displayName")
		wantError(t, "capability", do("POST", "/queues", `{"displayName":"x","capabilities":[{"type":"FIFO"}]}`), 400, "InvalidParameter", "capabilities[0].type")

		for i := range 3 {
			h.queue(fmt.Sprintf("q%d", i))
		}
		page := do("GET", "/queues?limit=2&sortBy=DISPLAYNAME&sortOrder=desc", "")
		next := page.header.Get("Opc-Next-Page")
		if next == "" || strings.Index(page.body, `"renamed"`) > strings.Index(page.body, `"q2"`) || strings.Contains(page.body, `"q1"`) {
			t.Errorf("%v %s", page.header, page.body)
		}
		page = do("GET", "/queues?limit=2&sortBy=displayName&sortOrder=DESC&page="+next, "")
		if !strings.Contains(page.body, `"q1"`) || !strings.Contains(page.body, `"q0"`) || page.header.Get("Opc-Next-Page") != "" {
			t.Errorf("%v %s", page.header, page.body)
		}
		wantError(t, "page", do("GET", "/queues?page=madeup", ""), 400, "InvalidParameter", "page")
		wantError(t, "state", do("GET", "/queues?lifecycleState=HAPPY", ""), 400, "InvalidParameter", "lifecycleState must be one of CREATING, ")
		wantError(t, "order", do("GET", "/queues?sortOrder=up", ""), 400, "InvalidParameter", "sortOrder must be one of ASC, DESC")
		wantError(t, "limit", do("GET", "/queues?limit=many", ""), 400, "InvalidParameter", "limit must be a whole number")
		if a := do("GET", "/queues?lifecycleState=active&displayName=q1&unknown=x", ""); a.status != 200 || strings.Count(a.body, `"id"`) != 1 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := do("GET", "/queues?displayName=nobody", ""); a.body != `{"items":[]}` {
			t.Errorf("%d %s", a.status, a.body)
		}

		purge := do("POST", "/queues/"+id+"/actions/purge", `{"purgeType":"both","channelIds":["c"]}`)
		move := do("POST", "/queues/"+id+"/actions/changeCompartment", `{"compartmentId":"ocid1.compartment.y"}`)
		gone := do("DELETE", "/queues/"+id, "")
		for _, a := range []answer{purge, move, gone} {
			if a.status != 202 || a.header.Get("Opc-Work-Request-Id") == "" || a.body != "" {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
		}
		if a := do("GET", "/queues/"+id, ""); a.status != 200 || !strings.Contains(a.body, `"lifecycleState":"DELETED"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
		wantError(t, "deleted", do("GET", "/queues/"+id+"/stats", ""), 404, "NotAuthorizedOrNotFound", "")
		for path, want := range map[string]string{"errors": `{"items":[]}`, "logs": `{"items":[{"message":`} {
			if a := do("GET", "/workRequests/"+gone.header.Get("Opc-Work-Request-Id")+"/"+path, ""); a.status != 200 || !strings.HasPrefix(a.body, want) {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if a := do("GET", "/consumerGroups?lifecycleState=ACTIVE", ""); a.status != 200 && a.status != 501 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}
