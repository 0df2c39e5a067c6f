package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNewQueue(t *testing.T) {
	for _, tt := range []struct {
		text string
		want NewQueue
	}{
		{"orders", NewQueue{DisplayName: "orders"}},
		{" my orders ", NewQueue{DisplayName: "my orders"}},
		{"a=b", NewQueue{DisplayName: "a=b"}},
		{"orders,dlq=3,visibility=60,retention=3600", NewQueue{
			DisplayName: "orders", DeadLetterQueueDeliveryCount: new(int32(3)),
			VisibilityInSeconds: new(int32(60)), RetentionInSeconds: new(int32(3600)),
		}},
		{"orders, visibility=2m, retention=24h, timeout=0, channel-limit=10, dlq=0", NewQueue{
			DisplayName: "orders", DeadLetterQueueDeliveryCount: new(int32(0)), VisibilityInSeconds: new(int32(120)),
			RetentionInSeconds: new(int32(86400)), TimeoutInSeconds: new(int32(0)), ChannelConsumptionLimit: new(int32(10)),
		}},
		{"orders,compartment=ocid1.compartment.oc1..x,encryption-key=ocid1.key.oc1..y,tag.team=blue,tag.env=a=b", NewQueue{
			DisplayName: "orders", CompartmentID: new("ocid1.compartment.oc1..x"), CustomEncryptionKeyID: new("ocid1.key.oc1..y"),
			FreeformTags: map[string]string{"team": "blue", "env": "a=b"},
		}},
	} {
		got, err := parseNewQueue(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestParseNewQueueRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "begin with the name",
		",dlq=3":                  "begin with the name",
		"a,":                      "not of the form key=value",
		"a,dlq":                   "not of the form key=value",
		"a,dlq=":                  "whole number",
		"a,dlq=x":                 `dlq is "x"`,
		"a,dlq=21":                "deadLetterQueueDeliveryCount is 21",
		"a,dlq=3,dlq=4":           "there twice",
		"a,visibility=0":          "visibilityInSeconds is 0",
		"a,visibility=13h":        "visibilityInSeconds is 46800",
		"a,visibility=1500ms":     "whole seconds",
		"a,retention=9":           "retentionInSeconds is 9",
		"a,retention=999999h":     "whole seconds",
		"a,timeout=31":            "timeoutInSeconds is 31",
		"a,channel-limit=0":       "channelConsumptionLimit is 0",
		"a,retension=60":          "did you mean retention?",
		"a,x=1":                   "there are channel-limit, compartment, dlq, encryption-key, retention, timeout, visibility and tag.NAME",
		"a,compartment=":          "compartmentId",
		"a\nb":                    "control character",
		strings.Repeat("n", 256):  "1 to 255",
		"a,tag.=x":                "is no setting",
		"a,dlq=99999999999999999": "whole number",
	} {
		if _, err := parseNewQueue(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

func FuzzNewQueue(f *testing.F) {
	for _, seed := range []string{"orders", "orders,dlq=3,visibility=60,retention=3600", "a,tag.x=y", ",", "a,b=,=", "\xff,dlq=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseNewQueue(text)
		if err == nil && (q.DisplayName == "" || q.validate() != nil) {
			t.Fatalf("%q gives %+v", text, q)
		}
	})
}
