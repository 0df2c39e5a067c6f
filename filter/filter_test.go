package filter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
)

func parse(t testing.TB, text string) filter.Filter {
	t.Helper()
	f, err := filter.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return f
}

// message makes properties of names and values in turn.
func message(pairs ...string) []queue.Property {
	var ps []queue.Property
	for pair := range slices.Chunk(pairs, 2) {
		ps = append(ps, queue.Property{Name: pair[0], Value: pair[1]})
	}
	return ps
}

func TestMatch(t *testing.T) {
	t.Parallel()
	type msg = []queue.Property
	is := func(value string) msg { return message("a", value) }
	for _, tt := range []struct {
		filter   string
		why      string
		yes, not []msg
	}{
		{"", "no filter", []msg{nil, is("1")}, nil},
		{" \t\r\n", "blank is no filter", []msg{nil, is("1")}, nil},

		{":a", "there, whatever its value", []msg{is(""), is("0"), is("false"), message("b", "1", "a", "x")}, []msg{nil, message("A", "1"), message("aa", "1"), message("", "1")}},
		{"NOT :a", "not there", []msg{nil, message("b", "1")}, []msg{is(""), is("0")}},
		{":content-encoding", "no custom property", nil, []msg{nil, message("content-encoding", "base64")}},
		{":content-encoding = \"base64\"", "no custom property", nil, []msg{message("content-encoding", "base64")}},
		{":and OR :Not", "keywords are names behind a colon", []msg{message("and", ""), message("Not", "")}, []msg{nil, message("AND", "", "not", "")}},
		{":a-1.b_C", "the longest name", []msg{message("a-1.b_C", "")}, []msg{is("")}},

		{`:a = "order"`, "text", []msg{is("order")}, []msg{nil, is("Order"), is("order "), is(""), is("orders")}},
		{`:a='order'`, "other quotes, no blanks", []msg{is("order")}, []msg{nil, is("orders")}},
		{`:a = ""`, "empty text", []msg{is("")}, []msg{nil, is("x")}},
		{`:a != "x"`, "absent is not different", []msg{is("y"), is(""), is("X")}, []msg{nil, is("x")}},
		{`:a <> "x"`, "absent is not different", []msg{is("y"), is("")}, []msg{nil, is("x")}},
		{`NOT :a = "x"`, "but it is not the same either", []msg{nil, is("y")}, []msg{is("x")}},
		{`:a < "b"`, "octets", []msg{is("a"), is(""), is("B"), is("azzz"), is("10")}, []msg{nil, is("b"), is("ba"), is("ä")}},
		{`:a <= "b"`, "octets", []msg{is("a"), is("b")}, []msg{nil, is("b "), is("c")}},
		{`:a > "b"`, "octets", []msg{is("ba"), is("c"), is("ä")}, []msg{nil, is("b"), is("a")}},
		{`:a >= "b"`, "octets", []msg{is("b"), is("ba")}, []msg{nil, is("a"), is("B")}},
		{`:a > "10"`, "digits in quotes are text", []msg{is("9"), is("100")}, []msg{is("1"), is("0999")}},
		{`:a >= "2026-01-01T00:00:00Z"`, "instants of one width", []msg{is("2026-01-01T00:00:00Z"), is("2027-01-01T00:00:00Z")}, []msg{is("2025-12-31T23:59:59Z")}},
		{":a > '\uffff'", "code points, not UTF-16", []msg{is("\U0001F600")}, []msg{is("\uffff"), is("\ufffe")}},
		{":a = '\u00e9'", "nothing is normalised", []msg{is("é")}, []msg{is("e\u0301"), is("É")}},
		{`:a = "1"`, "text is not read as a number", []msg{is("1")}, []msg{is("1.0"), is("+1")}},

		{`:a = "\"\'\\\n\r\t"`, "all escapes", []msg{is("\"'\\\n\r\t")}, []msg{is(`\"`)}},
		{`:a = '"' OR :a = "'"`, "the other quote as it is", []msg{is(`"`), is("'")}, []msg{is(`\"`)}},
		{":a = \"x\n\ty\"", "line ends as they are", []msg{is("x\n\ty")}, []msg{is("x y")}},
		{`:a = "\\"`, "a backslash before the end", []msg{is(`\`)}, []msg{is(`\\`)}},
		{`:a = "x\ty\tz"`, "text between escapes", []msg{is("x\ty\tz")}, []msg{is("xyz")}},
		{`:a = ") OR :b"`, "signs in text", []msg{is(") OR :b")}, []msg{message("b", "")}},

		{":a = 1", "a number, however spelled", []msg{is("1"), is("1.0"), is("+1"), is("01"), is("1."), is("10e-1"), is("0.1E+1"), is(".01e2"), is("1000e-3")}, []msg{nil, is("-1"), is("1.0001"), is("11"), is("")}},
		{":a != 1", "only numbers are different", []msg{is("2"), is("-1"), is("0")}, []msg{nil, is("1"), is("1.00"), is("x"), is(""), is("NaN")}},
		{":a >= 0 OR :a < 0", "no numbers", nil, []msg{is(""), is("x"), is("NaN"), is("Inf"), is("-inf"), is("infinity"), is("0x10"), is("1_000"), is("1,000"), is(" 1"), is("1 "), is("1\n"), is("1e"), is("1e+"), is("e5"), is("."), is("+"), is("--1"), is("1.2.3"), is("1e1.5"), is("1e1e1"), is("1f"), is("٣"), is("0b1"), is("1e1000000000"), is("1e-1000000000"), is(strings.Repeat("1", 129))}},
		{":a >= 0 OR :a < 0", "numbers", []msg{is("0"), is("-0"), is(".5"), is("5."), is("-.5e-7"), is("1e999999999"), is("1e-999999999"), is("1e000000000005"), is(strings.Repeat("1", 128))}, nil},
		{":a = 9007199254740993", "beyond what a float64 tells apart", []msg{is("9007199254740993"), is("9007199254740993.0")}, []msg{is("9007199254740992"), is("9007199254740994")}},
		{":a = 0.1", "no binary fraction", []msg{is("0.1"), is("1e-1")}, []msg{is("0.1000000000000000055511151231257827")}},
		{":a > 1e400", "beyond the largest float64", []msg{is("1e401"), is("2e400")}, []msg{is("1e400"), is("-1e500"), is("Inf")}},
		{":a = 0", "zero has no sign", []msg{is("0"), is("-0"), is("+0.00"), is("0e5"), is("00")}, []msg{is("1e-400"), is("-1e-400")}},
		{":a = -0", "zero has no sign", []msg{is("0"), is("-0")}, []msg{is("1")}},
		{":a < -1.5", "below zero", []msg{is("-1.51"), is("-2"), is("-15"), is("-1e9")}, []msg{is("-1.5"), is("-1.49"), is("0"), is("1.6")}},
		{":a>+5", "sign at an operator", []msg{is("5.1"), is("60")}, []msg{is("5"), is("-6")}},
		{":a<.5", "no digit before the point", []msg{is("0.4"), is("-1")}, []msg{is("0.5"), is("0.50")}},
		{":a >= 10", "not by text", []msg{is("10"), is("11"), is("100")}, []msg{is("9"), is("9.9")}},
		{":a <= 0.05", "zeros behind the point", []msg{is("0.05"), is("0.0500"), is("0.049"), is("5e-2")}, []msg{is("0.5"), is("0.051")}},

		{":a OR :b AND :c", "AND before OR", []msg{is(""), message("b", "", "c", "")}, []msg{message("b", ""), message("c", "")}},
		{"(:a OR :b) AND :c", "parentheses first", []msg{message("b", "", "c", "")}, []msg{is(""), message("a", "", "b", "")}},
		{"NOT :a AND :b", "NOT before AND", []msg{message("b", "")}, []msg{nil, message("a", "", "b", "")}},
		{"NOT :a OR :b", "NOT before OR", []msg{nil, message("a", "", "b", "")}, []msg{is("")}},
		{"NOT (:a OR :b)", "NOT of a whole", []msg{nil}, []msg{is(""), message("b", "")}},
		{"NOT NOT :a", "twice", []msg{is("")}, []msg{nil}},
		{"not:a aNd(not(:b))oR:c", "any case, few blanks", []msg{nil, message("a", "", "c", "")}, []msg{is(""), message("b", "")}},
		{`:a="x"AND:b=1`, "a string ends at its quote", []msg{message("a", "x", "b", "1")}, []msg{is("x")}},
		{":a\n=\t1\rAND\n:b", "any blanks", []msg{message("a", "1", "b", "")}, []msg{is("1")}},
		{"((:a))", "more than needed", []msg{is("")}, []msg{nil}},
		{`NOT :a != 1`, "NOT of a comparison", []msg{nil, is("1"), is("x")}, []msg{is("2")}},
		{":a = 1 AND :b = 2 AND :a = '1' AND :b < 3", "names in turn", []msg{message("a", "1", "b", "2")}, []msg{message("a", "1.0", "b", "2"), message("a", "2", "b", "1")}},

		{`:a IN ("x", 'y', 3)`, "one of them, each by its kind", []msg{is("x"), is("y"), is("3"), is("3.0")}, []msg{nil, is("X"), is(""), is("z"), is("33")}},
		{`:a in(1)`, "one alone", []msg{is("1")}, []msg{nil, is("2")}},
		{`NOT :a IN (1, 2)`, "true where absent", []msg{nil, is("3"), is("x")}, []msg{is("1"), is("2")}},
		{`:a IN (1) AND :b`, "goes on behind it", []msg{message("a", "1", "b", "")}, []msg{is("1"), message("b", "")}},
		{`:a BETWEEN 1 AND 3`, "both ends included", []msg{is("1"), is("2.5"), is("3.0")}, []msg{nil, is("0.99"), is("3.01"), is("x"), is("")}},
		{`:a between 'b' and 'd'`, "text", []msg{is("b"), is("czz"), is("d")}, []msg{nil, is("a"), is("da"), is("2")}},
		{`:a BETWEEN 3 AND 1`, "nothing is between", nil, []msg{nil, is("1"), is("2"), is("3")}},
		{`:a BETWEEN 1 AND 3 AND :b`, "the second AND joins", []msg{message("a", "2", "b", "")}, []msg{is("2"), message("a", "4", "b", "")}},
		{`NOT :a BETWEEN 1 AND 3 OR :b`, "NOT of a BETWEEN", []msg{nil, is("4"), message("a", "2", "b", "")}, []msg{is("2")}},
	} {
		f := parse(t, tt.filter)
		for _, m := range tt.yes {
			if !f.Match(m) {
				t.Errorf("%s: %q refuses %q", tt.why, tt.filter, m)
			}
		}
		for _, m := range tt.not {
			if f.Match(m) {
				t.Errorf("%s: %q accepts %q", tt.why, tt.filter, m)
			}
		}
		if got := f.String(); got != tt.filter {
			t.Errorf("String() = %q, want %q", got, tt.filter)
		}
		if got, want := f.All(), strings.TrimSpace(tt.filter) == ""; got != want {
			t.Errorf("%q: All() = %v, want %v", tt.filter, got, want)
		}
	}
}

func TestZero(t *testing.T) {
	t.Parallel()
	var f filter.Filter
	if !f.All() || !f.Match(nil) || !f.Match(message("a", "1")) || f.String() != "" {
		t.Error("the zero Filter does not accept everything")
	}
}

// Not parallel: allocations of other tests would be counted too.
func TestMatchAllocatesNothing(t *testing.T) {
	m := eight()
	for _, tt := range []struct {
		filter string
		want   bool
	}{
		{"", true},
		{fiveComparisons, true},
		{`:region = "us" OR :missing = 1 OR NOT :tries != 2`, true},
		{`:customer > 5`, false}, // is no number
		{`:customer > "\"" AND :customer <= "zz"`, true},
		{`:amount BETWEEN 1e2 AND 1e3 AND :tries IN (1, 2, "3")`, true},
		{`:note = 1 OR :note < "\n"`, false},
	} {
		f := parse(t, tt.filter)
		got := !tt.want
		allocs := testing.AllocsPerRun(100, func() { got = f.Match(m) })
		if got != tt.want || allocs != 0 {
			t.Errorf("%q: Match = %v with %v allocations, want %v with none", tt.filter, got, allocs, tt.want)
		}
	}
}

const fiveComparisons = `:type = "order" AND :amount >= 100 AND (:region = "us" OR :region = "eu") AND NOT :tries > 3`

// eight is a message that fiveComparisons looks at in every place.
func eight() []queue.Property {
	return message(
		"amount", "250.75",
		"currency", "EUR",
		"customer", "c-81723",
		"note", strings.Repeat("long ", 100),
		"region", "eu",
		"source", "web",
		"tries", "2",
		"type", "order",
	)
}

func BenchmarkMatch(b *testing.B) {
	m := eight()
	f := parse(b, fiveComparisons)
	b.ReportAllocs()
	for b.Loop() {
		if !f.Match(m) {
			b.Fatal("no match")
		}
	}
}

// The costliest filter against the costliest message: as many tests as fit,
// names in turn so that no value is remembered, none true, each a number as
// long as may be, in the last of 64 properties.
func BenchmarkMatchWorst(b *testing.B) {
	var m []queue.Property
	for i := range 62 {
		m = append(m, queue.Property{Name: string(rune('A' + i/2)), Value: ""})
	}
	long := strings.Repeat("1", 128)
	m = append(m, message("y", long, "z", long)...)
	text := ":z<0" + strings.Repeat(" OR :y<0 OR :z<0", 63)
	f := parse(b, text)
	b.ReportAllocs()
	for b.Loop() {
		if f.Match(m) {
			b.Fatal("match")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := filter.Parse(fiveComparisons); err != nil {
			b.Fatal(err)
		}
	}
}
