package openapi_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestModels holds every field of every schema against testdata/models.txt,
// which is section 3 of the reference with the contract's additions: a line for
// each field, "!" where it is mandatory, its type, and then what it may hold:
// range or length, default, form, "null" where null is taken for absent.
func TestModels(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/models.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	schemas := load(t).Components.Schemas
	for _, name := range sortedKeys(schemas) {
		s := schemas[name].Value
		if len(s.Enum) > 0 {
			fmt.Fprintf(&b, "%s: %v\n\n", name, s.Enum)
			continue
		}
		fmt.Fprintf(&b, "%s\n", name)
		for _, field := range sortedKeys(s.Properties) {
			must := ""
			if slices.Contains(s.Required, field) {
				must = "!"
			}
			fmt.Fprintf(&b, "  %s%s %s\n", field, must, spell(s.Properties[field]))
		}
		fmt.Fprintln(&b)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the schemas are not those of testdata/models.txt:\n%s", difference(string(want), got))
	}
}

// spell is a schema in one line.
func spell(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		return strings.TrimPrefix(ref.Ref, "#/components/schemas/")
	}
	s := ref.Value
	if len(s.AllOf) > 0 {
		return spell(s.AllOf[0])
	}
	kind := strings.Join(*s.Type, "|")
	switch {
	case s.Format != "":
		kind = s.Format
	case kind == "array":
		kind = "list of (" + spell(s.Items) + ")"
	case kind == "object" && s.AdditionalProperties.Schema != nil:
		kind = "map of (" + spell(s.AdditionalProperties.Schema) + ")"
	}
	text := []string{kind}
	if s.Min != nil || s.Max != nil {
		text = append(text, bounds(s.Min, s.Max))
	}
	if s.MinLength > 0 || s.MaxLength != nil {
		text = append(text, bounds(&s.MinLength, s.MaxLength)+" characters")
	}
	if s.MaxItems != nil {
		text = append(text, bounds(&s.MinItems, s.MaxItems)+" items")
	}
	if s.MaxProps != nil {
		text = append(text, bounds(&s.MinProps, s.MaxProps)+" members")
	}
	if s.Pattern != "" {
		text = append(text, s.Pattern)
	}
	if len(s.Enum) > 0 {
		text = append(text, fmt.Sprint(s.Enum))
	}
	if s.Default != nil {
		text = append(text, fmt.Sprintf("default %v", s.Default))
	}
	if s.Nullable {
		text = append(text, "null")
	}
	return strings.Join(text, ", ")
}

func bounds[N uint64 | float64](least, greatest *N) string {
	text := func(n *N) string {
		if n == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", float64(*n))
	}
	return text(least) + "-" + text(greatest)
}

// difference is the lines that only one of two texts has.
func difference(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}
