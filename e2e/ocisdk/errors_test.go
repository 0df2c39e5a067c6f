package ocisdk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/queue"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// answer makes of a raw answer what the SDK would have made of it, for what
// the SDK cannot be made to send.
type answer struct {
	*rest.Answer
	code, message string
}

func (a answer) Error() string           { return a.code + ": " + a.message }
func (a answer) GetHTTPStatusCode() int  { return a.Status }
func (a answer) GetMessage() string      { return a.message }
func (a answer) GetCode() string         { return a.code }
func (a answer) GetOpcRequestID() string { return a.Header.Get("opc-request-id") }

var _ common.ServiceError = answer{}

// stage is a server with clients for the rows below. Each row has a queue of
// its own.
type stage struct {
	*sdk
	server *server.Server
	raw    *rest.Conn
	queue  string
}

// send sends a request by hand; Q in it is the row's queue.
func (s *stage) send(method, path, body string, headers ...string) error {
	a, err := s.raw.Do(method, strings.ReplaceAll(path, "Q", s.queue), body, headers...)
	if err != nil {
		return err
	}
	if a.Status < 400 {
		return nil
	}
	code, message, err := a.Error()
	if err != nil {
		return err
	}
	return answer{a, code, message}
}

func (s *stage) putting(messages ...queue.PutMessagesDetailsEntry) error {
	_, err := s.data.PutMessages(s.ctx(), putTo(s.queue, messages...))
	return err
}

func (s *stage) getting(options ...getOption) error {
	_, err := s.data.GetMessages(s.ctx(), getFrom(s.queue, options...))
	return err
}

func (s *stage) creating(d queue.CreateQueueDetails) error {
	if d.DisplayName == nil {
		d.DisplayName = new("another")
	}
	if d.CompartmentId == nil {
		d.CompartmentId = new(compartment)
	}
	_, err := s.admin.CreateQueue(s.ctx(), queue.CreateQueueRequest{CreateQueueDetails: d, RequestMetadata: once()})
	return err
}

func (s *stage) updating(d queue.UpdateQueueDetails) error {
	_, err := s.admin.UpdateQueue(s.ctx(), queue.UpdateQueueRequest{QueueId: &s.queue, UpdateQueueDetails: d})
	return err
}

func (s *stage) listing(limit int) error {
	_, err := s.admin.ListQueues(s.ctx(), queue.ListQueuesRequest{Limit: &limit})
	return err
}

func (s *stage) deleting(receipts ...string) error {
	var entries []queue.DeleteMessagesDetailsEntry
	for _, r := range receipts {
		entries = append(entries, queue.DeleteMessagesDetailsEntry{Receipt: &r})
	}
	_, err := s.data.DeleteMessages(s.ctx(), queue.DeleteMessagesRequest{QueueId: &s.queue,
		DeleteMessagesDetails: queue.DeleteMessagesDetails{Entries: entries}})
	return err
}

func withProperties(p map[string]string) queue.PutMessagesDetailsEntry {
	return queue.PutMessagesDetailsEntry{Content: new("x"), Metadata: &queue.MessageMetadata{CustomProperties: p}}
}

// repeat calls f until it fails, n times at most.
func repeat(n int, f func() error) error {
	for range n {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// row is one documented error: how to have it, and what it says.
type row struct {
	what   string
	status int
	code   string
	say    string // several, with | between
	call   func(s *stage) error
}

// TestErrors walks the errors that are documented, as far as they can be had
// with auth none: the tables of statuses and codes and of limits, each with
// the setting that a limit names.
func TestErrors(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	// Limits as OCI has them.
	rows(t, nil, []row{
		{"no JSON", 400, "CannotParseRequest", "JSON", func(s *stage) error { return s.send("POST", "/queues/Q/messages", `{"messages":`) }},
		{"no UTF-8", 400, "CannotParseRequest", "UTF-8", func(s *stage) error {
			return s.send("POST", "/queues/Q/messages", "{\"messages\":[{\"content\":\"\xff\"}]}")
		}},
		{"no HTTP", 400, "CannotParseRequest", "HTTP", func(s *stage) error { return s.send("GET", "/queues/%zz", "") }},

		{"no name", 400, "MissingParameter", "displayName", func(s *stage) error { return s.send("POST", "/queues", `{"compartmentId":"c"}`) }},
		{"no content", 400, "MissingParameter", "messages[1].content", func(s *stage) error { return s.putting(text("a"), queue.PutMessagesDetailsEntry{}) }},
		{"no messages", 400, "MissingParameter", "messages", func(s *stage) error { return s.send("POST", "/queues/Q/messages", `{}`) }},
		{"no body", 400, "MissingParameter", "body", func(s *stage) error { return s.send("POST", "/queues/Q/messages", ``) }},
		{"no purge type", 400, "MissingParameter", "purgeType", func(s *stage) error { return s.send("POST", "/queues/Q/actions/purge", `{}`) }},
		{"no compartment", 400, "MissingParameter", "compartmentId", func(s *stage) error { return s.send("POST", "/queues/Q/actions/changeCompartment", `{}`) }},
		{"no visibility", 400, "MissingParameter", "visibilityInSeconds", func(s *stage) error { return s.send("PUT", "/queues/Q/messages/AAAA", `{}`) }},
		{"no type of capability", 400, "MissingParameter", "capabilities[0].type", func(s *stage) error {
			return s.send("POST", "/queues", `{"displayName":"x","capabilities":[{}]}`)
		}},

		{"retention too short", 400, "InvalidParameter", "retentionInSeconds is 9|10 to 604800", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{RetentionInSeconds: new(9)})
		}},
		{"retention too long", 400, "InvalidParameter", "retentionInSeconds", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{RetentionInSeconds: new(604801)})
		}},
		{"visibility 0 of a queue", 400, "InvalidParameter", "visibilityInSeconds is 0|1 to 43200", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{VisibilityInSeconds: new(0)})
		}},
		{"visibility too long", 400, "InvalidParameter", "visibilityInSeconds", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{VisibilityInSeconds: new(43201)})
		}},
		{"timeout too long", 400, "InvalidParameter", "timeoutInSeconds is 31|0 to 30", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{TimeoutInSeconds: new(31)})
		}},
		{"timeout below 0", 400, "InvalidParameter", "timeoutInSeconds", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{TimeoutInSeconds: new(-1)})
		}},
		{"too many deliveries", 400, "InvalidParameter", "deadLetterQueueDeliveryCount is 21|0 to 20", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{DeadLetterQueueDeliveryCount: new(21)})
		}},
		{"deliveries below 0", 400, "InvalidParameter", "deadLetterQueueDeliveryCount", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{DeadLetterQueueDeliveryCount: new(-1)})
		}},
		{"consumption 0", 400, "InvalidParameter", "channelConsumptionLimit is 0|1 to 100", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{ChannelConsumptionLimit: new(0)})
		}},
		{"consumption 101", 400, "InvalidParameter", "channelConsumptionLimit", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{ChannelConsumptionLimit: new(101)})
		}},
		{"empty name", 400, "InvalidParameter", "displayName|1 to 255", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{DisplayName: new("")})
		}},
		{"long name", 400, "InvalidParameter", "displayName|256", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{DisplayName: new(strings.Repeat("é", 256))})
		}},
		{"name with a line end", 400, "InvalidParameter", "displayName", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{DisplayName: new("a\nb")})
		}},
		{"long compartment", 400, "InvalidParameter", "compartmentId|255", func(s *stage) error {
			return s.creating(queue.CreateQueueDetails{CompartmentId: new(strings.Repeat("c", 256))})
		}},
		{"long key", 400, "InvalidParameter", "customEncryptionKeyId|255", func(s *stage) error {
			return s.updating(queue.UpdateQueueDetails{CustomEncryptionKeyId: new(strings.Repeat("k", 256))})
		}},
		{"too many tags", 400, "InvalidParameter", "freeformTags", func(s *stage) error {
			tags := map[string]string{}
			for i := range 65 {
				tags[fmt.Sprint(i)] = ""
			}
			return s.creating(queue.CreateQueueDetails{FreeformTags: tags})
		}},
		{"unknown capability", 400, "InvalidParameter", "capabilities[0].type", func(s *stage) error {
			return s.send("POST", "/queues", `{"displayName":"x","capabilities":[{"type":"TELEPATHY"}]}`)
		}},

		{"0 messages", 400, "MissingParameter", "messages", func(s *stage) error {
			return s.putting([]queue.PutMessagesDetailsEntry{}...)
		}},
		{"21 messages", 400, "InvalidParameter", "messages has 21|limits.batch-messages", func(s *stage) error {
			return s.putting(make21(text("x"))...)
		}},
		{"0 entries", 400, "MissingParameter", "entries", func(s *stage) error {
			return s.send("POST", "/queues/Q/messages/actions/deleteMessages", `{"entries":[]}`)
		}},
		{"21 entries", 400, "InvalidParameter", "entries has 21|limits.batch-messages", func(s *stage) error {
			return s.deleting(make21("AAAA")...)
		}},
		{"21 updates", 400, "InvalidParameter", "entries has 21|limits.batch-messages", func(s *stage) error {
			_, err := s.data.UpdateMessages(s.ctx(), queue.UpdateMessagesRequest{QueueId: &s.queue, UpdateMessagesDetails: queue.UpdateMessagesDetails{
				Entries: make21(queue.UpdateMessagesDetailsEntry{Receipt: new("AAAA"), VisibilityInSeconds: new(1)})}})
			return err
		}},
		{"long channel", 400, "InvalidParameter", "messages[0]|channelId|1 to 64", func(s *stage) error { return s.putting(in(strings.Repeat("c", 65), "x")) }},
		{"channel with a slash", 400, "InvalidParameter", "channelId", func(s *stage) error { return s.putting(in("a/b", "x")) }},
		{"65 properties", 400, "InvalidParameter", "65 properties|limits.properties-per-message", func(s *stage) error {
			p := map[string]string{}
			for i := range 65 {
				p[fmt.Sprint("p", i)] = ""
			}
			return s.putting(withProperties(p))
		}},
		{"long name of a property", 400, "InvalidParameter", "limits.property-name-bytes", func(s *stage) error {
			return s.putting(withProperties(map[string]string{strings.Repeat("p", 65): ""}))
		}},
		{"odd name of a property", 400, "InvalidParameter", "a letter, a digit", func(s *stage) error {
			return s.putting(withProperties(map[string]string{"a b": ""}))
		}},
		{"long value of a property", 400, "InvalidParameter", "limits.property-bytes", func(s *stage) error {
			return s.putting(withProperties(map[string]string{"p": strings.Repeat("v", 4097)}))
		}},
		{"limit of a get 0", 400, "InvalidParameter", "limit is 0|limits.batch-messages", func(s *stage) error { return s.getting(limit(0)) }},
		{"limit of a get 21", 400, "InvalidParameter", "limit is 21|limits.batch-messages", func(s *stage) error { return s.getting(limit(21)) }},
		{"visibility of a get", 400, "InvalidParameter", "visibilityInSeconds is 43201|0 to 43200", func(s *stage) error { return s.getting(hidden(43201)) }},
		{"timeout of a get", 400, "InvalidParameter", "timeoutInSeconds is 31|0 to 30", func(s *stage) error { return s.getting(wait(31)) }},
		{"filter of a get", 400, "InvalidParameter", "channelFilter|1 to 64", func(s *stage) error { return s.getting(filter(strings.Repeat("c", 65))) }},
		{"visibility of an update", 400, "InvalidParameter", "visibilityInSeconds is 43201", func(s *stage) error {
			_, err := s.update(s.queue, "AAAA", 43201)
			return err
		}},
		{"page of 0", 400, "InvalidParameter", "limit is 0|limits.list-page", func(s *stage) error { return s.listing(0) }},
		{"page of 1001", 400, "InvalidParameter", "limit is 1001|limits.list-page", func(s *stage) error { return s.listing(1001) }},
		{"made-up page", 400, "InvalidParameter", "page", func(s *stage) error {
			_, err := s.admin.ListQueues(s.ctx(), queue.ListQueuesRequest{Page: new("bWFkZS11cA")})
			return err
		}},
		{"long retry token", 400, "InvalidParameter", "opc-retry-token|1 to 64", func(s *stage) error {
			_, err := s.admin.CreateQueue(s.ctx(), queue.CreateQueueRequest{OpcRetryToken: new(strings.Repeat("t", 65)),
				CreateQueueDetails: queue.CreateQueueDetails{DisplayName: new("x"), CompartmentId: new("c")}})
			return err
		}},
		{"unknown purge type", 400, "InvalidParameter", "purgeType must be one of NORMAL, DLQ, BOTH", func(s *stage) error {
			return s.send("POST", "/queues/Q/actions/purge", `{"purgeType":"ALL"}`)
		}},
		{"new group without the capability", 400, "InvalidParameter", "CONSUMER_GROUPS", func(s *stage) error {
			_, err := s.admin.CreateConsumerGroup(s.ctx(), queue.CreateConsumerGroupRequest{CreateConsumerGroupDetails: queue.CreateConsumerGroupDetails{
				DisplayName: new("g"), QueueId: &s.queue}})
			return err
		}},
		{"new group of no queue", 400, "RelatedResourceNotAuthorizedOrNotFound", "queueId", func(s *stage) error {
			_, err := s.admin.CreateConsumerGroup(s.ctx(), queue.CreateConsumerGroupRequest{CreateConsumerGroupDetails: queue.CreateConsumerGroupDetails{
				DisplayName: new("g"), QueueId: new("ocid1.queue.oc1.local.none")}})
			return err
		}},
		{"group without the capability", 400, "InvalidParameter", "CONSUMER_GROUPS", func(s *stage) error {
			return s.getting(func(r *queue.GetMessagesRequest) { r.ConsumerGroupId = new("g") })
		}},
		{"no receipt of ours", 400, "InvalidParameter", "receipt", func(s *stage) error {
			_, err := s.data.DeleteMessage(s.ctx(), queue.DeleteMessageRequest{QueueId: &s.queue, MessageReceipt: new("AAAA")})
			return err
		}},

		{"page of another site", 403, "NotAuthorized", "origin", func(s *stage) error { return s.send("GET", "/queues/Q/stats", "", "Origin: https://evil.example") }},
		{"another host", 403, "NotAuthorized", "evil.example", func(s *stage) error { return s.send("GET", "/queues/Q/stats", "", "Host: evil.example") }},

		{"unknown queue", 404, "NotAuthorizedOrNotFound", "not known", func(s *stage) error {
			_, err := s.data.GetStats(s.ctx(), queue.GetStatsRequest{QueueId: new("ocid1.queue.oc1.local.nobody")})
			return err
		}},
		{"very long queue id", 404, "NotAuthorizedOrNotFound", "", func(s *stage) error {
			_, err := s.admin.GetQueue(s.ctx(), queue.GetQueueRequest{QueueId: new("ocid1.queue." + strings.Repeat("x", 2000))})
			return err
		}},
		{"unknown work request", 404, "NotAuthorizedOrNotFound", "not known", func(s *stage) error {
			_, err := s.admin.GetWorkRequest(s.ctx(), queue.GetWorkRequestRequest{WorkRequestId: new("ocid1.queueworkrequest.oc1.local.x")})
			return err
		}},
		{"logs of an unknown work request", 404, "NotAuthorizedOrNotFound", "not known", func(s *stage) error {
			_, err := s.admin.ListWorkRequestLogs(s.ctx(), queue.ListWorkRequestLogsRequest{WorkRequestId: new("x")})
			return err
		}},
		{"errors of an unknown work request", 404, "NotAuthorizedOrNotFound", "not known", func(s *stage) error {
			_, err := s.admin.ListWorkRequestErrors(s.ctx(), queue.ListWorkRequestErrorsRequest{WorkRequestId: new("x")})
			return err
		}},
		{"unknown group", 404, "NotAuthorizedOrNotFound", "not known", func(s *stage) error {
			_, err := s.admin.GetConsumerGroup(s.ctx(), queue.GetConsumerGroupRequest{ConsumerGroupId: new("g")})
			return err
		}},
		{"stale receipt", 404, "NotAuthorizedOrNotFound", "stale", func(s *stage) error {
			s.put(s.queue, text("x"))
			m := s.get(s.queue, hidden(0))
			s.get(s.queue, hidden(60))
			_, err := s.update(s.queue, *m[0].Receipt, 5)
			return err
		}},
		{"unknown path", 404, "NotFound", "", func(s *stage) error { return s.send("GET", "/queues/Q/secrets", "") }},
		{"unknown method", 405, "MethodNotAllowed", "PATCH", func(s *stage) error { return s.send("PATCH", "/queues/Q", "{}") }},

		{"token of a deleted queue", 409, "InvalidatedRetryToken", "deleted", func(s *stage) error {
			r := queue.CreateQueueRequest{OpcRetryToken: new("5e1f"), RequestMetadata: once(),
				CreateQueueDetails: queue.CreateQueueDetails{DisplayName: new("short-lived"), CompartmentId: new(compartment)}}
			made := good[queue.CreateQueueResponse](s.t)(s.admin.CreateQueue(s.ctx(), r))
			id := s.finished(made.OpcWorkRequestId, queue.ActionTypeCreated)
			good[queue.DeleteQueueResponse](s.t)(s.admin.DeleteQueue(s.ctx(), queue.DeleteQueueRequest{QueueId: &id}))
			_, err := s.admin.CreateQueue(s.ctx(), r)
			return err
		}},
		{"etag of another version", 412, "NoEtagMatch", "if-match", func(s *stage) error {
			_, err := s.admin.DeleteQueue(s.ctx(), queue.DeleteQueueRequest{QueueId: &s.queue, IfMatch: new("x")})
			return err
		}},

		{"message too large", 413, "PayloadTooLarge", "messages[1]|262145|limits.message-bytes", func(s *stage) error {
			return s.putting(text("x"), text(strings.Repeat("x", 256<<10+1)))
		}},
		{"message too large by its properties", 413, "PayloadTooLarge", "limits.message-bytes", func(s *stage) error {
			m := withProperties(map[string]string{"p": "v"})
			m.Content = new(strings.Repeat("x", 256<<10-1))
			return s.putting(m)
		}},
		{"request too large", 413, "PayloadTooLarge", "524289|limits.request-bytes", func(s *stage) error {
			return s.putting(text(strings.Repeat("x", 200<<10)), text(strings.Repeat("x", 200<<10)), text(strings.Repeat("x", 112<<10+1)))
		}},
		{"large message too large", 413, "PayloadTooLarge", "messages[0]|524289|limits.large-message-bytes", func(s *stage) error {
			if err := s.updating(queue.UpdateQueueDetails{Capabilities: []queue.CapabilityDetails{queue.LargeMessagesCapabilityDetails{}}}); err != nil {
				return err
			}
			s.put(s.queue, text(strings.Repeat("x", 512<<10)), text(strings.Repeat("x", 512<<10)))
			return s.putting(text(strings.Repeat("x", 512<<10+1)))
		}},
		{"body too large", 413, "PayloadTooLarge", "limits.request-bytes", func(s *stage) error {
			return s.putting(text(strings.Repeat("x", 8*mib)))
		}},
	})

	// Limits made small, so that they are soon reached.
	rows(t, []string{"limits:", "  queues-per-tenancy: 100", "  channels-per-queue: 3", "  bytes-per-queue: 1000", "  in-flight-per-queue: 5", "  in-flight-reserved-per-queue: 5",
		"  message-bytes: 400", "  request-bytes: 500", "  large-message-bytes: 400", "  large-request-bytes: 500", "  response-bytes: 400", "  batch-messages: 4", "  properties-per-message: 2", "  property-name-bytes: 8",
		"  property-bytes: 16", "  list-page: 5", "  open-polls-per-queue: 2", "  retry-tokens-per-queue: 3", "default-get-limit: 4"}, []row{
		{"channels of a queue", 400, "LimitExceeded", "3 channels|limits.channels-per-queue", func(s *stage) error {
			n := 0
			return repeat(10, func() error { n++; return s.putting(in(fmt.Sprint("c", n), "x")) })
		}},
		{"channels of one publish", 400, "LimitExceeded", "limits.channels-per-queue", func(s *stage) error {
			return s.putting(in("a", "x"), in("b", "x"), in("c", "x"), in("d", "x"))
		}},
		{"octets of a queue", 400, "LimitExceeded", "limits.bytes-per-queue", func(s *stage) error {
			return repeat(10, func() error { return s.putting(text(strings.Repeat("x", 300))) })
		}},
		{"octets of a channel", 400, "LimitExceeded", "channelConsumptionLimit|limits.bytes-per-queue", func(s *stage) error {
			if err := s.updating(queue.UpdateQueueDetails{ChannelConsumptionLimit: new(10)}); err != nil {
				return err
			}
			s.put(s.queue, text(strings.Repeat("x", 300)), in("other", "x")) // neither is in that channel
			return repeat(10, func() error { return s.putting(in("c", strings.Repeat("x", 40))) })
		}},
		{"octets of a queue with delayed ones", 400, "LimitExceeded", "limits.bytes-per-queue", func(s *stage) error {
			return repeat(10, func() error {
				return s.send("POST", "/queues/Q/messages", `{"messages":[{"content":"`+strings.Repeat("x", 300)+`","delayInSeconds":60}]}`)
			})
		}},
		{"message", 413, "PayloadTooLarge", "limits.message-bytes", func(s *stage) error { return s.putting(text(strings.Repeat("x", 401))) }},
		{"request", 413, "PayloadTooLarge", "limits.request-bytes", func(s *stage) error {
			return s.putting(text(strings.Repeat("x", 250)), text(strings.Repeat("x", 251)))
		}},
		{"raw body", 413, "PayloadTooLarge", "68536 octets|limits.request-bytes", func(s *stage) error {
			return s.send("POST", "/queues/Q/messages", strings.Repeat(" ", 68537))
		}},
		{"batch", 400, "InvalidParameter", "limits.batch-messages", func(s *stage) error {
			return s.putting(text("a"), text("a"), text("a"), text("a"), text("a"))
		}},
		{"limit of a get", 400, "InvalidParameter", "1 to 4|limits.batch-messages", func(s *stage) error { return s.getting(limit(5)) }},
		{"properties", 400, "InvalidParameter", "limits.properties-per-message", func(s *stage) error {
			return s.putting(withProperties(map[string]string{"a": "", "b": "", "c": ""}))
		}},
		{"name of a property", 400, "InvalidParameter", "limits.property-name-bytes", func(s *stage) error {
			return s.putting(withProperties(map[string]string{"abcdefghi": ""}))
		}},
		{"value of a property", 400, "InvalidParameter", "limits.property-bytes", func(s *stage) error {
			return s.putting(withProperties(map[string]string{"a": strings.Repeat("v", 17)}))
		}},
		{"page", 400, "InvalidParameter", "1 to 5|limits.list-page", func(s *stage) error { return s.listing(6) }},
		{"retry tokens", 400, "LimitExceeded", "limits.retry-tokens-per-queue", func(s *stage) error {
			n := 0
			return repeat(10, func() error {
				n++
				return s.send("POST", "/queues/Q/messages", `{"messages":[{"content":"x"}]}`, fmt.Sprint("opc-retry-token: t", n))
			})
		}},
		{"open polls", 503, "ServiceUnavailable", "limits.open-polls-per-queue", func(s *stage) error {
			for range 2 {
				if err := rest.Dial(s.t, s.server.REST).Send("GET", "/queues/"+s.queue+"/messages?timeoutInSeconds=20", ""); err != nil {
					return err
				}
			}
			for n := 0.0; n < 2; n, _ = s.server.Metric("queued_waiters") {
				time.Sleep(10 * time.Millisecond)
			}
			return s.getting(wait(1))
		}},
	})

	// What a tenancy may have, in all.
	rows(t, []string{"limits:", "  queues-per-tenancy: 3", "  bytes-per-tenancy: 1000"}, []row{
		{"queues", 400, "LimitExceeded", "3 queues|limits.queues-per-tenancy", func(s *stage) error {
			return repeat(10, func() error { return s.creating(queue.CreateQueueDetails{}) })
		}},
	})
	rows(t, []string{"limits:", "  bytes-per-tenancy: 1000"}, []row{
		{"octets", 400, "LimitExceeded", "limits.bytes-per-tenancy", func(s *stage) error {
			other := s.create(queue.CreateQueueDetails{DisplayName: new("other")})
			s.put(other, text(strings.Repeat("x", 600)))
			return s.putting(text(strings.Repeat("x", 401)))
		}},
	})

	// Rates.
	rows(t, []string{"limits:", "  requests-per-second: 5", "  gets-per-second: 5"}, []row{
		{"gets", 429, "TooManyRequests", "limits.gets-per-second", func(s *stage) error { return repeat(20, func() error { return s.getting() }) }},
		{"publishes", 429, "TooManyRequests", "PutMessages|limits.requests-per-second", func(s *stage) error {
			return repeat(20, func() error { return s.putting(text("x")) })
		}},
		{"stats", 429, "TooManyRequests", "GetStats|limits.requests-per-second", func(s *stage) error {
			return repeat(20, func() error {
				_, err := s.data.GetStats(s.ctx(), queue.GetStatsRequest{QueueId: &s.queue, RequestMetadata: once()})
				return err
			})
		}},
		{"channels", 429, "TooManyRequests", "ListChannels|limits.requests-per-second", func(s *stage) error {
			return repeat(20, func() error {
				_, err := s.data.ListChannels(s.ctx(), queue.ListChannelsRequest{QueueId: &s.queue, RequestMetadata: once()})
				return err
			})
		}},
		{"deletes", 429, "TooManyRequests", "DeleteMessage|limits.requests-per-second", func(s *stage) error {
			err := repeat(20, func() error {
				_, err := s.data.DeleteMessage(s.ctx(), queue.DeleteMessageRequest{QueueId: &s.queue, MessageReceipt: new("AAAA"), RequestMetadata: once()})
				if e, ok := common.IsServiceError(err); ok && e.GetHTTPStatusCode() == http.StatusBadRequest {
					return nil // counted before it is looked at
				}
				return err
			})
			return err
		}},
	})
	rows(t, []string{"limits:", "  ingress-bytes-per-second: 100KiB", "  egress-bytes-per-second: 100KiB"}, []row{
		{"octets in", 429, "TooManyRequests", "limits.ingress-bytes-per-second", func(s *stage) error {
			return repeat(20, func() error { return s.putting(text(strings.Repeat("x", 100<<10))) })
		}},
		{"octets out", 429, "TooManyRequests", "limits.egress-bytes-per-second", func(s *stage) error {
			s.put(s.queue, text(strings.Repeat("x", 200<<10)))
			return repeat(100, func() error { return s.getting(hidden(0)) })
		}},
	})

	// The disk.
	rows(t, []string{"disk-floor-publish-bytes: 1000TiB", "disk-floor-lease-bytes: 1000TiB"}, []row{
		{"no room to publish", 507, "InsufficientStorage", "disk-floor-publish-bytes", func(s *stage) error { return s.putting(text("x")) }},
		{"no room to lease", 507, "InsufficientStorage", "disk-floor-lease-bytes", func(s *stage) error { return s.getting() }},
	})
}

// rows runs rows on one server with these lines of configuration.
func rows(t *testing.T, config []string, all []row) {
	t.Helper()
	s := start(t, config...)
	for _, r := range all {
		t.Run(r.what, func(t *testing.T) {
			c := connect(t, s) // its circuit breaker is new
			st := &stage{sdk: c, server: s, raw: rest.Dial(t, s.REST)}
			st.queue = c.create(queue.CreateQueueDetails{DisplayName: new("errors"), DeadLetterQueueDeliveryCount: new(0)})
			defer func() {
				if _, err := c.admin.DeleteQueue(t.Context(), queue.DeleteQueueRequest{QueueId: &st.queue}); err != nil {
					t.Error(err)
				}
			}()
			var say []string
			if r.say != "" {
				say = strings.Split(r.say, "|")
			}
			refused(t, r.what, r.call(st), r.status, r.code, say...)
		})
	}
}

func make21[T any](v T) []T {
	var all []T
	for range 21 {
		all = append(all, v)
	}
	return all
}
