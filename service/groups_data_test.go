package service

import (
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

// reads calls every operation that reads or settles messages, of one group,
// and gives their errors by name.
func (h *house) reads(ref string, group *string, receipt queue.Receipt) map[string]error {
	errs := map[string]error{}
	_, errs["GetMessages"] = h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: ref, ConsumerGroupID: group, TimeoutInSeconds: p(int32(0))})
	_, errs["UpdateMessage"] = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: ref, ConsumerGroupID: group, Receipt: receipt, VisibilityInSeconds: p(int32(60))})
	_, errs["UpdateMessages"] = h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: ref, ConsumerGroupID: group,
		Entries: []UpdateMessagesEntry{{Receipt: receipt, VisibilityInSeconds: p(int32(60))}}})
	_, errs["DeleteMessage"] = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: ref, ConsumerGroupID: group, Receipt: receipt})
	_, errs["DeleteMessages"] = h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: ref, ConsumerGroupID: group, Receipts: []queue.Receipt{receipt}})
	_, errs["GetStats"] = h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: ref, ConsumerGroupID: group})
	_, errs["ListChannels"] = h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: ref, ConsumerGroupID: group})
	_, errs["Subscribe"] = h.s.Subscribe(h.ctx, SubscribeRequest{QueueRef: ref, ConsumerGroupID: group})
	return errs
}

// wantAll checks that all operations have failed the same way.
func (h *house) wantAll(errs map[string]error, code queue.Code, text string) {
	h.Helper()
	for name, err := range errs {
		if got := queue.CodeOf(err); got != code || text != "" && queue.MessageOf(err) != text {
			h.Errorf("%s: %v, want %s %q", name, err, code, text)
		}
	}
}

func TestGroupIsNotKnown(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("plain", nil)
		h.create("orders", withGroups)
		h.create("others", withGroups)
		stranger, gone := h.group("others", "stranger", nil), h.group("orders", "gone", nil)
		_, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "gone"})
		h.want(err, "", "")
		purge := func(ref, group string) error {
			_, err := h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: ref, PurgeType: p("BOTH"), ConsumerGroupID: &group})
			return err
		}

		const lacks = "consumerGroupId is given, but the queue does not have the capability CONSUMER_GROUPS"
		h.wantAll(h.reads("plain", p("stranger"), "r"), queue.InvalidParameter, lacks)
		h.want(purge("plain", "stranger"), queue.InvalidParameter, lacks)
		h.want(purge("plain", "all"), "", "")
		for _, group := range []string{"billing", "stranger", string(stranger.ID), "gone", string(gone.ID), "unrouted", "*"} {
			text := `consumer group "` + group + `" is not known, or you may not use it so`
			h.wantAll(h.reads("orders", &group, "r"), queue.NotAuthorizedOrNotFound, text)
			h.want(purge("orders", group), queue.NotAuthorizedOrNotFound, text)
		}
		_, err = h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders", ConsumerGroupID: p("all"), TimeoutInSeconds: p(int32(0))})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
	})
}

// The primary group is meant when none is named, and can be named, by OCID or
// by display name whatever the case. The answer echoes what was asked.
func TestPrimaryGroupByName(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		primary := string(h.primaryOf("orders").ID)
		for _, group := range []*string{nil, p(""), p("primary CONSUMER group"), &primary} {
			h.put("orders", "north", "a")
			resp, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: "orders", ConsumerGroupID: group})
			h.want(err, "", "")
			if resp.Queue.Visible != 1 || given(resp.ConsumerGroupID) != given(group) {
				h.Errorf("%v: %+v", group, resp)
			}
			channels, err := h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: "orders", ConsumerGroupID: group})
			if err != nil || len(channels.Items) != 1 {
				h.Errorf("%+v, %v", channels, err)
			}
			got, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders", ConsumerGroupID: group, TimeoutInSeconds: p(int32(0))})
			if err != nil || len(got.Messages) != 1 {
				h.Fatalf("%+v, %v", got, err)
			}
			h.wantAll(h.reads("orders", group, got.Messages[0].Receipt), "", "")
			h.put("orders", "", "b")
			_, err = h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: "orders", PurgeType: p("BOTH"), ConsumerGroupID: group})
			h.want(err, "", "")
			if main, _ := h.stats("orders"); main != (queue.Stats{}) {
				h.Errorf("%+v", main)
			}
		}
	})
}

// A disabled group gives nothing out; what is in flight can be finished.
func TestDisabledGroup(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		id := string(h.primaryOf("orders").ID)
		h.put("orders", "", "a", "b", "c")
		got := h.get("orders", 60)
		enable := func(yes bool) { h.change(UpdateConsumerGroupRequest{ConsumerGroupID: id, IsEnabled: &yes}) }
		sub, err := h.s.Subscribe(h.ctx, SubscribeRequest{QueueRef: "orders"})
		h.want(err, "", "")

		waits := make(chan error, 2)
		go func() {
			_, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders"})
			waits <- err
		}()
		go func() {
			_, err := sub.Next(h.ctx, 1, 0)
			waits <- err
		}()
		time.Sleep(time.Second)
		h.want(sub.Alive(h.ctx), "", "")
		began := h.s.Now()
		enable(false)
		const disabled = "the consumer group is disabled; enable it before its messages are taken"
		for range 2 {
			h.want(<-waits, queue.IncorrectState, disabled)
		}
		if h.s.Now() != began {
			h.Error("those who waited were told late")
		}
		h.want(sub.Alive(h.ctx), queue.IncorrectState, disabled)
		_, err = h.s.Subscribe(h.ctx, SubscribeRequest{QueueRef: "orders"})
		h.want(err, queue.IncorrectState, disabled)
		for _, group := range []*string{nil, &id} {
			_, err = h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders", ConsumerGroupID: group})
			h.want(err, queue.IncorrectState, disabled)
		}

		errs := h.reads("orders", &id, got[0].Receipt)
		delete(errs, "GetMessages")
		delete(errs, "Subscribe")
		h.wantAll(errs, "", "")
		if main, _ := h.stats("orders"); main.InFlight != 2 {
			h.Errorf("%+v", main)
		}
		enable(true)
		time.Sleep(time.Minute)
		if got := h.get("orders", 60); len(got) != 2 {
			h.Errorf("%d messages when it is enabled again", len(got))
		}
	})
}

// Who waits for a group is told when it is deleted, or its queue is.
func TestDeletedGroupEndsWaits(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		for _, end := range []func(){
			func() {
				_, err := h.s.DeleteConsumerGroup(h.ctx, DeleteConsumerGroupRequest{ConsumerGroupID: "billing"})
				h.want(err, "", "")
			},
			func() { h.delete("orders") },
		} {
			h.create("orders", withGroups)
			h.group("orders", "billing", nil)
			sub, err := h.s.Subscribe(h.ctx, SubscribeRequest{QueueRef: "orders", ConsumerGroupID: p("billing")})
			h.want(err, "", "")
			waits := make(chan error, 2)
			go func() {
				_, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders", ConsumerGroupID: p("BILLING")})
				waits <- err
			}()
			go func() {
				_, err := sub.Next(h.ctx, 1, 0)
				waits <- err
			}()
			time.Sleep(time.Second)
			began := h.s.Now()
			end()
			for range 2 {
				h.want(<-waits, queue.NotAuthorizedOrNotFound, "")
			}
			if h.s.Now() != began {
				h.Error("those who waited were told late")
			}
			h.want(sub.Alive(h.ctx), queue.NotAuthorizedOrNotFound, "")
			if _, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: "orders"}); err == nil {
				h.delete("orders")
			}
		}
	})
}

// What no group accepted is not to be had where it is not kept, never through a
// dead letter queue, and takes no other operation.
func TestUnroutedIsRefused(t *testing.T) {
	for _, kept := range []bool{false, true} {
		inHouse(t, Options{KeepUnrouted: kept}, func(h *house) {
			h.create("plain", nil)
			made := h.create("orders", withGroups)
			wanted := queue.Code("")
			if !kept {
				wanted = queue.NotAuthorizedOrNotFound
				h.wantAll(h.reads("orders_unrouted", nil, "r"), wanted, "what no consumer group accepts is not kept by this server (keep-unrouted)")
			}
			for _, ref := range []string{"orders_unrouted", string(made.ID) + "_unrouted"} {
				_, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: ref})
				h.want(err, wanted, "")
				const advice = `"_unrouted" behind a queue means what no consumer group accepted, which can be read and deleted only`
				_, err = h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: ref, Messages: []PutMessage{{Content: []byte("x")}}})
				h.want(err, queue.InvalidParameter, advice)
				_, err = h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: ref})
				h.want(err, queue.InvalidParameter, advice)
				_, err = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: ref})
				h.want(err, queue.InvalidParameter, advice)
				_, err = h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: ref})
				h.want(err, queue.InvalidParameter, advice)
				_, err = h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: ref, PurgeType: p("BOTH")})
				h.want(err, queue.InvalidParameter, advice)
				_, err = h.s.CreateConsumerGroup(h.ctx, CreateConsumerGroupRequest{QueueID: &ref, DisplayName: p("g")})
				h.want(err, queue.InvalidParameter, advice)
				h.wantAll(h.reads(ref+"_dlq", nil, "r"), queue.NotAuthorizedOrNotFound, "")
			}
			h.wantAll(h.reads("plain_unrouted", nil, "r"), queue.NotAuthorizedOrNotFound, "")
			if kept {
				h.wantAll(h.reads("orders_unrouted", p("Primary Consumer Group"), "r"), queue.InvalidParameter, "")
			}
		})
	}
}

// putKinds publishes one message for each, with the property kind; "" is none.
func (h *house) putKinds(ref, channel string, kinds ...string) {
	h.Helper()
	r := PutMessagesRequest{QueueRef: ref}
	for _, kind := range kinds {
		m := PutMessage{Content: []byte(kind), ChannelID: &channel}
		if kind != "" {
			m.Properties = []queue.Property{{Name: "kind", Value: kind}}
		}
		r.Messages = append(r.Messages, m)
	}
	if _, err := h.s.PutMessages(h.ctx, r); err != nil {
		h.Fatal(err)
	}
}

// of takes what a group has to give now; nil is the primary one.
func (h *house) of(ref string, group *string, visibility int32) (got []queue.Delivery) {
	h.Helper()
	for {
		resp, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: ref, ConsumerGroupID: group,
			VisibilityInSeconds: &visibility, TimeoutInSeconds: p(int32(0))})
		if err != nil {
			h.Fatal(err)
		}
		if got = append(got, resp.Messages...); len(resp.Messages) == 0 {
			return got
		}
	}
}

// wantStats checks the counters of a group.
func (h *house) wantStats(ref string, group *string, visible, inFlight, dead int64) {
	h.Helper()
	resp, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: ref, ConsumerGroupID: group})
	if err != nil {
		h.Fatal(err)
	}
	if resp.Queue.Visible != visible || resp.Queue.InFlight != inFlight || resp.DLQ.Visible != dead {
		h.Errorf("%s of %q has %+v, %+v; want %d visible, %d in flight, %d dead", ref, given(group), resp.Queue, resp.DLQ, visible, inFlight, dead)
	}
}

// Each group has its own copies, receipts, counts and channels; a receipt is of
// one group, and no other may use it.
func TestGroupsAreApart(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		made := h.create("orders", withGroups)
		h.group("orders", "bills", func(r *CreateConsumerGroupRequest) { r.Filter = p(":kind = 'bill'") })
		h.group("orders", "all of it", nil)
		bills, rest := p("bills"), p("all of it")
		h.putKinds("orders", "north", "bill", "bill")
		h.putKinds("orders", "south", "offer")
		h.wantStats("orders", nil, 3, 0, 0)
		h.wantStats("orders", bills, 2, 0, 0)
		h.wantStats("orders", rest, 3, 0, 0)
		list := func(group *string) []string {
			h.Helper()
			resp, err := h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: "orders", ConsumerGroupID: group})
			h.want(err, "", "")
			return resp.Items
		}
		if a, b := list(bills), list(rest); len(a) != 1 || a[0] != "north" || len(b) != 2 {
			h.Errorf("channels %v and %v", a, b)
		}

		got := h.of("orders", bills, 60)
		if len(got) != 2 || string(got[0].Body) != "bill" {
			h.Fatalf("%+v", got)
		}
		h.wantStats("orders", bills, 0, 2, 0)
		h.wantStats("orders", nil, 3, 0, 0)
		one := got[0].Receipt
		for _, other := range []*string{nil, rest, p("Primary Consumer Group")} {
			const text = "the receipt is of another consumer group of the queue"
			_, err := h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", ConsumerGroupID: other, Receipt: one})
			h.want(err, queue.NotAuthorizedOrNotFound, text)
			_, err = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: "orders", ConsumerGroupID: other, Receipt: one, VisibilityInSeconds: p(int32(0))})
			h.want(err, queue.NotAuthorizedOrNotFound, text)
			deleted, err := h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: "orders", ConsumerGroupID: other, Receipts: []queue.Receipt{one}})
			if err != nil || deleted.ClientFailures != 1 || deleted.Entries[0].ErrorCode != 404 {
				h.Errorf("%+v, %v", deleted, err)
			}
			updated, err := h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: "orders", ConsumerGroupID: other,
				Entries: []UpdateMessagesEntry{{Receipt: one, VisibilityInSeconds: p(int32(0))}}})
			if err != nil || updated.ClientFailures != 1 || updated.Entries[0].ErrorCode != 404 {
				h.Errorf("%+v, %v", updated, err)
			}
		}
		h.wantStats("orders", bills, 0, 2, 0)
		_, err := h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: string(made.ID), ConsumerGroupID: bills, Receipt: one})
		h.want(err, "", "")
		h.wantStats("orders", bills, 0, 1, 0)
		h.wantStats("orders", nil, 3, 0, 0)

		// A stream settles whatever group a receipt is of.
		ended := make(chan error, 1)
		h.s.StartDeleteMessages(h.ctx, "orders", []queue.Receipt{got[1].Receipt}, func(results []error, err error) {
			ended <- err
			ended <- results[0]
		})
		h.want(<-ended, "", "")
		h.want(<-ended, "", "")
		h.wantStats("orders", bills, 0, 0, 0)

		// A filter that has changed is for what comes.
		h.change(UpdateConsumerGroupRequest{ConsumerGroupID: "bills", Filter: p(":kind = 'offer'")})
		h.wantStats("orders", bills, 0, 0, 0)
		h.putKinds("orders", "", "bill", "offer")
		h.wantStats("orders", bills, 1, 0, 0)
	})
}

// Each group has its own limit of deliveries: its own, none, or the queue's; and
// its own dead letter queue.
func TestGroupsDeadLetters(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", func(r *CreateQueueRequest) { withGroups(r); r.DeadLetterQueueDeliveryCount = p(int32(2)) })
		for name, n := range map[string]*int32{"one": p(int32(1)), "never": p(int32(0)), "queue": nil} {
			h.group("orders", name, func(r *CreateConsumerGroupRequest) { r.DeadLetterQueueDeliveryCount = n })
		}
		h.put("orders", "north", "x")
		fail := func() {
			h.Helper()
			for _, name := range []string{"one", "never", "queue"} {
				h.of("orders", &name, 1)
			}
			time.Sleep(2 * time.Second)
		}
		fail()
		h.wantStats("orders", p("one"), 0, 0, 1)
		h.wantStats("orders", p("never"), 1, 0, 0)
		h.wantStats("orders", p("queue"), 1, 0, 0)
		fail()
		h.wantStats("orders", p("never"), 1, 0, 0)
		h.wantStats("orders", p("queue"), 0, 0, 1)
		h.wantStats("orders", nil, 1, 0, 0)

		dead := h.of("orders_dlq", p("one"), 60)
		if len(dead) != 1 || dead[0].DeadLetter == nil || dead[0].DeadLetter.DeliveryCount != 1 {
			h.Fatalf("%+v", dead)
		}
		_, err := h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", ConsumerGroupID: p("one"), Receipt: dead[0].Receipt})
		h.want(err, "", "")
		h.wantStats("orders", p("queue"), 0, 0, 1)
		channels, err := h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: "orders_dlq", ConsumerGroupID: p("queue")})
		if err != nil || len(channels.Items) != 1 {
			h.Errorf("%+v, %v", channels, err)
		}

		// -1: the queue's again, for what ends from now on.
		h.change(UpdateConsumerGroupRequest{ConsumerGroupID: "never", DeadLetterQueueDeliveryCount: p(int32(-1))})
		fail()
		h.wantStats("orders", p("never"), 0, 0, 1)
	})
}

// A purge is about one group, the primary one if none is named, or about all.
func TestPurgeOfGroups(t *testing.T) {
	inHouse(t, Options{KeepUnrouted: true}, func(h *house) {
		h.create("orders", withGroups)
		h.group("orders", "a", nil)
		h.group("orders", "b", nil)
		a, b := p("a"), p("b")
		h.put("orders", "", "x")
		purge := func(what string, group *string, channels ...string) {
			h.Helper()
			_, err := h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: "orders", PurgeType: &what, ConsumerGroupID: group, ChannelIDs: channels})
			h.want(err, "", "")
		}
		purge("NORMAL", nil)
		h.wantStats("orders", nil, 0, 0, 0)
		h.wantStats("orders", a, 1, 0, 0)
		purge("DLQ", a)
		purge("NORMAL", a, "other")
		h.wantStats("orders", a, 1, 0, 0)
		purge("BOTH", p("A"))
		h.wantStats("orders", a, 0, 0, 0)
		h.wantStats("orders", b, 1, 0, 0)

		// What is for nobody goes with all.
		for _, name := range []string{"Primary Consumer Group", "a"} {
			h.change(UpdateConsumerGroupRequest{ConsumerGroupID: name, IsEnabled: p(false)})
		}
		h.change(UpdateConsumerGroupRequest{ConsumerGroupID: "b", Filter: p(":kind")})
		h.putKinds("orders", "", "", "kind")
		h.wantStats("orders", b, 2, 0, 0)
		h.wantStats("orders_unrouted", nil, 1, 0, 0)
		purge("BOTH", p("all"))
		for _, group := range []*string{nil, a, b} {
			h.wantStats("orders", group, 0, 0, 0)
		}
		h.wantStats("orders_unrouted", nil, 0, 0, 0)
	})
}

// What no group accepts is dropped, or kept for who asks for it: taken,
// extended, deleted, counted and listed like any, without a dead letter queue.
func TestUnrouted(t *testing.T) {
	for _, kept := range []bool{false, true} {
		inHouse(t, Options{KeepUnrouted: kept}, func(h *house) {
			h.create("orders", func(r *CreateQueueRequest) { withGroups(r); r.DeadLetterQueueDeliveryCount = p(int32(1)) })
			h.change(UpdateConsumerGroupRequest{ConsumerGroupID: "Primary Consumer Group", Filter: p(":kind")})
			h.putKinds("orders", "north", "", "bill")
			h.wantStats("orders", nil, 1, 0, 0)
			if !kept {
				return
			}
			const ref = "orders_unrouted"
			h.wantStats(ref, nil, 1, 0, 0)
			channels, err := h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: ref})
			if err != nil || len(channels.Items) != 1 || channels.Items[0] != "north" {
				h.Errorf("%+v, %v", channels, err)
			}
			for range 3 {
				got := h.of(ref, nil, 1)
				if len(got) != 1 || string(got[0].Body) != "" {
					h.Fatalf("%+v", got)
				}
				time.Sleep(2 * time.Second)
			}
			h.wantStats(ref, nil, 1, 0, 0)
			sub, err := h.s.Subscribe(h.ctx, SubscribeRequest{QueueRef: ref})
			h.want(err, "", "")
			got, err := sub.Next(h.ctx, 10, 0)
			if err != nil || len(got) != 1 {
				h.Fatalf("%+v, %v", got, err)
			}
			h.want(sub.Alive(h.ctx), "", "")
			one := got[0].Receipt
			_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", Receipt: one})
			h.want(err, queue.NotAuthorizedOrNotFound, "the receipt is of another consumer group of the queue")
			_, err = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: ref, Receipt: one, VisibilityInSeconds: p(int32(60))})
			h.want(err, "", "")
			_, err = h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: ref, Receipts: []queue.Receipt{one}})
			h.want(err, "", "")
			h.wantStats(ref, nil, 0, 0, 0)
		})
	}
}

// A group that is made disabled gets nothing until it is enabled.
func TestGroupMadeDisabled(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", withGroups)
		made := h.group("orders", "later", func(r *CreateConsumerGroupRequest) { r.IsEnabled = p(false) })
		if made.LifecycleState != queue.Inactive {
			h.Errorf("%+v", made)
		}
		h.put("orders", "", "a")
		h.change(UpdateConsumerGroupRequest{ConsumerGroupID: "later", IsEnabled: p(true)})
		h.put("orders", "", "b")
		if got := h.of("orders", p("later"), 60); len(got) != 1 || string(got[0].Body) != "b" {
			h.Errorf("%+v", got)
		}
	})
}
