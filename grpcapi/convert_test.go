package grpcapi

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
)

// What is stored of tags comes back as it was sent.
func TestDefinedTagsRoundTrip(t *testing.T) {
	t.Parallel()
	in := map[string]*structpb.Struct{}
	s, err := structpb.NewStruct(map[string]any{
		"text": "<a&b>", "number": 1.5, "whole": 42.0, "yes": true, "nothing": nil,
		"list": []any{"x", 1.0}, "object": map[string]any{"k": "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	in["ops"] = s
	raw, err := definedTags("definedTags", in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]json.RawMessage{"ops": {
		"text": []byte(`"<a&b>"`), "number": []byte(`1.5`), "whole": []byte(`42`), "yes": []byte(`true`), "nothing": []byte(`null`),
		"list": []byte(`["x",1]`), "object": []byte(`{"k":"v"}`),
	}}
	if diff := cmp.Diff(want, raw); diff != "" {
		t.Fatal(diff)
	}
	out, err := tagStructs(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.AsMap(), out["ops"].AsMap()); diff != "" {
		t.Error(diff)
	}
	if _, err := tagStructs(map[string]map[string]json.RawMessage{"a": {"b": []byte("{")}}); queue.CodeOf(err) != queue.InternalServerError {
		t.Errorf("a damaged tag: %v", err)
	}
}

func TestReplacedTags(t *testing.T) {
	t.Parallel()
	if free, err := replacedFreeformTags("freeformTags", nil); free != nil || err != nil {
		t.Error("absent is not nil")
	}
	if free, err := replacedFreeformTags("freeformTags", &structpb.Struct{}); free == nil || len(free) != 0 || err != nil {
		t.Error("empty is nil")
	}
	if defined, err := replacedDefinedTags("definedTags", nil); defined != nil || err != nil {
		t.Error("absent is not nil")
	}
	if defined, err := replacedDefinedTags("definedTags", &structpb.Struct{}); defined == nil || err != nil {
		t.Error("empty is nil")
	}
	bad := &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNumberValue(1)}}
	if _, err := replacedFreeformTags("freeformTags", bad); queue.MessageOf(err) != "freeformTags.a must be a string" {
		t.Error(err)
	}
	if _, err := replacedDefinedTags("definedTags", bad); queue.MessageOf(err) != "definedTags.a must be an object" {
		t.Error(err)
	}
	nan := map[string]*structpb.Struct{"n": {Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(math.NaN())}}}
	if _, err := definedTags("definedTags", nan); queue.CodeOf(err) != queue.InvalidParameter {
		t.Error(err)
	}
}

// The enums of the proto and the words of the domain are the same words.
func TestEnums(t *testing.T) {
	t.Parallel()
	for _, s := range []queue.LifecycleState{queue.Creating, queue.Updating, queue.Active, queue.Deleting, queue.Deleted, queue.Failed, queue.Inactive} {
		if queueState(s).String() != string(s) || groupState(s).String() != string(s) {
			t.Errorf("state %s is not in the proto", s)
		}
	}
	for _, o := range []queue.OperationType{queue.CreateQueue, queue.UpdateQueue, queue.DeleteQueue, queue.MoveQueue, queue.PurgeQueue} {
		if operationType(&queue.WorkRequest{Operation: o}).String() != string(o) {
			t.Errorf("operation %s is not in the proto", o)
		}
	}
	for _, s := range []queue.WorkStatus{queue.Accepted, queue.InProgress, queue.WorkFailed, queue.Succeeded} {
		if workStatus(&queue.WorkRequest{Status: s}).String() != string(s) {
			t.Errorf("status %s is not in the proto", s)
		}
	}
	for _, a := range []queue.ActionType{queue.ActionCreated, queue.ActionUpdated, queue.ActionDeleted, queue.ActionInProgress} {
		if got := resources(&queue.WorkRequest{Resources: []queue.WorkResource{{Action: a}}}); got[0].ActionType.String() != string(a) {
			t.Errorf("action %s is not in the proto", a)
		}
	}
	if w := word[queuev1.Queue_LifecycleState](nil); w != nil {
		t.Error("absent is a word")
	}
	if w := word(queuev1.SortOrder_SORT_ORDER_UNSPECIFIED.Enum()); w != nil {
		t.Error("unspecified is a word")
	}
	if w := word(queuev1.SortOrder(17).Enum()); w == nil || *w != "17" {
		t.Error("an unknown number is no word to refuse")
	}
}
