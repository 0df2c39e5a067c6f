package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, admin string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s\n%s", resp.Status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// samples are the values of a family by its labels in the order of their names:
// "orders,visible".
func samples(f *dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		out[strings.Join(labels, ",")] = v
	}
	return out
}

// TestMetrics holds the names and labels that the contract fixes, and those of
// docs/metrics.md, against a server that has worked a little.
func TestMetrics(t *testing.T) {
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders", "mail"} })
	messages := "http://" + s.rest + "/20210201/queues/orders/messages"
	s.call(t, http.MethodPost, messages, `{"messages":[{"content":"a"},{"content":"bc"},{"content":"later","delayInSeconds":60}]}`, 200)
	s.call(t, http.MethodGet, messages+"?limit=1", "", 200)
	s.call(t, http.MethodGet, strings.Replace(messages, "orders", "nobody", 1), "", 404)
	mail := strings.TrimSuffix(strings.Replace(messages, "orders", "mail", 1), "/messages")
	s.call(t, http.MethodPut, mail, `{"capabilities":[{"type":"CONSUMER_GROUPS","primaryConsumerGroupFilter":":urgent"}]}`, 202)
	s.call(t, http.MethodPost, mail+"/messages", `{"messages":[{"content":"", "metadata":{"customProperties":{"urgent":""}}},{"content":"nobody wants it"}]}`, 200)
	s.call(t, http.MethodPost, messages, `{"messages":`, 400) // refused before a use case sees it
	s.call(t, http.MethodGet, "http://"+s.rest+"/nowhere", "", 404)

	families := scrape(t, s.admin)
	for name, want := range map[string]struct {
		kind   dto.MetricType
		labels string
	}{
		"queued_queue_messages":                   {dto.MetricType_GAUGE, "queue state"},
		"queued_group_messages":                   {dto.MetricType_GAUGE, "group queue state"},
		"queued_group_messages_total":             {dto.MetricType_COUNTER, "event group queue"},
		"queued_queue_bytes":                      {dto.MetricType_GAUGE, "queue"},
		"queued_queue_oldest_message_age_seconds": {dto.MetricType_GAUGE, "queue"},
		"queued_messages_total":                   {dto.MetricType_COUNTER, "event queue"},
		"queued_requests_total":                   {dto.MetricType_COUNTER, "code face operation"},
		"queued_request_seconds":                  {dto.MetricType_HISTOGRAM, "face operation"},
		"queued_commit_group_size":                {dto.MetricType_HISTOGRAM, ""},
		"queued_sync_seconds":                     {dto.MetricType_HISTOGRAM, ""},
		"queued_waiters":                          {dto.MetricType_GAUGE, ""},
		"queued_connections":                      {dto.MetricType_GAUGE, "face"},
		"queued_disk_free_bytes":                  {dto.MetricType_GAUGE, ""},

		"queued_queues":                        {dto.MetricType_GAUGE, ""},
		"queued_in_flight_messages":            {dto.MetricType_GAUGE, ""},
		"queued_stored_bytes":                  {dto.MetricType_GAUGE, ""},
		"queued_gets_at_in_flight_limit_total": {dto.MetricType_COUNTER, "queue"},
		"queued_publishes_held_total":          {dto.MetricType_COUNTER, "queue"},
		"queued_disk_alert":                    {dto.MetricType_GAUGE, ""},
		"queued_disk_floor_bytes":              {dto.MetricType_GAUGE, "kind"},
		"queued_clock_ahead_seconds":           {dto.MetricType_GAUGE, ""},
		"queued_clock_jumps_total":             {dto.MetricType_COUNTER, ""},
		"queued_stomp_quirks_total":            {dto.MetricType_COUNTER, "kind"},
		"queued_connections_refused_total":     {dto.MetricType_COUNTER, "face"},
		"go_goroutines":                        {dto.MetricType_GAUGE, ""},
		"process_open_fds":                     {dto.MetricType_GAUGE, ""},
		"pebble_compactions_total":             {dto.MetricType_COUNTER, "kind"},
		"pebble_level_files":                   {dto.MetricType_GAUGE, "level"},
		"pebble_memtable_bytes":                {dto.MetricType_GAUGE, ""},
		"pebble_wal_bytes":                     {dto.MetricType_GAUGE, ""},
		"pebble_tombstones":                    {dto.MetricType_GAUGE, ""},
		"pebble_read_amplification":            {dto.MetricType_GAUGE, ""},
		"pebble_disk_usage_bytes":              {dto.MetricType_GAUGE, ""},
	} {
		f := families[name]
		if f == nil {
			t.Errorf("%s is not there", name)
			continue
		}
		if f.GetType() != want.kind {
			t.Errorf("%s is a %v, want a %v", name, f.GetType(), want.kind)
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if got := strings.Join(labels, " "); got != want.labels {
				t.Errorf("%s has the labels %q, want %q", name, got, want.labels)
			}
		}
	}

	// docs/metrics.md names each of ours, and no other.
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`((queued|pebble)_[a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented[name[1]] = true
	}
	for name := range families {
		if ours := strings.HasPrefix(name, "queued_") || strings.HasPrefix(name, "pebble_"); ours && !documented[name] {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
		delete(documented, name)
	}
	if len(documented) > 0 {
		t.Errorf("docs/metrics.md names what is not there: %v", slices.Sorted(maps.Keys(documented)))
	}

	want := map[string]float64{}
	for _, q := range []string{"orders", "mail"} {
		for _, state := range []string{"visible", "in_flight", "delayed", "dead"} {
			want[q+","+state] = 0
		}
	}
	want["orders,visible"], want["orders,in_flight"], want["orders,delayed"], want["mail,visible"] = 1, 1, 1, 1
	if diff := cmp.Diff(want, samples(families["queued_queue_messages"])); diff != "" {
		t.Errorf("queued_queue_messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"orders": 8, "mail": 6}, samples(families["queued_queue_bytes"])); diff != "" {
		t.Errorf("queued_queue_bytes (-want +got):\n%s", diff)
	}
	events := slices.Sorted(maps.Keys(samples(families["queued_messages_total"])))
	var wantEvents []string
	for _, event := range []string{"dead_lettered", "deleted", "delivered", "expired", "lapsed", "published", "purged", "returned", "unrouted"} {
		wantEvents = append(wantEvents, event+",mail", event+",orders")
	}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Errorf("queued_messages_total (-want +got):\n%s", diff)
	}
	if got := samples(families["queued_messages_total"]); got["published,orders"] != 3 || got["delivered,orders"] != 1 {
		t.Errorf("queued_messages_total is %v", got)
	}
	if got := samples(families["queued_group_messages"]); len(got) != 8 || got["Primary Consumer Group,mail,visible"] != 1 || got["_unrouted,mail,visible"] != 0 {
		t.Errorf("queued_group_messages is %v", got)
	}
	if got := samples(families["queued_group_messages_total"]); got["published,Primary Consumer Group,mail"] != 1 {
		t.Errorf("queued_group_messages_total is %v", got)
	}
	if got := samples(families["queued_messages_total"]); got["published,mail"] != 2 || got["unrouted,mail"] != 1 {
		t.Errorf("queued_messages_total is %v", got)
	}
	wantRequests := map[string]float64{
		"OK,rest,PutMessages": 2, "OK,rest,UpdateQueue": 1, "OK,rest,GetMessages": 1, "NotAuthorizedOrNotFound,rest,GetMessages": 1,
		"CannotParseRequest,rest,PutMessages": 1, "NotFound,rest,": 1,
	}
	if diff := cmp.Diff(wantRequests, samples(families["queued_requests_total"])); diff != "" {
		t.Errorf("queued_requests_total (-want +got):\n%s", diff)
	}
	if got := samples(families["queued_connections"]); len(got) != 5 || got["admin"] < 1 {
		t.Errorf("queued_connections is %v", got)
	}
	if got := samples(families["queued_queue_oldest_message_age_seconds"]); got["orders"] <= 0 || got["mail"] <= 0 || got["orders"] < got["mail"] {
		t.Errorf("queued_queue_oldest_message_age_seconds is %v", got)
	}
	if samples(families["queued_sync_seconds"])[""] < 1 || samples(families["queued_commit_group_size"])[""] < 1 {
		t.Error("no group was counted")
	}
}

// TestQueueLabels: two queues of one name are one series, those beyond the
// bound are _other, and no counter falls when a queue goes.
func TestQueueLabels(t *testing.T) {
	t.Parallel()
	var now broker.Snapshot
	live := func(id, name string, visible, published int64) broker.QueueSnapshot {
		q := broker.QueueSnapshot{Queue: queue.Queue{ID: queue.ID(id), DisplayName: name}, Main: queue.Stats{Visible: visible, Bytes: visible}, Full: 1, Held: 3}
		q.Events[0] = published
		return q
	}
	cfg := Default()
	cfg.MetricsQueues = 2
	c := &queueCollector{
		snapshot: func() broker.Snapshot { return now },
		age: func(id queue.ID) (time.Duration, error) {
			if id == "5" {
				return 0, errors.New("no")
			}
			return time.Duration(id[0]-'0') * time.Second, nil
		},
		cfg: &cfg, log: slog.New(slog.DiscardHandler), last: map[queue.ID]tally{}, totals: map[string]*tally{},
	}
	type row struct {
		Visible, Published, Full int64
		Age                      time.Duration
	}
	for _, tt := range []struct {
		name   string
		queues []broker.QueueSnapshot
		want   map[string]row
	}{
		{"none", nil, map[string]row{}},
		{
			"of one name",
			[]broker.QueueSnapshot{live("1", "a", 1, 10), live("2", "b", 2, 20), live("3", "a", 4, 40)},
			map[string]row{"a": {5, 50, 2, 3 * time.Second}, "b": {2, 20, 1, 2 * time.Second}},
		},
		{
			"beyond the bound",
			[]broker.QueueSnapshot{live("1", "a", 1, 11), live("2", "b", 2, 20), live("3", "a", 4, 40), live("4", "c", 8, 80), live("5", "_other", 16, 160)},
			map[string]row{"a": {5, 51, 2, 3 * time.Second}, "b": {2, 20, 1, 2 * time.Second}, "_other": {24, 240, 2, 4 * time.Second}},
		},
		{
			"gone: c moves up, and what was counted as _other stays there",
			[]broker.QueueSnapshot{live("3", "a", 4, 41), live("4", "c", 8, 88)},
			map[string]row{"a": {4, 52, 2, 3 * time.Second}, "c": {8, 8, 0, 4 * time.Second}, "_other": {0, 240, 2, 0}},
		},
		{
			"a new queue of an old name",
			[]broker.QueueSnapshot{live("3", "a", 4, 41), live("4", "c", 8, 88), live("6", "b", 0, 0)},
			map[string]row{"a": {4, 52, 2, 3 * time.Second}, "c": {8, 8, 0, 4 * time.Second}, "_other": {0, 240, 3, 0}},
		},
	} {
		now.Queues = tt.queues
		by, totals := c.label(&now)
		got := map[string]row{}
		for label, total := range totals {
			r := row{Published: total.events[0], Full: total.full}
			if total.held != 3*total.full {
				t.Errorf("%s: %s has %d held publishes for %d full gets", tt.name, label, total.held, total.full)
			}
			if q := by[label]; q != nil {
				r.Visible, r.Age = q.main.Visible, q.age
			}
			got[label] = r
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestDiskAlert: the alert changes before anything is refused.
func TestDiskAlert(t *testing.T) {
	t.Parallel()
	cfg := Default()
	publish, lease := cfg.DiskFloorPublishBytes, cfg.DiskFloorLeaseBytes
	for free, want := range map[int64]float64{
		-1: 0, 0: 3, lease - 1: 3, lease: 2, publish - 1: 2, publish: 1, publish + publish/2 - 1: 1, publish + publish/2: 0, 1 << 50: 0,
	} {
		if got := alertOf(free, &cfg); got != want {
			t.Errorf("%d octets free: alert %v, want %v", free, got, want)
		}
	}
}

func TestRequestMetrics(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	m.request("", "CreateQueue", "", 1) // the program itself
	m.request("grpc", "GetQueue", "", 0.1)
	m.request("grpc", "GetQueue", "NotFound", 0.1)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "queued_request") {
			for labels, v := range samples(f) {
				got[f.GetName()+" "+labels] = v
			}
		}
	}
	want := map[string]float64{
		"queued_requests_total OK,grpc,GetQueue": 1, "queued_requests_total NotFound,grpc,GetQueue": 1, "queued_request_seconds grpc,GetQueue": 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// BenchmarkRequestMetrics is what the metrics cost a request.
func BenchmarkRequestMetrics(b *testing.B) {
	m := newMetrics()
	b.ReportAllocs()
	for b.Loop() {
		m.request("rest", "PutMessages", "", 0.001)
	}
}

// BenchmarkScrape reads the metrics of many queues.
func BenchmarkScrape(b *testing.B) {
	cfg := Default()
	var s broker.Snapshot
	for i := range 10_000 {
		s.Queues = append(s.Queues, broker.QueueSnapshot{Queue: queue.Queue{ID: queue.ID(fmt.Sprint(i)), DisplayName: fmt.Sprint("queue-", i)}})
	}
	c := &queueCollector{
		snapshot: func() broker.Snapshot { return s },
		age:      func(queue.ID) (time.Duration, error) { return 0, nil },
		cfg:      &cfg, log: slog.New(slog.DiscardHandler), last: map[queue.ID]tally{}, totals: map[string]*tally{},
	}
	m := newMetrics()
	m.registry.MustRegister(c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
