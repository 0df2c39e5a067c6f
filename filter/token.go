package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/queued-mq/queued/queue"
)

// token is one word or sign of a filter.
type token struct {
	kind  tokenKind
	at    int    // where it begins, in octets
	text  string // as it is spelled
	value string // of a nameToken without its colon, of a stringToken without quotes and escapes
}

type tokenKind uint8

const (
	endToken    tokenKind = iota
	nameToken             // :name
	stringToken           // "..." or '...'
	wordToken             // a keyword, a number, or neither
	opToken               // one of the keys of ops
	otherToken            // one character: ( ) , or one that has no place in a filter
)

var ops = map[string]op{
	"=": same, "!=": less | more, "<>": less | more,
	"<": less, "<=": less | same, ">": more, ">=": more | same,
}

// scan reads the token that begins at or behind the octet at, in text that is
// valid UTF-8.
func scan(text string, at int) (token, error) {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	rest := text[at:]
	if rest == "" {
		return token{kind: endToken, at: at}, nil
	}
	switch c := rest[0]; {
	case c == ':':
		name := rest[1 : 1+run(rest[1:], isName)]
		if name == "" {
			return token{}, fail(text, at+1, `the name of a property after ":"`, quoted(first(rest[1:])))
		}
		return token{kind: nameToken, at: at, text: rest[:1+len(name)], value: name}, nil
	case c == '"' || c == '\'':
		return scanString(text, at)
	case isWord(c):
		return token{kind: wordToken, at: at, text: rest[:run(rest, isWord)]}, nil
	}
	for n := min(2, len(rest)); n > 0; n-- {
		if _, ok := ops[rest[:n]]; ok {
			return token{kind: opToken, at: at, text: rest[:n]}, nil
		}
	}
	return token{kind: otherToken, at: at, text: first(rest)}, nil
}

// scanString reads the string whose quote stands at the octet at.
func scanString(text string, at int) (token, error) {
	var unescaped []byte
	from := at + 1 // what has not been copied yet
	for i := from; i < len(text); i++ {
		switch text[i] {
		case text[at]:
			value := text[from:i]
			if unescaped != nil {
				value = string(append(unescaped, value...))
			}
			return token{kind: stringToken, at: at, text: text[at : i+1], value: value}, nil
		case '\\':
			escape := first(text[i+1:])
			c := strings.Index(`"'\nrt`, escape)
			if c < 0 || escape == "" {
				return token{}, fail(text, i, `one of \" \' \\ \n \r \t`, quoted(`\`+escape))
			}
			unescaped = append(append(unescaped, text[from:i]...), "\"'\\\n\r\t"[c])
			i++
			from = i + 1
		}
	}
	return token{}, fail(text, at, fmt.Sprintf("a closing %c for the string that begins here", text[at]), quoted(""))
}

// run is how many octets at the beginning of text pass ok.
func run(text string, ok func(byte) bool) int {
	n := 0
	for n < len(text) && ok(text[n]) {
		n++
	}
	return n
}

// isName reports whether c may stand in the name of a property.
func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_' || c == '.' || c == '-'
}

// isWord reports whether c may stand in a keyword or a number.
func isWord(c byte) bool { return isName(c) || c == '+' }

// first is the first character of text, "" if there is none.
func first(text string) string {
	_, n := utf8.DecodeRuneInString(text)
	return text[:n]
}

// maxQuoted is how many octets of a filter an error shows.
const maxQuoted = 24

// quoted is text for an error, cut where it is long; "" is the end.
func quoted(text string) string {
	if text == "" {
		return "the end"
	}
	more := ""
	if len(text) > maxQuoted {
		n := maxQuoted
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text, more = text[:n], "…"
	}
	if strings.ContainsAny(text, `"\`) && strconv.CanBackquote(text) {
		return "`" + text + "`" + more
	}
	return strconv.Quote(text) + more
}

// fail is the error that at the octet at of text something else was expected
// than what was found.
func fail(text string, at int, expected, found string) error {
	return queue.Errorf(queue.InvalidParameter, "filter: position %d: expected %s, found %s",
		utf8.RuneCountInString(text[:at])+1, expected, found)
}
