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

// names lists all queues that the request selects, page by page.
func (c *sdk) names(r queue.ListQueuesRequest) (names []string, pages int) {
	c.t.Helper()
	for {
		page := good[queue.ListQueuesResponse](c.t)(c.admin.ListQueues(c.ctx(), r))
		for _, q := range page.Items {
			names = append(names, *q.DisplayName)
		}
		pages++
		if r.Limit != nil && len(page.Items) > *r.Limit {
			c.t.Errorf("a page of %d, limit %d", len(page.Items), *r.Limit)
		}
		if page.OpcNextPage == nil {
			return names, pages
		}
		r.Page = page.OpcNextPage
	}
}

// TestListQueues: filters, orders and pages.
func TestListQueues(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	ids := map[string]string{}
	for i, name := range []string{"delta", "alpha", "echo", "bravo", "charlie"} {
		d := queue.CreateQueueDetails{DisplayName: new(name), FreeformTags: map[string]string{"n": name}}
		if i%2 == 1 {
			d.CompartmentId = new("ocid1.compartment.oc1..odd")
		}
		ids[name] = c.create(d)
		time.Sleep(3 * time.Millisecond) // each has an instant of its own
	}
	const asc, desc = queue.ListQueuesSortOrderAsc, queue.ListQueuesSortOrderDesc
	const byName, byTime = queue.ListQueuesSortByDisplayname, queue.ListQueuesSortByTimecreated
	for _, tt := range []struct {
		what string
		r    queue.ListQueuesRequest
		want string
	}{
		{"all, newest first", queue.ListQueuesRequest{}, "charlie bravo echo alpha delta"},
		{"oldest first", queue.ListQueuesRequest{SortOrder: asc}, "delta alpha echo bravo charlie"},
		{"by time", queue.ListQueuesRequest{SortBy: byTime, SortOrder: desc}, "charlie bravo echo alpha delta"},
		{"by name", queue.ListQueuesRequest{SortBy: byName}, "alpha bravo charlie delta echo"},
		{"by name, backwards", queue.ListQueuesRequest{SortBy: byName, SortOrder: desc}, "echo delta charlie bravo alpha"},
		{"compartment", queue.ListQueuesRequest{CompartmentId: new("ocid1.compartment.oc1..odd")}, "bravo alpha"},
		{"another compartment", queue.ListQueuesRequest{CompartmentId: new("ocid1.compartment.oc1..none")}, ""},
		{"name", queue.ListQueuesRequest{DisplayName: new("echo")}, "echo"},
		{"part of a name", queue.ListQueuesRequest{DisplayName: new("ech")}, ""},
		{"name in another case", queue.ListQueuesRequest{DisplayName: new("Echo")}, ""},
		{"id", queue.ListQueuesRequest{Id: new(ids["alpha"])}, "alpha"},
		{"id and another name", queue.ListQueuesRequest{Id: new(ids["alpha"]), DisplayName: new("echo")}, ""},
		{"active", queue.ListQueuesRequest{LifecycleState: queue.QueueLifecycleStateActive, SortBy: byName}, "alpha bravo charlie delta echo"},
		{"failed", queue.ListQueuesRequest{LifecycleState: queue.QueueLifecycleStateFailed}, ""},
	} {
		for _, size := range []int{0, 1, 2, 5, 1000} {
			r := tt.r
			if size > 0 {
				r.Limit = &size
			}
			names, pages := c.names(r)
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("%s, pages of %d: %s, want %s", tt.what, size, got, tt.want)
			}
			if want := 1; size > 0 {
				want = max(1, (len(names)+size-1)/size)
				if pages != want {
					t.Errorf("%s: %d pages of %d, want %d", tt.what, pages, size, want)
				}
			}
		}
	}
	one := good[queue.ListQueuesResponse](t)(c.admin.ListQueues(t.Context(), queue.ListQueuesRequest{Id: new(ids["echo"])})).Items[0]
	if full := c.queueOf(ids["echo"]); *one.MessagesEndpoint != *full.MessagesEndpoint || !one.TimeCreated.Equal(full.TimeCreated.Time) ||
		*one.CompartmentId != *full.CompartmentId || one.FreeformTags["n"] != "echo" || one.LifecycleState != full.LifecycleState {
		t.Errorf("summary %+v", one)
	}

	// Pages stay right while queues come and go.
	first := good[queue.ListQueuesResponse](t)(c.admin.ListQueues(t.Context(), queue.ListQueuesRequest{SortBy: byName, Limit: new(2)}))
	for _, name := range []string{"bravo", "delta"} { // the last one seen, and one to come
		good[queue.DeleteQueueResponse](t)(c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: new(ids[name])}))
	}
	c.create(queue.CreateQueueDetails{DisplayName: new("abba")})
	names, _ := c.names(queue.ListQueuesRequest{SortBy: byName, Limit: new(2), Page: first.OpcNextPage})
	if got := strings.Join(names, " "); got != "charlie echo" {
		t.Errorf("further pages: %s", got)
	}
	// Deleted ones are listed when asked for only.
	for _, tt := range []struct {
		r    queue.ListQueuesRequest
		want string
	}{
		{queue.ListQueuesRequest{SortBy: byName}, "abba alpha charlie echo"},
		{queue.ListQueuesRequest{SortBy: byName, LifecycleState: queue.QueueLifecycleStateDeleted}, "bravo delta"},
		{queue.ListQueuesRequest{Id: new(ids["bravo"])}, "bravo"},
		{queue.ListQueuesRequest{DisplayName: new("bravo")}, ""},
	} {
		names, _ := c.names(tt.r)
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.r, got, tt.want)
		}
	}
}

// TestWorkRequests: every change leaves one, with its log.
func TestWorkRequests(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)
	id := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	var made []string
	add := func(work *string) { made = append(made, *work) }
	all := good[queue.ListWorkRequestsResponse](t)(c.admin.ListWorkRequests(t.Context(), queue.ListWorkRequestsRequest{}))
	add(all.Items[0].Id)
	add(good[queue.UpdateQueueResponse](t)(c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &id})).OpcWorkRequestId)
	for _, kind := range queue.GetPurgeQueueDetailsPurgeTypeEnumValues() {
		add(good[queue.PurgeQueueResponse](t)(c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &id,
			PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: kind}})).OpcWorkRequestId)
	}
	add(good[queue.ChangeQueueCompartmentResponse](t)(c.admin.ChangeQueueCompartment(t.Context(), queue.ChangeQueueCompartmentRequest{QueueId: &id,
		ChangeQueueCompartmentDetails: queue.ChangeQueueCompartmentDetails{CompartmentId: new("ocid1.compartment.oc1..b")}})).OpcWorkRequestId)
	add(good[queue.DeleteQueueResponse](t)(c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &id})).OpcWorkRequestId)

	s.Kill() // they are as durable as what they tell of
	s.Restart()
	c = connect(t, s)
	want := []queue.OperationTypeEnum{
		queue.OperationTypeCreateQueue, queue.OperationTypeUpdateQueue,
		queue.OperationTypePurgeQueue, queue.OperationTypePurgeQueue, queue.OperationTypePurgeQueue,
		queue.OperationTypeMoveQueue, queue.OperationTypeDeleteQueue,
	}
	actions := []queue.ActionTypeEnum{"CREATED", "UPDATED", "UPDATED", "UPDATED", "UPDATED", "UPDATED", "DELETED"}
	for i, work := range made {
		w := good[queue.GetWorkRequestResponse](t)(c.admin.GetWorkRequest(t.Context(), queue.GetWorkRequestRequest{WorkRequestId: &work}))
		if w.OperationType != want[i] || w.Status != queue.OperationStatusSucceeded || *w.PercentComplete != 100 || *w.Id != work ||
			w.TimeStarted == nil || w.TimeFinished == nil || w.TimeFinished.Before(w.TimeAccepted.Time) {
			t.Errorf("%s: %+v", want[i], w.WorkRequest)
		}
		if r := w.Resources; len(r) != 1 || *r[0].EntityType != "queue" || r[0].ActionType != actions[i] || *r[0].Identifier != id || *r[0].EntityUri != "/20210201/queues/"+id {
			t.Errorf("%s: resources %+v", want[i], r)
		}
		logs := good[queue.ListWorkRequestLogsResponse](t)(c.admin.ListWorkRequestLogs(t.Context(), queue.ListWorkRequestLogsRequest{WorkRequestId: &work}))
		if len(logs.Items) != 1 || *logs.Items[0].Message == "" || time.Since(logs.Items[0].Timestamp.Time) > time.Minute {
			t.Errorf("%s: logs %+v", want[i], logs.Items)
		}
		errors := good[queue.ListWorkRequestErrorsResponse](t)(c.admin.ListWorkRequestErrors(t.Context(), queue.ListWorkRequestErrorsRequest{WorkRequestId: &work, Limit: new(10)}))
		if len(errors.Items) != 0 {
			t.Errorf("%s: errors %+v", want[i], errors.Items)
		}
	}

	list := func(r queue.ListWorkRequestsRequest) (ids []string) {
		for {
			page := good[queue.ListWorkRequestsResponse](t)(c.admin.ListWorkRequests(t.Context(), r))
			for _, w := range page.Items {
				ids = append(ids, *w.Id)
			}
			if r.Page = page.OpcNextPage; r.Page == nil {
				return ids
			}
		}
	}
	newest := slices.Clone(made)
	slices.Reverse(newest)
	for _, limit := range []int{1, 2, 7, 100} {
		if diff := cmp.Diff(newest, list(queue.ListWorkRequestsRequest{Limit: &limit})); diff != "" {
			t.Errorf("pages of %d: -want +got\n%s", limit, diff)
		}
	}
	if diff := cmp.Diff(newest[2:], list(queue.ListWorkRequestsRequest{CompartmentId: new(compartment), Limit: new(2)})); diff != "" {
		t.Errorf("of a compartment: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(made[2:3], list(queue.ListWorkRequestsRequest{WorkRequestId: &made[2]})); diff != "" {
		t.Errorf("by id: -want +got\n%s", diff)
	}
	if got := list(queue.ListWorkRequestsRequest{WorkRequestId: new("ocid1.queueworkrequest.oc1.local.x")}); len(got) != 0 {
		t.Errorf("by an unknown id: %v", got)
	}
}

// TestListChannels: filters and pages, of the queue and of its dead letter
// queue.
func TestListChannels(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	id := c.create(queue.CreateQueueDetails{DisplayName: new("orders"), DeadLetterQueueDeliveryCount: new(1)})
	var want []string
	for i := range 25 {
		channel := fmt.Sprintf("%c-%02d", "ab"[i%2], i)
		want = append(want, channel)
		c.put(id, in(channel, "x"))
	}
	c.put(id, text("outside all channels"))
	slices.Sort(want)
	list := func(q, filter string, limit int) (channels []string) {
		r := queue.ListChannelsRequest{QueueId: &q, Limit: &limit}
		if filter != "" {
			r.ChannelFilter = &filter
		}
		for {
			page := good[queue.ListChannelsResponse](t)(c.data.ListChannels(t.Context(), r))
			channels = append(channels, page.Items...)
			if r.Page = page.OpcNextPage; r.Page == nil {
				return channels
			}
		}
	}
	for _, limit := range []int{1, 7, 25, 1000} {
		if diff := cmp.Diff(want, list(id, "", limit)); diff != "" {
			t.Errorf("pages of %d: -want +got\n%s", limit, diff)
		}
	}
	if diff := cmp.Diff(want[:13], list(id, "a-*", 4)); diff != "" {
		t.Errorf("filtered: -want +got\n%s", diff)
	}
	if got := list(id, "a-00", 10); len(got) != 1 || got[0] != "a-00" {
		t.Errorf("exact: %v", got)
	}
	if got := list(id, "c*", 10); len(got) != 0 {
		t.Errorf("none: %v", got)
	}

	// One that is emptied is gone; one whose message moved is listed there.
	c.delete(id, c.get(id, filter("a-00"))[0])
	if got := c.get(id, filter("b-01"), hidden(0)); len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	for deadline := time.Now().Add(5 * time.Second); len(list(id+"_dlq", "", 10)) == 0 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if got := list(id+"_dlq", "", 10); len(got) != 1 || got[0] != "b-01" {
		t.Errorf("dead letters in %v", got)
	}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "a-00" || s == "b-01" })
	if diff := cmp.Diff(want, list(id, "", 10)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
