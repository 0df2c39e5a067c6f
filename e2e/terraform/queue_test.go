package terraform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

const (
	compartment = "ocid1.compartment.oc1..first"
	other       = "ocid1.compartment.oc1..second"
)

// The life of an oci_queue_queue with the values of the provider's own tests.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := connect(t, s)
	settings := fields{
		"compartmentId": compartment, "displayName": "displayName",
		"channelConsumptionLimit": 10, "customEncryptionKeyId": "ocid1.key.oc1..first", "deadLetterQueueDeliveryCount": 10,
		"retentionInSeconds": 10, "timeoutInSeconds": 10, "visibilityInSeconds": 10,
		"freeformTags": fields{"bar-key": "value"}, "definedTags": fields{"Oracle-Tags": fields{"CreatedBy": "me"}},
	}
	id := p.create("/queues", "CREATE_QUEUE", "queue", settings)
	path := "/queues/" + id
	state := fields{"id": id, "lifecycleState": "ACTIVE"}
	for name, value := range settings {
		state[name] = value
	}
	if got := p.refresh(path, state); got.text("messagesEndpoint") != s.REST || got.text("timeCreated") == "" || got.text("timeUpdated") == "" {
		t.Errorf("%v", got)
	}

	// Another compartment, before the other settings and by itself.
	p.change("POST", path+"/actions/changeCompartment", "MOVE_QUEUE", "queue", "UPDATED", id, fields{"compartmentId": other})
	state["compartmentId"] = other
	p.refresh(path, state)

	// A purge, when purge_trigger has risen; whatever the case in the
	// configuration, the provider sends capitals.
	p.Put(t, id, "a", "b")
	for _, kind := range []string{"NORMAL", "DLQ", "BOTH"} {
		p.change("POST", path+"/actions/purge", "PURGE_QUEUE", "queue", "UPDATED", id, fields{"purgeType": kind})
	}
	if got := p.Stats(t, id); got.Queue.Visible != 0 {
		t.Errorf("after the purge %+v", got)
	}

	update := fields{
		"displayName": "displayName2", "channelConsumptionLimit": 11, "customEncryptionKeyId": "ocid1.key.oc1..second",
		"deadLetterQueueDeliveryCount": 11, "timeoutInSeconds": 11, "visibilityInSeconds": 11,
		"freeformTags": fields{"Department": "Accounting"}, "definedTags": fields{"Oracle-Tags": fields{"CreatedBy": "you"}},
	}
	p.change("PUT", path, "UPDATE_QUEUE", "queue", "UPDATED", id, update)
	for name, value := range update {
		state[name] = value
	}
	p.refresh(path, state)

	// A capability is added; the provider reads it back as an object, and as a
	// word from the list.
	p.change("PUT", path, "UPDATE_QUEUE", "queue", "UPDATED", id, fields{"capabilities": []fields{{"type": "LARGE_MESSAGES"}}})
	state["capabilities"] = []any{map[string]any{"type": "LARGE_MESSAGES"}}
	p.refresh(path, state) // also what an import does

	// The key is taken away by the empty string.
	p.change("PUT", path, "UPDATE_QUEUE", "queue", "UPDATED", id, fields{"customEncryptionKeyId": ""})
	if key, there := p.read(path)["customEncryptionKeyId"]; there && key != nil {
		t.Errorf("the key is still %v", key)
	}
	state["customEncryptionKeyId"] = nil

	// The data sources: list by compartment, name and state, and the one.
	for _, query := range []string{"compartmentId=" + other, "compartmentId=" + other + "&displayName=displayName2&lifecycleState=ACTIVE", "id=" + id} {
		items := p.list("/queues?" + query)
		if len(items) != 1 || items[0].text("id") != id || fmt.Sprint(items[0]["capabilities"]) != "[LARGE_MESSAGES]" || items[0].text("messagesEndpoint") != s.REST {
			t.Errorf("%s: %v", query, items)
		}
	}
	if items := p.list("/queues?compartmentId=" + compartment); len(items) != 0 {
		t.Errorf("the old compartment has %v", items)
	}
	// What a plan finds after a restart is what there was.
	s.Stop()
	s.Restart()
	p = connect(t, s)
	p.refresh(path, state)

	// Destroy, with the work request first and the check behind it.
	p.change("DELETE", path, "DELETE_QUEUE", "queue", "DELETED", id, nil)
	p.gone(path)
	if items := p.list("/queues?compartmentId=" + other); len(items) != 0 {
		t.Errorf("still listed: %v", items)
	}
	p.ask(404, "DELETE", path, nil).Is(t, 404, "NotAuthorizedOrNotFound") // a second destroy: gone is fine
}

// A creation whose answer was lost is tried again with its token and makes
// nothing new.
func TestQueueOnceMore(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	token := p.retryToken()
	details := fields{"compartmentId": compartment, "displayName": "orders"}
	first := p.workRequest(p.ask(202, "POST", "/queues", details, token))
	if again := p.workRequest(p.ask(202, "POST", "/queues", details, token)); again != first {
		t.Errorf("the work requests are %s and %s", first, again)
	}
	if items := p.list("/queues?compartmentId=" + compartment); len(items) != 1 {
		t.Errorf("%d queues", len(items))
	}
}

// What fails, fails with an error that Terraform prints; there is no work
// request that nobody would follow. The errors of one that has succeeded are
// none, its log is there.
func TestQueueFails(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	for name, c := range map[string]struct {
		details fields
		code    string
		text    string
	}{
		"retention": {fields{"compartmentId": compartment, "displayName": "a", "retentionInSeconds": 9}, "InvalidParameter", "retentionInSeconds"},
		"no name":   {fields{"compartmentId": compartment}, "MissingParameter", "displayName"},
		"null name": {fields{"compartmentId": compartment, "displayName": nil}, "MissingParameter", "displayName"},
	} {
		a := p.ask(400, "POST", "/queues", c.details, p.retryToken())
		if message := a.Is(t, 400, c.code); !strings.Contains(message, c.text) || a.Header.Get("opc-work-request-id") != "" {
			t.Errorf("%s: %s, headers %v", name, message, a.Header)
		}
	}
	for i := range 10 {
		p.create("/queues", "CREATE_QUEUE", "queue", fields{"compartmentId": compartment, "displayName": fmt.Sprint("q", i)})
	}
	p.ask(400, "POST", "/queues", fields{"compartmentId": compartment, "displayName": "one more"}, p.retryToken()).Is(t, 400, "LimitExceeded")
	works := p.list("/workRequests?compartmentId=" + compartment)
	if len(works) != 10 {
		t.Fatalf("%d work requests", len(works))
	}
	id := works[0].text("id")
	if errs := p.list("/workRequests/" + id + "/errors"); len(errs) != 0 {
		t.Errorf("errors %v", errs)
	}
	if logs := p.list("/workRequests/" + id + "/logs"); len(logs) != 1 || logs[0].text("message") == "" || logs[0].text("timestamp") == "" {
		t.Errorf("logs %v", logs)
	}
	p.ask(404, "GET", "/workRequests/ocid1.queueworkrequest.oc1.local.none/errors", nil).Is(t, 404, "NotAuthorizedOrNotFound")
}

// The sweeper lists what is ACTIVE in a compartment and deletes each.
func TestQueueSweeper(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	for i := range 5 {
		p.create("/queues", "CREATE_QUEUE", "queue", fields{"compartmentId": compartment, "displayName": fmt.Sprint("q", i)})
	}
	kept := p.create("/queues", "CREATE_QUEUE", "queue", fields{"compartmentId": other, "displayName": "kept"})
	swept := p.list("/queues?compartmentId=" + compartment + "&lifecycleState=ACTIVE&limit=2")
	if len(swept) != 5 {
		t.Fatalf("%d to sweep", len(swept))
	}
	for _, q := range swept {
		id := q.text("id")
		p.change("DELETE", "/queues/"+id, "DELETE_QUEUE", "queue", "DELETED", id, nil)
	}
	for _, q := range swept {
		p.gone("/queues/" + q.text("id"))
	}
	if items := p.list("/queues"); len(items) != 1 || items[0].text("id") != kept {
		t.Errorf("left %v", items)
	}
}
