package openapi_test

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// TestFieldsOfTheProtos: every message of the proto files that is a schema has
// in it the fields of the message, each of the type that its kind has in our
// JSON, and no other.
func TestFieldsOfTheProtos(t *testing.T) {
	t.Parallel()
	left := load(t).Components.Schemas
	delete(left, "Error") // REST's own
	for _, file := range []protoreflect.FileDescriptor{
		queuev1.File_queue_v1_queue_proto, queuev1.File_queue_v1_consumer_group_proto, queuev1.File_queue_v1_work_request_proto,
		queuev1.File_queue_v1_message_proto, queuev1.File_queue_v1_list_proto,
	} {
		enums(file.Enums(), left)
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			enums(m.Enums(), left)
			ref, ok := left[string(m.Name())]
			if !ok {
				t.Errorf("%s is no schema", m.FullName())
				continue
			}
			delete(left, string(m.Name()))
			if n := m.Fields().Len(); n != len(ref.Value.Properties) {
				t.Errorf("%s has %d fields, its schema %d", m.Name(), n, len(ref.Value.Properties))
			}
			for j := range m.Fields().Len() {
				f := m.Fields().Get(j)
				p := ref.Value.Properties[f.JSONName()]
				if p == nil {
					t.Errorf("%s is not in its schema", f.FullName())
				} else if got, want := typeOf(p), kindOf(f); got != want {
					t.Errorf("%s is documented as %s, want %s", f.FullName(), got, want)
				}
			}
		}
	}
	for name := range left {
		t.Errorf("the schema %s is no message of the proto files", name)
	}
}

func enums(all protoreflect.EnumDescriptors, left openapi3.Schemas) {
	for i := range all.Len() {
		name := strings.TrimPrefix(string(all.Get(i).FullName()), "queue.v1.")
		delete(left, strings.ReplaceAll(name, ".", ""))
	}
}

// kindOf is the type that a field has in our JSON.
func kindOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap(), f.Kind() == protoreflect.MessageKind && f.Message().FullName() == "google.protobuf.Struct":
		return "object"
	case f.IsList():
		return "array"
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.Int32Kind:
		return "integer int32"
	case protoreflect.Int64Kind:
		return "integer int64"
	case protoreflect.FloatKind:
		return "number float"
	case protoreflect.EnumKind:
		return strings.ReplaceAll(strings.TrimPrefix(string(f.Enum().FullName()), "queue.v1."), ".", "")
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Timestamp" {
			return "string date-time"
		}
		return string(f.Message().Name())
	}
	return "string"
}

// typeOf is the type of a property, or the schema that it refers to.
func typeOf(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		return strings.TrimPrefix(ref.Ref, "#/components/schemas/")
	}
	if len(ref.Value.AllOf) > 0 {
		return typeOf(ref.Value.AllOf[0])
	}
	return strings.TrimSpace(strings.Join(*ref.Value.Type, "|") + " " + ref.Value.Format)
}
