package gateway

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
)

// beginBody enters the object that every body is. A body that is empty or null
// is MissingParameter: null means absent everywhere in the API.
func beginBody(r *wire.Reader) bool {
	if r.Empty() || r.Null() {
		r.Refuse(queue.MissingParameter, "is missing: it must be a JSON object")
		return false
	}
	return r.Object()
}

// unmarshal reads a body into m by OCI's rules: names exactly as the API spells
// them, unknown ones ignored, null is absent, enums in any case, content as
// text (how it is spelled is for the service to undo).
//
// Errors: CannotParseRequest, InvalidParameter naming the field, or
// MissingParameter for a body that is not there.
func unmarshal(body []byte, m proto.Message) error {
	var r wire.Reader
	r.Reset(body)
	if beginBody(&r) {
		readMembers(&r, m.ProtoReflect())
	}
	return r.End()
}

// readMembers reads the rest of an object that has been entered.
func readMembers(r *wire.Reader, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for {
		name, ok := r.Name()
		if !ok {
			return
		}
		fd := fields.ByJSONName(string(name))
		switch {
		case fd == nil:
			r.Skip()
		case r.Null():
		case fd.IsMap():
			readMap(r, m.Mutable(fd).Map(), fd.MapValue())
		case fd.IsList():
			readList(r, m.Mutable(fd).List(), fd)
		case fd.Message() != nil:
			readMessage(r, m.Mutable(fd).Message())
		default:
			if v := readScalar(r, fd); r.Err() == nil {
				m.Set(fd, v)
			}
		}
	}
}

func readMessage(r *wire.Reader, m protoreflect.Message) {
	if s, ok := m.Interface().(*structpb.Struct); ok {
		s.Fields = tagReader{r}.object()
		return
	}
	if r.Object() {
		readMembers(r, m)
	}
}

func readList(r *wire.Reader, list protoreflect.List, fd protoreflect.FieldDescriptor) {
	for ok := r.Array() && r.More(); ok; ok = r.More() {
		if fd.Message() != nil {
			m := list.AppendMutable().Message()
			if !r.Null() { // an absent entry has nothing in it
				readMessage(r, m)
			}
		} else if v := readScalar(r, fd); r.Err() == nil {
			list.Append(v)
		}
	}
}

func readMap(r *wire.Reader, values protoreflect.Map, fd protoreflect.FieldDescriptor) {
	if !r.Object() {
		return
	}
	for {
		name, ok := r.Name()
		if !ok {
			return
		}
		key := protoreflect.ValueOfString(string(name)).MapKey()
		switch {
		case r.Null():
		case fd.Message() != nil:
			readMessage(r, values.Mutable(key).Message())
		default:
			if v := readScalar(r, fd); r.Err() == nil {
				values.Set(key, v)
			}
		}
	}
}

// readScalar reads what is neither list, map nor message. The kinds are those
// of the requests of the API; a test meets them all.
func readScalar(r *wire.Reader, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(r.Text().String())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(r.Text().Append([]byte{}))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.Bool())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(r.Int(32)))
	case protoreflect.EnumKind:
		text := r.Text().String()
		if r.Err() != nil {
			return protoreflect.Value{}
		}
		n, err := enumNumber(r.Path(), fd.Enum(), text)
		if err != nil {
			r.Fail(err)
		}
		return protoreflect.ValueOfEnum(n)
	}
	panic("the API has no requests with fields of kind " + fd.Kind().String())
}

// mostTagValues is how many values a body may have before a value of a defined
// tag, which takes far more memory than its room in the body. The service
// allows far fewer tags.
const mostTagValues = 4096

// tagReader reads an object of any members.
type tagReader struct{ *wire.Reader }

// object reads an object. Members that are null are absent.
func (r tagReader) object() map[string]*structpb.Value {
	fields := map[string]*structpb.Value{}
	if !r.Object() {
		return fields
	}
	for {
		name, ok := r.Name()
		if !ok {
			return fields
		}
		if !r.Null() {
			fields[string(name)] = r.value()
		}
	}
}

func (r tagReader) value() *structpb.Value {
	if r.Values() > mostTagValues {
		r.Refuse(queue.InvalidParameter, "stands behind more than %d values, too many for tags", mostTagValues)
	}
	switch r.Kind() {
	case wire.Bool:
		return structpb.NewBoolValue(r.Bool())
	case wire.Number:
		return structpb.NewNumberValue(r.Float())
	case wire.String:
		return structpb.NewStringValue(r.Text().String())
	case wire.Object:
		return structpb.NewStructValue(&structpb.Struct{Fields: r.object()})
	case wire.Array:
		list := &structpb.ListValue{}
		for ok := r.Array() && r.More(); ok; ok = r.More() {
			list.Values = append(list.Values, r.value())
		}
		return structpb.NewListValue(list)
	default:
		r.Null()
		return structpb.NewNullValue()
	}
}
