package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// field is the place of a value in a request, spelled as the API spells it. It
// is kept in its parts, since hardly any is ever printed.
type field struct {
	name string // "limit", or in a list "metadata.channelId"
	list string // "messages"; "" outside lists
	at   int    // place in the list
}

func (f field) String() string {
	if f.list == "" {
		return f.name
	}
	return fmt.Sprintf("%s[%d].%s", f.list, f.at, f.name)
}

// missing is the error for a mandatory field that is absent.
func (f field) missing() error {
	return queue.Errorf(queue.MissingParameter, "%s is missing", f)
}

// invalid is the error for a value that may not stand in f.
func (f field) invalid(format string, args ...any) error {
	return queue.Errorf(queue.InvalidParameter, "%s %s", f, fmt.Sprintf(format, args...))
}

// seconds is v as a length, or absent if there is none.
//
// Errors: InvalidParameter if v lies outside lo to hi, both included.
func (f field) seconds(v *int32, lo, hi, absent time.Duration) (time.Duration, error) {
	if v == nil {
		return absent, nil
	}
	d := time.Duration(*v) * time.Second
	if d < lo || d > hi {
		return 0, f.invalid("is %d; it must be %d to %d", *v, lo/time.Second, hi/time.Second)
	}
	return d, nil
}

// enum reads a word in any case and gives it as listed, or absent
// if there is none.
func enum[T ~string](name string, v *string, absent T, words ...T) (T, error) {
	if v == nil {
		return absent, nil
	}
	listed := make([]string, len(words))
	for i, w := range words {
		if strings.EqualFold(*v, string(w)) {
			return w, nil
		}
		listed[i] = string(w)
	}
	return "", field{name: name}.invalid("must be one of %s", strings.Join(listed, ", "))
}

// checkBatch checks that the list of a batch is there (nil is absent) and of a
// legal length.
func checkBatch[T any](l *limits.Settings, name string, entries []T) error {
	f := field{name: name}
	if entries == nil {
		return f.missing()
	}
	if n := len(entries); n < 1 || int64(n) > l.BatchMessages {
		return f.invalid("has %d entries; it must have 1 to %d (limits.batch-messages)", n, l.BatchMessages)
	}
	return nil
}

// within puts the place of a list's entry before the message of an error that
// does not know it; other errors it leaves as they are.
func within(list string, at int, err error) error {
	if e, ok := errors.AsType[*queue.Error](err); ok {
		return queue.Errorf(e.Code, "%s[%d]: %s", list, at, e.Message)
	}
	return err
}

// given is the text of an optional field where absent and empty mean the same.
func given(v *string) string {
	if v == nil {
		return ""
	}
	return *v
}

// checkRetryToken checks the form of an optional retry token: 1 to 64
// characters, none of them a control character.
func checkRetryToken(v *string) error {
	if v == nil {
		return nil
	}
	f := field{name: "opc-retry-token"}
	if n := len(*v); n < 1 || n > queue.MaxRetryToken {
		return f.invalid("has %d characters; it must have 1 to %d", n, queue.MaxRetryToken)
	}
	for i := range len(*v) {
		if c := (*v)[i]; c < ' ' || c > '~' {
			return f.invalid("must be printable ASCII")
		}
	}
	return nil
}
