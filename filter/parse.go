package filter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxCharacters is how many characters, Unicode code points, a filter has
	// at most.
	MaxCharacters = 1024

	// MaxNesting is how many levels of parentheses and NOTs may stand within
	// one another.
	MaxNesting = 16
)

// Parse reads a filter. An empty or blank text accepts everything. A text that
// is no filter is InvalidParameter, and the message says at which character,
// the first being 1, what was expected instead of what.
func Parse(text string) (Filter, error) {
	if err := checkText(text); err != nil {
		return Filter{}, err
	}
	p := parser{text: text}
	if err := p.next(); err != nil {
		return Filter{}, err
	}
	if p.token.kind == endToken {
		return Filter{text: text}, nil
	}
	root, err := p.or()
	if err != nil {
		return Filter{}, err
	}
	if p.token.kind != endToken {
		return Filter{}, p.expectedBehind("the end")
	}
	f := Filter{text: text}
	f.add(&root, accept, reject)
	return f, nil
}

// checkText bounds what the parser has to look at, and makes sure that an error
// can show any part of it.
func checkText(text string) error {
	n := 0
	for i, c := range text {
		if n++; n > MaxCharacters {
			return fail(text, i, "at most "+strconv.Itoa(MaxCharacters)+" characters", "more")
		}
		if c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return fail(text, i, "UTF-8", "octets that are none")
		}
	}
	return nil
}

// node is a part of a filter in the form of a tree. It lives while the filter
// is read.
type node struct {
	kind nodeKind
	test test   // of a leaf
	kids []node // of all others
}

type nodeKind uint8

const (
	leaf nodeKind = iota
	negation
	conjunction
	disjunction
)

// add appends the tests of n: where n is true they lead to yes, where it is
// false to no. It returns which test comes first. A part that is asked before
// another must know where that one begins, so the last part is added first.
func (f *Filter) add(n *node, yes, no int) (entry int) {
	switch n.kind {
	case negation:
		return f.add(&n.kids[0], no, yes)
	case conjunction:
		for i := len(n.kids) - 1; i >= 0; i-- {
			yes = f.add(&n.kids[i], yes, no)
		}
		return yes
	case disjunction:
		for i := len(n.kids) - 1; i >= 0; i-- {
			no = f.add(&n.kids[i], yes, no)
		}
		return no
	}
	t := n.test
	t.yes, t.no = yes, no
	f.tests = append(f.tests, t)
	return len(f.tests) - 1
}

// parser reads one token ahead. Its methods are named for the rules of the
// grammar; each leaves the token behind its rule in token. They call one
// another once for each level of nesting and not for each link of a chain, so
// MaxNesting bounds the stack.
type parser struct {
	text    string
	token   token
	nesting int
	bare    bool // the last token was a name that may still be compared
}

func (p *parser) next() (err error) {
	p.token, err = scan(p.text, p.token.at+len(p.token.text))
	p.bare = false
	return err
}

func (p *parser) or() (node, error)  { return p.chain(disjunction, "OR", p.and) }
func (p *parser) and() (node, error) { return p.chain(conjunction, "AND", p.not) }

func (p *parser) chain(kind nodeKind, keyword string, link func() (node, error)) (node, error) {
	n, err := link()
	if err != nil || !p.at(keyword) {
		return n, err
	}
	all := node{kind: kind, kids: []node{n}}
	for p.at(keyword) {
		if err := p.next(); err != nil {
			return node{}, err
		}
		if n, err = link(); err != nil {
			return node{}, err
		}
		all.kids = append(all.kids, n)
	}
	return all, nil
}

func (p *parser) not() (n node, err error) {
	negated := p.at("NOT")
	if !negated && !p.at("(") {
		return p.comparison()
	}
	if p.nesting == MaxNesting {
		return node{}, p.expected("at most " + strconv.Itoa(MaxNesting) + " levels of nesting")
	}
	p.nesting++
	defer func() { p.nesting-- }()
	if err := p.next(); err != nil {
		return node{}, err
	}
	if negated {
		n, err = p.not()
		return node{kind: negation, kids: []node{n}}, err
	}
	if n, err = p.or(); err != nil {
		return node{}, err
	}
	if !p.at(")") {
		return node{}, p.expectedBehind(`")"`)
	}
	return n, p.next()
}

// comparison reads what begins with the name of a property.
func (p *parser) comparison() (node, error) {
	if p.token.kind != nameToken {
		return node{}, p.expected(`a property such as :name, NOT or "("`)
	}
	name := p.token.value
	if err := p.next(); err != nil {
		return node{}, err
	}
	switch {
	case p.token.kind == opToken:
		sign := p.token.text
		return p.value(name, ops[sign], strconv.Quote(sign))
	case p.at("IN"):
		return p.in(name)
	case p.at("BETWEEN"):
		return p.between(name)
	}
	p.bare = true
	return node{test: test{name: name, kind: presence}}, nil
}

func (p *parser) in(name string) (node, error) {
	if err := p.next(); err != nil {
		return node{}, err
	}
	if !p.at("(") {
		return node{}, p.expected(`"(" after IN`)
	}
	n := node{kind: disjunction}
	for {
		kid, err := p.value(name, same, strconv.Quote(p.token.text))
		if err != nil {
			return node{}, err
		}
		n.kids = append(n.kids, kid)
		if p.at(")") {
			return n, p.next()
		}
		if !p.at(",") {
			return node{}, p.expected(`"," or ")"`)
		}
	}
}

func (p *parser) between(name string) (node, error) {
	low, err := p.value(name, same|more, "BETWEEN")
	if err != nil {
		return node{}, err
	}
	if !p.at("AND") {
		return node{}, p.expected("AND and the upper end of BETWEEN")
	}
	if err := p.next(); err != nil {
		return node{}, err
	}
	upper := p.token
	high, err := p.operand(name, less|same, "AND")
	if err != nil {
		return node{}, err
	}
	if low.test.kind != high.test.kind {
		return node{}, fail(p.text, upper.at, "two numbers or two strings for BETWEEN", quoted(upper.text))
	}
	return node{kind: conjunction, kids: []node{low, high}}, nil
}

// value reads the value behind the token that p is at.
func (p *parser) value(name string, op op, after string) (node, error) {
	if err := p.next(); err != nil {
		return node{}, err
	}
	return p.operand(name, op, after)
}

// operand reads the value that p is at and makes it a test of the property. An
// error says what it stands after.
func (p *parser) operand(name string, op op, after string) (node, error) {
	t := test{name: name, op: op}
	switch p.token.kind {
	case stringToken:
		t.kind, t.text = textTest, p.token.value
	case wordToken:
		var ok bool
		if t.number, ok = parseNumber(p.token.text); !ok {
			return node{}, p.expected("a value after " + after + ", a number or text in quotes")
		}
		t.kind = numberTest
	default:
		return node{}, p.expected("a value after " + after)
	}
	return node{test: t}, p.next()
}

// at reports whether p is at the keyword, in any case, or at the sign.
func (p *parser) at(word string) bool {
	return (p.token.kind == wordToken || p.token.kind == otherToken) && strings.EqualFold(p.token.text, word)
}

// expected is the error that something else was expected where p is.
func (p *parser) expected(what string) error {
	return fail(p.text, p.token.at, what, quoted(p.token.text))
}

// expectedBehind is the error behind a complete expression that could have gone
// on, or ended with end.
func (p *parser) expectedBehind(end string) error {
	what := "AND, OR or " + end
	if p.bare {
		what = "a comparison, " + what
	}
	return p.expected(what)
}
