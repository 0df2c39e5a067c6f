package service

import (
	"encoding/json"
	"unicode/utf8"
)

// Bounds of tags: OCI's, where it has them. They keep what is stored and
// listed with a queue small.
const (
	maxTags       = 64   // freeform ones; defined ones, over all namespaces
	maxTagName    = 100  // characters of a name or a namespace
	maxTagValue   = 256  // characters of a freeform value
	maxDefinedTag = 1024 // octets of a defined value, as JSON
)

// checkTags checks both kinds of tags; nil maps are legal.
//
// Errors: InvalidParameter, naming the map, the tag and the bound.
func checkTags(freeform map[string]string, defined map[string]map[string]json.RawMessage) error {
	if err := checkFreeformTags(freeform); err != nil {
		return err
	}
	return checkDefinedTags(defined)
}

func checkFreeformTags(tags map[string]string) error {
	f := field{name: "freeformTags"}
	if n := len(tags); n > maxTags {
		return f.invalid("has %d tags; it may have %d", n, maxTags)
	}
	for name, value := range tags {
		if err := checkTagName(f, "tag", name); err != nil {
			return err
		}
		if n := utf8.RuneCountInString(value); n > maxTagValue || !utf8.ValidString(value) {
			return f.invalid("tag %q has a value of %d characters; it may have %d", name, n, maxTagValue)
		}
	}
	return nil
}

func checkDefinedTags(tags map[string]map[string]json.RawMessage) error {
	f := field{name: "definedTags"}
	count := 0
	for space, named := range tags {
		if err := checkTagName(f, "namespace", space); err != nil {
			return err
		}
		if count += len(named); count > maxTags || len(tags) > maxTags {
			return f.invalid("has more than %d tags", maxTags)
		}
		for name, value := range named {
			if err := checkTagName(f, "tag", name); err != nil {
				return err
			}
			if n := len(value); n > maxDefinedTag {
				return f.invalid("tag %q has a value of %d octets; it may have %d", name, n, maxDefinedTag)
			}
			if !json.Valid(value) {
				return f.invalid("tag %q has a value that is not JSON", name)
			}
		}
	}
	return nil
}

func checkTagName(f field, what, name string) error {
	n := utf8.RuneCountInString(name)
	if n < 1 || n > maxTagName || !utf8.ValidString(name) {
		return f.invalid("has a %s whose name has %d characters; it must have 1 to %d", what, n, maxTagName)
	}
	return nil
}
