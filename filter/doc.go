// Package filter is the language in which a consumer group says which messages
// it wants. A filter looks at the custom properties of a message and at nothing
// else: [Parse] reads it once, [Filter.Match] asks it for each message. It knows
// no groups and no queues; who is asked, and what becomes of a message that
// nobody wants, is the broker's business.
//
//	:region                                     the property is there
//	:type = "order" AND NOT :test               text, and a property that is absent
//	:amount > 100 OR :customer = 'gold'         a number
//	:region IN ("eu", "us") AND :tries BETWEEN 1 AND 3
//
// # Grammar
//
//	filter  = [ or ]
//	or      = and { OR and }
//	and     = not { AND not }
//	not     = NOT not | prim
//	prim    = "(" or ")"
//	        | name
//	        | name op value
//	        | name IN "(" value { "," value } ")"
//	        | name BETWEEN value AND value
//	op      = "=" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//	name    = ":" followed at once by one or more of A-Z a-z 0-9 _ . -
//	value   = string | number
//	string  = '"' ... '"' | "'" ... "'"
//	number  = [ "+" | "-" ] digits [ ("e" | "E") [ "+" | "-" ] digits ]
//
// where the digits before an exponent are 0-9, at least one of them, with at
// most one point before, among or behind them.
//
// Keywords are written in any case. NOT binds closer than AND, AND closer than
// OR: NOT :a = 1 AND :b OR :c is ((NOT (:a = 1)) AND :b) OR :c. Spaces, tabs and
// line ends may stand between any two of these words and signs, and must stand
// between two that would otherwise run together: a name, a number or a keyword
// goes on as long as there are characters that could belong to it, so :a-1 is
// the name "a-1", and 1AND is nothing. A text that is empty or blank is the
// filter that accepts everything.
//
// # Meaning
//
// There is true and false and no third value. With P the property called name:
//
//   - :name is true if the message has P, whatever its value: empty, "0" and
//     "false" too.
//   - A comparison is false if the message has no P. That holds for != and <>
//     as well: :a != 1 asks for an "a" that is something else. NOT :a is how to
//     ask for absence, and NOT :a = 1 is true where "a" is absent.
//   - With a string, values are compared octet by octet as UTF-8, which is the
//     order of Unicode code points. Case counts, nothing is folded, trimmed or
//     normalised, and < on digits is not < on numbers: "9" is above "10". Texts
//     of one width, such as RFC 3339 instants in UTC, are in their order.
//   - With a number, P is compared only if its whole value is spelled as a
//     number; else the comparison is false, != and <> too. Numbers are compared
//     exactly, as decimals of any size, never rounded: 1, 1.0, +1 and 10e-1 are
//     the same number, 9007199254740992 and 9007199254740993 are not, and -0 is
//     0.
//   - IN is true if P = value is for one of the values, each compared as its
//     kind wants. BETWEEN takes two values of one kind and means
//     :name >= low AND :name <= high, so that a low above its high is never
//     true. There is no NOT IN and no NOT BETWEEN: write NOT :name IN (...), and
//     mind that this is true where the property is absent.
//
// A number is plain decimal, in a filter as in a property: no NaN, no Inf, no
// hexadecimal, no digits grouped by _ or a comma, no spaces around it. It has at
// most 128 octets and an exponent of at most 999999999 either way; what is
// longer is not a number.
//
// In a string \" \' \\ \n \r \t stand for the quotes, the backslash and the
// characters LF, CR and TAB; a backslash before anything else is an error, and
// so is a doubled quote. Every other character, line ends included, stands for
// itself, and the quote that did not open the string needs no backslash.
//
// Names are the names of custom properties, case counting. The property
// "content-encoding", which marks a base64 spelling of the body, is made for the
// reader and no custom property: for a filter it is never there.
//
// # Limits
//
// A filter has at most 1,024 characters, which are Unicode code points, blanks
// included, and 16 levels of nesting: each "(" that groups is a level until its
// ")", each NOT until the end of what it negates. The parentheses of IN are no
// level, nor are chains of AND and OR. Both limits are checked before anything
// is built on them, so that neither the reading nor the matching of a filter can
// be made to cost much.
package filter
