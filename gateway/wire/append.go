package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/queued-mq/queued/queue"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. It escapes what JSON demands and
// nothing more, so every reader gets back the very octets of s, which must be
// UTF-8; see IsText.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0 // not yet appended
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			// Above ASCII is plain here: only escapes end a stretch.
			if m := escaped(binary.LittleEndian.Uint64([]byte(s[i : i+8]))); m == 0 {
				i += 8
				continue
			} else {
				i += bits.TrailingZeros64(m) / 8
			}
		}
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// escaped marks octets of x that JSON demands to escape; the lowest mark is
// exact.
func escaped(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// IsText reports whether octets can stand in JSON as a string.
func IsText(octets []byte) bool { return utf8.Valid(octets) }

// AppendBase64 appends octets as a JSON string of standard base64 with padding.
func AppendBase64(dst, octets []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, octets)
	return append(dst, '"')
}

// AppendInstant appends i as a JSON string: RFC 3339, UTC, three digits of
// fraction. It does by hand what time.Time.Format does in ten times as long;
// years outside 0 to 9999 have no such form and are none of ours.
func AppendInstant(dst []byte, i queue.Instant) []byte {
	const day = 24 * 60 * 60 * 1000
	ms := int64(i)
	days := ms / day
	if ms %= day; ms < 0 {
		ms += day
		days--
	}
	// Days since 0000-03-01, cut into spans of 400 years, so that the leap day
	// is the last of its year and every length below is a constant.
	days += 719468
	era := days / 146097
	if days < 0 {
		era = (days - 146096) / 146097
	}
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153 // month, March is 0
	year, month, date := era*400+yoe, mp+3, doy-(153*mp+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	sec, milli := ms/1000, ms%1000
	dst = append(dst, '"')
	dst = pair(dst, year/100)
	dst = pair(dst, year%100)
	dst = pair(append(dst, '-'), month)
	dst = pair(append(dst, '-'), date)
	dst = pair(append(dst, 'T'), sec/3600)
	dst = pair(append(dst, ':'), sec/60%60)
	dst = pair(append(dst, ':'), sec%60)
	dst = append(dst, '.', byte('0'+milli/100))
	dst = pair(dst, milli%100)
	return append(dst, 'Z', '"')
}

func pair(dst []byte, n int64) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }
