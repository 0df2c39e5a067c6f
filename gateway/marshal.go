package gateway

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
)

// base64Encoding is the one value of contentEncoding.
const base64Encoding = "base64"

// optionalLists are the lists that OCI leaves out when they are empty; all
// others are mandatory.
var optionalLists = map[protoreflect.Name]bool{"capabilities": true}

// appendMessage appends m by OCI's rules: fields in the order of the proto,
// integers as numbers, instants with three digits, enums as their words, absent
// optional fields and empty maps left out, mandatory ones always there.
// Members of maps are in the order of their names.
func appendMessage(dst []byte, m protoreflect.Message) []byte {
	switch v := m.Interface().(type) {
	case *timestamppb.Timestamp:
		return wire.AppendInstant(dst, queue.InstantOf(v.AsTime()))
	case *structpb.Struct:
		return appendStruct(dst, v)
	}
	o := newObject(dst)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsMap():
			if values := m.Get(fd).Map(); values.Len() > 0 {
				dst = appendMap(o.name(dst, fd.JSONName()), values, fd)
			}
		case fd.IsList():
			if list := m.Get(fd).List(); list.Len() > 0 || !optionalLists[fd.Name()] {
				dst = appendList(o.name(dst, fd.JSONName()), list, fd)
			}
		case fd.HasPresence() && !m.Has(fd):
		case fd.Kind() == protoreflect.EnumKind && m.Get(fd).Enum() == 0:
		case fd.Kind() == protoreflect.BytesKind:
			dst = appendContent(o.name(dst, fd.JSONName()), m.Get(fd).Bytes(), m)
		default:
			dst = appendScalar(o.name(dst, fd.JSONName()), m.Get(fd), fd)
		}
	}
	return o.end(dst)
}

// object writes the brackets, names and commas of an object.
type object struct{ start int }

func newObject(dst []byte) object { return object{len(dst)} }

func (o object) name(dst []byte, name string) []byte {
	if len(dst) == o.start {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	return append(wire.AppendString(dst, name), ':')
}

func (o object) end(dst []byte) []byte {
	if len(dst) == o.start {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// appendContent spells octets as the field contentEncoding beside them says.
func appendContent(dst, octets []byte, m protoreflect.Message) []byte {
	fd := m.Descriptor().Fields().ByName("content_encoding")
	if fd != nil && m.Get(fd).String() == base64Encoding {
		return wire.AppendBase64(dst, octets)
	}
	return wire.AppendString(dst, octets)
}

func appendScalar(dst []byte, v protoreflect.Value, fd protoreflect.FieldDescriptor) []byte {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return wire.AppendString(dst, v.String())
	case protoreflect.BoolKind:
		return strconv.AppendBool(dst, v.Bool())
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return strconv.AppendInt(dst, v.Int(), 10)
	case protoreflect.FloatKind:
		return strconv.AppendFloat(dst, v.Float(), 'f', -1, 32)
	case protoreflect.EnumKind:
		if word := fd.Enum().Values().ByNumber(v.Enum()); word != nil {
			return wire.AppendString(dst, string(word.Name()))
		}
		return strconv.AppendInt(dst, int64(v.Enum()), 10)
	case protoreflect.MessageKind:
		return appendMessage(dst, v.Message())
	}
	panic("the API has no answers with fields of kind " + fd.Kind().String())
}

func appendList(dst []byte, list protoreflect.List, fd protoreflect.FieldDescriptor) []byte {
	dst = append(dst, '[')
	for i := range list.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendScalar(dst, list.Get(i), fd)
	}
	return append(dst, ']')
}

func appendMap(dst []byte, values protoreflect.Map, fd protoreflect.FieldDescriptor) []byte {
	names := make([]string, 0, values.Len())
	for k := range values.Range {
		names = append(names, k.String())
	}
	slices.Sort(names)
	o := newObject(dst)
	for _, name := range names {
		v := values.Get(protoreflect.ValueOfString(name).MapKey())
		dst = appendScalar(o.name(dst, name), v, fd.MapValue())
	}
	return o.end(dst)
}

func appendStruct(dst []byte, s *structpb.Struct) []byte {
	o := newObject(dst)
	for _, name := range slices.Sorted(maps.Keys(s.GetFields())) {
		dst = appendValue(o.name(dst, name), s.Fields[name])
	}
	return o.end(dst)
}

func appendValue(dst []byte, v *structpb.Value) []byte {
	switch v := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return strconv.AppendBool(dst, v.BoolValue)
	case *structpb.Value_NumberValue:
		format := byte('f')
		if a := math.Abs(v.NumberValue); a != 0 && (a < 1e-6 || a >= 1e21) {
			format = 'e'
		}
		return strconv.AppendFloat(dst, v.NumberValue, format, -1, 64)
	case *structpb.Value_StringValue:
		return wire.AppendString(dst, v.StringValue)
	case *structpb.Value_StructValue:
		return appendStruct(dst, v.StructValue)
	case *structpb.Value_ListValue:
		dst = append(dst, '[')
		for i, e := range v.ListValue.GetValues() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e)
		}
		return append(dst, ']')
	default:
		return append(dst, "null"...)
	}
}
