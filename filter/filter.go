package filter

import (
	"strings"

	"github.com/queued-mq/queued/queue"
)

// Filter decides by the custom properties of a message whether it is wanted.
// The zero Filter accepts every message. Filters are values: copied freely and
// safe for concurrent use.
type Filter struct {
	text  string
	tests []test // begun with the last one
}

// test is one question about one property. Its answer leads to another test,
// or, being negative, to the end.
type test struct {
	name    string
	kind    kind
	op      op
	text    string // what a textTest compares with
	number  number // what a numberTest compares with
	yes, no int    // the index of the next test, or accept or reject
}

// The ends of a Filter, where an index would stand.
const (
	accept = -1 - iota
	reject
)

type kind uint8

const (
	presence kind = iota // the property is there
	textTest
	numberTest
)

// op is a set of the outcomes of a comparison, those for which it is true.
type op uint8

const (
	less op = 1 << iota
	same
	more
)

// holds reports whether the outcome c of a comparison, -1, 0 or 1, is in o.
func (o op) holds(c int) bool { return o>>(c+1)&1 != 0 }

// reserved is a property that only readers see; see PutMessage.Properties in
// the service.
const reserved = "content-encoding"

// All reports whether f accepts every message by being blank, so that there is
// nothing to ask it.
func (f Filter) All() bool { return len(f.tests) == 0 }

// String is the text as it was given to Parse, "" for the zero Filter.
func (f Filter) String() string { return f.text }

// Match reports whether f accepts a message that has the properties, in any
// order, each name once. It keeps nothing of them and allocates nothing.
func (f Filter) Match(properties []queue.Property) bool {
	// What the last test looked at: the next one often asks for it again, as
	// all those of an IN do.
	var (
		name            string // no name is empty
		value           string
		found           bool
		n               number
		parsed, numeric bool
	)
	at := len(f.tests) - 1
	for at >= 0 {
		t := &f.tests[at]
		if t.name != name {
			name, parsed = t.name, false
			value, found = find(properties, name)
		}
		ok := found
		if found {
			switch t.kind {
			case textTest:
				ok = t.op.holds(strings.Compare(value, t.text))
			case numberTest:
				if !parsed {
					n, numeric = parseNumber(value)
					parsed = true
				}
				ok = numeric && t.op.holds(n.compare(t.number))
			}
		}
		if ok {
			at = t.yes
		} else {
			at = t.no
		}
	}
	return at == accept
}

// find is the value of the custom property called name.
func find(properties []queue.Property, name string) (value string, found bool) {
	if name == reserved {
		return "", false
	}
	for i := range properties {
		if properties[i].Name == name {
			return properties[i].Value, true
		}
	}
	return "", false
}
