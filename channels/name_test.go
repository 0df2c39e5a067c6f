package channels_test

import (
	"strings"
	"testing"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		id   string
		want queue.Code
	}{
		{"", ""},
		{"a", ""},
		{"orders-2024_eu.west:7@x=y+z", ""},
		{"00000000-0000-4000-8000-000000000000", ""},
		{strings.Repeat("x", 64), ""},
		{strings.Repeat("x", 65), queue.InvalidParameter},
		{"a b", queue.InvalidParameter},
		{"a/b", queue.InvalidParameter},
		{"*", queue.InvalidParameter},
		{"a\x00", queue.InvalidParameter},
		{"a\n", queue.InvalidParameter},
		{"ä", queue.InvalidParameter},
		{"\xff", queue.InvalidParameter},
		{"a,b", queue.InvalidParameter},
		{"a%41", queue.InvalidParameter},
	} {
		err := channels.Validate(tt.id)
		if got := queue.CodeOf(err); got != tt.want {
			t.Errorf("Validate(%q) = %v, want code %q", tt.id, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "1 to 64") {
			t.Errorf("Validate(%q) = %v: the rule is not stated", tt.id, err)
		}
	}
}

// TestAlphabet walks every octet, so that no character is legal by accident.
func TestAlphabet(t *testing.T) {
	const legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@=+-"
	for c := range 256 {
		id := string([]byte{byte(c)})
		if got, want := channels.Validate(id) == nil, strings.Contains(legal, id); got != want {
			t.Errorf("Validate(%q): legal is %v, want %v", id, got, want)
		}
		_, err := channels.ParseFilter(id)
		if got, want := err == nil, strings.Contains(legal+"*", id); got != want {
			t.Errorf("ParseFilter(%q): legal is %v, want %v", id, got, want)
		}
	}
}
