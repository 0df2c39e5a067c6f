package channels

import (
	"strings"

	"github.com/queued-mq/queued/queue"
)

// Filter selects channels of a queue. The zero value selects every channel,
// the unnamed one included. Any other selects named channels only: the one of
// exactly this name, or, when the text holds a "*", all that fit with each "*"
// standing for any run of characters, the empty run included. Filters are
// values: copied freely, compared with ==, safe for concurrent use.
type Filter struct {
	text string
	wild bool // text holds a "*"
}

// ParseFilter reads a filter: 1 to 64 characters, each legal in a channel id
// or a "*"; case matters. Anything else is InvalidParameter, the empty text
// too: who wants no filter uses the zero Filter.
func ParseFilter(text string) (Filter, error) {
	if len(text) < 1 || len(text) > MaxLength || !all(text, legalInFilter) {
		return Filter{}, queue.Errorf(queue.InvalidParameter,
			"channelFilter must have 1 to %d characters, each a letter, a digit or one of _ . : @ = + - *", MaxLength)
	}
	return Filter{text: text, wild: strings.Contains(text, "*")}, nil
}

func legalInFilter(c byte) bool { return c == '*' || legal(c) }

// All reports whether f is no filter at all, the zero Filter. The filter "*"
// is not: it leaves out the unnamed channel.
func (f Filter) All() bool { return f.text == "" }

// Exact is the one channel that f can select; ok is false when there may be
// several.
func (f Filter) Exact() (channel string, ok bool) {
	if f.text == "" || f.wild {
		return "", false
	}
	return f.text, true
}

// Match reports whether f selects the channel, in time linear in both texts.
func (f Filter) Match(channel string) bool {
	switch {
	case f.text == "":
		return true
	case channel == "":
		return false
	case !f.wild:
		return f.text == channel
	}

	// What stands before the first star is where the name begins. Each piece
	// between stars may as well be taken where it occurs first: a later
	// place leaves less for the pieces behind it. So nothing is tried twice.
	first, rest, _ := strings.Cut(f.text, "*")
	name, ok := strings.CutPrefix(channel, first)
	for ok {
		piece, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, piece)
		}
		_, name, ok = strings.Cut(name, piece)
		rest = next
	}
	return false
}

// String is the text that ParseFilter reads back, "" for the zero Filter.
func (f Filter) String() string { return f.text }
