package ocisdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/server"
)

// TestMessages is the life of messages: put, get, extend, delete.
func TestMessages(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), VisibilityInSeconds: new(20)})

	began := time.Now()
	var all []queue.PutMessagesDetailsEntry
	var ids []int64
	for n := 1; n <= 20; n++ {
		var messages []queue.PutMessagesDetailsEntry
		for i := range n {
			messages = append(messages, text(fmt.Sprintf("%d/%d", n, i)))
		}
		all = append(all, messages...)
		for _, m := range c.put(q, messages...) {
			ids = append(ids, *m.Id)
			if left := m.ExpireAfter.Sub(began); left < 24*time.Hour-time.Second || left > 24*time.Hour+time.Minute {
				t.Errorf("expires after %v", left)
			}
		}
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids do not rise: %v", ids)
	}
	if n := c.stats(q); n.visible != int64(len(all)) || n.inFlight != 0 {
		t.Errorf("%+v", n)
	}

	// In order, for nobody disturbs it; each once, with all its instants.
	var got []queue.GetMessage
	for {
		m := c.get(q)
		if len(m) == 0 {
			break
		}
		got = append(got, m...)
	}
	if len(got) != len(all) {
		t.Fatalf("%d messages came, want %d", len(got), len(all))
	}
	receipts := map[string]bool{}
	for i, m := range got {
		if *m.Id != ids[i] || *m.Content != *all[i].Content || *m.DeliveryCount != 1 || m.Metadata != nil {
			t.Errorf("message %d: %+v", i, m)
		}
		if left := m.VisibleAfter.Sub(began); left < 19*time.Second || left > 50*time.Second {
			t.Errorf("hidden until %v", m.VisibleAfter)
		}
		if m.CreatedAt.Before(began.Add(-time.Second)) || !m.ExpireAfter.Equal(m.CreatedAt.Add(24*time.Hour)) {
			t.Errorf("created %v, expires %v", m.CreatedAt, m.ExpireAfter)
		}
		receipts[*m.Receipt] = true
	}
	if len(receipts) != len(all) {
		t.Errorf("%d receipts for %d deliveries", len(receipts), len(all))
	}
	if n := c.stats(q); n.visible != 0 || n.inFlight != int64(len(all)) {
		t.Errorf("%+v", n)
	}
	for _, m := range got {
		c.delete(q, m)
	}
	if n := c.stats(q); n != (counters{}) {
		t.Errorf("%+v", n)
	}
}

// TestMetadata: channels and properties come back as they went.
func TestMetadata(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	many := map[string]string{}
	for i := range 64 {
		many[fmt.Sprintf("property-%02d", i)] = strings.Repeat("v", i)
	}
	for _, tt := range []struct {
		sent, want *queue.MessageMetadata
	}{
		{nil, nil},
		{&queue.MessageMetadata{}, nil}, // the SDK sends "channelId":null
		{&queue.MessageMetadata{ChannelId: new("")}, nil},
		{&queue.MessageMetadata{ChannelId: new("north")}, &queue.MessageMetadata{ChannelId: new("north")}},
		{&queue.MessageMetadata{CustomProperties: map[string]string{"a": "1"}}, &queue.MessageMetadata{CustomProperties: map[string]string{"a": "1"}}},
		{&queue.MessageMetadata{CustomProperties: map[string]string{}}, nil},
		{&queue.MessageMetadata{ChannelId: new("c"), CustomProperties: map[string]string{"a": "", "b": "x\ny", "c": "日本"}}, &queue.MessageMetadata{ChannelId: new("c"), CustomProperties: map[string]string{"a": "", "b": "x\ny", "c": "日本"}}},
		{&queue.MessageMetadata{CustomProperties: many}, &queue.MessageMetadata{CustomProperties: many}},
	} {
		c.put(q, queue.PutMessagesDetailsEntry{Content: new("x"), Metadata: tt.sent})
		m := c.get(q)
		if len(m) != 1 {
			t.Fatalf("%d messages", len(m))
		}
		if diff := cmp.Diff(tt.want, m[0].Metadata); diff != "" {
			t.Errorf("sent %v: -want +got\n%s", tt.sent, diff)
		}
		c.delete(q, m[0])
	}
	// Contents of any text.
	for _, content := range []string{"", " ", "\x00\x01\x7f\u2028<&>\"\\/", "😀", strings.Repeat("é", 100_000), `{"a":[1,2,{"b":"\n"}]}`} {
		c.put(q, text(content))
		m := c.get(q)
		if len(m) != 1 || *m[0].Content != content {
			t.Errorf("%.20q came back as %.20q", content, *m[0].Content)
		}
		c.delete(q, m[0])
	}
}

// TestGetParameters: each parameter of a get.
func TestGetParameters(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), VisibilityInSeconds: new(1), DeadLetterQueueDeliveryCount: new(0)})
	fill := func(n int) {
		for range n {
			c.put(q, text("x"))
		}
	}
	fill(22)
	for _, n := range []int{1, 2, 19} {
		if got := c.get(q, limit(n), hidden(3600)); len(got) != n {
			t.Errorf("limit %d gave %d", n, len(got))
		}
	}
	fill(21)
	if got := c.get(q, hidden(3600)); len(got) != 20 {
		t.Errorf("no limit gave %d", len(got))
	}
	last := c.get(q) // the visibility of the queue
	if len(last) != 1 {
		t.Fatalf("%d are left", len(last))
	}
	if d := last[0].VisibleAfter.Sub(last[0].CreatedAt.Time); d > time.Minute {
		t.Errorf("hidden for %v", d)
	}
	if got := c.get(q); len(got) != 0 {
		t.Errorf("a hidden message came: %+v", got)
	}
	time.Sleep(time.Until(last[0].VisibleAfter.Add(200 * time.Millisecond)))

	// 0 is a peek: it counts, and hides from nobody.
	for count := 2; count < 5; count++ {
		got := c.get(q, hidden(0))
		if len(got) != 1 || *got[0].DeliveryCount != count {
			t.Fatalf("peek %d: %+v", count, got)
		}
	}
	long := c.get(q, hidden(43200))
	if len(long) != 1 || *long[0].DeliveryCount != 5 {
		t.Fatalf("%+v", long)
	}
	if d := time.Until(long[0].VisibleAfter.Time); d < 43190*time.Second || d > 43201*time.Second {
		t.Errorf("hidden for %v", d)
	}

	// Filters: a channel, a pattern, none.
	for _, channel := range []string{"eu-1", "eu-2", "us-1"} {
		c.put(q, in(channel, channel))
	}
	if got := c.get(q, filter("us-1"), hidden(3600)); len(got) != 1 || *got[0].Content != "us-1" {
		t.Errorf("us-1: %+v", got)
	}
	if got := c.get(q, filter("us-*")); len(got) != 0 {
		t.Errorf("us-*: %+v", got)
	}
	seen := map[string]bool{}
	for range 2 {
		got := c.get(q, filter("eu-*"), hidden(3600))
		if len(got) != 1 {
			t.Fatalf("eu-*: %+v", got)
		}
		seen[*got[0].Metadata.ChannelId] = true
	}
	if !seen["eu-1"] || !seen["eu-2"] {
		t.Errorf("eu-* gave %v", seen)
	}
	if got := c.get(q, filter("eu")); len(got) != 0 {
		t.Errorf("eu: %+v", got)
	}
}

// TestResponseSize: an answer is cut short at its size, and never empty for
// that reason.
func TestResponseSize(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("big")})
	content := strings.Repeat("x", 256<<10)
	for range 10 {
		c.put(q, text(content))
	}
	got := c.get(q, hidden(600))
	if len(got) != 8 {
		t.Errorf("%d messages of 256 KiB in an answer of 2 MiB", len(got))
	}
	if n := c.stats(q); n.inFlight != int64(len(got)) || n.visible != int64(10-len(got)) {
		t.Errorf("%+v", n)
	}
}

// TestFairness: without a filter each channel gets its turn, and an answer is
// from one of them.
func TestFairness(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	const rare = "rare"
	for range 10 {
		var crowd []queue.PutMessagesDetailsEntry
		for range 20 {
			crowd = append(crowd, in("crowded", "x"))
		}
		c.put(q, crowd...)
	}
	c.put(q, in(rare, "1"), in(rare, "2"))
	c.put(q, text("1"), text("2"))
	tries := 0
	for seen := map[string]bool{}; len(seen) < 3; tries++ {
		if tries == 100 {
			t.Fatalf("after %d gets only %v came", tries, seen)
		}
		got := c.get(q, limit(2), hidden(600))
		channel := func(m queue.GetMessage) string {
			if m.Metadata == nil || m.Metadata.ChannelId == nil {
				return ""
			}
			return *m.Metadata.ChannelId
		}
		if len(got) != 2 || channel(got[0]) != channel(got[1]) {
			t.Fatalf("an answer from several channels: %+v", got)
		}
		seen[channel(got[0])] = true
	}
	t.Logf("all of 3 channels came within %d gets", tries)
}

// TestLongPoll: it ends with the first message, or at its time, and takes the
// queue's time when it names none.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), TimeoutInSeconds: new(2)})
	for _, tt := range []struct {
		what    string
		options []getOption
		atLeast time.Duration
		atMost  time.Duration
	}{
		{"0", []getOption{wait(0)}, 0, time.Second},
		{"1", []getOption{wait(1)}, time.Second, 2 * time.Second},
		{"the queue's", []getOption{func(r *queue.GetMessagesRequest) { r.TimeoutInSeconds = nil }}, 2 * time.Second, 4 * time.Second},
		{"a channel", []getOption{wait(1), filter("c")}, time.Second, 2 * time.Second},
	} {
		began := time.Now()
		if got := c.get(q, tt.options...); len(got) != 0 {
			t.Errorf("%s: %+v", tt.what, got)
		}
		if took := time.Since(began); took < tt.atLeast-10*time.Millisecond || took > tt.atMost {
			t.Errorf("%s: an empty poll took %v", tt.what, took)
		}
	}

	// What ends it: a publish, one into the right channel, the end of a
	// visibility timeout, a delay.
	poll := func(options ...getOption) <-chan []queue.GetMessage {
		got := make(chan []queue.GetMessage, 1)
		go func() {
			r, err := c.data.GetMessages(t.Context(), getFrom(q, append([]getOption{wait(20)}, options...)...))
			if err != nil {
				t.Error(err)
			}
			got <- r.Messages
		}()
		return got
	}
	arrives := func(what string, got <-chan []queue.GetMessage, content string, since time.Time) queue.GetMessage {
		t.Helper()
		m := <-got
		if took := time.Since(since); took > time.Second {
			t.Errorf("%s: it came after %v", what, took)
		}
		if len(m) != 1 || *m[0].Content != content {
			t.Fatalf("%s: %+v", what, m)
		}
		return m[0]
	}
	got := poll()
	time.Sleep(300 * time.Millisecond)
	since := time.Now()
	c.put(q, text("a"))
	c.delete(q, arrives("publish", got, "a", since))

	got = poll(filter("c*"))
	other := poll(filter("d"))
	time.Sleep(300 * time.Millisecond)
	c.put(q, text("nobody's"))
	c.put(q, in("c1", "b"))
	since = time.Now()
	c.delete(q, arrives("channel", got, "b", since))
	c.put(q, in("d", "e"))
	c.delete(q, arrives("another channel", other, "e", time.Now()))

	m := c.get(q, hidden(2))
	if len(m) != 1 {
		t.Fatalf("%+v", m)
	}
	lapsed := arrives("lapse", poll(), "nobody's", m[0].VisibleAfter.Time)
	if lapsed.CreatedAt.Before(m[0].CreatedAt.Time) || *lapsed.DeliveryCount != 2 {
		t.Errorf("%+v", lapsed)
	}
	got = poll()
	time.Sleep(300 * time.Millisecond)
	since = time.Now()
	if _, err := c.update(q, *lapsed.Receipt, 0); err != nil {
		t.Error(err)
	}
	c.delete(q, arrives("given back", got, "nobody's", since))

	// One message, one waiter.
	polls := []<-chan []queue.GetMessage{poll(), poll(), poll()}
	time.Sleep(300 * time.Millisecond)
	c.put(q, text("one"))
	for range 2 {
		time.Sleep(100 * time.Millisecond)
		c.put(q, text("more"))
	}
	for i, p := range polls {
		if m := <-p; len(m) != 1 {
			t.Errorf("poll %d got %d messages", i, len(m))
		}
	}
}

// TestLongestPoll: 30 s, within the time that the SDK waits for an answer.
func TestLongestPoll(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	began := time.Now()
	if got := c.get(q, wait(30)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took < 29900*time.Millisecond || took > 35*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestReceipts: what a receipt may do, and when.
func TestReceipts(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	other := c.create(queue.CreateQueueDetails{DisplayName: new("parcels")})
	remove := func(q, receipt string) error {
		_, err := c.data.DeleteMessage(t.Context(), queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: &receipt})
		return err
	}
	c.put(q, text("a"), text("b"), text("c"))
	m := c.get(q, hidden(60))
	if len(m) != 3 {
		t.Fatalf("%d messages", len(m))
	}

	// Extended from now on, with the receipt it has.
	for _, seconds := range []int{90, 43200, 30} {
		before := time.Now()
		r, err := c.update(q, *m[0].Receipt, seconds)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.VisibleAfter.Sub(before); *r.Id != *m[0].Id || d < time.Duration(seconds)*time.Second-10*time.Millisecond || d > time.Duration(seconds)*time.Second+5*time.Second {
			t.Errorf("extended by %d s: %v", seconds, d)
		}
	}
	// Given back: at once visible for all, the count stays and rises.
	if _, err := c.update(q, *m[0].Receipt, 0); err != nil {
		t.Error(err)
	}
	again := c.get(q, hidden(60))
	if len(again) != 1 || *again[0].Id != *m[0].Id || *again[0].DeliveryCount != 2 || *again[0].Receipt == *m[0].Receipt {
		t.Fatalf("%+v", again)
	}
	// The old receipt is superseded.
	_, err := c.update(q, *m[0].Receipt, 10)
	refused(t, "update by an old receipt", err, 404, "NotAuthorizedOrNotFound", "stale")
	refused(t, "delete by an old receipt", remove(q, *m[0].Receipt), 404, "NotAuthorizedOrNotFound", "stale")
	// A receipt is of one queue.
	_, err = c.update(other, *again[0].Receipt, 10)
	refused(t, "update through another queue", err, 404, "NotAuthorizedOrNotFound")
	refused(t, "delete through another queue", remove(other, *again[0].Receipt), 404, "NotAuthorizedOrNotFound")
	// And what is none of ours is told from what is old.
	forged := []string{"AAAA", "x", strings.Repeat("A", 200), *again[0].Receipt + "A", (*again[0].Receipt)[1:]}
	for at := range *again[0].Receipt {
		b := []byte(*again[0].Receipt)
		if b[at] == 'A' {
			b[at] = 'B'
		} else {
			b[at] = 'A'
		}
		forged = append(forged, string(b))
	}
	for _, receipt := range forged {
		_, err = c.update(q, receipt, 10)
		refused(t, "update by "+receipt, err, 400, "InvalidParameter", "receipt")
		refused(t, "delete by "+receipt, remove(q, receipt), 400, "InvalidParameter", "receipt")
	}
	// Gone is gone, as often as one likes; but not to be extended.
	for range 3 {
		if err := remove(q, *again[0].Receipt); err != nil {
			t.Error(err)
		}
	}
	if err := remove(q, *m[0].Receipt); err != nil {
		t.Errorf("an older receipt of a message that is gone: %v", err)
	}
	_, err = c.update(q, *again[0].Receipt, 10)
	refused(t, "update of what is gone", err, 404, "NotAuthorizedOrNotFound")
	if n := c.stats(q); n != (counters{inFlight: 2, bytes: 2}) {
		t.Errorf("%+v", n)
	}
}

// TestBatches: an answer for each entry, whatever the others are.
func TestBatches(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	other := c.create(queue.CreateQueueDetails{DisplayName: new("parcels")})
	c.put(other, text("x"))
	alien := c.get(other)[0]
	c.put(q, text("a"), text("b"), text("c"), text("d"))
	m := c.get(q, hidden(60))
	if _, err := c.update(q, *m[3].Receipt, 0); err != nil {
		t.Fatal(err)
	}
	stale, fresh := m[3], c.get(q, hidden(60))[0]

	type update = queue.UpdateMessagesDetailsEntry
	before := time.Now()
	r := good[queue.UpdateMessagesResponse](t)(c.data.UpdateMessages(t.Context(), queue.UpdateMessagesRequest{QueueId: &q,
		UpdateMessagesDetails: queue.UpdateMessagesDetails{Entries: []update{
			{Receipt: m[0].Receipt, VisibilityInSeconds: new(100)},
			{Receipt: stale.Receipt, VisibilityInSeconds: new(100)},
			{Receipt: new("AAAA"), VisibilityInSeconds: new(100)},
			{Receipt: m[1].Receipt, VisibilityInSeconds: new(43201)},
			{Receipt: m[1].Receipt, VisibilityInSeconds: new(-1)},
			{Receipt: alien.Receipt, VisibilityInSeconds: new(100)},
			{Receipt: nil, VisibilityInSeconds: new(100)},
			{Receipt: m[1].Receipt},
			{Receipt: m[1].Receipt, VisibilityInSeconds: new(0)},
			{Receipt: m[1].Receipt, VisibilityInSeconds: new(100)}, // too late, just before it was given back
			{Receipt: m[2].Receipt, VisibilityInSeconds: new(200)},
		}}}))
	codes := []int{0, 404, 400, 400, 400, 404, 400, 400, 0, 404, 0}
	ids := map[int]int64{0: *m[0].Id, 8: *m[1].Id, 10: *m[2].Id}
	if len(r.Entries) != len(codes) || *r.ServerFailures != 0 || *r.ClientFailures != 8 {
		t.Fatalf("%+v", r.UpdateMessagesResult)
	}
	for i, e := range r.Entries {
		if codes[i] == 0 {
			if e.ErrorCode != nil || e.ErrorMessage != nil || e.Id == nil || *e.Id != ids[i] || e.VisibleAfter == nil || e.VisibleAfter.Before(before.Add(-time.Second)) {
				t.Errorf("entry %d: %+v", i, e)
			}
		} else if e.ErrorCode == nil || *e.ErrorCode != codes[i] || e.ErrorMessage == nil || *e.ErrorMessage == "" || e.Id != nil || e.VisibleAfter != nil {
			t.Errorf("entry %d: %+v, want %d", i, e, codes[i])
		}
	}
	if n := c.stats(q); n.inFlight != 3 || n.visible != 1 {
		t.Errorf("%+v", n)
	}

	type remove = queue.DeleteMessagesDetailsEntry
	d := good[queue.DeleteMessagesResponse](t)(c.data.DeleteMessages(t.Context(), queue.DeleteMessagesRequest{QueueId: &q,
		DeleteMessagesDetails: queue.DeleteMessagesDetails{Entries: []remove{
			{Receipt: m[0].Receipt},
			{Receipt: m[0].Receipt}, // twice in one batch
			{Receipt: stale.Receipt},
			{Receipt: new("AAAA")},
			{Receipt: alien.Receipt},
			{},
			{Receipt: m[1].Receipt}, // given back and not taken since
			{Receipt: m[2].Receipt},
			{Receipt: fresh.Receipt},
		}}}))
	codes = []int{0, 0, 404, 400, 404, 400, 0, 0, 0}
	if len(d.Entries) != len(codes) || *d.ServerFailures != 0 || *d.ClientFailures != 4 {
		t.Fatalf("%+v", d.DeleteMessagesResult)
	}
	for i, e := range d.Entries {
		if got := e.ErrorCode; (got == nil) != (codes[i] == 0) || got != nil && (*got != codes[i] || *e.ErrorMessage == "") {
			t.Errorf("entry %d: %+v, want %d", i, e, codes[i])
		}
	}
	if n := c.stats(q); n != (counters{}) {
		t.Errorf("%+v", n)
	}
	if n := c.stats(other); n.inFlight != 1 {
		t.Errorf("the other queue: %+v", n)
	}
	// A full batch.
	var full []queue.PutMessagesDetailsEntry
	for range 20 {
		full = append(full, text("x"))
	}
	c.put(q, full...)
	var entries []remove
	for _, m := range c.get(q) {
		entries = append(entries, remove{Receipt: m.Receipt})
	}
	d = good[queue.DeleteMessagesResponse](t)(c.data.DeleteMessages(t.Context(), queue.DeleteMessagesRequest{QueueId: &q,
		DeleteMessagesDetails: queue.DeleteMessagesDetails{Entries: entries}}))
	if len(d.Entries) != 20 || *d.ClientFailures != 0 {
		t.Errorf("%+v", d.DeleteMessagesResult)
	}
}

// TestStats: per queue, per channel, per dead letter queue.
func TestStats(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	q := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), DeadLetterQueueDeliveryCount: new(1)})
	c.put(q, text("12345"), in("a", "123"), in("a", "456"),
		queue.PutMessagesDetailsEntry{Content: new("1"), Metadata: &queue.MessageMetadata{ChannelId: new("b"), CustomProperties: map[string]string{"ab": "cde"}}})
	of := func(q, channel string) counters {
		return c.statsOf(queue.GetStatsRequest{QueueId: &q, ChannelId: &channel})
	}
	c.get(q, filter("a"), limit(1), hidden(600))
	for what, tt := range map[string]struct{ got, want counters }{
		"queue":      {c.stats(q), counters{visible: 3, inFlight: 1, bytes: 17}},
		"channel a":  {of(q, "a"), counters{visible: 1, inFlight: 1, bytes: 6}},
		"channel b":  {of(q, "b"), counters{visible: 1, bytes: 6}},
		"no channel": {of(q, ""), counters{visible: 3, inFlight: 1, bytes: 17}},
		"unknown":    {of(q, "zzz"), counters{}},
		"by name":    {c.stats("orders"), counters{visible: 3, inFlight: 1, bytes: 17}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", what, tt.got, tt.want)
		}
	}
	s := good[queue.GetStatsResponse](t)(c.data.GetStats(t.Context(), queue.GetStatsRequest{QueueId: &q, ChannelId: new("a")}))
	if s.ChannelId == nil || *s.ChannelId != "a" || s.ConsumerGroupId != nil {
		t.Errorf("%+v", s.QueueStats)
	}

	c.get(q, filter("b"), hidden(0)) // its one delivery
	c.becomes(q, 5*time.Second, counters{visible: 2, inFlight: 1, bytes: 11, dead: 1, deadBytes: 6})
	for what, tt := range map[string]struct{ got, want counters }{
		"channel b":            {of(q, "b"), counters{dead: 1, deadBytes: 6}},
		"channel a":            {of(q, "a"), counters{visible: 1, inFlight: 1, bytes: 6}},
		"dead letters":         {c.stats(q + "_dlq"), counters{visible: 1, bytes: 6}},
		"dead letters of b":    {of(q+"_dlq", "b"), counters{visible: 1, bytes: 6}},
		"dead letters of a":    {of(q+"_dlq", "a"), counters{}},
		"dead letters by name": {c.stats("orders_dlq"), counters{visible: 1, bytes: 6}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", what, tt.got, tt.want)
		}
	}
	if got := c.get(q+"_dlq", hidden(60)); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if n := c.stats(q); n.dead != 0 || n.deadInFlight != 1 || n.deadBytes != 6 {
		t.Errorf("%+v", n)
	}
}
