package main

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The phrases of a field comment that are schema as well as prose:
//
//	Required.                  the field must be in the request
//	Always present.            a list that an answer never leaves out
//	Range 1 to 43200.          the least and the greatest number
//	Length 1 to 255 characters.
//	1 to 20 items.             how many entries a list may have
//	Default 30.                a number, true, false, "text" or an enum value
//
// A default in words (Default ascending by name) is prose alone.
var (
	requiredPhrase = regexp.MustCompile(`\b(Required|Always present)\.`)
	rangePhrase    = regexp.MustCompile(`\bRange (-?\d+) to (\d+)\b`)
	lengthPhrase   = regexp.MustCompile(`\bLength (\d+) to (\d+) characters\b`)
	itemsPhrase    = regexp.MustCompile(`\b(\d+) to (\d+) items\b`)
	defaultPhrase  = regexp.MustCompile(`\bDefault ("[^"]*"|[A-Za-z0-9_-]+)`)
)

// comment is the comment above a declaration as one line of text.
func comment(d protoreflect.Descriptor) string {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	return strings.Join(strings.Fields(text), " ")
}

// paragraphs is the comment above a declaration with its paragraphs kept.
func paragraphs(d protoreflect.Descriptor) string {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	var all []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, "\n\n")
}

// required reports whether an object always has the field: a request that
// lacks it is refused, an answer never lacks it.
func required(f protoreflect.FieldDescriptor) bool {
	if requiredPhrase.MatchString(comment(f)) {
		return true
	}
	return f.Cardinality() != protoreflect.Repeated && !f.HasOptionalKeyword()
}

// constrain adds to the schema of a field what the phrases of its comment say.
func constrain(schema *object, f protoreflect.FieldDescriptor) {
	text := comment(f)
	bounds := func(phrase *regexp.Regexp, least, greatest string) {
		if m := phrase.FindStringSubmatch(text); m != nil {
			schema.set(least, number(m[1]))
			schema.set(greatest, number(m[2]))
		}
	}
	bounds(lengthPhrase, "minLength", "maxLength")
	bounds(itemsPhrase, "minItems", "maxItems")
	bounds(rangePhrase, "minimum", "maximum")
	if m := defaultPhrase.FindStringSubmatch(text); m != nil {
		if v := defaultValue(f, m[1]); v != nil {
			schema.set("default", v)
		}
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("openapi: a phrase matched what is no number: " + text)
	}
	return n
}

// defaultValue is what the phrase says in the type of the field, or nil if it
// is prose.
func defaultValue(f protoreflect.FieldDescriptor, text string) any {
	switch f.Kind() {
	case protoreflect.BoolKind:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case protoreflect.StringKind:
		if s, err := strconv.Unquote(text); err == nil {
			return s
		}
	case protoreflect.EnumKind:
		if f.Enum().Values().ByName(protoreflect.Name(text)) != nil {
			return text
		}
	}
	return nil
}
