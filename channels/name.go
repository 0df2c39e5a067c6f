package channels

import "github.com/queued-mq/queued/queue"

// MaxLength is the longest channel id and the longest filter, in characters.
// All legal characters are one octet long.
const MaxLength = 64

// Validate checks the form of a channel id: 1 to 64 characters, each a letter
// or digit of ASCII or one of _ . : @ = + -, upper and lower case being
// different. The empty string is legal and means no channel. Anything else is
// InvalidParameter.
func Validate(id string) error {
	if len(id) > MaxLength || !all(id, legal) {
		return queue.Errorf(queue.InvalidParameter,
			"channelId must have 1 to %d characters, each a letter, a digit or one of _ . : @ = + -", MaxLength)
	}
	return nil
}

// legal reports whether c may stand in a channel id.
func legal(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '_', '.', ':', '@', '=', '+', '-':
		return true
	}
	return false
}

// all reports whether every octet of text passes ok.
func all(text string, ok func(byte) bool) bool {
	for i := range len(text) {
		if !ok(text[i]) {
			return false
		}
	}
	return true
}
