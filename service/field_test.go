package service

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

func TestSeconds(t *testing.T) {
	f := field{name: "delayInSeconds", list: "messages", at: 3}
	for _, c := range []struct {
		in   *int32
		out  time.Duration
		text string
	}{
		{nil, 9 * time.Second, ""},
		{p(int32(2)), 2 * time.Second, ""},
		{p(int32(8)), 8 * time.Second, ""},
		{p(int32(1)), 0, "messages[3].delayInSeconds is 1; it must be 2 to 8"},
		{p(int32(9)), 0, "messages[3].delayInSeconds is 9; it must be 2 to 8"},
		{p(int32(-1 << 31)), 0, "messages[3].delayInSeconds is -2147483648; it must be 2 to 8"},
		{p(int32(1<<31 - 1)), 0, "messages[3].delayInSeconds is 2147483647; it must be 2 to 8"},
	} {
		got, err := f.seconds(c.in, 2*time.Second, 8*time.Second, 9*time.Second)
		if c.text != "" {
			want(t, err, queue.InvalidParameter, c.text)
		} else if err != nil || got != c.out {
			t.Errorf("%v: %v, %v, want %v", c.in, got, err, c.out)
		}
	}
}

func TestEnumIgnoresCase(t *testing.T) {
	for in, out := range map[string]string{"ASC": "ASC", "desc": "DESC", "Desc": "DESC"} {
		if got, err := enum("sortOrder", &in, "", "ASC", "DESC"); err != nil || got != out {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, err := enum("sortOrder", nil, "ASC", "DESC"); err != nil || got != "ASC" {
		t.Errorf("absent: %q, %v", got, err)
	}
	_, err := enum("sortOrder", p("up"), "", "ASC", "DESC")
	want(t, err, queue.InvalidParameter, "sortOrder must be one of ASC, DESC")
}

func TestRetryTokenForm(t *testing.T) {
	for _, good := range []string{"x", strings.Repeat("x", 64), "a b/~"} {
		want(t, checkRetryToken(&good), "", "")
	}
	want(t, checkRetryToken(nil), "", "")
	for _, bad := range []string{"", strings.Repeat("x", 65), "a\nb", "ä"} {
		want(t, checkRetryToken(&bad), queue.InvalidParameter, "")
	}
}

func TestWithinKeepsTheCodeAndOtherErrors(t *testing.T) {
	err := within("messages", 4, queue.Errorf(queue.PayloadTooLarge, "too much"))
	want(t, err, queue.PayloadTooLarge, "messages[4]: too much")
	fault := errors.New("fault")
	if got := within("messages", 4, fault); got != fault {
		t.Errorf("got %v", got)
	}
}
