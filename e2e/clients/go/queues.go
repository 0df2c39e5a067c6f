package main

import (
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/queue"
)

// queues is the life of a queue and its work requests.
func queues() {
	orders := created()
	read(orders)
	listed(orders)
	changed(orders)
	purged(orders)
	workRequests(orders)
	deleted(orders)
}

func details(name string) queue.CreateQueueDetails {
	return queue.CreateQueueDetails{
		DisplayName:                  &name,
		CompartmentId:                new(compartment),
		RetentionInSeconds:           new(3600),
		VisibilityInSeconds:          new(20),
		TimeoutInSeconds:             new(5),
		ChannelConsumptionLimit:      new(50),
		DeadLetterQueueDeliveryCount: new(3),
		CustomEncryptionKeyId:        new("ocid1.key.oc1..k"),
		FreeformTags:                 map[string]string{"team": "Bücher 書"},
		DefinedTags:                  map[string]map[string]any{"ops": {"cost": 42.0}},
	}
}

func created() string {
	request := queue.CreateQueueRequest{CreateQueueDetails: details("orders"), OpcRetryToken: new("go-1")}
	id := must(admin.CreateQueue(ctx, request)).OpcWorkRequestId
	w := must(admin.GetWorkRequest(ctx, queue.GetWorkRequestRequest{WorkRequestId: id})).WorkRequest
	same(list{*w.Id, *w.CompartmentId, len(w.Resources)}, list{*id, compartment, 1}, "work request")
	ok("GetWorkRequest", "it is there as soon as its operation was answered")
	q := finished(id, queue.OperationTypeCreateQueue, queue.ActionTypeCreated, "queue")
	ok("GetWorkRequest", "it succeeds")
	ok("CreateQueue", "with every setting")

	same(*must(admin.CreateQueue(ctx, request)).OpcWorkRequestId, *id, "the work request of a retry")
	ok("CreateQueue", "a retry token makes one queue")
	request.CreateQueueDetails = details("another")
	refused[queue.CreateQueueResponse](400, "InvalidParameter")(admin.CreateQueue(ctx, request))
	ok("CreateQueue", "a retry token belongs to one request")
	return q
}

func queueOf(id string) queue.GetQueueResponse {
	return must(admin.GetQueue(ctx, queue.GetQueueRequest{QueueId: &id, OpcRequestId: new("mine")}))
}

func read(id string) {
	got := queueOf(id)
	same(queue.CreateQueueDetails{
		DisplayName: got.DisplayName, CompartmentId: got.CompartmentId, RetentionInSeconds: got.RetentionInSeconds,
		VisibilityInSeconds: got.VisibilityInSeconds, TimeoutInSeconds: got.TimeoutInSeconds,
		ChannelConsumptionLimit: got.ChannelConsumptionLimit, DeadLetterQueueDeliveryCount: got.DeadLetterQueueDeliveryCount,
		CustomEncryptionKeyId: got.CustomEncryptionKeyId, FreeformTags: got.FreeformTags, DefinedTags: got.DefinedTags,
	}, details("orders"), "settings")
	same(list{*got.Id, got.LifecycleState, *got.MessagesEndpoint, got.TimeUpdated.Equal(got.TimeCreated.Time)},
		list{id, queue.QueueLifecycleStateActive, address, true}, "queue")
	ok("GetQueue", "what was sent comes back, with state, times and endpoint")
	same(strings.Split(*got.OpcRequestId, "/")[0], "mine", "request id")
	ok("GetQueue", "the caller's request id is in the answer")
	client.Host = *got.MessagesEndpoint // as OCI's manual says
}

// page lists queues, and gives their ids and the token of the next page.
func page(r queue.ListQueuesRequest) (ids []string, next *string) {
	got := must(admin.ListQueues(ctx, r))
	for _, q := range got.Items {
		ids = append(ids, *q.Id)
	}
	return ids, got.OpcNextPage
}

func listed(orders string) {
	alpha := create(queue.CreateQueueDetails{DisplayName: new("alpha")})
	beta := create(queue.CreateQueueDetails{DisplayName: new("beta")})
	check := func(r queue.ListQueuesRequest, what string, want ...string) {
		got, _ := page(r)
		same(got, want, what)
	}
	check(queue.ListQueuesRequest{CompartmentId: new(compartment)}, "queues of a compartment", beta, alpha, orders)
	ok("ListQueues", "those of a compartment, the newest first")
	check(queue.ListQueuesRequest{CompartmentId: new(compartment), SortBy: queue.ListQueuesSortByDisplayname}, "by name", alpha, beta, orders)
	check(queue.ListQueuesRequest{CompartmentId: new(compartment), SortBy: queue.ListQueuesSortByTimecreated, SortOrder: queue.ListQueuesSortOrderAsc},
		"by time", orders, alpha, beta)
	ok("ListQueues", "sorted by name and by time")
	check(queue.ListQueuesRequest{DisplayName: new("orders")}, "by display name", orders)
	check(queue.ListQueuesRequest{Id: &alpha}, "by id", alpha)
	check(queue.ListQueuesRequest{CompartmentId: new(compartment), LifecycleState: queue.QueueLifecycleStateFailed}, "by state")
	ok("ListQueues", "filtered by name, id and state")

	var ids []string
	for r := (queue.ListQueuesRequest{CompartmentId: new(compartment), Limit: new(1)}); ; {
		got, next := page(r)
		same(len(got), 1, "length of a page")
		ids = append(ids, got...)
		if next == nil {
			break
		}
		r.Page = next
	}
	same(ids, []string{beta, alpha, orders}, "all pages")
	ok("paging", "pages of ListQueues by hand")
	remove(alpha)
	remove(beta)
	check(queue.ListQueuesRequest{CompartmentId: new(compartment)}, "without what was deleted", orders)
	ok("ListQueues", "deleted ones are gone from it")
}

func changed(id string) {
	before := queueOf(id)
	update := queue.UpdateQueueRequest{QueueId: &id, IfMatch: before.Etag, UpdateQueueDetails: queue.UpdateQueueDetails{
		DisplayName: new("orders north"), VisibilityInSeconds: new(30), CustomEncryptionKeyId: new("")}}
	finished(must(admin.UpdateQueue(ctx, update)).OpcWorkRequestId, queue.OperationTypeUpdateQueue, queue.ActionTypeUpdated, "queue")
	after := queueOf(id)
	same(list{*after.DisplayName, *after.VisibilityInSeconds, *after.TimeoutInSeconds, after.CustomEncryptionKeyId == nil},
		list{"orders north", 30, 5, true}, "changed")
	ok("UpdateQueue", "what is named changes, the rest stays")
	same(*after.Etag == *before.Etag, false, "the etag after a change")
	refused[queue.UpdateQueueResponse](412, "NoEtagMatch")(admin.UpdateQueue(ctx, update))
	ok("UpdateQueue", "only with the etag of now")

	change := queue.ChangeQueueCompartmentRequest{QueueId: &id, IfMatch: before.Etag,
		ChangeQueueCompartmentDetails: queue.ChangeQueueCompartmentDetails{CompartmentId: new(compartment + "2")}}
	refused[queue.ChangeQueueCompartmentResponse](412, "NoEtagMatch")(admin.ChangeQueueCompartment(ctx, change))
	change.IfMatch = after.Etag
	finished(must(admin.ChangeQueueCompartment(ctx, change)).OpcWorkRequestId, queue.OperationTypeMoveQueue, queue.ActionTypeUpdated, "queue")
	same(*queueOf(id).CompartmentId, compartment+"2", "compartment")
	ok("ChangeQueueCompartment", "it is in the other compartment")
}

func purge(id string, d queue.PurgeQueueDetails) {
	r := must(admin.PurgeQueue(ctx, queue.PurgeQueueRequest{QueueId: &id, PurgeQueueDetails: d}))
	finished(r.OpcWorkRequestId, queue.OperationTypePurgeQueue, queue.ActionTypeUpdated, "queue")
}

func purged(id string) {
	left := func(want int64, what string) {
		same(*stats(id, queue.GetStatsRequest{}).Queue.VisibleMessages, want, "left by a purge of "+what)
	}
	put(id, text("a"), message("b", "north", nil))
	purge(id, queue.PurgeQueueDetails{PurgeType: queue.PurgeQueueDetailsPurgeTypeDlq})
	left(2, "dead letters")
	purge(id, queue.PurgeQueueDetails{PurgeType: queue.PurgeQueueDetailsPurgeTypeNormal, ChannelIds: []string{"north"}})
	left(1, "a channel")
	purge(id, queue.PurgeQueueDetails{PurgeType: queue.PurgeQueueDetailsPurgeTypeBoth})
	left(0, "all")
	ok("PurgeQueue", "dead letters, a channel, all")
}

func workRequests(id string) {
	r := queue.ListWorkRequestsRequest{CompartmentId: new(compartment + "2")}
	items := must(admin.ListWorkRequests(ctx, r)).Items
	same(slices.ContainsFunc(items, func(w queue.WorkRequestSummary) bool {
		return w.OperationType == queue.OperationTypePurgeQueue && *w.Resources[0].Identifier == id
	}), true, "there is the purge")
	ok("ListWorkRequests", "those of a compartment")
	w := items[0].Id
	same(must(admin.ListWorkRequests(ctx, queue.ListWorkRequestsRequest{WorkRequestId: w})).Items, items[:1], "by its id")
	ok("ListWorkRequests", "one by its id")
	var pages []queue.WorkRequestSummary
	for r.Limit = new(1); ; {
		got := must(admin.ListWorkRequests(ctx, r))
		pages = append(pages, got.Items...)
		if got.OpcNextPage == nil {
			break
		}
		r.Page = got.OpcNextPage
	}
	same(pages, items, "all pages")
	ok("paging", "pages of ListWorkRequests by hand")
	same(len(must(admin.ListWorkRequestErrors(ctx, queue.ListWorkRequestErrorsRequest{WorkRequestId: w})).Items), 0, "errors")
	ok("ListWorkRequestErrors", "none of what succeeded")
	l := must(admin.ListWorkRequestLogs(ctx, queue.ListWorkRequestLogsRequest{WorkRequestId: w})).Items[0]
	same(list{*l.Message != "", l.Timestamp.Before(items[0].TimeAccepted.Time)}, list{true, false}, "log")
	ok("ListWorkRequestLogs", "entries with their time")
}

func deleted(id string) {
	r := queue.DeleteQueueRequest{QueueId: &id, IfMatch: new("stale")}
	refused[queue.DeleteQueueResponse](412, "NoEtagMatch")(admin.DeleteQueue(ctx, r))
	r.IfMatch = queueOf(id).Etag
	finished(must(admin.DeleteQueue(ctx, r)).OpcWorkRequestId, queue.OperationTypeDeleteQueue, queue.ActionTypeDeleted, "queue")
	same(queueOf(id).LifecycleState, queue.QueueLifecycleStateDeleted, "state")
	ok("DeleteQueue", "its state is DELETED")
	refused[queue.PutMessagesResponse](404, "NotAuthorizedOrNotFound")(client.PutMessages(ctx, putRequest(id, text("late"))))
	ok("DeleteQueue", "nothing can be put any more")
}
