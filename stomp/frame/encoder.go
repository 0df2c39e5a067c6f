package frame

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The Append functions write a server's frame piece by piece to the end of dst
// and return it, without an allocation where dst has room:
//
//	dst = frame.AppendCommand(dst, frame.Message)
//	dst, _ = frame.AppendHeader(dst, v, "destination", destination)
//	dst = frame.AppendContentLength(dst, len(body))
//	dst = frame.AppendBody(dst, body)

// AppendCommand appends the line of a command.
func AppendCommand(dst []byte, command string) []byte {
	dst = append(dst, command...)
	return append(dst, '\n')
}

// AppendHeader appends a header line, escaped for the version of the receiving
// connection. It reports false, and dst is as it was, if v cannot say it: an LF
// in 1.0, a CR in 1.0 and 1.1, a colon in a name in 1.0; and in every version
// an empty name, a NUL and what is not UTF-8. CONNECTED knows no escapes in any
// version: give V10 for its headers.
func AppendHeader(dst []byte, v Version, name, value string) ([]byte, bool) {
	if name == "" || v < V11 && strings.IndexByte(name, ':') >= 0 || !utf8.ValidString(name) || !utf8.ValidString(value) {
		return dst, false
	}
	whole := len(dst)
	dst, ok := appendEscaped(dst, v, name)
	if ok {
		dst = append(dst, ':')
		dst, ok = appendEscaped(dst, v, value)
	}
	if !ok {
		return dst[:whole], false
	}
	return append(dst, '\n'), true
}

func appendEscaped(dst []byte, v Version, text string) ([]byte, bool) {
	plain := 0 // text[plain:i] is to be appended as it is
	for i := range len(text) {
		var escape byte
		switch c := text[i]; {
		default:
			continue
		case c == 0 || c == '\r' && v < V12 || c == '\n' && v < V11:
			return dst, false
		case c == '\n':
			escape = 'n'
		case c == '\r':
			escape = 'r'
		case c == ':' && v >= V11:
			escape = 'c'
		case c == '\\' && v >= V11:
			escape = '\\'
		}
		dst = append(dst, text[plain:i]...)
		dst = append(dst, '\\', escape)
		plain = i + 1
	}
	return append(dst, text[plain:]...), true
}

// AppendContentLength appends the header content-length for a body of n octets.
func AppendContentLength(dst []byte, n int) []byte {
	dst = append(dst, contentLength...)
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\n')
}

// AppendBody appends the end of a frame: the empty line, the body, which may be
// nil, and the NUL. An LF follows it, legal noise that helps people who speak
// to us by hand. The content-length is not written here.
func AppendBody(dst, body []byte) []byte {
	dst = append(dst, '\n')
	dst = append(dst, body...)
	return append(dst, 0, '\n')
}
