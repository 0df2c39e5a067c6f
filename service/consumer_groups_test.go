package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/queue"
)

// withGroups asks for CONSUMER_GROUPS with the defaults.
func withGroups(r *CreateQueueRequest) {
	r.Capabilities = append(r.Capabilities, CapabilityDetails{Type: "CONSUMER_GROUPS"})
}

// group makes a consumer group, all by default or as change says.
func (h *house) group(ref, name string, change func(*CreateConsumerGroupRequest)) CreateConsumerGroupResponse {
	h.Helper()
	r := CreateConsumerGroupRequest{QueueID: &ref, DisplayName: &name}
	if change != nil {
		change(&r)
	}
	resp, err := h.s.CreateConsumerGroup(h.ctx, r)
	if err != nil {
		h.Fatal(err)
	}
	return resp
}

// read is a consumer group as it is now, and its etag.
func (h *house) read(ref string) (queue.ConsumerGroup, string) {
	h.Helper()
	resp, err := h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: ref})
	if err != nil {
		h.Fatal(err)
	}
	return resp.ConsumerGroup, resp.ETag
}

// change updates a group, which must go well.
func (h *house) change(r UpdateConsumerGroupRequest) WorkRequestResponse {
	h.Helper()
	resp, err := h.s.UpdateConsumerGroup(h.ctx, r)
	if err != nil {
		h.Fatal(err)
	}
	return resp
}

// wantResources checks what a finished work request says it has touched.
func (h *house) wantResources(id string, op queue.OperationType, resources ...queue.WorkResource) {
	h.Helper()
	w := h.work(id)
	if w.Operation != op || w.Status != queue.Succeeded || w.Percent != 100 || w.FinishedAt == 0 || len(w.Logs) != 1 || w.CompartmentID != "ocid1.tenancy.oc1..local" {
		h.Errorf("%+v, want %s", w, op)
	}
	if diff := cmp.Diff(resources, w.Resources); diff != "" {
		h.Error(diff)
	}
}

func queueResource(id queue.ID, action queue.ActionType) queue.WorkResource {
	return queue.WorkResource{EntityType: "queue", Action: action, Identifier: string(id), EntityURI: "/20210201/queues/" + string(id)}
}

// primaryOf is the primary group of a queue that has groups.
func (h *house) primaryOf(ref string) queue.ConsumerGroup {
	h.Helper()
	list, err := h.s.ListConsumerGroups(h.ctx, ListConsumerGroupsRequest{QueueID: &ref})
	h.want(err, "", "")
	for _, g := range list.Items {
		if g.Primary() {
			return g
		}
	}
	h.Fatal("there is no primary group")
	return queue.ConsumerGroup{}
}

// The capability makes the primary group, at creation and later; the work
// request lists the queue first.
func TestPrimaryGroup(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		made := h.create("orders", withGroups)
		g := h.primaryOf("orders")
		wanted := queue.ConsumerGroup{
			ID: g.ID, QueueID: made.ID, DisplayName: "Primary Consumer Group", State: queue.Active,
			CreatedAt: h.s.Now(), UpdatedAt: h.s.Now(), Version: g.Version,
		}
		if diff := cmp.Diff(wanted, g); diff != "" || !strings.HasPrefix(string(g.ID), "ocid1.queueconsumergroup.oc1.local.") {
			h.Error(g.ID, diff)
		}
		h.wantResources(made.WorkRequestID, queue.CreateQueue,
			queueResource(made.ID, queue.ActionCreated), groupResource(g.ID, queue.ActionCreated))

		// All its settings, at an update; and what the queue holds is its own.
		later := h.create("bills", nil)
		h.put("bills", "", "before")
		details := CapabilityDetails{
			Type:                            "consumer_groups",
			IsPrimaryConsumerGroupEnabled:   p(false),
			PrimaryConsumerGroupDisplayName: p("first"),
			PrimaryConsumerGroupFilter:      p(":kind"),
			PrimaryConsumerGroupDeadLetterQueueDeliveryCount: p(int32(0)),
		}
		resp, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "bills", Capabilities: []CapabilityDetails{details}})
		h.want(err, "", "")
		g = h.primaryOf("bills")
		h.wantResources(resp.WorkRequestID, queue.UpdateQueue,
			queueResource(later.ID, queue.ActionUpdated), groupResource(g.ID, queue.ActionCreated))
		if g.DisplayName != "first" || g.State != queue.Inactive || g.Filter != ":kind" || g.DeadLetterDeliveryCount == nil || *g.DeadLetterDeliveryCount != 0 {
			h.Errorf("%+v", g)
		}
		if main, _ := h.stats("bills"); main.Visible != 1 {
			h.Errorf("the primary group has %+v", main)
		}

		// Listed again, the capability changes nothing, whatever it says.
		details.PrimaryConsumerGroupDisplayName, details.PrimaryConsumerGroupFilter = p("second"), p("")
		details.IsPrimaryConsumerGroupEnabled = p(true)
		resp, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "bills", Capabilities: []CapabilityDetails{details}})
		h.want(err, "", "")
		h.wantResources(resp.WorkRequestID, queue.UpdateQueue, queueResource(later.ID, queue.ActionUpdated))
		if diff := cmp.Diff(g, h.primaryOf("bills")); diff != "" {
			h.Error(diff)
		}
	})
}

func TestPrimaryGroupForm(t *testing.T) {
	for text, d := range map[string]CapabilityDetails{
		"DisplayName has 0 characters; it must have 1 to 255":    {PrimaryConsumerGroupDisplayName: p("")},
		"DeadLetterQueueDeliveryCount is 21; it must be 0 to 20": {PrimaryConsumerGroupDeadLetterQueueDeliveryCount: p(int32(21))},
		"DeadLetterQueueDeliveryCount is -1; it must be 0 to 20": {PrimaryConsumerGroupDeadLetterQueueDeliveryCount: p(int32(-1))},
		"Filter: position 6: ":                                   {PrimaryConsumerGroupFilter: p(":a = ")}, // what follows is the filter's own
		"Filter: position 1025: ":                                {PrimaryConsumerGroupFilter: p(strings.Repeat("x", 1025))},
	} {
		d.Type = "CONSUMER_GROUPS"
		c, err := formOnly().readCapabilities([]CapabilityDetails{{Type: "LARGE_MESSAGES"}, d})
		want(t, err, "", "")
		_, err = c.add(&queue.Queue{})
		want(t, err, queue.InvalidParameter, "")
		if got := queue.MessageOf(err); !strings.HasPrefix(got, "capabilities[1].primaryConsumerGroup"+text) {
			t.Errorf("%s, want %s", got, text)
		}
	}
}

func TestLifeOfAGroup(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		of := h.create("orders", withGroups)
		made := h.group("orders", "billing", func(r *CreateConsumerGroupRequest) {
			r.Filter, r.DeadLetterQueueDeliveryCount = p(":kind = 'bill'"), p(int32(3))
			r.FreeformTags = map[string]string{"a": "b"}
			r.DefinedTags = map[string]map[string]json.RawMessage{"ops": {"x": []byte("1")}}
		})
		if made.DisplayName != "billing" || made.LifecycleState != queue.Active {
			h.Errorf("%+v", made)
		}
		h.wantResources(made.WorkRequestID, queue.CreateConsumerGroup, groupResource(made.ID, queue.ActionCreated))
		bornAt := h.s.Now()
		wanted := queue.ConsumerGroup{
			ID: made.ID, QueueID: of.ID, Number: 1, DisplayName: "billing", Filter: ":kind = 'bill'", State: queue.Active, DeadLetterDeliveryCount: p(3),
			CreatedAt: bornAt, UpdatedAt: bornAt,
			FreeformTags: map[string]string{"a": "b"}, DefinedTags: map[string]map[string]json.RawMessage{"ops": {"x": []byte("1")}},
		}
		id, tags := string(made.ID), map[string]bool{}
		same := func(what string) {
			h.Helper()
			got, tag := h.read(id)
			if tags[tag] {
				h.Errorf("%s: the etag stays", what)
			}
			tags[tag] = true
			got.Version = 0
			if diff := cmp.Diff(wanted, got); diff != "" {
				h.Errorf("%s: %s", what, diff)
			}
		}
		same("made")

		for _, c := range []struct {
			what string
			r    UpdateConsumerGroupRequest
			then func()
		}{
			{"name", UpdateConsumerGroupRequest{DisplayName: p("Bills")}, func() { wanted.DisplayName = "Bills" }},
			{"name in another case", UpdateConsumerGroupRequest{DisplayName: p("BILLS")}, func() { wanted.DisplayName = "BILLS" }},
			{"filter", UpdateConsumerGroupRequest{Filter: p("")}, func() { wanted.Filter = "" }},
			{"disabled", UpdateConsumerGroupRequest{IsEnabled: p(false)}, func() { wanted.State = queue.Inactive }},
			{"count", UpdateConsumerGroupRequest{DeadLetterQueueDeliveryCount: p(int32(0))}, func() { wanted.DeadLetterDeliveryCount = p(0) }},
			{"no count", UpdateConsumerGroupRequest{DeadLetterQueueDeliveryCount: p(int32(-1))}, func() { wanted.DeadLetterDeliveryCount = nil }},
			{"enabled", UpdateConsumerGroupRequest{IsEnabled: p(true)}, func() { wanted.State = queue.Active }},
			{"tags", UpdateConsumerGroupRequest{FreeformTags: map[string]string{}, DefinedTags: map[string]map[string]json.RawMessage{}}, func() {
				wanted.FreeformTags, wanted.DefinedTags = map[string]string{}, map[string]map[string]json.RawMessage{}
			}},
			{"nothing", UpdateConsumerGroupRequest{}, func() {}},
		} {
			time.Sleep(time.Second)
			c.r.ConsumerGroupID = id
			resp := h.change(c.r)
			h.wantResources(resp.WorkRequestID, queue.UpdateConsumerGroup, groupResource(made.ID, queue.ActionUpdated))
			c.then()
			wanted.UpdatedAt = h.s.Now()
			same(c.what)
		}

		_, err := h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: id, IfMatch: p(etag(1))})
		h.want(err, queue.NoEtagMatch, "")
		_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: id, IfMatch: p(etag(1))})
		h.want(err, queue.NoEtagMatch, "")
		_, now := h.read(id)
		resp, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "bills", IfMatch: &now}) // by name, whatever the case
		h.want(err, "", "")
		h.wantResources(resp.WorkRequestID, queue.DeleteConsumerGroup, groupResource(made.ID, queue.ActionDeleted))
		wanted.State = queue.Deleted
		same("deleted")
		for _, ref := range []string{id, "bills"} {
			_, err = h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: ref})
			h.want(err, queue.NotAuthorizedOrNotFound, "")
			_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: ref})
			h.want(err, queue.NotAuthorizedOrNotFound, "")
		}
		_, err = h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: "bills"})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
	})
}

func TestCreateConsumerGroupRefuses(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		h.create("plain", nil)
		gone := h.create("gone", withGroups)
		h.delete("gone")
		h.group("orders", "Billing", nil)
		for name, c := range map[string]struct {
			change func(*CreateConsumerGroupRequest)
			code   queue.Code
			text   string
		}{
			"no name":         {func(r *CreateConsumerGroupRequest) { r.DisplayName = nil }, queue.MissingParameter, "displayName is missing"},
			"no queue":        {func(r *CreateConsumerGroupRequest) { r.QueueID = nil }, queue.MissingParameter, "queueId is missing"},
			"empty name":      {func(r *CreateConsumerGroupRequest) { r.DisplayName = p("") }, queue.InvalidParameter, "displayName has 0 characters; it must have 1 to 255"},
			"taken":           {func(r *CreateConsumerGroupRequest) { r.DisplayName = p("billing") }, queue.NotAuthorizedOrResourceAlreadyExists, `a consumer group of the queue bears the displayName "Billing" already`},
			"the primary's":   {func(r *CreateConsumerGroupRequest) { r.DisplayName = p("primary consumer group") }, queue.NotAuthorizedOrResourceAlreadyExists, ""},
			"unknown queue":   {func(r *CreateConsumerGroupRequest) { r.QueueID = p("none") }, queue.RelatedResourceNotAuthorizedOrNotFound, `queue "none", which queueId names, is not known, or you may not use it so`},
			"deleted queue":   {func(r *CreateConsumerGroupRequest) { r.QueueID = p(string(gone.ID)) }, queue.RelatedResourceNotAuthorizedOrNotFound, ""},
			"plain queue":     {func(r *CreateConsumerGroupRequest) { r.QueueID = p("plain") }, queue.InvalidParameter, "queueId names a queue, but the queue does not have the capability CONSUMER_GROUPS"},
			"dead":            {func(r *CreateConsumerGroupRequest) { r.QueueID = p("orders_dlq") }, queue.InvalidParameter, ""},
			"count":           {func(r *CreateConsumerGroupRequest) { r.DeadLetterQueueDeliveryCount = p(int32(-1)) }, queue.InvalidParameter, "deadLetterQueueDeliveryCount is -1; it must be 0 to 20"},
			"tags":            {func(r *CreateConsumerGroupRequest) { r.FreeformTags = map[string]string{"": ""} }, queue.InvalidParameter, ""},
			"token":           {func(r *CreateConsumerGroupRequest) { r.RetryToken = p("") }, queue.InvalidParameter, ""},
			"filter too long": {func(r *CreateConsumerGroupRequest) { r.Filter = p(strings.Repeat("x", 1025)) }, queue.InvalidParameter, ""},
		} {
			r := CreateConsumerGroupRequest{QueueID: p("orders"), DisplayName: p("shipping")}
			c.change(&r)
			_, err := h.s.CreateConsumerGroup(h.ctx, r)
			if got := queue.CodeOf(err); got != c.code || c.text != "" && queue.MessageOf(err) != c.text {
				h.Errorf("%s: %v, want %s %q", name, err, c.code, c.text)
			}
		}
		r := CreateConsumerGroupRequest{QueueID: p("orders"), DisplayName: p("shipping"), Filter: p(":a AND AND")}
		_, err := h.s.CreateConsumerGroup(h.ctx, r)
		h.want(err, queue.InvalidParameter, "")
		if !strings.HasPrefix(queue.MessageOf(err), "filter: position 8: ") {
			h.Error(err)
		}
		_, err = h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: "billing", Filter: r.Filter})
		h.want(err, queue.InvalidParameter, "")
		_, err = h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: "billing", DisplayName: p("PRIMARY Consumer Group")})
		h.want(err, queue.NotAuthorizedOrResourceAlreadyExists, "")
		_, err = h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: "billing", DeadLetterQueueDeliveryCount: p(int32(-2))})
		h.want(err, queue.InvalidParameter, "deadLetterQueueDeliveryCount is -2; it must be 0 to 20")
		_, err = h.s.UpdateConsumerGroup(h.ctx, UpdateConsumerGroupRequest{ConsumerGroupID: "none"})
		h.want(err, queue.NotAuthorizedOrNotFound, `consumer group "none" is not known, or you may not use it so`)
		primary := h.primaryOf("orders")
		_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: string(primary.ID)})
		h.want(err, queue.Conflict, "")
		if g, _ := h.read(string(primary.ID)); g.State != queue.Active {
			h.Errorf("%+v", g)
		}
	})
}

// Ten groups, the primary one included; deleted ones do not count.
func TestGroupsPerQueue(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		h.create("others", withGroups)
		h.group("others", "g", nil)
		for i := range 9 {
			h.group("orders", fmt.Sprint("g", i), nil)
		}
		more := CreateConsumerGroupRequest{QueueID: p("orders"), DisplayName: p("more")}
		_, err := h.s.CreateConsumerGroup(h.ctx, more)
		h.want(err, queue.LimitExceeded, "the queue has 10 consumer groups; it may have 10 (limits.groups-per-queue)")
		_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "g3"})
		h.want(err, "", "")
		_, err = h.s.CreateConsumerGroup(h.ctx, more)
		h.want(err, "", "")
	})
}

// Tokens of groups and of queues are apart, and outlive their day no more than
// those of queues.
func TestGroupRetryToken(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", func(r *CreateQueueRequest) { withGroups(r); r.RetryToken = p("t") })
		with := func(token string) func(*CreateConsumerGroupRequest) {
			return func(r *CreateConsumerGroupRequest) { r.RetryToken = &token }
		}
		first := h.group("orders", "billing", with("t"))
		if again := h.group("orders", "billing", with("t")); again != first {
			h.Errorf("again %+v, first %+v", again, first)
		}
		once := CreateConsumerGroupRequest{QueueID: p("orders"), DisplayName: p("billing"), RetryToken: p("u")}
		_, err := h.s.CreateConsumerGroup(h.ctx, once)
		h.want(err, queue.NotAuthorizedOrResourceAlreadyExists, "")
		once.RetryToken, once.Filter = p("t"), p(":a")
		_, err = h.s.CreateConsumerGroup(h.ctx, once)
		h.want(err, queue.InvalidParameter, "opc-retry-token was used for another consumer group; use a new one for a new request")
		_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: string(first.ID)})
		h.want(err, "", "")
		once.Filter = nil
		_, err = h.s.CreateConsumerGroup(h.ctx, once)
		h.want(err, queue.InvalidatedRetryToken, "")
		time.Sleep(24 * time.Hour)
		if late := h.group("orders", "billing", with("t")); late.ID == first.ID {
			h.Error("the token outlived its day")
		}
	})
}

func TestListConsumerGroups(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		orders := h.create("orders", withGroups)
		h.create("bills", withGroups)
		h.create("plain", nil)
		for i, name := range []string{"b", "a", "d", "c"} {
			time.Sleep(time.Second)
			h.group("orders", name, func(r *CreateConsumerGroupRequest) { r.IsEnabled = p(i != 1) })
		}
		gone := h.group("orders", "gone", nil)
		_, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "gone"})
		h.want(err, "", "")
		const primary = "Primary Consumer Group"
		names := func(r ListConsumerGroupsRequest) (names []string) {
			h.Helper()
			for {
				resp, err := h.s.ListConsumerGroups(h.ctx, r)
				if err != nil {
					h.Fatal(err)
				}
				for _, g := range resp.Items {
					names = append(names, g.DisplayName)
				}
				if r.Page = &resp.NextPage; resp.NextPage == "" {
					return names
				}
			}
		}
		for what, c := range map[string]struct {
			r    ListConsumerGroupsRequest
			want []string
		}{
			"of a queue":         {ListConsumerGroupsRequest{QueueID: p(string(orders.ID))}, []string{"c", "d", "a", "b", primary}},
			"of a queue by name": {ListConsumerGroupsRequest{QueueID: p("orders")}, []string{"c", "d", "a", "b", primary}},
			"in pages":           {ListConsumerGroupsRequest{QueueID: p("orders"), Limit: p(int32(2))}, []string{"c", "d", "a", "b", primary}},
			"oldest first":       {ListConsumerGroupsRequest{QueueID: p("orders"), SortOrder: p("asc")}, []string{primary, "b", "a", "d", "c"}},
			"by name":            {ListConsumerGroupsRequest{SortBy: p("displayName")}, []string{primary, primary, "a", "b", "c", "d"}},
			"by name in pages":   {ListConsumerGroupsRequest{SortBy: p("displayName"), Limit: p(int32(1))}, []string{primary, primary, "a", "b", "c", "d"}},
			"inactive":           {ListConsumerGroupsRequest{LifecycleState: p("inactive")}, []string{"a"}},
			"active":             {ListConsumerGroupsRequest{LifecycleState: p("ACTIVE"), SortBy: p("displayName"), SortOrder: p("DESC")}, []string{"d", "c", "b", primary, primary}},
			"deleted":            {ListConsumerGroupsRequest{LifecycleState: p("DELETED")}, []string{"gone"}},
			"deleted by id":      {ListConsumerGroupsRequest{ID: p(string(gone.ID))}, []string{"gone"}},
			"named":              {ListConsumerGroupsRequest{DisplayName: p("a")}, []string{"a"}},
			"named exactly":      {ListConsumerGroupsRequest{DisplayName: p("A")}, nil},
			"without groups":     {ListConsumerGroupsRequest{QueueID: p("plain")}, nil},
			"of no queue":        {ListConsumerGroupsRequest{QueueID: p("none")}, nil},
			"of a dead one":      {ListConsumerGroupsRequest{QueueID: p("orders_dlq")}, nil},
		} {
			if diff := cmp.Diff(c.want, names(c.r)); diff != "" {
				h.Errorf("%s: %s", what, diff)
			}
		}
		for _, bad := range []ListConsumerGroupsRequest{
			{LifecycleState: p("asleep")}, {SortBy: p("size")}, {Limit: p(int32(0))}, {Page: p("next")},
		} {
			_, err := h.s.ListConsumerGroups(h.ctx, bad)
			h.want(err, queue.InvalidParameter, "")
		}
	})
}

// A display name works where an OCID does, as long as it is clear whose it is.
func TestGroupByName(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		h.create("bills", withGroups)
		made := h.group("orders", "Nightly", nil)
		if g, _ := h.read("nightly"); g.ID != made.ID {
			h.Errorf("%+v", g)
		}
		_, err := h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: "primary consumer group"})
		h.want(err, queue.Conflict, "")
		_, err = h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "primary consumer group"})
		h.want(err, queue.Conflict, "")
		_, err = h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: ""})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
		for _, reserved := range []string{"unrouted", "*", "all"} {
			_, err = h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: reserved})
			h.want(err, queue.NotAuthorizedOrNotFound, "")
		}
	})
}

// With its queue a group is deleted and readable, for a day; without, too.
func TestGroupTombstones(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		orders := h.create("orders", withGroups)
		h.create("bills", withGroups)
		primary, own := h.primaryOf("orders"), h.group("orders", "a", nil)
		other := h.group("bills", "b", nil)
		h.delete("orders")
		_, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "b"})
		h.want(err, "", "")
		ids := []string{string(primary.ID), string(own.ID), string(other.ID)}
		sweep := func() {
			h.Helper()
			if err := h.s.Sweep(h.ctx); err != nil {
				h.Fatal(err)
			}
		}
		time.Sleep(24*time.Hour - time.Millisecond)
		sweep()
		for _, id := range ids {
			if g, _ := h.read(id); g.State != queue.Deleted {
				h.Errorf("%+v", g)
			}
		}
		time.Sleep(time.Millisecond)
		look := func() {
			h.Helper()
			for _, id := range ids {
				_, err := h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: id})
				h.want(err, queue.NotAuthorizedOrNotFound, "")
				list, err := h.s.ListConsumerGroups(h.ctx, ListConsumerGroupsRequest{ID: &id})
				if err != nil || len(list.Items) != 0 {
					h.Errorf("%+v, %v", list, err)
				}
			}
		}
		look()
		if n := len(h.s.broker.Groups()); n != 4 {
			h.Errorf("%d groups before the sweep", n)
		}
		sweep()
		look()
		if n := len(h.s.broker.Groups()); n != 1 {
			h.Errorf("%d groups after the sweep", n)
		}
		_, err = h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: string(orders.ID)})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
	})
}

// Making and deleting groups in a circle does not fill the row of the queue.
func TestGroupTombstonesAreFew(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		var first, last CreateConsumerGroupResponse
		for i := range maxGroupTombstones + 3 {
			last = h.group("orders", "g", nil)
			if i == 0 {
				first = last
			}
			time.Sleep(time.Millisecond)
			_, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "g"})
			h.want(err, "", "")
		}
		list, err := h.s.ListConsumerGroups(h.ctx, ListConsumerGroupsRequest{LifecycleState: p("DELETED"), Limit: p(int32(1000))})
		if err != nil || len(list.Items) != maxGroupTombstones || list.Items[0].ID != last.ID {
			h.Errorf("%d are kept, %v", len(list.Items), err)
		}
		_, err = h.s.GetConsumerGroup(h.ctx, GetConsumerGroupRequest{ConsumerGroupID: string(first.ID)})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
	})
}
