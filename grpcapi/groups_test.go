package grpcapi

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/limits"
)

// groups gives q consumer groups: the primary one and "bills", and is the OCID
// of the latter.
func (h *streamHouse) groups() string {
	h.Helper()
	_, err := h.admin.UpdateQueue(h.Context(), &queuev1.UpdateQueueRequest{QueueId: "q", UpdateQueueDetails: &queuev1.UpdateQueueDetails{
		Capabilities: []*queuev1.CapabilityDetails{{Type: proto.String("CONSUMER_GROUPS")}},
	}})
	if err != nil {
		h.Fatal(err)
	}
	made, err := h.admin.CreateConsumerGroup(h.Context(), &queuev1.CreateConsumerGroupRequest{
		CreateConsumerGroupDetails: &queuev1.CreateConsumerGroupDetails{
			DisplayName: proto.String("bills"), QueueId: &h.id, Filter: proto.String(":kind"), DeadLetterQueueDeliveryCount: proto.Int32(1),
			FreeformTags: map[string]string{"a": "b"},
		}, RetryToken: proto.String("t"),
	})
	if err != nil {
		h.Fatal(err)
	}
	work, err := h.admin.GetWorkRequest(h.Context(), &queuev1.GetWorkRequestRequest{WorkRequestId: made.WorkRequestId})
	if err != nil {
		h.Fatal(err)
	}
	w := work.WorkRequest
	if w.OperationType != queuev1.WorkRequest_CREATE_CONSUMER_GROUP || len(w.Resources) != 1 || w.Resources[0].EntityType != "consumergroup" {
		h.Fatal(w)
	}
	return w.Resources[0].Identifier
}

// putBill publishes one message that bills accepts.
func (h *streamHouse) putBill() {
	h.Helper()
	if _, err := h.data.PutMessages(h.Context(), &queuev1.PutMessagesRequest{QueueId: "q", PutMessagesDetails: &queuev1.PutMessagesDetails{
		Messages: []*queuev1.PutMessagesDetailsEntry{{Content: []byte("x"), Metadata: &queuev1.MessageMetadata{
			ChannelId: proto.String("c"), CustomProperties: map[string]string{"kind": "bill"}}}},
	}}); err != nil {
		h.Fatal(err)
	}
}

func (h *streamHouse) disable(group string) {
	h.Helper()
	if _, err := h.admin.UpdateConsumerGroup(h.Context(), &queuev1.UpdateConsumerGroupRequest{
		ConsumerGroupId: group, UpdateConsumerGroupDetails: &queuev1.UpdateConsumerGroupDetails{IsEnabled: proto.Bool(false)},
	}); err != nil {
		h.Fatal(err)
	}
}

// The group is a field of every request that reads, and the control plane has
// all of its settings.
func TestGroupsUnary(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		id, bills, ctx := h.groups(), proto.String("bills"), h.Context()
		got, err := h.admin.GetConsumerGroup(ctx, &queuev1.GetConsumerGroupRequest{ConsumerGroupId: "Bills"})
		if err != nil {
			h.Fatal(err)
		}
		g := got.ConsumerGroup
		if g.Id != id || g.QueueId != h.id || g.DisplayName != "bills" || g.Filter != ":kind" || g.LifecycleState != queuev1.ConsumerGroup_ACTIVE ||
			g.DeadLetterQueueDeliveryCount == nil || *g.DeadLetterQueueDeliveryCount != 1 || g.FreeformTags["a"] != "b" || got.Etag == "" {
			h.Error(got)
		}
		h.putBill()
		list, err := h.data.ListChannels(ctx, &queuev1.ListChannelsRequest{QueueId: "q", ConsumerGroupId: bills})
		if err != nil || len(list.ChannelCollection.Items) != 1 {
			h.Error(list, err)
		}
		taken, err := h.data.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "q", ConsumerGroupId: bills, TimeoutInSeconds: proto.Int32(0)})
		if err != nil || len(taken.GetMessages.Messages) != 1 {
			h.Fatal(taken, err)
		}
		receipt := taken.GetMessages.Messages[0].Receipt
		if s := h.stats("q"); s.VisibleMessages != 1 || s.InFlightMessages != 0 {
			h.Error("the primary group has", s)
		}
		stats, err := h.data.GetStats(ctx, &queuev1.GetStatsRequest{QueueId: "q", ConsumerGroupId: bills})
		if err != nil || stats.QueueStats.Queue.InFlightMessages != 1 || stats.QueueStats.GetConsumerGroupId() != "bills" {
			h.Error(stats, err)
		}
		update := &queuev1.UpdateMessageRequest{QueueId: "q", MessageReceipt: receipt, UpdateMessageDetails: &queuev1.UpdateMessageDetails{VisibilityInSeconds: proto.Int32(60)}}
		if _, err := h.data.UpdateMessage(ctx, update); status.Code(err) != codes.NotFound {
			h.Error("of another group:", err)
		}
		update.ConsumerGroupId = bills
		if _, err := h.data.UpdateMessage(ctx, update); err != nil {
			h.Error(err)
		}
		batch, err := h.data.UpdateMessages(ctx, &queuev1.UpdateMessagesRequest{QueueId: "q", ConsumerGroupId: bills, UpdateMessagesDetails: &queuev1.UpdateMessagesDetails{
			Entries: []*queuev1.UpdateMessagesDetailsEntry{{Receipt: &receipt, VisibilityInSeconds: proto.Int32(60)}}}})
		if err != nil || batch.UpdateMessagesResult.ClientFailures != 0 {
			h.Error(batch, err)
		}
		gone, err := h.data.DeleteMessages(ctx, &queuev1.DeleteMessagesRequest{QueueId: "q", ConsumerGroupId: bills, DeleteMessagesDetails: &queuev1.DeleteMessagesDetails{
			Entries: []*queuev1.DeleteMessagesDetailsEntry{{Receipt: &receipt}}}})
		if err != nil || gone.DeleteMessagesResult.ClientFailures != 0 {
			h.Error(gone, err)
		}
		if _, err := h.data.DeleteMessage(ctx, &queuev1.DeleteMessageRequest{QueueId: "q", ConsumerGroupId: bills, MessageReceipt: receipt}); err != nil {
			h.Error(err)
		}
		if _, err := h.admin.PurgeQueue(ctx, &queuev1.PurgeQueueRequest{QueueId: "q", PurgeQueueDetails: &queuev1.PurgeQueueDetails{
			PurgeType: queuev1.PurgeQueueDetails_BOTH.Enum(), ConsumerGroupId: proto.String("all")}}); err != nil {
			h.Error(err)
		}
		if s := h.stats("q"); s.VisibleMessages != 0 {
			h.Error("after the purge the primary group has", s)
		}
		h.disable(id)
		_, err = h.data.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "q", ConsumerGroupId: bills})
		wantEnd(h.T, err, codes.FailedPrecondition, "IncorrectState")
		groups, err := h.admin.ListConsumerGroups(ctx, &queuev1.ListConsumerGroupsRequest{LifecycleState: queuev1.ConsumerGroup_INACTIVE.Enum()})
		if err != nil || len(groups.ConsumerGroupCollection.Items) != 1 || groups.ConsumerGroupCollection.Items[0].Id != id {
			h.Error(groups, err)
		}
		if _, err := h.admin.DeleteConsumerGroup(ctx, &queuev1.DeleteConsumerGroupRequest{ConsumerGroupId: id}); err != nil {
			h.Error(err)
		}
		_, err = h.data.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "q", ConsumerGroupId: bills})
		wantEnd(h.T, err, codes.NotFound, "NotAuthorizedOrNotFound")
	})
}

// A stream of a group has its messages and settles them.
func TestConsumeGroup(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.groups()
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: proto.String("bills"), Credit: 10})
		if r := c.next(); r.Subscribed.GetQueueId() != h.id {
			h.Error(r)
		}
		h.put(1, 1) // not accepted
		h.putBill()
		m := c.messages(1)[0]
		if string(m.Content) != "x" {
			h.Error(m)
		}
		c.settle(&queuev1.Settlement{Number: 1, Receipt: m.Receipt, Action: queuev1.Settlement_EXTEND, VisibilityInSeconds: 60},
			&queuev1.Settlement{Number: 2, Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
		for number, r := range c.results(2) {
			if r.Error != nil {
				h.Error(number, r)
			}
		}
		if s := h.stats("q"); s.VisibleMessages != 2 {
			h.Error("the primary group has", s)
		}
	})
}

// With and without credit the stream ends when its group is disabled or
// deleted.
func TestConsumeGroupEnds(t *testing.T) {
	for credit := range int32(2) {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprint(credit, deleted), func(t *testing.T) {
				inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
					id := h.groups()
					c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: &id, Credit: credit})
					c.next()
					code, reason := codes.FailedPrecondition, "IncorrectState"
					if deleted {
						code, reason = codes.NotFound, "NotAuthorizedOrNotFound"
						if _, err := h.admin.DeleteConsumerGroup(h.Context(), &queuev1.DeleteConsumerGroupRequest{ConsumerGroupId: id}); err != nil {
							h.Fatal(err)
						}
					} else {
						h.disable(id)
					}
					began := time.Now()
					_, err := c.Recv()
					wantEnd(h.T, err, code, reason)
					if took := time.Since(began); took > 2*time.Second {
						h.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

func TestConsumeGroupRefused(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		end := func(r *queuev1.ConsumeSubscription) error {
			_, err := h.consume(h.Context(), r).Recv()
			return err
		}
		none := proto.String("none")
		wantEnd(h.T, end(&queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: none}), codes.InvalidArgument, "InvalidParameter")
		wantEnd(h.T, end(&queuev1.ConsumeSubscription{QueueId: "q_unrouted"}), codes.NotFound, "NotAuthorizedOrNotFound")
		id := h.groups()
		wantEnd(h.T, end(&queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: none}), codes.NotFound, "NotAuthorizedOrNotFound")
		h.disable(id)
		wantEnd(h.T, end(&queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: &id}), codes.FailedPrecondition, "IncorrectState")
	})
}

// What no group accepted is a stream of its own.
func TestConsumeUnrouted(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.groups()
		h.disable("Primary Consumer Group")
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q_unrouted", Credit: 10})
		if r := c.next(); r.Subscribed.GetQueueId() != h.id+"_unrouted" {
			h.Error(r)
		}
		h.put(1, 3)
		m := c.messages(1)[0]
		c.settle(&queuev1.Settlement{Number: 1, Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
		if r := c.results(1)[1]; r.Error != nil {
			h.Error(r)
		}
		if s := h.stats("q_unrouted"); s.VisibleMessages+s.InFlightMessages != 0 {
			h.Error(s)
		}
	})
}
