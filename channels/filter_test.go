package channels_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"pgregory.net/rapid"
)

func parse(t testing.TB, text string) channels.Filter {
	t.Helper()
	f, err := channels.ParseFilter(text)
	if err != nil {
		t.Fatalf("ParseFilter(%q): %v", text, err)
	}
	return f
}

func TestFilterMatch(t *testing.T) {
	for _, tt := range []struct {
		filter   string
		yes, not []string
	}{
		{"", []string{"", "a", "orders"}, nil},
		{"a", []string{"a"}, []string{"", "A", "aa", "b"}},
		{"*", []string{"a", "orders"}, []string{""}},
		{"**", []string{"a", "orders"}, []string{""}},
		{"eu*", []string{"eu", "eu-1"}, []string{"", "e", "xeu", "EU"}},
		{"*eu", []string{"eu", "1-eu", "eueu"}, []string{"", "u", "eu1"}},
		{"a*a", []string{"aa", "aba", "aaa"}, []string{"a", "ab", "ba"}},
		{"*a*", []string{"a", "xax", "aa"}, []string{"", "b"}},
		{"a*b*c", []string{"abc", "a1b2c", "abbc", "abcbc"}, []string{"ab", "ac", "acb", "abcx"}},
		{"*ab*ab*", []string{"abab", "ab.ab"}, []string{"aba", "ab"}},
		{"a*bc*bc", []string{"abcbc"}, []string{"abc", "abcb"}},
		{"a.c", []string{"a.c"}, []string{"abc"}},
	} {
		var f channels.Filter
		if tt.filter != "" {
			f = parse(t, tt.filter)
		}
		for _, name := range tt.yes {
			if !f.Match(name) {
				t.Errorf("filter %q does not match %q", tt.filter, name)
			}
		}
		for _, name := range tt.not {
			if f.Match(name) {
				t.Errorf("filter %q matches %q", tt.filter, name)
			}
		}
		if got := f.String(); got != tt.filter {
			t.Errorf("String() = %q, want %q", got, tt.filter)
		}
	}
}

func TestParseFilterRefuses(t *testing.T) {
	for _, text := range []string{"", " ", "a b", "a/b", "a?", "[a]", "ä", "\x00", strings.Repeat("*", 65)} {
		f, err := channels.ParseFilter(text)
		if queue.CodeOf(err) != queue.InvalidParameter {
			t.Errorf("ParseFilter(%q) = %v, want InvalidParameter", text, err)
		}
		if !f.All() {
			t.Errorf("ParseFilter(%q) gave a filter beside its error", text)
		}
	}
}

func TestFilterKinds(t *testing.T) {
	if f := (channels.Filter{}); !f.All() {
		t.Error("the zero Filter is not All")
	} else if _, ok := f.Exact(); ok {
		t.Error("the zero Filter is Exact")
	}
	if f := parse(t, "*"); f.All() {
		t.Error("* is All, but leaves out the unnamed channel")
	} else if _, ok := f.Exact(); ok {
		t.Error("* is Exact")
	}
	if f := parse(t, "eu"); f.All() {
		t.Error("eu is All")
	} else if got, ok := f.Exact(); !ok || got != "eu" {
		t.Errorf("Exact() = %q, %v", got, ok)
	}
	wild, again, exact := parse(t, "a*"), parse(t, "a*"), parse(t, "a")
	if wild != again || wild == exact {
		t.Error("equal filters are not ==, or different ones are")
	}
}

// TestFilterModel compares with a regular expression.
func TestFilterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab*]{1,8}`).Draw(t, "filter")
		name := rapid.StringMatching(`[ab]{1,10}`).Draw(t, "channel")
		f, err := channels.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile("^" + strings.ReplaceAll(text, "*", ".*") + "$").MatchString(name)
		if got := f.Match(name); got != want {
			t.Fatalf("filter %q on %q: %v, want %v", text, name, got, want)
		}
	})
}

func FuzzFilter(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", "a"}, {"a*b*c", "abc"}, {"", ""}, {"a", "a"}, {"*a*a*a*b", "aaaaaaaaaaaaaaaaaa"}, {"\xff", "ä"}, {"**", "x"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		filter, err := channels.ParseFilter(text)
		if err != nil {
			if queue.CodeOf(err) != queue.InvalidParameter {
				t.Fatalf("ParseFilter(%q): %v", text, err)
			}
			return
		}
		if filter.All() || filter.Match("") {
			t.Fatalf("filter %q selects the unnamed channel", text)
		}
		again, err := channels.ParseFilter(filter.String())
		if err != nil || again != filter {
			t.Fatalf("filter %q does not read back: %v", text, err)
		}
		if c, ok := filter.Exact(); ok && (!filter.Match(c) || filter.Match(name) != (name == c)) {
			t.Fatalf("filter %q is not exact", text)
		}
		filter.Match(name)
	})
}

// The worst pattern for a matcher that goes back and tries again.
func BenchmarkFilterWorst(b *testing.B) {
	f := parse(b, strings.Repeat("*a", 31)+"*b")
	name := strings.Repeat("a", 64)
	b.ReportAllocs()
	for b.Loop() {
		f.Match(name)
	}
}
