package ocisdk

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/server"
)

// settings are what of a queue can be compared.
func settings(q queue.Queue) map[string]any {
	m := map[string]any{
		"compartment": *q.CompartmentId, "state": q.LifecycleState, "name": *q.DisplayName,
		"retention": *q.RetentionInSeconds, "visibility": *q.VisibilityInSeconds, "timeout": *q.TimeoutInSeconds,
		"deliveries": *q.DeadLetterQueueDeliveryCount, "consumption": *q.ChannelConsumptionLimit,
		"freeform": q.FreeformTags, "defined": q.DefinedTags, "key": "",
	}
	if q.CustomEncryptionKeyId != nil {
		m["key"] = *q.CustomEncryptionKeyId
	}
	return m
}

// TestLife is the whole life of a queue.
func TestLife(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)

	id := c.create(queue.CreateQueueDetails{
		DisplayName:                  new("orders"),
		CompartmentId:                new(compartment),
		RetentionInSeconds:           new(10),
		VisibilityInSeconds:          new(10),
		TimeoutInSeconds:             new(10),
		ChannelConsumptionLimit:      new(10),
		DeadLetterQueueDeliveryCount: new(10),
		CustomEncryptionKeyId:        new("ocid1.key.oc1..k"),
		FreeformTags:                 map[string]string{"team": "post", "empty": ""},
		DefinedTags:                  map[string]map[string]any{"ops": {"cost": 42.0, "who": "me", "on": true}},
	})
	if !strings.HasPrefix(id, "ocid1.queue.oc1.local.") {
		t.Errorf("id is %s", id)
	}
	got := c.queueOf(id)
	want := map[string]any{
		"compartment": compartment, "state": queue.QueueLifecycleStateActive, "name": "orders",
		"retention": 10, "visibility": 10, "timeout": 10, "deliveries": 10, "consumption": 10,
		"freeform": map[string]string{"team": "post", "empty": ""},
		"defined":  map[string]map[string]any{"ops": {"cost": 42.0, "who": "me", "on": true}},
		"key":      "ocid1.key.oc1..k",
	}
	if diff := cmp.Diff(want, settings(got.Queue)); diff != "" {
		t.Errorf("created: -want +got\n%s", diff)
	}
	if *got.MessagesEndpoint != s.REST || *got.Id != id || !got.TimeCreated.Equal(got.TimeUpdated.Time) ||
		time.Since(got.TimeCreated.Time) > time.Minute || got.LifecycleDetails != nil || len(got.Capabilities) != 0 || len(got.SystemTags) != 0 {
		t.Errorf("created: %+v", got.Queue)
	}
	c.data.Host = *got.MessagesEndpoint // as the manual says

	// Each field by itself; the others stay, and every change is a new etag.
	etags := map[string]bool{*got.Etag: true}
	created := got.TimeCreated
	for _, change := range []struct {
		d     queue.UpdateQueueDetails
		field string
		value any
	}{
		{queue.UpdateQueueDetails{DisplayName: new("orders north")}, "name", "orders north"},
		{queue.UpdateQueueDetails{VisibilityInSeconds: new(11)}, "visibility", 11},
		{queue.UpdateQueueDetails{TimeoutInSeconds: new(11)}, "timeout", 11},
		{queue.UpdateQueueDetails{TimeoutInSeconds: new(0)}, "timeout", 0},
		{queue.UpdateQueueDetails{ChannelConsumptionLimit: new(11)}, "consumption", 11},
		{queue.UpdateQueueDetails{DeadLetterQueueDeliveryCount: new(11)}, "deliveries", 11},
		{queue.UpdateQueueDetails{DeadLetterQueueDeliveryCount: new(0)}, "deliveries", 0},
		{queue.UpdateQueueDetails{CustomEncryptionKeyId: new("ocid1.key.oc1..other")}, "key", "ocid1.key.oc1..other"},
		{queue.UpdateQueueDetails{CustomEncryptionKeyId: new("")}, "key", ""},
		{queue.UpdateQueueDetails{FreeformTags: map[string]string{"team": "mail"}}, "freeform", map[string]string{"team": "mail"}},
		{queue.UpdateQueueDetails{FreeformTags: map[string]string{}}, "freeform", map[string]string(nil)},
		{queue.UpdateQueueDetails{DefinedTags: map[string]map[string]any{"ops": {"cost": 43.5}}}, "defined", map[string]map[string]any{"ops": {"cost": 43.5}}},
		{queue.UpdateQueueDetails{DefinedTags: map[string]map[string]any{}}, "defined", map[string]map[string]any(nil)},
		{queue.UpdateQueueDetails{}, "", nil},
	} {
		r := good[queue.UpdateQueueResponse](t)(c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &id, UpdateQueueDetails: change.d}))
		if same := c.finished(r.OpcWorkRequestId, queue.ActionTypeUpdated); same != id {
			t.Errorf("the work request names %s", same)
		}
		if change.field != "" {
			want[change.field] = change.value
		}
		got := c.queueOf(id)
		if diff := cmp.Diff(want, settings(got.Queue)); diff != "" {
			t.Errorf("%s changed: -want +got\n%s", change.field, diff)
		}
		if etags[*got.Etag] {
			t.Errorf("%s changed: the etag stays", change.field)
		}
		etags[*got.Etag] = true
		if got.TimeUpdated.Before(created.Time) || !got.TimeCreated.Equal(created.Time) {
			t.Errorf("%s changed: created %v, updated %v", change.field, got.TimeCreated, got.TimeUpdated)
		}
	}

	moved := good[queue.ChangeQueueCompartmentResponse](t)(c.admin.ChangeQueueCompartment(t.Context(), queue.ChangeQueueCompartmentRequest{
		QueueId: &id, ChangeQueueCompartmentDetails: queue.ChangeQueueCompartmentDetails{CompartmentId: new(compartment + "2")},
	}))
	c.finished(moved.OpcWorkRequestId, queue.ActionTypeUpdated)
	want["compartment"] = compartment + "2"
	if diff := cmp.Diff(want, settings(c.queueOf(id).Queue)); diff != "" {
		t.Errorf("moved: -want +got\n%s", diff)
	}

	// All of it is there after kill -9.
	before := c.queueOf(id)
	c.put(id, text("a"))
	s.Kill()
	s.Restart()
	c = connect(t, s)
	after := c.queueOf(id)
	if diff := cmp.Diff(want, settings(after.Queue)); diff != "" || *after.Etag != *before.Etag {
		t.Errorf("after a restart: etag %s, was %s; -want +got\n%s", *after.Etag, *before.Etag, diff)
	}

	// Deleted: the record stays to be read, nothing else does.
	deleted := good[queue.DeleteQueueResponse](t)(c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &id}))
	if same := c.finished(deleted.OpcWorkRequestId, queue.ActionTypeDeleted); same != id {
		t.Errorf("the work request names %s", same)
	}
	want["state"] = queue.QueueLifecycleStateDeleted
	if diff := cmp.Diff(want, settings(c.queueOf(id).Queue)); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	_, err := c.data.GetMessages(t.Context(), getFrom(id))
	refused(t, "get from a deleted queue", err, 404, "NotAuthorizedOrNotFound")
	_, err = c.data.PutMessages(t.Context(), putTo(id, text("b")))
	refused(t, "put to a deleted queue", err, 404, "NotAuthorizedOrNotFound")
	_, err = c.data.GetStats(t.Context(), queue.GetStatsRequest{QueueId: &id})
	refused(t, "stats of a deleted queue", err, 404, "NotAuthorizedOrNotFound")
	_, err = c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &id})
	refused(t, "update of a deleted queue", err, 404, "NotAuthorizedOrNotFound")
	_, err = c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &id})
	refused(t, "second delete", err, 404, "NotAuthorizedOrNotFound")
	_, err = c.admin.GetQueue(t.Context(), queue.GetQueueRequest{QueueId: new("orders north")})
	refused(t, "a deleted queue by its name", err, 404, "NotAuthorizedOrNotFound")

	// A new one of the same name is another queue, and empty.
	again := c.create(queue.CreateQueueDetails{DisplayName: new("orders north")})
	if again == id {
		t.Error("the id was used again")
	}
	if n := c.stats(again); n != (counters{}) {
		t.Errorf("a new queue holds %+v", n)
	}
}

// TestDefaults: what a queue is when little is said.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := connect(t, s)
	got := settings(c.queueOf(c.create(queue.CreateQueueDetails{DisplayName: new("d")})).Queue)
	want := map[string]any{
		"compartment": compartment, "state": queue.QueueLifecycleStateActive, "name": "d",
		"retention": 86400, "visibility": 30, "timeout": 30, "deliveries": 5, "consumption": 100,
		"freeform": map[string]string(nil), "defined": map[string]map[string]any(nil), "key": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// The names of settings work as operators see them.
	s = server.Start(t, "--default-delivery-count", "0", "--realm", "oc9", "--region", "attic")
	id := connect(t, s).create(queue.CreateQueueDetails{DisplayName: new("d")})
	if n := *connect(t, s).queueOf(id).DeadLetterQueueDeliveryCount; n != 0 || !strings.HasPrefix(id, "ocid1.queue.oc9.attic.") {
		t.Errorf("%d deliveries, id %s", n, id)
	}
}

// TestEtags: if-match guards every change.
func TestEtags(t *testing.T) {
	t.Parallel()
	c := connect(t, server.Start(t))
	id := c.create(queue.CreateQueueDetails{DisplayName: new("orders")})
	old := c.queueOf(id).Etag
	update := func(match *string, visibility int) error {
		_, err := c.admin.UpdateQueue(t.Context(), queue.UpdateQueueRequest{QueueId: &id, IfMatch: match,
			UpdateQueueDetails: queue.UpdateQueueDetails{VisibilityInSeconds: &visibility}})
		return err
	}
	if err := update(old, 40); err != nil {
		t.Fatal(err)
	}
	operations := map[string]func(match *string) error{
		"update": func(match *string) error { return update(match, 50) },
		"move": func(match *string) error {
			_, err := c.admin.ChangeQueueCompartment(t.Context(), queue.ChangeQueueCompartmentRequest{QueueId: &id, IfMatch: match,
				ChangeQueueCompartmentDetails: queue.ChangeQueueCompartmentDetails{CompartmentId: new("ocid1.compartment.oc1..x")}})
			return err
		},
		"purge": func(match *string) error {
			_, err := c.admin.PurgeQueue(t.Context(), queue.PurgeQueueRequest{QueueId: &id, IfMatch: match,
				PurgeQueueDetails: queue.PurgeQueueDetails{PurgeType: queue.PurgeQueueDetailsPurgeTypeBoth}})
			return err
		},
		"delete": func(match *string) error {
			_, err := c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &id, IfMatch: match})
			return err
		},
	}
	c.put(id, text("a"))
	now := c.queueOf(id)
	if *now.VisibilityInSeconds != 40 {
		t.Errorf("visibility is %d", *now.VisibilityInSeconds)
	}
	for name, operation := range operations {
		for _, stale := range []*string{old, new("x"), new("")} {
			refused(t, name, operation(stale), 412, "NoEtagMatch", "if-match")
		}
	}
	after := c.queueOf(id)
	if *after.Etag != *now.Etag || c.stats(id).visible != 1 {
		t.Error("a refused change changed something")
	}
	// The right one, and "*".
	for _, name := range []string{"purge", "update", "move", "delete"} {
		if name != "delete" {
			if err := operations[name](new("*")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := operations[name](c.queueOf(id).Etag); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
