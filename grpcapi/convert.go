package grpcapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/queued-mq/queued/queue"
)

// timestamp is i for the wire; no instant is an absent field.
func timestamp(i queue.Instant) *timestamppb.Timestamp {
	if i == 0 {
		return nil
	}
	return timestamppb.New(i.Time())
}

// stamp is timestamp in memory that is there already.
func stamp(t *timestamppb.Timestamp, i queue.Instant) *timestamppb.Timestamp {
	if i == 0 {
		return nil
	}
	at := i.Time()
	t.Seconds, t.Nanos = at.Unix(), int32(at.Nanosecond())
	return t
}

// optional is v for an optional field: absent if it is the zero value.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// word is an optional enum as the service takes it: its OCI text. UNSPECIFIED
// is absent, and an unknown number is its digits, which the service refuses by
// the field's name.
func word[E interface {
	comparable
	protoreflect.Enum
	fmt.Stringer
}](e *E) *string {
	if e == nil || (*e).Number() == 0 {
		return nil
	}
	s := (*e).String()
	return &s
}

// enum is the value of an OCI text; one that the proto does not have is
// UNSPECIFIED.
func enum[E ~int32, S ~string](values map[string]int32, text S) E { return E(values[string(text)]) }

// definedTags are the tags of a request: namespace, name, value as JSON. No
// namespace is nil.
func definedTags(field string, spaces map[string]*structpb.Struct) (map[string]map[string]json.RawMessage, error) {
	if len(spaces) == 0 {
		return nil, nil
	}
	tags := make(map[string]map[string]json.RawMessage, len(spaces))
	for space, named := range spaces {
		values, err := rawValues(field+"."+space, named)
		if err != nil {
			return nil, err
		}
		tags[space] = values
	}
	return tags, nil
}

// replacedDefinedTags are the tags of an update, where an empty object, unlike
// an absent one, removes all.
func replacedDefinedTags(field string, all *structpb.Struct) (map[string]map[string]json.RawMessage, error) {
	if all == nil {
		return nil, nil
	}
	tags := make(map[string]map[string]json.RawMessage, len(all.GetFields()))
	for space, v := range all.GetFields() {
		named, ok := v.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return nil, queue.Errorf(queue.InvalidParameter, "%s.%s must be an object", field, space)
		}
		values, err := rawValues(field+"."+space, named.StructValue)
		if err != nil {
			return nil, err
		}
		tags[space] = values
	}
	return tags, nil
}

// replacedFreeformTags are the tags of an update, where an empty object, unlike
// an absent one, removes all.
func replacedFreeformTags(field string, all *structpb.Struct) (map[string]string, error) {
	if all == nil {
		return nil, nil
	}
	tags := make(map[string]string, len(all.GetFields()))
	for name, v := range all.GetFields() {
		text, ok := v.GetKind().(*structpb.Value_StringValue)
		if !ok {
			return nil, queue.Errorf(queue.InvalidParameter, "%s.%s must be a string", field, name)
		}
		tags[name] = text.StringValue
	}
	return tags, nil
}

func rawValues(field string, named *structpb.Struct) (map[string]json.RawMessage, error) {
	values := make(map[string]json.RawMessage, len(named.GetFields()))
	for name, v := range named.GetFields() {
		var b bytes.Buffer
		raw, err := v.MarshalJSON() // spacing of its own choice
		if err == nil {
			err = json.Compact(&b, raw)
		}
		if err != nil { // a number that is none
			return nil, queue.Errorf(queue.InvalidParameter, "%s.%s is not a value that JSON has", field, name)
		}
		values[name] = b.Bytes()
	}
	return values, nil
}

// tagStructs are stored tags for the wire.
func tagStructs(tags map[string]map[string]json.RawMessage) (map[string]*structpb.Struct, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	spaces := make(map[string]*structpb.Struct, len(tags))
	for space, named := range tags {
		fields := make(map[string]*structpb.Value, len(named))
		for name, raw := range named {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, fmt.Errorf("read tag %s.%s: %w", space, name, err)
			}
			value, err := structpb.NewValue(v)
			if err != nil {
				return nil, fmt.Errorf("read tag %s.%s: %w", space, name, err)
			}
			fields[name] = value
		}
		spaces[space] = &structpb.Struct{Fields: fields}
	}
	return spaces, nil
}
