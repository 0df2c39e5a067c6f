package limits_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// TestOCI pins the numbers of the OCI reference, section 5, and of the
// contract.
func TestOCI(t *testing.T) {
	want := map[string]int64{
		"message-bytes":                262144,
		"large-message-bytes":          524288,
		"large-request-bytes":          1048576,
		"request-bytes":                524288,
		"response-bytes":               2097152,
		"batch-messages":               20,
		"properties-per-message":       64,
		"property-name-bytes":          64,
		"property-bytes":               4096,
		"list-page":                    1000,
		"header-bytes":                 65536,
		"channels-per-queue":           256,
		"groups-per-queue":             10,
		"in-flight-per-queue":          100000,
		"in-flight-total":              2000000,
		"in-flight-reserved-per-queue": 1000,
		"retry-tokens-per-queue":       100000,
		"queues-per-tenancy":           10,
		"bytes-per-queue":              2147483648,
		"bytes-per-tenancy":            21474836480,
		"requests-per-second":          1000,
		"gets-per-second":              1000,
		"ingress-bytes-per-second":     10485760,
		"egress-bytes-per-second":      10485760,
		"stomp-bytes-per-second":       10485760,
		"open-polls-per-queue":         20000,
		"open-polls-total":             100000,
		"pending-requests-per-queue":   1024,
		"pending-bytes-per-queue":      16777216,
		"pending-bytes-total":          268435456,
		"connections":                  20000,
		"connections-per-client":       10000,
		"streams-per-connection":       1000,
	}
	s := limits.OCI()
	if diff := cmp.Diff(want, values(&s)); diff != "" {
		t.Errorf("OCI() (-want +got):\n%s", diff)
	}

	for _, lifted := range []string{
		"queues-per-tenancy", "bytes-per-queue", "bytes-per-tenancy", "requests-per-second", "gets-per-second",
		"ingress-bytes-per-second", "egress-bytes-per-second", "stomp-bytes-per-second",
	} {
		want[lifted] = 0
	}
	s = limits.Unthrottled()
	if diff := cmp.Diff(want, values(&s)); diff != "" {
		t.Errorf("Unthrottled() (-want +got):\n%s", diff)
	}
}

func values(s *limits.Settings) map[string]int64 {
	all := map[string]int64{}
	for _, f := range s.Fields() {
		all[f.Key] = *f.Value
	}
	return all
}

// TestFields checks that the table tells of every field of Settings, once.
func TestFields(t *testing.T) {
	var s limits.Settings
	keys := map[string]bool{}
	for i, f := range s.Fields() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(f.Key) || keys[f.Key] {
			t.Errorf("key %q is ill-formed or there twice", f.Key)
		}
		keys[f.Key] = true
		if f.Meaning == "" || strings.HasSuffix(f.Meaning, ".") {
			t.Errorf("%s: meaning %q", f.Key, f.Meaning)
		}
		if f.NoLimit != strings.Contains(f.Meaning, "0 is no limit") {
			t.Errorf("%s: the meaning does not tell what 0 is", f.Key)
		}
		*f.Value = int64(i + 1)
	}
	seen := map[int64]bool{}
	for f, v := range reflect.ValueOf(s).Fields() {
		if seen[v.Int()] || v.Int() == 0 {
			t.Errorf("field %s is not in the table, or shares its row", f.Name)
		}
		seen[v.Int()] = true
	}
	if len(seen) != len(keys) {
		t.Errorf("%d fields, %d rows", len(seen), len(keys))
	}
}

func TestProfile(t *testing.T) {
	for _, name := range limits.Profiles {
		s, err := limits.Profile(name)
		if err != nil {
			t.Errorf("Profile(%q): %v", name, err)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("profile %s is not valid: %v", name, err)
		}
	}
	if _, err := limits.Profile("OCI"); queue.CodeOf(err) != queue.InvalidParameter {
		t.Errorf("an unknown profile: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*limits.Settings)
		want   []string // what the errors name
	}{
		{"raised", func(s *limits.Settings) {
			s.MessageBytes, s.LargeMessageBytes, s.RequestBytes, s.LargeRequestBytes = 1<<20, 1<<20, 2<<20, 2<<20
		}, nil},
		{"large below plain message", func(s *limits.Settings) { s.LargeMessageBytes = 256<<10 - 1 }, []string{"limits.large-message-bytes", "limits.message-bytes"}},
		{"large below plain request", func(s *limits.Settings) { s.LargeRequestBytes = 512<<10 - 1 }, []string{"limits.large-request-bytes", "limits.request-bytes"}},
		{"large message above large request", func(s *limits.Settings) { s.LargeMessageBytes = 1<<20 + 1 }, []string{"limits.large-request-bytes", "limits.large-message-bytes"}},
		{"large message above response", func(s *limits.Settings) { s.ResponseBytes = 512<<10 - 1 }, []string{"limits.response-bytes", "limits.large-message-bytes"}},
		{"large request above pending", func(s *limits.Settings) { s.LargeRequestBytes = 17 << 20 }, []string{"limits.pending-bytes-per-queue"}},
		{"lowered", func(s *limits.Settings) { s.MessageBytes = 1 }, nil},
		{"zero message", func(s *limits.Settings) { s.MessageBytes = 0 }, []string{"limits.message-bytes"}},
		{"negative rate", func(s *limits.Settings) { s.RequestsPerSecond = -1 }, []string{"limits.requests-per-second", "0 for no limit"}},
		{"no channels", func(s *limits.Settings) { s.ChannelsPerQueue = 0 }, []string{"limits.channels-per-queue"}},
		{"no reserve", func(s *limits.Settings) { s.InFlightReservedPerQueue = 0 }, nil},
		{"message above request", func(s *limits.Settings) { s.MessageBytes = 600 << 10 }, []string{"limits.request-bytes", "limits.message-bytes"}},
		{"message above response", func(s *limits.Settings) { s.MessageBytes, s.RequestBytes = 3<<20, 3<<20 }, []string{"limits.response-bytes"}},
		{"request above pending", func(s *limits.Settings) { s.RequestBytes = 17 << 20 }, []string{"limits.pending-bytes-per-queue"}},
		{"huge", func(s *limits.Settings) { s.RequestBytes = 1 << 40 }, []string{"limits.request-bytes"}},
		{"reserve above limit", func(s *limits.Settings) { s.InFlightPerQueue = 10 }, []string{"limits.in-flight-per-queue"}},
		{"several", func(s *limits.Settings) { s.ListPage, s.Connections = 0, 0 }, []string{"limits.list-page", "limits.connections"}},
	} {
		s := limits.OCI()
		tt.change(&s)
		err := s.Validate()
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", tt.name, err, part)
			}
		}
		if err != nil && queue.CodeOf(err) != queue.InvalidParameter {
			t.Errorf("%s: %v is not InvalidParameter", tt.name, err)
		}
	}
}
