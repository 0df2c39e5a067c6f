package main

import "github.com/oracle/oci-go-sdk/v65/queue"

// fanOut is messages in groups.
func fanOut(q, primary, orders, bills string) {
	put(q, message("o", "", properties{"kind": "order"}), message("b", "", properties{"kind": "bill", "amount": "50"}),
		message("B", "", properties{"kind": "bill", "amount": "200"}))
	o, b := one(q, queue.GetMessagesRequest{ConsumerGroupId: &orders}), one(q, queue.GetMessagesRequest{ConsumerGroupId: &bills})
	same(list{*o.Content, *b.Content, *o.DeliveryCount}, list{"o", "B", 1}, "what the groups got")
	all := append(get(q, queue.GetMessagesRequest{Limit: new(1)}), get(q, queue.GetMessagesRequest{ConsumerGroupId: &primary})...)
	same(contents(all), []string{"B", "b", "o"}, "what the primary group got")
	for _, m := range all {
		same(*m.DeliveryCount, 1, "delivery count")
	}
	ok("groups", "each group gets its own copy of what its filter lets through")
	ok("GetMessages", "without a group those of the primary one")

	remove := func(m queue.GetMessage, group string) (queue.DeleteMessageResponse, error) {
		return client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: m.Receipt, ConsumerGroupId: &group})
	}
	refused[queue.DeleteMessageResponse](404, "NotAuthorizedOrNotFound")(remove(b, orders))
	ok("groups", "a receipt is good in its own group only")
	updated := must(client.UpdateMessage(ctx, queue.UpdateMessageRequest{QueueId: &q, MessageReceipt: b.Receipt, ConsumerGroupId: &bills,
		UpdateMessageDetails: queue.UpdateMessageDetails{VisibilityInSeconds: new(600)}}))
	same(*updated.Id, *b.Id, "updated")
	ok("UpdateMessage", "in a group")
	batch := must(client.UpdateMessages(ctx, queue.UpdateMessagesRequest{QueueId: &q, ConsumerGroupId: &bills,
		UpdateMessagesDetails: queue.UpdateMessagesDetails{Entries: []queue.UpdateMessagesDetailsEntry{
			{Receipt: b.Receipt, VisibilityInSeconds: new(600)}, {Receipt: o.Receipt, VisibilityInSeconds: new(600)}}}})).Entries
	same(list{len(batch), batch[0].ErrorCode == nil, *batch[1].ErrorCode}, list{2, true, 404}, "batch")
	ok("UpdateMessages", "in a group, with a receipt of another")

	count := func(group *string, inFlight int64, what string) {
		s := stats(q, queue.GetStatsRequest{ConsumerGroupId: group})
		same(list{*s.Queue.InFlightMessages, *s.Queue.VisibleMessages}, list{inFlight, int64(0)}, "statistics of "+what)
		if group != nil {
			same(*s.ConsumerGroupId, *group, "group of the statistics")
		}
	}
	count(&bills, 1, "a group")
	must(remove(b, bills))
	ok("DeleteMessage", "in a group")
	count(&bills, 0, "a group")
	count(nil, 3, "the primary group")
	ok("GetStats", "of a group, and without one of the primary")
	gone := must(client.DeleteMessages(ctx, queue.DeleteMessagesRequest{QueueId: &q, ConsumerGroupId: &orders,
		DeleteMessagesDetails: queue.DeleteMessagesDetails{Entries: []queue.DeleteMessagesDetailsEntry{{Receipt: o.Receipt}}}}))
	same(list{*gone.ClientFailures, *gone.ServerFailures, gone.Entries[0].ErrorCode == nil}, list{0, 0, true}, "batch")
	ok("DeleteMessages", "in a group")

	put(q, message("x", "north", properties{"kind": "order"}))
	same(channels(q, queue.ListChannelsRequest{ConsumerGroupId: &orders}), []string{"north"}, "channels of a group")
	same(len(channels(q, queue.ListChannelsRequest{ConsumerGroupId: &bills})), 0, "channels of another")
	ok("ListChannels", "of a group")
	x := one(q, queue.GetMessagesRequest{ConsumerGroupId: &orders, ChannelFilter: new("north")})
	same(*x.Content, "x", "by channel")
	ok("channels", "a filter inside a group")
	must(remove(x, orders))
}
