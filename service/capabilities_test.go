package service

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

func TestReadCapabilities(t *testing.T) {
	asked := func(types ...string) (all []CapabilityDetails) {
		for _, name := range types {
			all = append(all, CapabilityDetails{Type: name})
		}
		return all
	}
	for name, c := range map[string]struct {
		in   []CapabilityDetails
		out  []queue.Capability
		code queue.Code
		text string
	}{
		"none":     {nil, nil, "", ""},
		"large":    {asked("large_messages"), []queue.Capability{queue.LargeMessages}, "", ""},
		"twice":    {asked("LARGE_MESSAGES", "large_Messages"), []queue.Capability{queue.LargeMessages}, "", ""},
		"both":     {asked("CONSUMER_GROUPS", "LARGE_MESSAGES", "consumer_groups"), []queue.Capability{queue.ConsumerGroups, queue.LargeMessages}, "", ""},
		"unknown":  {asked("LARGE_MESSAGES", "FIFO"), nil, queue.InvalidParameter, "capabilities[1].type must be one of CONSUMER_GROUPS, LARGE_MESSAGES"},
		"no type":  {asked("LARGE_MESSAGES", ""), nil, queue.MissingParameter, "capabilities[1].type is missing"},
		"no type0": {asked(""), nil, queue.MissingParameter, "capabilities[0].type is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := formOnly().readCapabilities(c.in)
			want(t, err, c.code, c.text)
			if diff := cmp.Diff(c.out, got.all); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// withLarge asks for LARGE_MESSAGES.
func withLarge(r *CreateQueueRequest) {
	r.Capabilities = append(r.Capabilities, CapabilityDetails{Type: "LARGE_MESSAGES"})
}

// capabilities are those of a queue, as Get and List show them.
func (h *house) capabilities(ref string) []queue.Capability {
	h.Helper()
	resp, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: ref})
	h.want(err, "", "")
	list, err := h.s.ListQueues(h.ctx, ListQueuesRequest{ID: p(string(resp.Queue.ID))})
	h.want(err, "", "")
	if diff := cmp.Diff(resp.Queue.Capabilities, list.Items[0].Capabilities); diff != "" {
		h.Error(diff)
	}
	return resp.Queue.Capabilities
}

// A capability can be added and never taken away.
func TestCapabilityIsAdded(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		made := h.create("orders", nil)
		if got := h.capabilities("orders"); len(got) != 0 {
			h.Errorf("a new queue has %v", got)
		}
		large := []queue.Capability{queue.LargeMessages}
		for _, c := range []struct {
			in  []CapabilityDetails
			out []queue.Capability
		}{
			{nil, nil},
			{[]CapabilityDetails{{Type: "LARGE_MESSAGES"}}, large},
			{[]CapabilityDetails{{Type: "LARGE_MESSAGES"}}, large}, // again
			{[]CapabilityDetails{}, large},                         // left out
			{nil, large},
		} {
			resp, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", Capabilities: c.in})
			h.want(err, "", "")
			h.wantWork(resp.WorkRequestID, queue.UpdateQueue, queue.ActionUpdated, made.ID, "ocid1.tenancy.oc1..local")
			if diff := cmp.Diff(c.out, h.capabilities("orders")); diff != "" {
				h.Errorf("after %v: %s", c.in, diff)
			}
		}
		_, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", Capabilities: []CapabilityDetails{{Type: "FIFO"}}})
		h.want(err, queue.InvalidParameter, "")

		// The settings of the primary group count where it is made, and nowhere else.
		bad := []CapabilityDetails{{Type: "CONSUMER_GROUPS", PrimaryConsumerGroupFilter: p("(")}}
		_, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", Capabilities: bad})
		h.want(err, queue.InvalidParameter, "")
		if diff := cmp.Diff(large, h.capabilities("orders")); diff != "" {
			h.Errorf("after a filter that cannot be read: %s", diff)
		}
		for _, in := range [][]CapabilityDetails{{{Type: "CONSUMER_GROUPS"}}, bad} {
			_, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "orders", Capabilities: in})
			h.want(err, "", "")
		}
	})
}

// putOctets publishes messages of these sizes.
func (h *house) putOctets(ref string, sizes ...int) error {
	r := PutMessagesRequest{QueueRef: ref}
	for _, n := range sizes {
		r.Messages = append(r.Messages, PutMessage{Content: bytes.Repeat([]byte("x"), n)})
	}
	_, err := h.s.PutMessages(h.ctx, r)
	return err
}

func TestLargeMessages(t *testing.T) {
	l := limits.Unthrottled()
	inHouse(t, Options{Limits: &l}, func(h *house) {
		h.create("small", nil)
		h.create("large", withLarge)

		h.want(h.putOctets("small", 256<<10, 256<<10), "", "")
		h.want(h.putOctets("small", 256<<10+1), queue.PayloadTooLarge,
			"messages[0]: a message has 262145 octets of content and properties; it may have 262144 (limits.message-bytes)")
		h.want(h.putOctets("small", 256<<10, 256<<10, 1), queue.PayloadTooLarge,
			"a request has 524289 octets of content and properties; it may have 524288 (limits.request-bytes)")

		h.want(h.putOctets("large", 512<<10, 512<<10), "", "")
		h.want(h.putOctets("large", 512<<10+1), queue.PayloadTooLarge,
			"messages[0]: a message has 524289 octets of content and properties; it may have 524288 (limits.large-message-bytes)")
		h.want(h.putOctets("large", 512<<10, 512<<10, 1), queue.PayloadTooLarge,
			"a request has 1048577 octets of content and properties; it may have 1048576 (limits.large-request-bytes)")

		// An answer holds 2 MiB, whatever the messages are.
		for range 3 {
			h.want(h.putOctets("large", 512<<10, 512<<10), "", "")
		}
		if got := h.get("large", 60); len(got) != 4 {
			h.Errorf("an answer has %d messages of 512 KiB, want 4", len(got))
		}
		if got := h.get("large", 60); len(got) != 4 || len(got[3].Body) != 512<<10 {
			h.Errorf("the next answer has %d messages", len(got))
		}

		// With the capability added the queue takes more at once, what it holds stays.
		_, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: "small", Capabilities: []CapabilityDetails{{Type: "LARGE_MESSAGES"}}})
		h.want(err, "", "")
		h.want(h.putOctets("small", 512<<10, 512<<10), "", "")
		if got := h.get("small", 60); len(got) != 4 {
			h.Errorf("%d messages of before and after", len(got))
		}
	})
}

// Frames that arrive together, and publishes of a stream, have the same sizes.
func TestLargeMessagesStarted(t *testing.T) {
	l := limits.Unthrottled()
	inHouse(t, Options{Limits: &l}, func(h *house) {
		h.create("small", nil)
		h.create("large", withLarge)
		for _, c := range []struct {
			ref  string
			n    int
			code queue.Code
		}{
			{"small", 256 << 10, ""},
			{"small", 256<<10 + 1, queue.PayloadTooLarge},
			{"large", 512 << 10, ""},
			{"large", 512<<10 + 1, queue.PayloadTooLarge},
		} {
			one := func() []PutMessage { return []PutMessage{{Content: make([]byte, c.n)}} }
			each, whole := make(chan error, 1), make(chan error, 1)
			h.s.StartPutEach(h.ctx, c.ref, one(), func(_, _, _ int, err error) { each <- err })
			h.want(<-each, c.code, "")
			h.s.StartPutMessages(h.ctx, PutMessagesRequest{QueueRef: c.ref, Messages: one()}, func(_ PutMessagesResponse, err error) { whole <- err })
			h.want(<-whole, c.code, "")
		}
	})
}

func TestTakesLarge(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("small", nil)
		made := h.create("large", withLarge)
		for ref, wanted := range map[string]bool{"small": false, "large": true, string(made.ID): true, "unknown": false, "": false} {
			if got := h.s.TakesLarge(h.ctx, ref); got != wanted {
				h.Errorf("%q: %v", ref, got)
			}
		}
		h.delete("large")
		if h.s.TakesLarge(h.ctx, string(made.ID)) {
			h.Error("a deleted queue takes large messages")
		}
	})
}
