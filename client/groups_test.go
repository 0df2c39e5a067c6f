package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/client"
)

// A consumer of a group has what the filter accepts. While the group is
// disabled it says so and tries again; when it is enabled it goes on.
func TestConsumeGroup(t *testing.T) {
	inBubble(t, func(h *house) {
		admin, ctx := h.client.Queues(), h.Context()
		got, err := admin.ListQueues(ctx, &queuev1.ListQueuesRequest{})
		if err != nil {
			h.Fatal(err)
		}
		id := got.QueueCollection.Items[0].Id
		if _, err := admin.UpdateQueue(ctx, &queuev1.UpdateQueueRequest{QueueId: id, UpdateQueueDetails: &queuev1.UpdateQueueDetails{
			Capabilities: []*queuev1.CapabilityDetails{{Type: proto.String("CONSUMER_GROUPS")}}}}); err != nil {
			h.Fatal(err)
		}
		if _, err := admin.CreateConsumerGroup(ctx, &queuev1.CreateConsumerGroupRequest{CreateConsumerGroupDetails: &queuev1.CreateConsumerGroupDetails{
			DisplayName: proto.String("bills"), QueueId: &id, Filter: proto.String(":kind = 'bill'")}}); err != nil {
			h.Fatal(err)
		}
		enable := func(yes bool) {
			h.Helper()
			if _, err := admin.UpdateConsumerGroup(ctx, &queuev1.UpdateConsumerGroupRequest{ConsumerGroupId: "bills",
				UpdateConsumerGroupDetails: &queuev1.UpdateConsumerGroupDetails{IsEnabled: &yes}}); err != nil {
				h.Fatal(err)
			}
		}
		publish := func(kind string) {
			h.Helper()
			p := h.client.Publisher("q", client.PublisherOptions{})
			if _, err := p.Publish(ctx, client.Message{Body: []byte(kind), Properties: map[string]string{"kind": kind}}); err != nil {
				h.Fatal(err)
			}
			if err := p.Close(); err != nil {
				h.Fatal(err)
			}
		}
		handled := make(chan string, 10)
		stop := h.start(func(_ context.Context, m *client.Delivery) error {
			handled <- string(m.Body)
			return nil
		}, client.ConsumerOptions{Group: "bills"})
		publish("offer")
		publish("bill")
		if kind := <-handled; kind != "bill" {
			h.Error(kind)
		}
		enable(false)
		time.Sleep(10 * time.Second)
		told := h.reports()
		if len(told) == 0 || client.CodeOf(told[len(told)-1]) != client.IncorrectState {
			h.Errorf("told %v", told)
		}
		enable(true)
		publish("bill")
		if kind := <-handled; kind != "bill" {
			h.Error(kind)
		}
		synctest.Wait()
		if err := stop(); err != nil {
			h.Error(err)
		}
		h.wantStats([3]int64{3, 0, 0}) // the primary group was left alone
	})
}
