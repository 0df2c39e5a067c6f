package main

import "github.com/oracle/oci-go-sdk/v65/queue"

// groups is consumer groups: their life, and the fan-out of messages to them.
func groups() {
	q := create(queue.CreateQueueDetails{DisplayName: new("fan"), VisibilityInSeconds: new(600), Capabilities: capability()})
	primary := primaryOf(q)
	orders := createdGroup(q)
	bills := makeGroup(queue.CreateConsumerGroupDetails{DisplayName: new("bills"), QueueId: &q, Filter: new(`:kind = "bill" AND :amount > 100`)})
	listedGroups(q, primary, orders, bills)
	fanOut(q, primary, orders, bills)
	groupDeadLetters(q, orders)
	purgedGroups(q, primary, bills)
	changedGroup(q, orders)
	refusedGroups(q, primary, bills)
	deletedGroup(q, bills)
	remove(q)
	lateCapability()
}

func capability() []queue.CapabilityDetails {
	return []queue.CapabilityDetails{queue.ConsumerGroupsCapabilityDetails{
		IsPrimaryConsumerGroupEnabled: new(true), PrimaryConsumerGroupDisplayName: new("everything")}}
}

func primaryOf(q string) string {
	capabilities := queueOf(q).Capabilities
	_, is := capabilities[0].(queue.ConsumerGroupsCapabilityDetails)
	same(list{len(capabilities), is}, list{1, true}, "capabilities")
	listed := must(admin.ListQueues(ctx, queue.ListQueuesRequest{Id: &q})).Items[0]
	same(listed.Capabilities, []queue.QueueCapabilityEnum{queue.QueueCapabilityConsumerGroups}, "capabilities in a list")
	ok("groups", "a queue names its capability, and so does the list")
	items := must(admin.ListConsumerGroups(ctx, queue.ListConsumerGroupsRequest{QueueId: &q})).Items
	g := items[0]
	same(list{len(items), *g.DisplayName, g.LifecycleState, *g.Filter, *g.QueueId},
		list{1, "everything", queue.ConsumerGroupLifecycleStateActive, "", q}, "groups")
	ok("groups", "the capability makes the primary group")
	return *g.Id
}

func makeGroup(d queue.CreateConsumerGroupDetails) string {
	r := must(admin.CreateConsumerGroup(ctx, queue.CreateConsumerGroupRequest{CreateConsumerGroupDetails: d}))
	return finished(r.OpcWorkRequestId, queue.OperationTypeCreateConsumerGroup, queue.ActionTypeCreated, "consumergroup")
}

func groupOf(id string) queue.GetConsumerGroupResponse {
	return must(admin.GetConsumerGroup(ctx, queue.GetConsumerGroupRequest{ConsumerGroupId: &id}))
}

func createdGroup(q string) string {
	r := queue.CreateConsumerGroupRequest{OpcRetryToken: new("go-2"), CreateConsumerGroupDetails: queue.CreateConsumerGroupDetails{
		DisplayName: new("orders"), QueueId: &q, Filter: new(`:kind = "order"`), DeadLetterQueueDeliveryCount: new(1),
		FreeformTags: map[string]string{"team": "post"}}}
	work := must(admin.CreateConsumerGroup(ctx, r)).OpcWorkRequestId
	same(*must(admin.CreateConsumerGroup(ctx, r)).OpcWorkRequestId, *work, "the work request of a retry")
	id := finished(work, queue.OperationTypeCreateConsumerGroup, queue.ActionTypeCreated, "consumergroup")
	ok("CreateConsumerGroup", "with every setting, and once for a retry token")
	g := groupOf(id)
	same(list{*g.Id, *g.DisplayName, *g.QueueId, *g.Filter, *g.DeadLetterQueueDeliveryCount, g.FreeformTags, g.LifecycleState, *g.Etag != ""},
		list{id, "orders", q, `:kind = "order"`, 1, map[string]string{"team": "post"}, queue.ConsumerGroupLifecycleStateActive, true}, "group")
	ok("GetConsumerGroup", "what was sent comes back, with state and etag")
	return id
}

func listedGroups(q, primary, orders, bills string) {
	all := func(r queue.ListConsumerGroupsRequest) (ids []string) {
		for r.QueueId = &q; ; {
			got := must(admin.ListConsumerGroups(ctx, r))
			for _, g := range got.Items {
				ids = append(ids, *g.Id)
			}
			if got.OpcNextPage == nil {
				return ids
			}
			r.Page = got.OpcNextPage
		}
	}
	same(all(queue.ListConsumerGroupsRequest{}), []string{bills, orders, primary}, "groups of a queue")
	same(all(queue.ListConsumerGroupsRequest{SortBy: queue.ListConsumerGroupsSortByDisplayname}), []string{bills, primary, orders}, "by name")
	same(all(queue.ListConsumerGroupsRequest{SortOrder: queue.ListConsumerGroupsSortOrderAsc}), []string{primary, orders, bills}, "by time")
	ok("ListConsumerGroups", "those of a queue, sorted by time and by name")
	same(all(queue.ListConsumerGroupsRequest{DisplayName: new("orders")}), []string{orders}, "by display name")
	same(all(queue.ListConsumerGroupsRequest{Id: &bills}), []string{bills}, "by id")
	same(len(all(queue.ListConsumerGroupsRequest{LifecycleState: queue.ConsumerGroupLifecycleStateInactive})), 0, "by state")
	ok("ListConsumerGroups", "filtered by name, id and state")
	same(all(queue.ListConsumerGroupsRequest{Limit: new(1)}), []string{bills, orders, primary}, "all pages")
	ok("paging", "pages of ListConsumerGroups by hand")
}

func groupDeadLetters(q, group string) {
	put(q, message("poison", "", properties{"kind": "order"}))
	m := one(q, queue.GetMessagesRequest{ConsumerGroupId: &group, VisibilityInSeconds: new(1)})
	dead := one(q+"_dlq", queue.GetMessagesRequest{ConsumerGroupId: &group, TimeoutInSeconds: new(20)})
	same(list{*dead.Id, *dead.Content}, list{*m.Id, "poison"}, "dead letter")
	must(client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: new(q + "_dlq"), MessageReceipt: dead.Receipt, ConsumerGroupId: &group}))
	ok("dlq", "a group has dead letters of its own, by its own count")
}

func purgedGroups(q, primary, bills string) {
	left := func(group *string) list {
		put(q, message("B", "", properties{"kind": "bill", "amount": "200"}))
		purge(q, queue.PurgeQueueDetails{PurgeType: queue.PurgeQueueDetailsPurgeTypeBoth, ConsumerGroupId: group})
		size := func(g string) int64 { return *stats(q, queue.GetStatsRequest{ConsumerGroupId: &g}).Queue.SizeInBytes }
		return list{size(primary) > 0, size(bills) > 0}
	}
	same(left(&bills), list{true, false}, "left by a purge of one group")
	same(left(nil), list{false, true}, "left by a purge of no group by name")
	same(left(new("all")), list{false, false}, "left by a purge of all groups")
	ok("PurgeQueue", "one group, the primary one, all")
}

func changedGroup(q, id string) {
	before := groupOf(id)
	update := func(d queue.UpdateConsumerGroupDetails, etag *string) (queue.UpdateConsumerGroupResponse, error) {
		return admin.UpdateConsumerGroup(ctx, queue.UpdateConsumerGroupRequest{ConsumerGroupId: &id, IfMatch: etag, UpdateConsumerGroupDetails: d})
	}
	updated := func(d queue.UpdateConsumerGroupDetails, etag *string) queue.GetConsumerGroupResponse {
		r := must(update(d, etag))
		finished(r.OpcWorkRequestId, queue.OperationTypeUpdateConsumerGroup, queue.ActionTypeUpdated, "consumergroup")
		return groupOf(id)
	}
	g := updated(queue.UpdateConsumerGroupDetails{DisplayName: new("orders north"), Filter: new(":region"), DeadLetterQueueDeliveryCount: new(-1)}, before.Etag)
	same(list{*g.DisplayName, *g.Filter, g.DeadLetterQueueDeliveryCount == nil, g.FreeformTags},
		list{"orders north", ":region", true, map[string]string{"team": "post"}}, "changed")
	ok("UpdateConsumerGroup", "what is named changes, the rest stays")
	same(*g.Etag == *before.Etag, false, "the etag after a change")
	refused[queue.UpdateConsumerGroupResponse](412, "NoEtagMatch")(update(queue.UpdateConsumerGroupDetails{Filter: new("")}, before.Etag))
	ok("UpdateConsumerGroup", "only with the etag of now")

	north := properties{"region": "north"}
	put(q, message("kept", "", north))
	g = updated(queue.UpdateConsumerGroupDetails{IsEnabled: new(false)}, nil)
	same(g.LifecycleState, queue.ConsumerGroupLifecycleStateInactive, "state")
	refused[queue.GetMessagesResponse](409, "IncorrectState")(client.GetMessages(ctx, getRequest(q, queue.GetMessagesRequest{ConsumerGroupId: &id})))
	put(q, message("missed", "", north))
	g = updated(queue.UpdateConsumerGroupDetails{IsEnabled: new(true)}, nil)
	same(g.LifecycleState, queue.ConsumerGroupLifecycleStateActive, "state")
	same(contents(get(q, queue.GetMessagesRequest{ConsumerGroupId: &id})), []string{"kept"}, "after it was disabled")
	ok("groups", "a disabled group gives nothing, gets nothing and keeps what it had")
}

func refusedGroups(q, primary, bills string) {
	for _, r := range []struct {
		status int
		code   string
		d      queue.CreateConsumerGroupDetails
	}{
		{409, "NotAuthorizedOrResourceAlreadyExists", queue.CreateConsumerGroupDetails{DisplayName: new("BILLS"), QueueId: &q}},
		{400, "InvalidParameter", queue.CreateConsumerGroupDetails{DisplayName: new("bad"), QueueId: &q, Filter: new(":a = = 1")}},
		{400, "RelatedResourceNotAuthorizedOrNotFound", queue.CreateConsumerGroupDetails{DisplayName: new("lost"), QueueId: new("ocid1.queue.oc1.local.nobody")}},
	} {
		refused[queue.CreateConsumerGroupResponse](r.status, r.code)(
			admin.CreateConsumerGroup(ctx, queue.CreateConsumerGroupRequest{CreateConsumerGroupDetails: r.d}))
	}
	ok("CreateConsumerGroup", "refused with a name that is there, a bad filter, an unknown queue")
	refused[queue.DeleteConsumerGroupResponse](409, "Conflict")(
		admin.DeleteConsumerGroup(ctx, queue.DeleteConsumerGroupRequest{ConsumerGroupId: &primary}))
	ok("DeleteConsumerGroup", "never the primary one")
	nobody := "ocid1.queueconsumergroup.oc1.local.nobody"
	refused[queue.GetMessagesResponse](404, "NotAuthorizedOrNotFound")(
		client.GetMessages(ctx, getRequest(q, queue.GetMessagesRequest{ConsumerGroupId: &nobody})))
	plain := create(queue.CreateQueueDetails{DisplayName: new("plain")})
	refused[queue.GetMessagesResponse](400, "InvalidParameter")(
		client.GetMessages(ctx, getRequest(plain, queue.GetMessagesRequest{ConsumerGroupId: &bills})))
	remove(plain)
	ok("errors", "404 of an unknown group, 400 of a group on a queue without any")
}

func deletedGroup(q, id string) {
	r := queue.DeleteConsumerGroupRequest{ConsumerGroupId: &id, IfMatch: new("stale")}
	refused[queue.DeleteConsumerGroupResponse](412, "NoEtagMatch")(admin.DeleteConsumerGroup(ctx, r))
	r.IfMatch = groupOf(id).Etag
	work := must(admin.DeleteConsumerGroup(ctx, r)).OpcWorkRequestId
	finished(work, queue.OperationTypeDeleteConsumerGroup, queue.ActionTypeDeleted, "consumergroup")
	same(groupOf(id).LifecycleState, queue.ConsumerGroupLifecycleStateDeleted, "state")
	refused[queue.GetMessagesResponse](404, "NotAuthorizedOrNotFound")(client.GetMessages(ctx, getRequest(q, queue.GetMessagesRequest{ConsumerGroupId: &id})))
	ok("DeleteConsumerGroup", "its state is DELETED, and it gives nothing more")
}

func lateCapability() {
	q := create(queue.CreateQueueDetails{DisplayName: new("late")})
	put(q, text("before"))
	r := must(admin.UpdateQueue(ctx, queue.UpdateQueueRequest{QueueId: &q, UpdateQueueDetails: queue.UpdateQueueDetails{Capabilities: capability()}}))
	finished(r.OpcWorkRequestId, queue.OperationTypeUpdateQueue, queue.ActionTypeUpdated, "queue")
	g := must(admin.ListConsumerGroups(ctx, queue.ListConsumerGroupsRequest{QueueId: &q})).Items[0]
	same(contents(get(q, queue.GetMessagesRequest{ConsumerGroupId: g.Id})), []string{"before"}, "what the primary group holds")
	ok("UpdateQueue", "the capability added later gives the primary group what was there")
	remove(q)
}
