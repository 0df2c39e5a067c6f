package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// object is a JSON object that keeps the order in which its members were set,
// so that the document reads in the order of the proto files.
type object struct {
	names  []string
	values map[string]any
}

// obj makes an object of alternating names and values.
func obj(pairs ...any) *object {
	o := &object{values: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// set adds the member or, if it is there, gives it a new value in its place.
func (o *object) set(name string, value any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = value
}

// at returns the object under name, making it if there is none.
func (o *object) at(name string) *object {
	if v, ok := o.values[name].(*object); ok {
		return v
	}
	v := obj()
	o.set(name, v)
	return v
}

func (o *object) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.values[name])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
