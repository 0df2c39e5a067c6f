package filter_test

import (
	"strings"
	"testing"

	"github.com/queued-mq/queued/filter"
	"github.com/queued-mq/queued/queue"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	const (
		operand = `a property such as :name, NOT or "("`
		behind  = "AND, OR or the end"
		escapes = `one of \" \' \\ \n \r \t`
	)
	for _, tt := range []struct{ filter, at, want, found string }{
		// Where a property must be.
		{"AND", "1", operand, `"AND"`},
		{"  )", "3", operand, `")"`},
		{"region = 'x'", "1", operand, `"region"`},
		{"100 < :a", "1", operand, `"100"`},
		{"'x' = :a", "1", operand, `"'x'"`},
		{`"x" = :a`, "1", operand, "`\"x\"`"},
		{":a AND", "7", operand, "the end"},
		{":a OR AND :b", "7", operand, `"AND"`},
		{":a AND OR :b", "8", operand, `"OR"`},
		{"NOT", "4", operand, "the end"},
		{"(", "2", operand, "the end"},
		{"()", "2", operand, `")"`},
		{"!:a", "1", operand, `"!"`},
		{"-:a", "1", operand, `"-"`},
		{"*", "1", operand, `"*"`},
		{"= 1", "1", operand, `"="`},
		{"NOTx :a", "1", operand, `"NOTx"`},
		{"\u00a0:a", "1", operand, `"\u00a0"`},
		{"\x00", "1", operand, `"\x00"`},

		// The name.
		{":", "2", `the name of a property after ":"`, "the end"},
		{": a", "2", `the name of a property after ":"`, `" "`},
		{":a AND :ä", "9", `the name of a property after ":"`, `"ä"`},
		{"::a", "2", `the name of a property after ":"`, `":"`},
		{`:"a b" = 1`, "2", `the name of a property after ":"`, "`\"`"},

		// Behind a name alone.
		{":a :b", "4", "a comparison, " + behind, `":b"`},
		{":a 1", "4", "a comparison, " + behind, `"1"`},
		{":a ! = 1", "4", "a comparison, " + behind, `"!"`},
		{":a LIKE 'x%'", "4", "a comparison, " + behind, `"LIKE"`},
		{":a IS NULL", "4", "a comparison, " + behind, `"IS"`},
		{":a NOT IN (1)", "4", "a comparison, " + behind, `"NOT"`},
		{":a)", "3", "a comparison, " + behind, `")"`},
		{":a && :b", "4", "a comparison, " + behind, `"&"`},
		{"(:a", "4", `a comparison, AND, OR or ")"`, "the end"},
		{"(:a :b)", "5", `a comparison, AND, OR or ")"`, `":b"`},
		{":aé", "3", "a comparison, " + behind, `"é"`},
		{":aAND:b", "6", "a comparison, " + behind, `":b"`},

		// The value.
		{":abc = 'x' AND :d = )", "21", `a value after "="`, `")"`},
		{":a =", "5", `a value after "="`, "the end"},
		{":a == 1", "5", `a value after "="`, `"="`},
		{":a => 1", "5", `a value after "="`, `">"`},
		{":a =< 1", "5", `a value after "="`, `"<"`},
		{":a < > 1", "6", `a value after "<"`, `">"`},
		{":a <> :b", "7", `a value after "<>"`, `":b"`},
		{":a != (1)", "7", `a value after "!="`, `"("`},
		{":a >= b", "7", `a value after ">=", a number or text in quotes`, `"b"`},
		{":a <= true", "7", `a value after "<=", a number or text in quotes`, `"true"`},
		{":a = null", "6", `a value after "=", a number or text in quotes`, `"null"`},
		{":a = NOT :b", "6", `a value after "=", a number or text in quotes`, `"NOT"`},

		// Numbers.
		{":a = NaN", "6", `a value after "=", a number or text in quotes`, `"NaN"`},
		{":a = -Inf", "6", `a value after "=", a number or text in quotes`, `"-Inf"`},
		{":a = 0x1F", "6", `a value after "=", a number or text in quotes`, `"0x1F"`},
		{":a = 1_000", "6", `a value after "=", a number or text in quotes`, `"1_000"`},
		{":a = 1e", "6", `a value after "=", a number or text in quotes`, `"1e"`},
		{":a = 1AND :b", "6", `a value after "=", a number or text in quotes`, `"1AND"`},
		{":a = 5-3", "6", `a value after "=", a number or text in quotes`, `"5-3"`},
		{":a = 1.2.3", "6", `a value after "=", a number or text in quotes`, `"1.2.3"`},
		{":a = .", "6", `a value after "=", a number or text in quotes`, `"."`},
		{":a = 1e1000000000", "6", `a value after "=", a number or text in quotes`, `"1e1000000000"`},
		{":a = " + strings.Repeat("1", 129), "6", `a value after "=", a number or text in quotes`, `"` + strings.Repeat("1", 24) + `"…`},
		{":a = 1,000", "7", behind, `","`},
		{":a = ٣", "6", `a value after "="`, `"٣"`},
		{":a = - 1", "6", `a value after "=", a number or text in quotes`, `"-"`},

		// Strings.
		{`:a = "x`, "6", `a closing " for the string that begins here`, "the end"},
		{`:a = 'x"`, "6", `a closing ' for the string that begins here`, "the end"},
		{`:a = "x\"`, "6", `a closing " for the string that begins here`, "the end"},
		{`:a = "x\`, "8", escapes, "`\\`"},
		{`:a = "\q"`, "7", escapes, "`\\q`"},
		{`:a = "é\u00e9"`, "8", escapes, "`\\u`"},
		{`:a = "\é"`, "7", escapes, "`\\é`"},
		{`:a = 'it''s'`, "10", behind, `"'s'"`},
		{":a = “x”", "6", `a value after "="`, `"“"`},
		{"`x`", "1", operand, "\"`\""},

		// Behind a comparison.
		{":a = 1 :b", "8", behind, `":b"`},
		{":a = 1 = 1", "8", behind, `"="`},
		{":a < 1 < 2", "8", behind, `"<"`},
		{":a = 1)", "7", behind, `")"`},
		{"(:a = 1", "8", `AND, OR or ")"`, "the end"},
		{"(:a = 1 (:b))", "9", `AND, OR or ")"`, `"("`},
		{"(:a) :b", "6", behind, `":b"`},
		{":a = 1; DROP", "7", behind, `";"`},
		{":a = 1 XOR :b", "8", behind, `"XOR"`},
		{":a = 'ä𝄞' ö", "11", behind, `"ö"`},
		{":a = 1 \n\n :é", "12", `the name of a property after ":"`, `"é"`},

		// IN and BETWEEN.
		{":a IN 1", "7", `"(" after IN`, `"1"`},
		{":a IN", "6", `"(" after IN`, "the end"},
		{":a IN ()", "8", `a value after "("`, `")"`},
		{":a IN (1,)", "10", `a value after ","`, `")"`},
		{":a IN (1 2)", "10", `"," or ")"`, `"2"`},
		{":a IN (1", "9", `"," or ")"`, "the end"},
		{":a IN ((1))", "8", `a value after "("`, `"("`},
		{":a IN (x)", "8", `a value after "(", a number or text in quotes`, `"x"`},
		{":a BETWEEN", "11", "a value after BETWEEN", "the end"},
		{":a BETWEEN 1", "13", "AND and the upper end of BETWEEN", "the end"},
		{":a BETWEEN 1, 2", "13", "AND and the upper end of BETWEEN", `","`},
		{":a BETWEEN 1 OR 2", "14", "AND and the upper end of BETWEEN", `"OR"`},
		{":a BETWEEN 1 AND :b", "18", "a value after AND", `":b"`},
		{":a BETWEEN 1 AND '2'", "18", "two numbers or two strings for BETWEEN", `"'2'"`},
		{":a BETWEEN 'é' AND 2", "20", "two numbers or two strings for BETWEEN", `"2"`},
		{":a BETWEEN-5 AND 5", "4", "a comparison, " + behind, `"BETWEEN-5"`},

		// Octets that are no text, wherever they stand.
		{"\xff", "1", "UTF-8", "octets that are none"},
		{":a = 'é\xc3' AND", "8", "UTF-8", "octets that are none"},
		{"\ufffd", "1", operand, `"�"`}, // is UTF-8

		// What is quoted is cut, but not within a character.
		{":a = 1 " + strings.Repeat("x", 25), "8", behind, `"` + strings.Repeat("x", 24) + `"…`},
		{":a = 1 " + strings.Repeat("x", 24), "8", behind, `"` + strings.Repeat("x", 24) + `"`},
		{":a = 1 '" + strings.Repeat("é", 30) + "'", "8", behind, `"'` + strings.Repeat("é", 11) + `"…`},
		{":a = 1 '" + strings.Repeat("\x00", 900) + "'", "8", behind, `"'` + strings.Repeat(`\x00`, 23) + `"…`},
	} {
		f, err := filter.Parse(tt.filter)
		if queue.CodeOf(err) != queue.InvalidParameter {
			t.Errorf("Parse(%q) = %v, want InvalidParameter", tt.filter, err)
			continue
		}
		want := "filter: position " + tt.at + ": expected " + tt.want + ", found " + tt.found
		if got := queue.MessageOf(err); got != want {
			t.Errorf("Parse(%q):\n got %s\nwant %s", tt.filter, got, want)
		}
		if !f.All() || f.String() != "" {
			t.Errorf("Parse(%q) gave a filter beside its error", tt.filter)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const (
		tooLong = "filter: position 1025: expected at most 1024 characters, found more"
		tooDeep = "expected at most 16 levels of nesting, found"
	)
	nested := func(open string, n int, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, tt := range []struct{ name, filter, want string }{
		{"1,024 characters", ":" + strings.Repeat("a", 1023), ""},
		{"1,025 characters", ":" + strings.Repeat("a", 1024), tooLong},
		{"1,024 characters of four octets", ":a='" + strings.Repeat("𝄞", 1019) + "'", ""},
		{"1,025 characters of four octets", ":a='" + strings.Repeat("𝄞", 1020) + "'", tooLong},
		{"1,024 blanks", strings.Repeat(" ", 1024), ""},
		{"1,025 blanks", strings.Repeat(" ", 1025), tooLong},
		{"megabytes", strings.Repeat("(", 8<<20), tooLong},
		{"a fault before the length", "\xff" + strings.Repeat("(", 8<<20), "filter: position 1: expected UTF-8, found octets that are none"},

		{"16 parentheses", nested("(", 16, ":a", ")"), ""},
		{"17 parentheses", nested("(", 17, ":a", ")"), "position 17: " + tooDeep + ` "("`},
		{"16 NOTs", nested("NOT ", 16, ":a", ""), ""},
		{"17 NOTs", nested("NOT ", 17, ":a", ""), "position 65: " + tooDeep + ` "NOT"`},
		{"8 of each", nested("NOT(", 8, ":a", ")"), ""},
		{"9 NOTs, 8 parentheses", nested("NOT(", 8, "NOT :a", ")"), "position 33: " + tooDeep + ` "NOT"`},
		{"as many as fit", nested("(", 511, ":a", ")"), "position 17: " + tooDeep},
		{"never closed", nested("(", 1024, "", ""), "position 17: " + tooDeep},
		{"deep on the right", nested(":a AND (", 17, ":a", ")"), "position 136: " + tooDeep + ` "("`},
		{"IN is no level", nested("(", 16, ":a IN (1)", ")"), ""},

		// Levels end: these are wide, not deep.
		{"a chain of OR", ":a" + strings.Repeat(" OR :a", 170), ""},
		{"a chain of AND", ":a" + strings.Repeat(" AND:a", 170), ""},
		{"a chain of both", ":a" + strings.Repeat(" OR :a AND :a", 78), ""},
		{"one level again and again", "(:a)" + strings.Repeat("OR(:a)", 170), ""},
		{"NOT again and again", "NOT:a" + strings.Repeat(" OR NOT:a", 113), ""},
		{"many values", ":a IN (1" + strings.Repeat(",1", 507) + ")", ""},
	} {
		f, err := filter.Parse(tt.filter)
		switch {
		case tt.want == "":
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			f.Match(message("a", "2"))
		case queue.CodeOf(err) != queue.InvalidParameter || !strings.Contains(queue.MessageOf(err), tt.want):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A filter that was read shares no state with its reader or with its copies:
// the race detector sees if it does.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := parse(t, fiveComparisons)
	m := eight()
	done := make(chan bool)
	for range 4 {
		go func() {
			ok := true
			for range 1000 {
				ok = f.Match(m) && ok
			}
			done <- ok
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("no match")
		}
	}
}
