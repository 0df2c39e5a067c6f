package limits_test

import (
	"math"
	"strings"
	"testing"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// check wants an error of the code that names the key; code "" wants none.
func check(t *testing.T, name string, err error, code queue.Code, key string) {
	t.Helper()
	if got := queue.CodeOf(err); got != code {
		t.Errorf("%s: %v, want code %q", name, err, code)
	} else if err != nil && !strings.Contains(err.Error(), key) {
		t.Errorf("%s: %v does not name %s", name, err, key)
	}
}

func properties(n int) (ps []queue.Property) {
	for range n {
		ps = append(ps, queue.Property{Name: "n", Value: "v"})
	}
	return ps
}

func TestCheckMessage(t *testing.T) {
	s := limits.OCI()
	body := func(n int) queue.Message { return queue.Message{Body: make([]byte, n)} }
	property := func(name, value string) queue.Message {
		return queue.Message{Properties: []queue.Property{{Name: name, Value: value}}}
	}
	for _, tt := range []struct {
		name string
		m    queue.Message
		code queue.Code
		key  string
	}{
		{"empty", queue.Message{}, "", ""},
		{"full size", body(256 << 10), "", ""},
		{"one over", body(256<<10 + 1), queue.PayloadTooLarge, "limits.message-bytes"},
		{"properties count", queue.Message{Body: make([]byte, 256<<10-1), Properties: properties(1)}, queue.PayloadTooLarge, "limits.message-bytes"},
		{"64 properties", queue.Message{Properties: properties(64)}, "", ""},
		{"65 properties", queue.Message{Properties: properties(65)}, queue.InvalidParameter, "limits.properties-per-message"},
		{"long name", property(strings.Repeat("n", 64), ""), "", ""},
		{"name too long", property(strings.Repeat("n", 65), ""), queue.InvalidParameter, "limits.property-name-bytes"},
		{"name empty", property("", "v"), queue.InvalidParameter, "1 to 64"},
		{"name alphabet", property("aZ_.-9", "v"), "", ""},
		{"name with blank", property("a b", "v"), queue.InvalidParameter, "1 to 64"},
		{"name not ASCII", property("ä", "v"), queue.InvalidParameter, "1 to 64"},
		{"name not UTF-8", property("\xff", "v"), queue.InvalidParameter, "1 to 64"},
		{"long value", property("n", strings.Repeat("v", 4096)), "", ""},
		{"value too long", property("n", strings.Repeat("v", 4097)), queue.InvalidParameter, "limits.property-bytes"},
		{"value any text", property("n", "ä \x00\n"), "", ""},
		{"value not UTF-8", property("n", "\xff"), queue.InvalidParameter, `"n" is not UTF-8`},
		{"content type", queue.Message{ContentType: "text/plain"}, "", ""},
		{"content type too long", queue.Message{ContentType: strings.Repeat("t", 4097)}, queue.InvalidParameter, "limits.property-bytes"},
		{"content type not UTF-8", queue.Message{ContentType: "\xff"}, queue.InvalidParameter, "content-type"},
		{"body any octets", queue.Message{Body: []byte{0xff, 0}}, "", ""},
	} {
		check(t, tt.name, s.CheckMessage(&queue.NewMessage{Message: tt.m}, false), tt.code, tt.key)
	}
}

func TestChecks(t *testing.T) {
	oci, free := limits.OCI(), limits.Unthrottled()
	const gib = 1 << 30
	for _, tt := range []struct {
		name string
		err  error
		code queue.Code
		key  string
	}{
		{"batch of 0", oci.CheckBatch(0), queue.InvalidParameter, "limits.batch-messages"},
		{"batch of 1", oci.CheckBatch(1), "", ""},
		{"batch of 20", oci.CheckBatch(20), "", ""},
		{"batch of 21", oci.CheckBatch(21), queue.InvalidParameter, "limits.batch-messages"},
		{"batch of 21, unthrottled", free.CheckBatch(21), queue.InvalidParameter, "limits.batch-messages"},
		{"request full", oci.CheckRequestBytes(512<<10, false), "", ""},
		{"request over", oci.CheckRequestBytes(512<<10+1, false), queue.PayloadTooLarge, "limits.request-bytes"},
		{"large request full", oci.CheckRequestBytes(1<<20, true), "", ""},
		{"large request over", oci.CheckRequestBytes(1<<20+1, true), queue.PayloadTooLarge, "limits.large-request-bytes"},
		{"large message full", oci.CheckMessage(&queue.NewMessage{Message: queue.Message{Body: make([]byte, 512<<10)}}, true), "", ""},
		{"large message over", oci.CheckMessage(&queue.NewMessage{Message: queue.Message{Body: make([]byte, 512<<10+1)}}, true), queue.PayloadTooLarge, "limits.large-message-bytes"},
		{"page 0", oci.CheckPage(0), queue.InvalidParameter, "limits.list-page"},
		{"page 1000", oci.CheckPage(1000), "", ""},
		{"page 1001", oci.CheckPage(1001), queue.InvalidParameter, "limits.list-page"},
		{"tenth queue", oci.CheckQueues(9), "", ""},
		{"eleventh queue", oci.CheckQueues(10), queue.LimitExceeded, "limits.queues-per-tenancy"},
		{"eleventh queue, unthrottled", free.CheckQueues(10), "", ""},
		{"256th channel", oci.CheckChannels(255), "", ""},
		{"257th channel", oci.CheckChannels(256), queue.LimitExceeded, "limits.channels-per-queue"},
		{"257th channel, unthrottled", free.CheckChannels(256), queue.LimitExceeded, "limits.channels-per-queue"},
		{"tenth group", oci.CheckGroups(9), "", ""},
		{"eleventh group", oci.CheckGroups(10), queue.LimitExceeded, "limits.groups-per-queue"},
		{"queue full", oci.CheckQueueBytes(2*gib-5, 5), "", ""},
		{"queue over", oci.CheckQueueBytes(2*gib-5, 6), queue.LimitExceeded, "limits.bytes-per-queue"},
		{"queue far over", oci.CheckQueueBytes(1, math.MaxInt64), queue.LimitExceeded, "limits.bytes-per-queue"},
		{"queue over, unthrottled", free.CheckQueueBytes(2*gib, gib), "", ""},
		{"tenancy full", oci.CheckTenancyBytes(20*gib-5, 5), "", ""},
		{"tenancy over", oci.CheckTenancyBytes(20*gib, 1), queue.LimitExceeded, "limits.bytes-per-tenancy"},
		{"tenancy over, unthrottled", free.CheckTenancyBytes(20*gib, 1), "", ""},
		{"channel at its share", oci.CheckChannelBytes(0, 214748364, 10), "", ""},
		{"channel over its share", oci.CheckChannelBytes(0, 214748365, 10), queue.LimitExceeded, "channelConsumptionLimit"},
		{"channel may take all", oci.CheckChannelBytes(2*gib, 1, 100), "", ""},
		{"channel, unthrottled", free.CheckChannelBytes(2*gib, gib, 1), "", ""},
		{"polls", oci.CheckPolls(19_999, 99_999), "", ""},
		{"polls of queue", oci.CheckPolls(20_000, 20_000), queue.ServiceUnavailable, "limits.open-polls-per-queue"},
		{"polls in all", oci.CheckPolls(0, 100_000), queue.ServiceUnavailable, "limits.open-polls-total"},
		{"pending", oci.CheckPending(1023, 0, 16<<20), "", ""},
		{"pending requests", oci.CheckPending(1024, 0, 0), queue.ServiceUnavailable, "limits.pending-requests-per-queue"},
		{"pending bytes", oci.CheckPending(1, 16<<20, 1), queue.ServiceUnavailable, "limits.pending-bytes-per-queue"},
		{"pending alone", oci.CheckPending(0, 0, 1<<40), "", ""},
	} {
		check(t, tt.name, tt.err, tt.code, tt.key)
	}
}
