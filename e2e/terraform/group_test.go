package terraform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

// withGroups makes a queue that has consumer groups, as the provider's own
// tests configure it. The provider takes the queue's id from a work request that
// lists the queue and its primary group.
func (p *provider) withGroups(name string) string {
	p.t.Helper()
	return p.create("/queues", "CREATE_QUEUE", "queue", fields{
		"compartmentId": compartment, "displayName": name,
		"capabilities": []fields{{
			"type":                                             "CONSUMER_GROUPS",
			"isPrimaryConsumerGroupEnabled":                    true,
			"primaryConsumerGroupDisplayName":                  "primary",
			"primaryConsumerGroupFilter":                       "",
			"primaryConsumerGroupDeadLetterQueueDeliveryCount": 10,
		}},
	})
}

// group makes a consumer group and waits until it is ACTIVE.
func (p *provider) group(details fields) string {
	p.t.Helper()
	id := p.create("/consumerGroups", "CREATE_CONSUMER_GROUP", "consumergroup", details)
	if state := p.read("/consumerGroups/" + id).text("lifecycleState"); state != "ACTIVE" {
		p.t.Fatalf("the new group is %s", state)
	}
	return id
}

// The life of an oci_queue_consumer_group with the values of the provider's own
// tests.
func TestConsumerGroup(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := connect(t, s)
	queue := p.withGroups("orders")
	settings := fields{
		"displayName": "displayName", "queueId": queue, "filter": ":consumerGroupFilter",
		"deadLetterQueueDeliveryCount": 10, "isEnabled": true,
		"freeformTags": fields{"bar-key": "value"}, "definedTags": fields{"Oracle-Tags": fields{"CreatedBy": "me"}},
	}
	id := p.group(settings)
	path := "/consumerGroups/" + id
	state := fields{"id": id, "lifecycleState": "ACTIVE"}
	for name, value := range settings {
		state[name] = value
	}
	state["isEnabled"] = nil // never read back
	if got := p.refresh(path, state); got.text("timeCreated") == "" || got.text("timeUpdated") == "" {
		t.Errorf("%v", got)
	}

	change := func(details, then fields) {
		t.Helper()
		p.change("PUT", path, "UPDATE_CONSUMER_GROUP", "consumergroup", "UPDATED", id, details)
		for name, value := range then {
			state[name] = value
		}
		p.refresh(path, state)
	}
	update := fields{
		"displayName": "displayName2", "filter": ":consumerGroupFilter2", "deadLetterQueueDeliveryCount": 11,
		"freeformTags": fields{"Department": "Accounting"}, "definedTags": fields{"Oracle-Tags": fields{"CreatedBy": "you"}},
	}
	change(update, update)
	change(fields{"deadLetterQueueDeliveryCount": -1}, fields{"deadLetterQueueDeliveryCount": nil})
	change(fields{"deadLetterQueueDeliveryCount": 0}, fields{"deadLetterQueueDeliveryCount": 0})
	change(fields{"filter": ""}, fields{"filter": ""})
	change(fields{"isEnabled": false}, fields{"lifecycleState": "INACTIVE"})
	change(fields{"isEnabled": true}, fields{"lifecycleState": "ACTIVE"})

	// The data sources: list by queue, name and state, and the one. The list has
	// no delivery count.
	for _, query := range []string{"queueId=" + queue + "&displayName=displayName2&lifecycleState=ACTIVE", "id=" + id} {
		items := p.list("/consumerGroups?" + query)
		if len(items) != 1 || items[0].text("id") != id || items[0].text("queueId") != queue || items[0]["filter"] != "" || items[0]["deadLetterQueueDeliveryCount"] != nil {
			t.Errorf("%s: %v", query, items)
		}
	}
	if items := p.list("/consumerGroups?queueId=" + queue); len(items) != 2 {
		t.Errorf("with the primary group: %v", items)
	}
	s.Stop()
	s.Restart()
	p = connect(t, s)
	p.refresh(path, state) // also what an import does

	p.change("DELETE", path, "DELETE_CONSUMER_GROUP", "consumergroup", "DELETED", id, nil)
	p.gone(path)
	p.ask(404, "DELETE", path, nil).Is(t, 404, "NotAuthorizedOrNotFound") // a second destroy: gone is fine
	p.change("DELETE", "/queues/"+queue, "DELETE_QUEUE", "queue", "DELETED", queue, nil)
	for _, g := range p.list("/consumerGroups?lifecycleState=DELETED") {
		p.gone("/consumerGroups/" + g.text("id"))
	}
}

// The capability is added by an update of the queue: the queue is what the work
// request names first, and what is UPDATED; the primary group is made. Purges
// name a group, or all.
func TestCapability(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	id := p.create("/queues", "CREATE_QUEUE", "queue", fields{"compartmentId": compartment, "displayName": "orders"})
	path := "/queues/" + id
	request := p.workRequest(p.ask(202, "PUT", path, fields{"capabilities": []fields{{"type": "CONSUMER_GROUPS"}}}))
	if got := p.wait(request, "UPDATE_QUEUE", "queue", "UPDATED"); got != id {
		t.Errorf("the work request names %s", got)
	}
	w := p.readWork(request)
	if len(w.Resources) != 2 || w.Resources[0].EntityType != "queue" || w.Resources[1].EntityType != "consumergroup" || w.Resources[1].ActionType != "CREATED" {
		t.Fatalf("%+v", w.Resources)
	}
	p.refresh("/consumerGroups/"+w.Resources[1].Identifier, fields{
		"displayName": "Primary Consumer Group", "filter": "", "queueId": id, "lifecycleState": "ACTIVE", "deadLetterQueueDeliveryCount": nil,
	})
	p.refresh(path, fields{"capabilities": []any{map[string]any{"type": "CONSUMER_GROUPS"}}})

	// Planned again with the same list, or with a shorter one, nothing is lost.
	for _, list := range [][]fields{{{"type": "CONSUMER_GROUPS"}}, {{"type": "LARGE_MESSAGES"}}, {}} {
		p.change("PUT", path, "UPDATE_QUEUE", "queue", "UPDATED", id, fields{"capabilities": list})
	}
	p.refresh(path, fields{"capabilities": []any{map[string]any{"type": "CONSUMER_GROUPS"}, map[string]any{"type": "LARGE_MESSAGES"}}})
	if items := p.list("/consumerGroups?queueId=" + id); len(items) != 1 {
		t.Errorf("%v", items)
	}

	group := p.group(fields{"queueId": id, "displayName": "g"})
	p.Put(t, id, "x")
	of := func(group string) int64 {
		t.Helper()
		var s struct {
			Queue struct{ VisibleMessages int64 }
		}
		p.ask(200, "GET", path+"/stats?consumerGroupId="+group, nil).JSON(t, &s)
		return s.Queue.VisibleMessages
	}
	primary := w.Resources[1].Identifier
	if of(primary) != 1 || of(group) != 1 {
		t.Errorf("%d and %d messages", of(primary), of(group))
	}
	p.change("POST", path+"/actions/purge", "PURGE_QUEUE", "queue", "UPDATED", id, fields{"purgeType": "NORMAL", "consumerGroupId": group})
	if of(primary) != 1 || of(group) != 0 {
		t.Errorf("after the purge of the group %d and %d messages", of(primary), of(group))
	}
	p.change("POST", path+"/actions/purge", "PURGE_QUEUE", "queue", "UPDATED", id, fields{"purgeType": "BOTH", "consumerGroupId": "all"})
	if of(primary) != 0 {
		t.Errorf("after the purge of all %d messages", of(primary))
	}
}

func TestConsumerGroupFails(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	queue := p.withGroups("orders")
	plain := p.create("/queues", "CREATE_QUEUE", "queue", fields{"compartmentId": compartment, "displayName": "plain"})
	p.group(fields{"queueId": queue, "displayName": "taken"})
	for name, c := range map[string]struct {
		details fields
		status  int
		code    string
		text    string
	}{
		"no queue":         {fields{"displayName": "g", "queueId": nil}, 400, "MissingParameter", "queueId"},
		"unknown queue":    {fields{"displayName": "g", "queueId": "ocid1.queue.oc1.local.none"}, 400, "RelatedResourceNotAuthorizedOrNotFound", "queueId"},
		"no capability":    {fields{"displayName": "g", "queueId": plain}, 400, "InvalidParameter", "CONSUMER_GROUPS"},
		"no such filter":   {fields{"displayName": "g", "queueId": queue, "filter": ":a AND"}, 400, "InvalidParameter", "position 7"},
		"taken":            {fields{"displayName": "TAKEN", "queueId": queue}, 409, "NotAuthorizedOrResourceAlreadyExists", "taken"},
		"unset at a start": {fields{"displayName": "g", "queueId": queue, "deadLetterQueueDeliveryCount": -1}, 400, "InvalidParameter", "deadLetterQueueDeliveryCount"},
	} {
		a := p.ask(c.status, "POST", "/consumerGroups", c.details, p.retryToken())
		if message := a.Is(t, c.status, c.code); !strings.Contains(message, c.text) || a.Header.Get("opc-work-request-id") != "" {
			t.Errorf("%s: %s, headers %v", name, message, a.Header)
		}
	}
	for i := range 8 {
		p.group(fields{"queueId": queue, "displayName": fmt.Sprint("g", i)})
	}
	p.ask(400, "POST", "/consumerGroups", fields{"queueId": queue, "displayName": "one more"}, p.retryToken()).Is(t, 400, "LimitExceeded")
	for _, g := range p.list("/consumerGroups?displayName=primary") {
		p.ask(409, "DELETE", "/consumerGroups/"+g.text("id"), nil).Is(t, 409, "Conflict")
	}
}

// The sweeper lists the groups of all queues by their state alone, and deletes
// what can be deleted.
func TestConsumerGroupSweeper(t *testing.T) {
	t.Parallel()
	p := connect(t, server.Start(t))
	for _, name := range []string{"orders", "bills"} {
		queue := p.withGroups(name)
		for i := range 2 {
			p.group(fields{"queueId": queue, "displayName": fmt.Sprint("g", i)})
		}
	}
	swept, kept := 0, 0
	for _, g := range p.list("/consumerGroups?lifecycleState=ACTIVE&limit=4") {
		id := g.text("id")
		if g.text("displayName") == "primary" {
			p.ask(409, "DELETE", "/consumerGroups/"+id, nil).Is(t, 409, "Conflict")
			kept++
			continue
		}
		p.change("DELETE", "/consumerGroups/"+id, "DELETE_CONSUMER_GROUP", "consumergroup", "DELETED", id, nil)
		p.gone("/consumerGroups/" + id)
		swept++
	}
	if swept != 4 || kept != 2 || len(p.list("/consumerGroups")) != 2 {
		t.Errorf("swept %d, kept %d, left %v", swept, kept, p.list("/consumerGroups"))
	}
}
