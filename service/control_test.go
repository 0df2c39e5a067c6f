package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// A work request can be read the instant its operation is answered, finished,
// with the queue in it and what was done to it.
func (h *house) wantWork(id string, op queue.OperationType, action queue.ActionType, q queue.ID, compartment string) {
	h.Helper()
	now := h.s.broker.Now()
	got := h.work(id)
	got.Logs = nil
	wanted := queue.WorkRequest{
		ID: id, Operation: op, Status: queue.Succeeded, CompartmentID: compartment, Percent: 100,
		AcceptedAt: now, StartedAt: now, FinishedAt: now,
		Resources: []queue.WorkResource{{EntityType: "queue", Action: action, Identifier: string(q), EntityURI: "/20210201/queues/" + string(q)}},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		h.Error(diff)
	}
}

func TestLifeOfAQueue(t *testing.T) {
	const root = "ocid1.tenancy.oc1..local"
	inHouse(t, Options{PublicURL: "https://mq.example"}, func(h *house) {
		made := h.create("orders", nil)
		if made.DisplayName != "orders" || made.LifecycleState != queue.Active {
			h.Errorf("made %+v", made)
		}
		h.wantWork(made.WorkRequestID, queue.CreateQueue, queue.ActionCreated, made.ID, root)
		bornAt := h.s.broker.Now()
		first, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: "orders"})
		h.want(err, "", "")
		q := first.Queue
		if q.MessagesEndpoint != "https://mq.example" || q.CreatedAt != bornAt || q.UpdatedAt != bornAt || q.CompartmentID != root {
			h.Errorf("%+v", q)
		}

		time.Sleep(time.Second)
		stale := etag(99)
		_, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", IfMatch: &stale, TimeoutInSeconds: p(int32(1))})
		h.want(err, queue.NoEtagMatch, "")
		_, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", VisibilityInSeconds: p(int32(0))})
		h.want(err, queue.InvalidParameter, "visibilityInSeconds is 0; it must be 1 to 43200")
		resp, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", IfMatch: &first.ETag, DisplayName: p("orders-2"), VisibilityInSeconds: p(int32(11))})
		h.want(err, "", "")
		h.wantWork(resp.WorkRequestID, queue.UpdateQueue, queue.ActionUpdated, made.ID, root)
		second, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: "orders-2"})
		h.want(err, "", "")
		q = second.Queue
		if q.Visibility != 11*time.Second || q.PollingTimeout != 30*time.Second || q.CreatedAt != bornAt || q.UpdatedAt != bornAt.Add(time.Second) || second.ETag == first.ETag {
			h.Errorf("after the update %+v, etag %q, was %q", q, second.ETag, first.ETag)
		}

		resp, err = h.s.ChangeQueueCompartment(h.ctx, ChangeQueueCompartmentRequest{QueueRef: string(made.ID), IfMatch: &second.ETag, CompartmentID: p("ocid1.compartment.x")})
		h.want(err, "", "")
		h.wantWork(resp.WorkRequestID, queue.MoveQueue, queue.ActionUpdated, made.ID, "ocid1.compartment.x")
		_, err = h.s.ChangeQueueCompartment(h.ctx, ChangeQueueCompartmentRequest{QueueRef: "orders-2"})
		h.want(err, queue.MissingParameter, "compartmentId is missing")
		_, err = h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: "orders-2", IfMatch: &second.ETag})
		h.want(err, queue.NoEtagMatch, "")
		resp, err = h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: "orders-2", IfMatch: p("*")})
		h.want(err, "", "")
		h.wantWork(resp.WorkRequestID, queue.DeleteQueue, queue.ActionDeleted, made.ID, "ocid1.compartment.x")
	})
}

func TestMessagesEndpointFollowsTheRequest(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", nil)
		ctx := WithCaller(h.ctx, &Caller{Face: FaceREST, BaseURL: "http://127.0.0.1:8080"})
		resp, err := h.s.GetQueue(ctx, GetQueueRequest{QueueRef: "orders"})
		h.want(err, "", "")
		list, err := h.s.ListQueues(ctx, ListQueuesRequest{})
		h.want(err, "", "")
		for _, got := range []string{resp.Queue.MessagesEndpoint, list.Items[0].MessagesEndpoint} {
			if got != "http://127.0.0.1:8080" {
				h.Errorf("messagesEndpoint is %q", got)
			}
		}
	})
}

func TestCreateRetryToken(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		with := func(token string) func(*CreateQueueRequest) {
			return func(r *CreateQueueRequest) { r.RetryToken = &token }
		}
		first := h.create("orders", with("t"))
		if again := h.create("orders", with("t")); again != first {
			h.Errorf("again: %+v, first %+v", again, first)
		}
		if other := h.create("orders", with("u")); other.ID == first.ID {
			h.Error("another token gave the same queue")
		}
		if other := h.create("orders", nil); other.ID == first.ID {
			h.Error("no token gave the same queue")
		}
		_, err := h.s.CreateQueue(h.ctx, CreateQueueRequest{DisplayName: p("bills"), RetryToken: p("t")})
		h.want(err, queue.InvalidParameter, "")
		h.delete(string(first.ID))
		_, err = h.s.CreateQueue(h.ctx, CreateQueueRequest{DisplayName: p("orders"), RetryToken: p("t")})
		h.want(err, queue.InvalidatedRetryToken, "")
		time.Sleep(24 * time.Hour)
		if late := h.create("orders", with("t")); late.ID == first.ID {
			h.Error("the token outlived its day")
		}
	})
}

// Deleted queues do not count, and a retry of the last create is not one more.
func TestQueuesPerTenancy(t *testing.T) {
	l := limits.OCI()
	l.QueuesPerTenancy = 2
	inHouse(t, Options{Limits: &l}, func(h *house) {
		h.create("a", nil)
		token := func(r *CreateQueueRequest) { r.RetryToken = p("t") }
		b := h.create("b", token)
		_, err := h.s.CreateQueue(h.ctx, CreateQueueRequest{DisplayName: p("c")})
		h.want(err, queue.LimitExceeded, "the tenancy has 2 queues; it may have 2 (limits.queues-per-tenancy)")
		if again := h.create("b", token); again != b {
			h.Errorf("%+v, want %+v", again, b)
		}
		h.delete("a")
		h.create("c", nil)
	})
}

func TestEnsureQueue(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		r := CreateQueueRequest{DisplayName: p("orders")}
		first, made, err := h.s.EnsureQueue(h.ctx, r)
		if err != nil || !made {
			h.Fatal(made, err)
		}
		if again, made, err := h.s.EnsureQueue(h.ctx, r); err != nil || made || again != first {
			h.Errorf("again: %q, %v, %v", again, made, err)
		}
		h.delete("orders")
		if next, made, err := h.s.EnsureQueue(h.ctx, r); err != nil || !made || next == first {
			h.Errorf("after it was deleted: %q, %v, %v", next, made, err)
		}
		_, _, err = h.s.EnsureQueue(h.ctx, CreateQueueRequest{})
		h.want(err, queue.MissingParameter, "")
	})
}

// names lists everything page by page; between pages it calls between.
func (h *house) names(r ListQueuesRequest, between func()) (names []string) {
	h.Helper()
	for {
		resp, err := h.s.ListQueues(h.ctx, r)
		if err != nil {
			h.Fatal(err)
		}
		for _, q := range resp.Items {
			names = append(names, q.DisplayName)
		}
		if resp.NextPage == "" {
			return names
		}
		r.Page = &resp.NextPage
		if between != nil {
			between()
		}
	}
}

func TestListQueues(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		ids := map[string]string{}
		for _, name := range []string{"mango", "apple", "zebra"} {
			ids[name] = string(h.create(name, func(r *CreateQueueRequest) {
				if name == "apple" {
					r.CompartmentID = p("ocid1.compartment.x")
				}
			}).ID)
			time.Sleep(time.Millisecond)
		}
		ids["gone"] = string(h.create("gone", nil).ID)
		h.delete("gone")
		for name, c := range map[string]struct {
			in   ListQueuesRequest
			want string
		}{
			"newest first":   {ListQueuesRequest{}, "zebra apple mango"},
			"oldest first":   {ListQueuesRequest{SortOrder: p("asc")}, "mango apple zebra"},
			"names from A":   {ListQueuesRequest{SortBy: p("displayName")}, "apple mango zebra"},
			"names from Z":   {ListQueuesRequest{SortBy: p("displayName"), SortOrder: p("DESC")}, "zebra mango apple"},
			"pages of one":   {ListQueuesRequest{Limit: p(int32(1))}, "zebra apple mango"},
			"a compartment":  {ListQueuesRequest{CompartmentID: p("ocid1.compartment.x")}, "apple"},
			"a name":         {ListQueuesRequest{DisplayName: p("mango")}, "mango"},
			"part of a name": {ListQueuesRequest{DisplayName: p("mang")}, ""},
			"an id":          {ListQueuesRequest{ID: p(ids["zebra"])}, "zebra"},
			"a deleted id":   {ListQueuesRequest{ID: p(ids["gone"])}, "gone"},
			"deleted":        {ListQueuesRequest{LifecycleState: p("DELETED")}, "gone"},
			"active":         {ListQueuesRequest{LifecycleState: p("active"), SortOrder: p("ASC")}, "mango apple zebra"},
			"two filters":    {ListQueuesRequest{DisplayName: p("mango"), CompartmentID: p("ocid1.compartment.x")}, ""},
		} {
			if got := strings.Join(h.names(c.in, nil), " "); got != c.want {
				h.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
		for _, bad := range []ListQueuesRequest{
			{LifecycleState: p("SLEEPING")}, {SortBy: p("id")}, {SortOrder: p("sideways")},
			{Limit: p(int32(0))}, {Limit: p(int32(1001))}, {Page: p("made up")}, {Page: p("")},
		} {
			_, err := h.s.ListQueues(h.ctx, bad)
			h.want(err, queue.InvalidParameter, "")
		}
	})
}

// Who is there from the first page to the last is listed once.
func TestListQueuesIsStable(t *testing.T) {
	l := limits.Unthrottled()
	inHouse(t, Options{Limits: &l}, func(h *house) {
		var stay []string
		for i := range 30 {
			name := fmt.Sprintf("q%02d", i*7%30)
			h.create(name, nil)
			if i%3 != 0 {
				stay = append(stay, name)
			}
			if i%4 == 0 { // many are made in the same millisecond
				time.Sleep(time.Millisecond)
			}
		}
		slices.Sort(stay)
		churn := 0
		between := func() {
			h.create(fmt.Sprintf("new%d", churn), nil)
			if name := fmt.Sprintf("q%02d", churn*3*7%30); churn < 10 {
				h.delete(name)
			}
			churn++
		}
		for _, by := range []string{"timeCreated", "displayName"} {
			for _, order := range []string{"ASC", "DESC"} {
				got := h.names(ListQueuesRequest{SortBy: &by, SortOrder: &order, Limit: p(int32(4))}, between)
				got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(stay, name) })
				slices.Sort(got)
				if diff := cmp.Diff(stay, got); diff != "" {
					h.Errorf("by %s %s: %s", by, order, diff)
				}
			}
		}
	})
}

func TestPurge(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		id := h.create("orders", func(r *CreateQueueRequest) { r.DeadLetterQueueDeliveryCount = p(int32(1)) }).ID
		fill := func() {
			h.put("orders", "north", "dead")
			h.get("orders", 1)
			time.Sleep(2 * time.Second)
			h.put("orders", "north", "a", "b")
			h.put("orders", "south", "c")
			h.put("orders", "", "d")
		}
		fill()
		before, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: "orders"})
		h.want(err, "", "")
		purge := func(r PurgeQueueRequest, main, dead int64) {
			h.Helper()
			r.QueueRef = "orders"
			resp, err := h.s.PurgeQueue(h.ctx, r)
			h.want(err, "", "")
			h.wantWork(resp.WorkRequestID, queue.PurgeQueue, queue.ActionUpdated, id, "ocid1.tenancy.oc1..local")
			if m, d := h.stats("orders"); m.Visible != main || d.Visible != dead {
				h.Errorf("left %+v and dead %+v, want %d and %d", m, d, main, dead)
			}
		}
		purge(PurgeQueueRequest{PurgeType: p("normal"), ChannelIDs: []string{"north", "nothing"}}, 2, 1)
		purge(PurgeQueueRequest{PurgeType: p("DLQ"), ChannelIDs: []string{"south"}}, 2, 1)
		purge(PurgeQueueRequest{PurgeType: p("DLQ"), IfMatch: &before.ETag, ConsumerGroupID: p("all")}, 2, 0)
		fill()
		purge(PurgeQueueRequest{PurgeType: p("BOTH"), ChannelIDs: []string{}}, 0, 0)
		_, err = h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: "orders", PurgeType: p("BOTH"), IfMatch: p("x")})
		h.want(err, queue.NoEtagMatch, "")
		_, err = h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: "orders"})
		h.want(err, queue.MissingParameter, "")
		if after, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: "orders"}); err != nil || after.ETag != before.ETag {
			h.Errorf("etag %q, was %q, %v", after.ETag, before.ETag, err)
		}
	})
}

func TestWorkRequests(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		var ids []string
		for i := range 5 {
			ids = append(ids, h.create("orders", func(r *CreateQueueRequest) {
				if i == 1 {
					r.CompartmentID = p("ocid1.compartment.x")
				}
			}).WorkRequestID)
			time.Sleep(time.Millisecond)
		}
		slices.Reverse(ids)
		list := func(r ListWorkRequestsRequest) (got []string) {
			h.Helper()
			for {
				resp, err := h.s.ListWorkRequests(h.ctx, r)
				if err != nil {
					h.Fatal(err)
				}
				for _, w := range resp.Items {
					got = append(got, w.ID)
				}
				if resp.NextPage == "" {
					return got
				}
				r.Page = &resp.NextPage
				h.create("more", nil)
				time.Sleep(time.Millisecond)
			}
		}
		if diff := cmp.Diff(ids, list(ListWorkRequestsRequest{})); diff != "" {
			h.Error(diff)
		}
		if diff := cmp.Diff(ids, list(ListWorkRequestsRequest{Limit: p(int32(2))})); diff != "" {
			h.Error(diff)
		}
		if diff := cmp.Diff(ids[3:4], list(ListWorkRequestsRequest{CompartmentID: p("ocid1.compartment.x")})); diff != "" {
			h.Error(diff)
		}
		if diff := cmp.Diff(ids[2:3], list(ListWorkRequestsRequest{WorkRequestID: &ids[2]})); diff != "" {
			h.Error(diff)
		}
		if got := list(ListWorkRequestsRequest{WorkRequestID: p("nothing")}); len(got) != 0 {
			h.Error(got)
		}

		logs, err := h.s.ListWorkRequestLogs(h.ctx, ListWorkRequestLogsRequest{WorkRequestID: ids[0]})
		if err != nil || len(logs.Items) != 1 || logs.Items[0].Message != "queue created" || logs.NextPage != "" {
			h.Errorf("%+v, %v", logs, err)
		}
		errs, err := h.s.ListWorkRequestErrors(h.ctx, ListWorkRequestErrorsRequest{WorkRequestID: ids[0]})
		if err != nil || len(errs.Items) != 0 || errs.NextPage != "" {
			h.Errorf("%+v, %v", errs, err)
		}

		_, err = h.s.GetWorkRequest(h.ctx, GetWorkRequestRequest{WorkRequestID: "nothing"})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
		_, err = h.s.ListWorkRequestLogs(h.ctx, ListWorkRequestLogsRequest{WorkRequestID: "nothing"})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
		_, err = h.s.ListWorkRequestErrors(h.ctx, ListWorkRequestErrorsRequest{WorkRequestID: "nothing"})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
		_, err = h.s.ListWorkRequestLogs(h.ctx, ListWorkRequestLogsRequest{WorkRequestID: ids[0], Page: p("made up")})
		h.want(err, queue.InvalidParameter, "")
		_, err = h.s.ListWorkRequests(h.ctx, ListWorkRequestsRequest{Page: p("made up")})
		h.want(err, queue.InvalidParameter, "")
		_, err = h.s.ListWorkRequests(h.ctx, ListWorkRequestsRequest{Limit: p(int32(0))})
		h.want(err, queue.InvalidParameter, "")
	})
}
