package filter

import "cmp"

const (
	maxNumber   = 128         // octets in the spelling of a number
	maxExponent = 999_999_999 // either way, as it is spelled
)

// number is a decimal as it was spelled: 0.d1d2d3... times ten to the power of
// exp. Zero has no digits, all others begin and end with one that is not 0, so
// that equal numbers have equal digits. No value is made of them: comparing
// digits is exact where a float64 would make neighbours of large numbers one.
type number struct {
	negative bool
	digits   string // a point may stand among them, and means nothing
	exp      int64
}

// parseNumber reads plain decimal; ok is false if text is anything else. The
// number refers to text.
func parseNumber(text string) (n number, ok bool) {
	if len(text) == 0 || len(text) > maxNumber {
		return number{}, false
	}
	i := 0
	if text[0] == '+' || text[0] == '-' {
		n.negative = text[0] == '-'
		i++
	}

	// From first to behind last: what counts among the digits.
	first, last, point, digits := -1, -1, -1, 0
	for ; i < len(text); i++ {
		if c := text[i]; c == '.' && point < 0 {
			point = i
		} else if isDigit(c) {
			digits++
			if c != '0' {
				if first < 0 {
					first = i
				}
				last = i + 1
			}
		} else {
			break
		}
	}
	if digits == 0 {
		return number{}, false
	}
	if point < 0 {
		point = i
	}
	if i < len(text) {
		if n.exp, ok = parseExponent(text[i:]); !ok {
			return number{}, false
		}
	}
	if first < 0 {
		return number{}, true // -0 is 0
	}
	n.digits = text[first:last]
	if first < point {
		n.exp += int64(point - first)
	} else {
		n.exp -= int64(first - point - 1)
	}
	return n, true
}

// parseExponent reads the e or E and all that is behind it.
func parseExponent(text string) (exp int64, ok bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := false
	if text != "" && (text[0] == '+' || text[0] == '-') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if text == "" {
		return 0, false
	}
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		if exp = exp*10 + int64(text[i]-'0'); exp > maxExponent {
			return 0, false
		}
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// compare is -1, 0 or 1 as n is below, the same as, or above o.
func (n number) compare(o number) int {
	sign := n.sign()
	if c := cmp.Compare(sign, o.sign()); c != 0 || sign == 0 {
		return c
	}
	if c := cmp.Compare(n.exp, o.exp); c != 0 {
		return sign * c
	}
	return sign * compareDigits(n.digits, o.digits)
}

// compareDigits compares digit by digit, points left out. Where one row goes on
// behind the end of the other it is the larger: it does not end with a 0.
func compareDigits(a, b string) int {
	for i, j := 0, 0; ; i, j = i+1, j+1 {
		if i < len(a) && a[i] == '.' {
			i++
		}
		if j < len(b) && b[j] == '.' {
			j++
		}
		switch {
		case i == len(a) && j == len(b):
			return 0
		case i == len(a):
			return -1
		case j == len(b):
			return 1
		case a[i] != b[j]:
			return cmp.Compare(a[i], b[j])
		}
	}
}
