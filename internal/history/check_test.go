package history

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// story is a change of a good history. The checker of the promise must find
// the change out, or see that nothing is wrong with it, however near it comes.
type story struct {
	is      verdict
	promise Promise
	name    string
	change  func(h *History)
}

type verdict bool

const (
	broken verdict = false
	fine   verdict = true
)

func tell(t *testing.T, good func() *History, stories []story) {
	for _, s := range stories {
		t.Run(string(s.promise)+"/"+s.name, func(t *testing.T) {
			h := good()
			s.change(h)
			found := h.Check()
			for _, v := range found {
				t.Log(v)
			}
			switch named := slices.ContainsFunc(found, func(v Violation) bool { return v.Promise == s.promise }); {
			case s.is == broken && !named:
				t.Error("it was not found out")
			case s.is == fine && len(found) > 0:
				t.Error("nothing is wrong with it")
			}
		})
	}
}

func TestGood(t *testing.T) {
	for name, h := range map[string]*History{"drained": good(), "cut short": cut(), "empty": {}, "with groups": shared()} {
		for _, v := range h.Check() {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// Every promise has a history that breaks it and one that all but does.
func TestEveryPromise(t *testing.T) {
	source, err := os.ReadFile("check.go")
	if err != nil {
		t.Fatal(err)
	}
	promises := regexp.MustCompile(`\t\w+ +Promise = "(.*)"`).FindAllSubmatch(source, -1)
	if len(promises) < 16 {
		t.Fatalf("found %d promises", len(promises))
	}
	all := slices.Concat(publishedCases, leasesCases, countsCases, fateCases, restCases, groupsCases)
	for _, p := range promises {
		for _, is := range []verdict{broken, fine} {
			if !slices.ContainsFunc(all, func(s story) bool { return string(s.promise) == string(p[1]) && s.is == is }) {
				t.Errorf("%s: no story (fine: %v)", p[1], is)
			}
		}
	}
}
