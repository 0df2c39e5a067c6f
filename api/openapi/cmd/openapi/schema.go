package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// schemas collects the schemas of the messages and enums that are used.
type schemas struct {
	components *object
	sent       map[protoreflect.FullName]bool // messages that are in a body of a request
	formed     []string                       // entries of forms that were used
}

// markSent notes which messages bodies of requests are made of.
func (s *schemas) markSent(services []protoreflect.ServiceDescriptor, rules map[protoreflect.FullName]rule) {
	var mark func(m protoreflect.MessageDescriptor)
	mark = func(m protoreflect.MessageDescriptor) {
		if m == nil || s.sent[m.FullName()] {
			return
		}
		s.sent[m.FullName()] = true
		for i := range m.Fields().Len() {
			mark(m.Fields().Get(i).Message())
		}
	}
	for _, service := range services {
		for i := range service.Methods().Len() {
			rpc := service.Methods().Get(i)
			if r := rules[rpc.FullName()]; r.body != "" {
				mark(rpc.Input().Fields().ByName(protoreflect.Name(r.body)).Message())
			}
		}
	}
}

// name is the name of a schema: Queue, or QueueLifecycleState for an enum
// inside Queue.
func name(d protoreflect.Descriptor) string {
	full := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	return strings.ReplaceAll(full, ".", "")
}

func ref(name string) *object {
	return obj("$ref", "#/components/schemas/"+name)
}

// message returns a reference to the schema of the message, which is made at
// its first use.
func (s *schemas) message(m protoreflect.MessageDescriptor) (*object, error) {
	if s.components.has(name(m)) {
		return ref(name(m)), nil
	}
	schema := obj("type", "object", "description", comment(m))
	s.components.set(name(m), schema) // before its fields, which may refer to it
	var must []string
	properties := obj()
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		p, err := s.field(f)
		if err != nil {
			return nil, err
		}
		properties.set(f.JSONName(), p)
		if required(f) {
			must = append(must, f.JSONName())
		}
	}
	if must != nil {
		schema.set("required", must)
	}
	schema.set("properties", properties)
	return ref(name(m)), nil
}

// enum returns a reference to the schema of the enum: its values as they are,
// without the zero value, which is never sent.
func (s *schemas) enum(e protoreflect.EnumDescriptor) *object {
	if s.components.has(name(e)) {
		return ref(name(e))
	}
	var values, lines []string
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		if v.Number() == 0 {
			continue
		}
		values = append(values, string(v.Name()))
		lines = append(lines, fmt.Sprintf("- `%s`: %s", v.Name(), comment(v)))
	}
	s.components.set(name(e), obj(
		"type", "string",
		"description", comment(e)+"\n\n"+strings.Join(lines, "\n"),
		"enum", values,
	))
	return ref(name(e))
}

// field returns the schema of a field, with its description and constraints.
func (s *schemas) field(f protoreflect.FieldDescriptor) (*object, error) {
	schema, err := s.fieldType(f)
	if err != nil {
		return nil, err
	}
	if schema.has("$ref") {
		// Beside a reference OpenAPI 3.0 reads nothing.
		schema = obj("allOf", []any{schema})
	}
	schema.set("description", comment(f))
	constrain(schema, f)
	if err := s.form(schema, f); err != nil {
		return nil, err
	}
	if s.sent[f.ContainingMessage().FullName()] && !required(f) && schema.has("type") && !schema.has("enum") {
		schema.set("nullable", true) // null is absent
		if values, ok := schema.values["additionalProperties"].(*object); ok {
			values.set("nullable", true)
		}
	}
	return schema, nil
}

func (s *schemas) fieldType(f protoreflect.FieldDescriptor) (*object, error) {
	switch {
	case f.IsMap():
		values, err := s.single(f.MapValue())
		if err != nil {
			return nil, err
		}
		return obj("type", "object", "additionalProperties", values), nil
	case f.IsList():
		items, err := s.single(f)
		if err != nil {
			return nil, err
		}
		return obj("type", "array", "items", items), nil
	case f.Name() == "freeform_tags": // a Struct, to tell empty from absent
		return obj("type", "object", "additionalProperties", obj("type", "string")), nil
	case f.Name() == "defined_tags":
		return obj("type", "object", "additionalProperties", obj("type", "object")), nil
	}
	return s.single(f)
}

// single is the schema of one value in our JSON.
func (s *schemas) single(f protoreflect.FieldDescriptor) (*object, error) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return obj("type", "boolean"), nil
	case protoreflect.Int32Kind:
		return obj("type", "integer", "format", "int32"), nil
	case protoreflect.Int64Kind: // a number, not the string of protobuf's JSON
		return obj("type", "integer", "format", "int64"), nil
	case protoreflect.FloatKind:
		return obj("type", "number", "format", "float"), nil
	case protoreflect.StringKind, protoreflect.BytesKind: // octets are text unless contentEncoding says base64
		return obj("type", "string"), nil
	case protoreflect.EnumKind:
		return s.enum(f.Enum()), nil
	case protoreflect.MessageKind:
		switch f.Message().FullName() {
		case "google.protobuf.Timestamp":
			return obj("type", "string", "format", "date-time"), nil
		case "google.protobuf.Struct":
			return obj("type", "object"), nil
		}
		return s.message(f.Message())
	}
	return nil, fmt.Errorf("%s: no schema for the kind %s", f.FullName(), f.Kind())
}
