package filter_test

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
	"pgregory.net/rapid"
)

// expr is a filter as a tree, printed and judged in the plainest way there is:
// maps, regular expressions and fractions instead of digits and jumps.
type expr struct {
	op     string // "has", "NOT", "AND", "OR", "IN", "BETWEEN" or a sign
	name   string
	values []value
	kids   []expr
}

type value struct {
	text   string
	number bool
}

var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// compare is how the property stands to v; ok is false if it does not.
func compare(property string, v value) (c int, ok bool) {
	if !v.number {
		return slices.Compare([]byte(property), []byte(v.text)), true
	}
	if !decimal.MatchString(property) {
		return 0, false
	}
	return fraction(property).Cmp(fraction(v.text)), true
}

func fraction(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("no fraction: " + text)
	}
	return r
}

func (e expr) eval(m map[string]string) bool {
	property, found := m[e.name]
	switch e.op {
	case "NOT":
		return !e.kids[0].eval(m)
	case "AND":
		return !slices.ContainsFunc(e.kids, func(k expr) bool { return !k.eval(m) })
	case "OR":
		return slices.ContainsFunc(e.kids, func(k expr) bool { return k.eval(m) })
	case "has":
		return found
	case "IN":
		return found && slices.ContainsFunc(e.values, func(v value) bool {
			c, ok := compare(property, v)
			return ok && c == 0
		})
	case "BETWEEN":
		low, ok := compare(property, e.values[0])
		high, _ := compare(property, e.values[1])
		return found && ok && low >= 0 && high <= 0
	}
	c, ok := compare(property, e.values[0])
	return found && ok && map[string]bool{
		"=": c == 0, "!=": c != 0, "<>": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0,
	}[e.op]
}

// print writes e with parentheses where they are needed, and at times where
// they are not. The looser its surroundings bind, the lower is outer.
func (e expr) print(t *rapid.T, outer int) string {
	blank := func() string { return rapid.SampledFrom([]string{" ", "  ", "\n", "\t "}).Draw(t, "blank") }
	maybe := func() string { return rapid.SampledFrom([]string{"", "", " "}).Draw(t, "maybe") }
	word := func(w string) string {
		return rapid.SampledFrom([]string{w, strings.ToLower(w), w[:1] + strings.ToLower(w[1:])}).Draw(t, "word")
	}
	binds := map[string]int{"OR": 1, "AND": 2, "NOT": 3}[e.op]
	var s string
	switch e.op {
	case "NOT":
		s = word("NOT") + blank() + e.kids[0].print(t, 3)
	case "AND", "OR":
		for i, k := range e.kids {
			if i > 0 {
				s += blank() + word(e.op) + blank()
			}
			s += k.print(t, binds+1)
		}
	case "has":
		binds, s = 4, ":"+e.name
	case "IN":
		binds, s = 4, ":"+e.name+blank()+word("IN")+maybe()+"("
		for i, v := range e.values {
			if i > 0 {
				s += maybe() + ","
			}
			s += maybe() + v.print(t)
		}
		s += maybe() + ")"
	case "BETWEEN":
		binds = 4
		s = ":" + e.name + blank() + word("BETWEEN") + blank() + e.values[0].print(t) + blank() + word("AND") + blank() + e.values[1].print(t)
	default:
		binds, s = 4, ":"+e.name+maybe()+e.op+maybe()+e.values[0].print(t)
	}
	if binds < outer || rapid.IntRange(0, 9).Draw(t, "more") == 0 {
		s = "(" + maybe() + s + maybe() + ")"
	}
	return s
}

func (v value) print(t *rapid.T) string {
	if v.number {
		return v.text
	}
	q := rapid.SampledFrom([]string{`"`, `'`}).Draw(t, "quote")
	s := strings.NewReplacer(`\`, `\\`, q, `\`+q).Replace(v.text)
	if rapid.Bool().Draw(t, "escaped") {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\n", `\n`), "\t", `\t`)
	}
	return q + s + q
}

var (
	names   = rapid.SampledFrom([]string{"a", "b", "A", "a.b", "and", "x-1"})
	numbers = rapid.OneOf(
		rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "10e-1", "+1", "-1", "2", "10", ".5", "5.", "0.50", "1e2", "100", "9007199254740993", "9007199254740992"}),
		rapid.StringMatching(`[+-]?[0-9]{1,4}(\.[0-9]{0,3})?([eE][+-]?[0-9])?`),
	)
	texts = rapid.OneOf(
		rapid.SampledFrom([]string{"", "x", "y", "xx", "X", "é", `"`, `'`, `\`, "\n", "\t", "it's", ")", "NaN", "1e", "0x1", " 1"}),
		rapid.StringN(0, 6, -1),
	)
	values = rapid.Custom(func(t *rapid.T) value {
		if rapid.Bool().Draw(t, "number") {
			return value{numbers.Draw(t, "value"), true}
		}
		return value{rapid.OneOf(texts, numbers).Draw(t, "value"), false}
	})
)

// exprs draws a tree of at most the depth.
func exprs(depth int) *rapid.Generator[expr] {
	return rapid.Custom(func(t *rapid.T) expr {
		kinds := []string{"has", "=", "!=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN"}
		if depth > 0 {
			kinds = append(kinds, "NOT", "AND", "OR", "NOT", "AND", "OR", "NOT", "AND", "OR")
		}
		e := expr{op: rapid.SampledFrom(kinds).Draw(t, "op")}
		switch e.op {
		case "NOT":
			e.kids = []expr{exprs(depth-1).Draw(t, "kid")}
		case "AND", "OR":
			e.kids = rapid.SliceOfN(exprs(depth-1), 2, 3).Draw(t, "kids")
		default:
			e.name = names.Draw(t, "name")
			switch e.op {
			case "has":
			case "IN":
				e.values = rapid.SliceOfN(values, 1, 3).Draw(t, "values")
			case "BETWEEN":
				low := values.Draw(t, "low")
				high := values.Filter(func(v value) bool { return v.number == low.number }).Draw(t, "high")
				e.values = []value{low, high}
			default:
				e.values = []value{values.Draw(t, "value")}
			}
		}
		return e
	})
}

// TestModel compares with the tree that a filter was printed from.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// At most 9 leaves of 3 values and 5 levels: below both limits.
		e := exprs(2).Draw(t, "expr")
		text := e.print(t, 0)
		f, err := filter.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		for range 8 {
			m := rapid.MapOfN(names, rapid.OneOf(numbers, texts), 0, 4).Draw(t, "message")
			var ps []queue.Property
			for name, value := range m {
				ps = append(ps, queue.Property{Name: name, Value: value})
			}
			if got, want := f.Match(ps), e.eval(m); got != want {
				t.Fatalf("%q on %q: %v, want %v", text, m, got, want)
			}
		}
	})
}

// TestNumbers compares the order of decimals with that of fractions, where
// they are close to one another or to a power of ten.
func TestNumbers(t *testing.T) {
	t.Parallel()
	digits := rapid.StringMatching(`[+-]?(0{0,2}[0190]{1,4}(\.[0190]{0,4})?|\.[0190]{1,4})([eE][+-]?0?[0-3])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := digits.Draw(t, "property"), digits.Draw(t, "literal")
		c := fraction(a).Cmp(fraction(b))
		for op, want := range map[string]bool{"<": c < 0, "=": c == 0, ">": c > 0} {
			text := fmt.Sprintf(":a %s %s", op, b)
			f, err := filter.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Match([]queue.Property{{Name: "a", Value: a}}); got != want {
				t.Fatalf("%q on %q: %v, want %v", text, a, got, want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", " ", ":region", `:type = "order"`, ":amount > 100", fiveComparisons,
		`NOT (:a != 'it\'s' OR :b <> "\\\n") and :c <= -1.5e+3`,
		`:a IN ("x", 'y', 3) OR NOT :b BETWEEN 1 AND 3 AND :c`,
		":a = 1AND", ":a == 1", ":a = 'x", `:a = "\q"`, ":a BETWEEN 1 AND 'x'", ":a IN ()",
		strings.Repeat("(", 17), strings.Repeat("NOT ", 16) + ":a", "\xff", ":a = '\u00e9\x00'",
	} {
		f.Add(text, "1", "x")
		f.Add(text, "", "9007199254740993")
	}
	f.Fuzz(func(t *testing.T, text, one, other string) {
		messages := [][]queue.Property{
			nil,
			message("a", one, "b", other),
			message("a", other, "amount", one, "region", other, "type", one),
			message("c", one, "content-encoding", other, "", one),
		}
		parsed, err := filter.Parse(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		if parsed.String() != text {
			t.Fatalf("String() = %q, want %q", parsed.String(), text)
		}
		again, err := filter.Parse(text)
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		negated, notErr := filter.Parse("NOT (" + text + ")")
		both, bothErr := filter.Parse("(" + text + ")\nAND NOT NOT:a OR (" + text + ")")
		for _, m := range messages {
			got := parsed.Match(m)
			if again.Match(m) != got {
				t.Fatalf("%q on %q: %v, and then not", text, m, got)
			}
			if parsed.All() {
				if !got {
					t.Fatalf("blank, and refuses %q", m)
				}
				continue
			}
			if notErr != nil {
				overLimit(t, notErr)
			} else if negated.Match(m) == got {
				t.Fatalf("%q on %q: %v, and its NOT too", text, m, got)
			}
			if bothErr != nil {
				overLimit(t, bothErr)
			} else if both.Match(m) != got {
				t.Fatalf("%q on %q: %v, but x AND y OR x is not", text, m, got)
			}
		}
	})
}

// What may be wrong with a filter made of one that is right.
func overLimit(t *testing.T, err error) {
	t.Helper()
	if m := queue.MessageOf(err); !strings.Contains(m, "levels of nesting") && !strings.Contains(m, "characters") {
		t.Fatal(err)
	}
}

var errorForm = regexp.MustCompile(`^filter: position ([0-9]+): expected .+, found .+$`)

// checkError checks that err is one for its reader: of the one kind, on one
// line, short, and with a place in the text.
func checkError(t *testing.T, text string, err error) {
	t.Helper()
	m := queue.MessageOf(err)
	form := errorForm.FindStringSubmatch(m)
	if queue.CodeOf(err) != queue.InvalidParameter || form == nil || len(m) > 250 || strings.Contains(m, "\n") {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	var at int
	if _, err := fmt.Sscan(form[1], &at); err != nil || at < 1 || at > min(len([]rune(text)), filter.MaxCharacters)+1 {
		t.Fatalf("Parse(%q): %v: no such place", text, err)
	}
}
