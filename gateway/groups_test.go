package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
)

// The life of a consumer group as OCI's clients see it, octet for octet, and its
// name in every operation that reads messages.
func TestConsumerGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		do := func(method, path, body string, headers ...string) answer {
			return ask(t, h.handler, method, basePath+path, body, headers...)
		}
		read := func(a answer) (f map[string]any) {
			t.Helper()
			if err := json.Unmarshal([]byte(a.body), &f); err != nil || a.status != 200 {
				t.Fatal(a.status, a.body, err)
			}
			return f
		}
		made := do("POST", "/queues", `{"displayName":"orders","capabilities":[{"type":"CONSUMER_GROUPS","primaryConsumerGroupDisplayName":"first"}]}`)
		if made.status != 202 {
			t.Fatal(made.status, made.body)
		}
		id := string(h.queueID("orders"))
		if a := do("GET", "/queues/orders", ""); !strings.Contains(a.body, `"capabilities":[{"type":"CONSUMER_GROUPS"}]`) {
			t.Error(a.body)
		}
		work := read(do("GET", "/workRequests/"+made.header.Get("Opc-Work-Request-Id"), ""))
		resources, _ := json.Marshal(work["resources"])
		first := read(do("GET", "/consumerGroups/first", ""))["id"].(string)
		if want := `[{"actionType":"CREATED","entityType":"queue","entityUri":"/20210201/queues/` + id + `","identifier":"` + id + `"},` +
			`{"actionType":"CREATED","entityType":"consumergroup","entityUri":"/20210201/consumerGroups/` + first + `","identifier":"` + first + `"}]`; string(resources) != want {
			t.Errorf("got  %s\nwant %s", resources, want)
		}

		made = do("POST", "/consumerGroups", `{"queueId":"`+id+`","displayName":"billing","filter":":kind = 'bill'","deadLetterQueueDeliveryCount":3,`+
			`"isEnabled":null,"freeformTags":{"a":"1"},"definedTags":{"ops":{"cost":42}}}`, "opc-retry-token: t")
		if made.status != 202 || made.body != "" || made.header.Get("Opc-Work-Request-Id") == "" {
			t.Fatal(made.status, made.header, made.body)
		}
		a := do("GET", "/consumerGroups/billing", "")
		group := read(a)["id"].(string)
		if want := `{"id":"` + group + `","displayName":"billing","timeCreated":"2000-01-01T00:00:00.000Z","timeUpdated":"2000-01-01T00:00:00.000Z","lifecycleState":"ACTIVE",` +
			`"filter":":kind = 'bill'","queueId":"` + id + `","deadLetterQueueDeliveryCount":3,"freeformTags":{"a":"1"},"definedTags":{"ops":{"cost":42}}}`; a.body != want || a.header.Get("Etag") == "" {
			t.Errorf("got  %s\nwant %s\netag %q", a.body, want, a.header.Get("Etag"))
		}
		// The filter is there even if it is empty, and the count of a list never.
		a = do("GET", "/consumerGroups?sortBy=displayName&queueId="+id, "")
		if want := `{"items":[{"id":"` + group + `","displayName":"billing","timeCreated":"2000-01-01T00:00:00.000Z","timeUpdated":"2000-01-01T00:00:00.000Z","lifecycleState":"ACTIVE",` +
			`"filter":":kind = 'bill'","queueId":"` + id + `","freeformTags":{"a":"1"},"definedTags":{"ops":{"cost":42}}},` +
			`{"id":"` + first + `","displayName":"first","timeCreated":"2000-01-01T00:00:00.000Z","timeUpdated":"2000-01-01T00:00:00.000Z","lifecycleState":"ACTIVE",` +
			`"filter":"","queueId":"` + id + `"}]}`; a.body != want {
			t.Errorf("got  %s\nwant %s", a.body, want)
		}
		wantError(t, "taken", do("POST", "/consumerGroups", `{"queueId":"`+id+`","displayName":"BILLING"}`), 409, "NotAuthorizedOrResourceAlreadyExists", "billing")
		wantError(t, "no queue", do("POST", "/consumerGroups", `{"queueId":"none","displayName":"x"}`), 400, "RelatedResourceNotAuthorizedOrNotFound", "none")
		wantError(t, "no filter", do("PUT", "/consumerGroups/"+group, `{"filter":":a = "}`), 400, "InvalidParameter", "filter: position 6")
		wantError(t, "etag", do("PUT", "/consumerGroups/"+group, `{}`, "if-match: x"), 412, "NoEtagMatch", "")

		// Messages of a group, everywhere.
		put := do("POST", "/queues/orders/messages", `{"messages":[{"content":"a","metadata":{"channelId":"c","customProperties":{"kind":"bill"}}},{"content":"b"}]}`)
		if put.status != 200 {
			t.Fatal(put.body)
		}
		if a := do("GET", "/queues/orders/stats?consumerGroupId=billing", ""); !strings.Contains(a.body, `"visibleMessages":1`) || !strings.Contains(a.body, `"consumerGroupId":"billing"`) {
			t.Error(a.body)
		}
		if a := do("GET", "/queues/orders/channels?consumerGroupId=billing", ""); a.body != `{"items":["c"]}` {
			t.Error(a.body)
		}
		receipt := func() string {
			t.Helper()
			messages := read(do("GET", "/queues/orders/messages?timeoutInSeconds=0&consumerGroupId="+group, ""))["messages"].([]any)
			if len(messages) != 1 {
				t.Fatal(messages)
			}
			return messages[0].(map[string]any)["receipt"].(string)
		}
		r := receipt()
		wantError(t, "of another group", do("DELETE", "/queues/orders/messages/"+r, ""), 404, "NotAuthorizedOrNotFound", "another consumer group")
		wantError(t, "of another group", do("PUT", "/queues/orders/messages/"+r+"?consumerGroupId=first", `{"visibilityInSeconds":1}`), 404, "NotAuthorizedOrNotFound", "another consumer group")
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "/queues/orders/messages/" + r + "?consumerGroupId=billing", `{"visibilityInSeconds":60}`},
			{"POST", "/queues/orders/messages/actions/updateMessages?consumerGroupId=billing", `{"entries":[{"receipt":"` + r + `","visibilityInSeconds":60}]}`},
			{"POST", "/queues/orders/messages/actions/deleteMessages?consumerGroupId=billing", `{"entries":[{"receipt":"` + r + `"}]}`},
			{"DELETE", "/queues/orders/messages/" + r + "?consumerGroupId=billing", ""},
			{"POST", "/queues/orders/actions/purge", `{"purgeType":"BOTH","consumerGroupId":"all"}`},
		} {
			if a := do(c.method, c.path, c.body); a.status > 204 || strings.Contains(a.body, "errorCode") {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
			}
		}
		for _, path := range []string{"messages?", "stats?", "channels?"} {
			wantError(t, path, do("GET", "/queues/orders/"+path+"consumerGroupId=none", ""), 404, "NotAuthorizedOrNotFound", "none")
			wantError(t, path, do("GET", "/queues/orders_unrouted/"+path, ""), 404, "NotAuthorizedOrNotFound", "keep-unrouted")
		}

		if a := do("PUT", "/consumerGroups/"+group, `{"isEnabled":false,"deadLetterQueueDeliveryCount":-1,"filter":"","freeformTags":{}}`); a.status != 202 {
			t.Error(a.status, a.body)
		}
		if a := do("GET", "/consumerGroups/billing", ""); !strings.Contains(a.body, `"INACTIVE"`) || strings.Contains(a.body, "deadLetterQueueDeliveryCount") ||
			strings.Contains(a.body, "freeformTags") || strings.Contains(a.body, "isEnabled") || !strings.Contains(a.body, `"filter":""`) {
			t.Error(a.body)
		}
		wantError(t, "disabled", do("GET", "/queues/orders/messages?consumerGroupId=billing", ""), 409, "IncorrectState", "disabled")
		wantError(t, "primary", do("DELETE", "/consumerGroups/"+first, ""), 409, "Conflict", "primary")
		if a := do("DELETE", "/consumerGroups/"+group, ""); a.status != 202 || a.header.Get("Opc-Work-Request-Id") == "" {
			t.Error(a.status, a.body)
		}
		if a := do("GET", "/consumerGroups/"+group, ""); !strings.Contains(a.body, `"DELETED"`) {
			t.Error(a.body)
		}
		wantError(t, "deleted", do("DELETE", "/consumerGroups/"+group, ""), 404, "NotAuthorizedOrNotFound", "")
	})
}
