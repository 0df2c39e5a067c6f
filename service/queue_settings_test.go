package service

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/queue"
)

func TestNewQueueDefaults(t *testing.T) {
	wanted := queue.Queue{
		DisplayName:             "orders",
		CompartmentID:           "ocid1.tenancy.oc1..local",
		State:                   queue.Active,
		Retention:               24 * time.Hour,
		Visibility:              30 * time.Second,
		PollingTimeout:          30 * time.Second,
		DeadLetterDeliveryCount: 5,
		ChannelConsumptionLimit: 100,
	}
	got, err := formOnly().newQueue(&CreateQueueRequest{DisplayName: p("orders")})
	want(t, err, "", "")
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}

	none := 0
	got, err = New(nil, Options{DefaultDeliveryCount: &none}).newQueue(&CreateQueueRequest{DisplayName: p("orders")})
	if err != nil || got.DeadLetterDeliveryCount != 0 {
		t.Errorf("delivery count %d, %v, want the setting's 0", got.DeadLetterDeliveryCount, err)
	}
}

func TestNewQueueRefuses(t *testing.T) {
	named := func(change func(*CreateQueueRequest)) CreateQueueRequest {
		r := CreateQueueRequest{DisplayName: p("orders")}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		in   CreateQueueRequest
		code queue.Code
		text string
	}{
		"no name":       {CreateQueueRequest{}, queue.MissingParameter, "displayName is missing"},
		"empty name":    {CreateQueueRequest{DisplayName: p("")}, queue.InvalidParameter, "displayName has 0 characters; it must have 1 to 255"},
		"long name":     {CreateQueueRequest{DisplayName: p(strings.Repeat("ö", 256))}, queue.InvalidParameter, ""},
		"compartment":   {named(func(r *CreateQueueRequest) { r.CompartmentID = p("") }), queue.InvalidParameter, "compartmentId has 0 octets; it must have 1 to 255"},
		"retention":     {named(func(r *CreateQueueRequest) { r.RetentionInSeconds = p(int32(9)) }), queue.InvalidParameter, "retentionInSeconds is 9; it must be 10 to 604800"},
		"retention max": {named(func(r *CreateQueueRequest) { r.RetentionInSeconds = p(int32(604801)) }), queue.InvalidParameter, ""},
		"visibility":    {named(func(r *CreateQueueRequest) { r.VisibilityInSeconds = p(int32(0)) }), queue.InvalidParameter, "visibilityInSeconds is 0; it must be 1 to 43200"},
		"timeout":       {named(func(r *CreateQueueRequest) { r.TimeoutInSeconds = p(int32(31)) }), queue.InvalidParameter, "timeoutInSeconds is 31; it must be 0 to 30"},
		"count":         {named(func(r *CreateQueueRequest) { r.DeadLetterQueueDeliveryCount = p(int32(21)) }), queue.InvalidParameter, ""},
		"consumption":   {named(func(r *CreateQueueRequest) { r.ChannelConsumptionLimit = p(int32(0)) }), queue.InvalidParameter, ""},
		"key":           {named(func(r *CreateQueueRequest) { r.CustomEncryptionKeyID = p(strings.Repeat("k", 256)) }), queue.InvalidParameter, ""},
		"tags":          {named(func(r *CreateQueueRequest) { r.FreeformTags = map[string]string{"": ""} }), queue.InvalidParameter, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := formOnly().newQueue(&c.in)
			want(t, err, c.code, c.text)
		})
	}
}

// The body counts, not the token and not the order of a map.
func TestHashOfABody(t *testing.T) {
	body := func() CreateQueueRequest {
		return CreateQueueRequest{
			DisplayName:  p("orders"),
			FreeformTags: map[string]string{"a": "1", "b": "2", "c": "3"},
			DefinedTags:  map[string]map[string]json.RawMessage{"ops": {"x": []byte(`"1"`), "y": []byte("2")}},
			RetryToken:   p("one"),
		}
	}
	hash := func(r CreateQueueRequest) string {
		t.Helper()
		h, err := r.hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash(body())
	for range 20 {
		r := body()
		r.RetryToken = p("two")
		if hash(r) != first {
			t.Fatal("the same body has another hash")
		}
	}
	for name, change := range map[string]func(*CreateQueueRequest){
		"name":            func(r *CreateQueueRequest) { r.DisplayName = p("order") },
		"default spelled": func(r *CreateQueueRequest) { r.VisibilityInSeconds = p(int32(30)) },
		"tag":             func(r *CreateQueueRequest) { r.FreeformTags["a"] = "2" },
		"capability":      func(r *CreateQueueRequest) { r.Capabilities = []CapabilityDetails{{Type: "x"}} },
	} {
		r := body()
		if change(&r); hash(r) == first {
			t.Errorf("%s: another body has the same hash", name)
		}
	}
}

func TestUpdateSetsWhatIsGiven(t *testing.T) {
	before := orders()
	before.CustomEncryptionKeyID = "key"
	before.FreeformTags = map[string]string{"a": "b"}

	q := before
	(&UpdateQueueRequest{}).set(&q)
	if diff := cmp.Diff(before, q); diff != "" {
		t.Error("an empty update changed", diff)
	}

	(&UpdateQueueRequest{
		DisplayName:                  p("orders-2"),
		VisibilityInSeconds:          p(int32(11)),
		TimeoutInSeconds:             p(int32(0)),
		ChannelConsumptionLimit:      p(int32(11)),
		DeadLetterQueueDeliveryCount: p(int32(0)),
		CustomEncryptionKeyID:        p(""),
		FreeformTags:                 map[string]string{},
		DefinedTags:                  map[string]map[string]json.RawMessage{"ops": {"a": []byte("1")}},
	}).set(&q)
	wanted := before
	wanted.DisplayName = "orders-2"
	wanted.Visibility, wanted.PollingTimeout = 11*time.Second, 0
	wanted.ChannelConsumptionLimit, wanted.DeadLetterDeliveryCount = 11, 0
	wanted.CustomEncryptionKeyID = ""
	wanted.FreeformTags = map[string]string{}
	wanted.DefinedTags = map[string]map[string]json.RawMessage{"ops": {"a": []byte("1")}}
	if diff := cmp.Diff(wanted, q); diff != "" {
		t.Error(diff)
	}
}

func TestPurgeForm(t *testing.T) {
	for name, c := range map[string]struct {
		in   PurgeQueueRequest
		what queue.PurgeType
		code queue.Code
		text string
	}{
		"any case":      {PurgeQueueRequest{PurgeType: p("dlq")}, queue.PurgeDLQ, "", ""},
		"all groups":    {PurgeQueueRequest{PurgeType: p("BOTH"), ConsumerGroupID: p("all")}, queue.PurgeBoth, "", ""},
		"most channels": {PurgeQueueRequest{PurgeType: p("NORMAL"), ChannelIDs: slicesOf("c", 256)}, queue.PurgeNormal, "", ""},
		"no type":       {PurgeQueueRequest{}, "", queue.MissingParameter, "purgeType is missing"},
		"no such type":  {PurgeQueueRequest{PurgeType: p("ALL")}, "", queue.InvalidParameter, ""},
		"many channels": {PurgeQueueRequest{PurgeType: p("DLQ"), ChannelIDs: slicesOf("c", 257)}, "", queue.InvalidParameter, "channelIds names 257 channels; it may name 256"},
		"empty channel": {PurgeQueueRequest{PurgeType: p("DLQ"), ChannelIDs: []string{"a", ""}}, "", queue.InvalidParameter, "channelIds[1] is empty"},
		"bad channel":   {PurgeQueueRequest{PurgeType: p("DLQ"), ChannelIDs: []string{"a*"}}, "", queue.InvalidParameter, ""},
	} {
		t.Run(name, func(t *testing.T) {
			what, err := c.in.check()
			want(t, err, c.code, c.text)
			if what != c.what && err == nil {
				t.Errorf("type %q, want %q", what, c.what)
			}
		})
	}
}

func slicesOf(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

func TestExpiredQueues(t *testing.T) {
	const hour = 3_600_000
	dead := func(id queue.ID, at queue.Instant) queue.Queue {
		return queue.Queue{ID: id, State: queue.Deleted, UpdatedAt: at}
	}
	queues := []queue.Queue{dead("b", 2*hour), {ID: "live", State: queue.Active, UpdatedAt: 0}, dead("a", 1*hour), dead("c", 3*hour)}
	if diff := cmp.Diff([]queue.ID{"a", "b"}, expiredQueues(queues, 26*hour)); diff != "" {
		t.Error(diff)
	}

	queues = nil
	for i := range maxTombstones + 3 {
		queues = append(queues, dead(queue.ID(strings.Repeat("x", i%7)), queue.Instant(i)))
	}
	if got := expiredQueues(queues, 5); len(got) != 3 {
		t.Errorf("%d of %d forgotten, want the 3 too many", len(got), len(queues))
	}
}
