package ocisdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestDeadLetters: after its last delivery a message moves by itself, and lives
// on behind "_dlq".
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), VisibilityInSeconds: new(1), DeadLetterQueueDeliveryCount: new(2)})
	dlq := q + "_dlq"
	put := c.put(q, queue.PutMessagesDetailsEntry{Content: new("poison"),
		Metadata: &queue.MessageMetadata{ChannelId: new("north"), CustomProperties: map[string]string{"k": "v"}}})

	for count := 1; count <= 2; count++ {
		m := c.get(q, wait(5))
		if len(m) != 1 || *m[0].DeliveryCount != count {
			t.Fatalf("delivery %d: %+v", count, m)
		}
	}
	c.becomes(q, 4*time.Second, counters{dead: 1, deadBytes: 8}) // nobody asks for it
	if got := c.get(q); len(got) != 0 {
		t.Errorf("the queue still gives %+v", got)
	}

	// It is read as any queue: leased, given back, extended, peeked at. It has
	// no dead letter queue of its own.
	var m queue.GetMessage
	for count := 3; count < 8; count++ {
		got := c.get(dlq, hidden(0))
		if len(got) != 1 || *got[0].DeliveryCount != count {
			t.Fatalf("read %d: %+v", count, got)
		}
		m = got[0]
	}
	if *m.Id != *put[0].Id || *m.Content != "poison" || *m.Metadata.ChannelId != "north" || m.Metadata.CustomProperties["k"] != "v" {
		t.Errorf("%+v", m)
	}
	if d := time.Until(m.ExpireAfter.Time); d < 24*time.Hour-time.Minute || d > 24*time.Hour {
		t.Errorf("expires in %v", d)
	}
	got := c.get(dlq, hidden(60), filter("north"))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if _, err := c.update(dlq, *got[0].Receipt, 0); err != nil {
		t.Error(err)
	}
	got = c.get("orders_dlq", hidden(60)) // by name
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if _, err := c.update(q, *got[0].Receipt, 120); err != nil { // the receipt knows where its message is
		t.Error(err)
	}
	c.delete(q, got[0])
	c.becomes(q, time.Second, counters{})

	// What it is not.
	_, err := c.data.PutMessages(t.Context(), putTo(dlq, text("x")))
	refused(t, "put to a dead letter queue", err, 400, "InvalidParameter", "_dlq")
	_, err = c.admin.GetQueue(t.Context(), queue.GetQueueRequest{QueueId: &dlq})
	refused(t, "settings of a dead letter queue", err, 400, "InvalidParameter", "_dlq")
	_, err = c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &dlq})
	refused(t, "update of a dead letter queue", err, 400, "InvalidParameter", "_dlq")
	_, err = c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &dlq})
	refused(t, "delete of a dead letter queue", err, 400, "InvalidParameter", "_dlq")

	// More than the SDK shows: why it is there.
	c.put(q, text("again"))
	c.get(q, hidden(0))
	c.get(q, hidden(0))
	c.becomes(q, 4*time.Second, counters{dead: 1, deadBytes: 5})
	raw := rest.Dial(t, s.REST).Get(t, dlq, "timeoutInSeconds=0")
	if len(raw) != 1 || raw[0].DeadLetter == nil {
		t.Fatalf("%+v", raw)
	}
	if d := *raw[0].DeadLetter; d.Reason != "DELIVERY_COUNT_REACHED" || d.DeliveryCount != 2 || d.ChannelID != "" || time.Since(d.At) > time.Minute {
		t.Errorf("%+v", d)
	}
}

// TestDeliveryCounts: the setting is that of the moment, and 0 is never.
func TestDeliveryCounts(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), DeadLetterQueueDeliveryCount: new(0)})
	c.put(q, text("x"))
	for range 25 {
		if got := c.get(q, hidden(0)); len(got) != 1 {
			t.Fatalf("%+v", got)
		}
	}
	set := func(n int) {
		good[queue.UpdateQueueResponse](t)(c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &q,
			UpdateQueueDetails: queue.UpdateQueueDetails{DeadLetterQueueDeliveryCount: &n}}))
	}
	// Raised from never: it had more deliveries than it may have now, and is
	// judged when its next one ends, or before it would be given again.
	m := c.get(q, hidden(600))
	set(3)
	if n := c.stats(q); n.inFlight != 1 || n.dead != 0 {
		t.Errorf("lowering moved what is in flight: %+v", n)
	}
	if _, err := c.update(q, *m[0].Receipt, 0); err != nil {
		t.Fatal(err)
	}
	c.becomes(q, 4*time.Second, counters{dead: 1, deadBytes: 1})

	// A delete in time keeps a message out, whatever its count.
	c.put(q, text("y"))
	for range 2 {
		c.get(q, hidden(0))
	}
	last := c.get(q, hidden(600))
	if len(last) != 1 || *last[0].DeliveryCount != 3 {
		t.Fatalf("%+v", last)
	}
	c.delete(q, last[0])
	c.becomes(q, time.Second, counters{dead: 1, deadBytes: 1})
}

// TestPurge: three kinds, with channels and without; what is in flight goes
// too, and nothing that comes later.
func TestPurge(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), DeadLetterQueueDeliveryCount: new(1)})
	purge := func(kind queue.PurgeQueueDetailsPurgeTypeEnum, channels ...string) {
		t.Helper()
		r := good[queue.PurgeQueueResponse](t)(c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q,
			PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: kind, ChannelIds: channels}}))
		if same := c.finished(r.OpcWorkRequestId, queue.ActionTypeUpdated); same != q {
			t.Errorf("the work request names %s", same)
		}
	}
	// fill puts into each of "", a, b: a dead letter, one in flight, a visible
	// one; 9 messages of one octet. It gives the receipts of those in flight.
	channels := []string{"", "a", "b"}
	fill := func() (receipts []queue.GetMessage) {
		t.Helper()
		purge(queue.PurgeQueueDetailsPurgeTypeBoth)
		for _, ch := range channels {
			c.put(q, in(ch, "1"))
			option := []getOption{hidden(0)}
			if ch != "" {
				option = append(option, filter(ch))
			}
			if got := c.get(q, option...); len(got) != 1 {
				t.Fatalf("%q: %+v", ch, got)
			}
		}
		c.becomes(q, 5*time.Second, counters{dead: 3, deadBytes: 3})
		for _, ch := range channels {
			c.put(q, in(ch, "2"))
			option := []getOption{hidden(600)}
			if ch != "" {
				option = append(option, filter(ch))
			}
			receipts = append(receipts, c.get(q, option...)...)
			c.put(q, in(ch, "3"))
		}
		if n := c.stats(q); n != (counters{3, 3, 6, 3, 0, 3}) {
			t.Fatalf("filled: %+v", n)
		}
		return receipts
	}
	for _, tt := range []struct {
		kind     queue.PurgeQueueDetailsPurgeTypeEnum
		channels []string
		want     counters
	}{
		{"NORMAL", nil, counters{dead: 3, deadBytes: 3}},
		{"DLQ", nil, counters{visible: 3, inFlight: 3, bytes: 6}},
		{"BOTH", nil, counters{}},
		{"NORMAL", []string{"a"}, counters{2, 2, 4, 3, 0, 3}},
		{"DLQ", []string{"a"}, counters{3, 3, 6, 2, 0, 2}},
		{"BOTH", []string{"a", "b"}, counters{1, 1, 2, 1, 0, 1}},
		{"BOTH", []string{"nobody"}, counters{3, 3, 6, 3, 0, 3}},
	} {
		what := fmt.Sprint(tt.kind, " ", tt.channels)
		held := fill()
		etag := *c.queueOf(q).Etag
		purge(tt.kind, tt.channels...)
		if n := c.stats(q); n != tt.want {
			t.Errorf("%s: %+v, want %+v", what, n, tt.want)
		}
		if after := c.queueOf(q); after.LifecycleState != queue.QueueLifecycleStateActive || *after.Etag != etag {
			t.Errorf("%s: the queue changed", what)
		}
		// Never to be had again, and their receipts can still be deleted.
		for range 4 {
			for _, m := range c.get(q, hidden(600)) {
				if tt.kind != "DLQ" && tt.channels == nil {
					t.Errorf("%s: %q came", what, *m.Content)
				}
			}
		}
		for _, m := range held {
			c.delete(q, m)
		}
		// What comes later stays.
		c.put(q, in("a", "new"))
		if got := c.get(q, filter("a"), hidden(0)); !slices.ContainsFunc(got, func(m queue.GetMessage) bool { return *m.Content == "new" }) {
			t.Errorf("%s: a new message does not come: %+v", what, got)
		}
	}
	_, err := c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{
		PurgeType: "BOTH", ChannelIds: []string{"a", "b*"}}})
	refused(t, "a pattern", err, 400, "InvalidParameter", "channelIds[1]")
	_, err = c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{
		PurgeType: "BOTH", ChannelIds: make([]string, 257)}})
	refused(t, "too many channels", err, 400, "InvalidParameter", "channelIds", "256")
	_, err = c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{
		PurgeType: "BOTH", ConsumerGroupId: new("g")}})
	refused(t, "a group", err, 400, "InvalidParameter", "CONSUMER_GROUPS")
	good[queue.PurgeQueueResponse](t)(c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &q, PurgeQueueDetails: queue.PurgeQueueDetails{
		PurgeType: "BOTH", ConsumerGroupId: new("all")}}))
}

// TestAdditions: what our API has beside OCI's, by hand, since the SDK does not
// know it, and that the SDK passes over it.
func TestAdditions(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), RetentionInSeconds: new(600), VisibilityInSeconds: new(30)})
	raw := rest.Dial(t, s.REST)
	put := func(status int, fields string) *rest.Answer {
		t.Helper()
		return raw.Must(t, status, "POST", "/queues/orders/messages", `{"messages":[{"content":"x"`+fields+`}]}`)
	}

	// Delayed: not visible, not deliverable, counted apart.
	began := time.Now()
	put(200, `,"delayInSeconds":2`)
	if n := raw.Stats(t, "orders").Queue; n != (rest.Counters{Delayed: 1, Bytes: 1}) {
		t.Errorf("delayed: %+v", n)
	}
	if got := c.get(q); len(got) != 0 {
		t.Errorf("early: %+v", got)
	}
	if n := c.stats(q); n != (counters{bytes: 1}) {
		t.Errorf("as the SDK sees it: %+v", n)
	}
	m := c.get(q, wait(10))
	if took := time.Since(began); len(m) != 1 || took < 2*time.Second || took > 4*time.Second {
		t.Fatalf("after %v: %+v", took, m)
	}
	if *m[0].DeliveryCount != 1 || !m[0].ExpireAfter.Equal(m[0].CreatedAt.Add(600*time.Second)) {
		t.Errorf("%+v", m[0])
	}
	c.delete(q, m[0])

	// Its own visibility, unless the consumer names one.
	put(200, `,"visibilityInSeconds":100`)
	m = c.get(q)
	if d := time.Until(m[0].VisibleAfter.Time); d < 90*time.Second || d > 101*time.Second {
		t.Errorf("hidden for %v", d)
	}
	c.delete(q, m[0])
	put(200, `,"visibilityInSeconds":100`)
	m = c.get(q, hidden(5))
	if d := time.Until(m[0].VisibleAfter.Time); d > 6*time.Second {
		t.Errorf("hidden for %v", d)
	}
	c.delete(q, m[0])

	// Its own retention, up to the queue's.
	a := put(200, `,"retentionInSeconds":60`)
	m = c.get(q)
	if d := m[0].ExpireAfter.Sub(m[0].CreatedAt.Time); d != time.Minute || !rest.Messages(t, a)[0].ExpireAfter.Equal(m[0].ExpireAfter.Time) {
		t.Errorf("expires after %v", d)
	}
	c.delete(q, m[0])

	for fields, say := range map[string]string{
		`,"retentionInSeconds":601`:                     "retentionInSeconds of the queue, which is 600",
		`,"retentionInSeconds":9`:                       "messages[0].retentionInSeconds is 9",
		`,"retentionInSeconds":0`:                       "retentionInSeconds",
		`,"delayInSeconds":-1`:                          "messages[0].delayInSeconds is -1",
		`,"delayInSeconds":43201`:                       "43200",
		`,"delayInSeconds":600`:                         "below the retention of the message, which is 600",
		`,"delayInSeconds":60,"retentionInSeconds":60`:  "below the retention of the message, which is 60",
		`,"visibilityInSeconds":0`:                      "messages[0].visibilityInSeconds is 0",
		`,"visibilityInSeconds":43201`:                  "1 to 43200",
		`,"visibilityInSeconds":99999999999999999999`:   "visibilityInSeconds",
		`},{"content":"y","visibilityInSeconds":-1`:     "messages[1].visibilityInSeconds",
		`},{"content":"y","contentEncoding":"deflate"`:  "messages[1]: contentEncoding must be base64",
		`},{"content":"yyy","contentEncoding":"base64"`: "messages[1]: content is not base64",
	} {
		message := put(0, fields).Is(t, 400, "InvalidParameter")
		if !strings.Contains(message, say) {
			t.Errorf("%s: %q does not say %q", fields, message, say)
		}
	}
	if n := c.stats(q); n != (counters{}) {
		t.Errorf("a refused message is there: %+v", n)
	}
	// The bounds themselves are legal.
	put(200, `,"retentionInSeconds":10`)
	put(200, `,"retentionInSeconds":600,"delayInSeconds":599,"visibilityInSeconds":43200`)
	put(200, `,"delayInSeconds":0,"visibilityInSeconds":1`)
	if n := raw.Stats(t, "orders").Queue; n != (rest.Counters{Visible: 2, Delayed: 1, Bytes: 3}) {
		t.Errorf("%+v", n)
	}
	// A purge takes delayed ones too.
	raw.Must(t, 202, "POST", "/queues/orders/actions/purge", `{"purgeType":"NORMAL"}`)
	if n := raw.Stats(t, "orders").Queue; n != (rest.Counters{}) {
		t.Errorf("%+v", n)
	}

	// Octets that are no text reach SDK users as base64 with a mark.
	raw.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[{"content":"/wA=","contentEncoding":"base64"}]}`)
	m = c.get(q)
	if *m[0].Content != "/wA=" || m[0].Metadata == nil || m[0].Metadata.CustomProperties["content-encoding"] != "base64" {
		t.Errorf("%+v", m[0])
	}
	// And what an SDK user hands back is the same octets again.
	c.put(q, queue.PutMessagesDetailsEntry{Content: m[0].Content, Metadata: m[0].Metadata})
	if n := c.stats(q); n.bytes != 4 {
		t.Errorf("%+v", n)
	}
}
