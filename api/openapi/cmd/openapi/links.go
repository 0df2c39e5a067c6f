package main

import "slices"

// link is how one answer leads on to another operation.
type link struct {
	from, to string         // operations
	what     string         // for a person
	with     map[string]any // parameters by name; "" is the body
}

// Where the answers hold what the next operation takes.
const (
	sameQueue  = "$request.path.queueId"
	newQueue   = "$response.body#/id"
	firstQueue = "$response.body#/items/0/id"
	workID     = "$response.header.opc-work-request-id"
	nextPage   = "$response.header.opc-next-page"
	etag       = "$response.header.etag"
	receipt    = "$response.body#/messages/0/receipt"
	resource   = "$response.body#/resources/0/identifier"
)

// ofQueue are the operations that take nothing but a queue.
var ofQueue = []string{"GetQueue", "GetStats", "ListChannels", "GetMessages"}

// links are the ways through the API: a queue is made, changed, published to,
// consumed and deleted; a change is followed by its work request; a list by its
// next page.
func links() []link {
	queue := func(from, id string) []link {
		var all []link
		for _, to := range ofQueue {
			all = append(all, link{from, to, "The queue.", map[string]any{"queueId": id}})
		}
		return append(all,
			link{from, "PutMessages", "Publish to the queue.", map[string]any{"queueId": id}},
			link{from, "UpdateQueue", "Change the queue.", map[string]any{"queueId": id}},
			link{from, "PurgeQueue", "Empty the queue.", map[string]any{"queueId": id}},
			link{from, "ChangeQueueCompartment", "Move the queue.", map[string]any{"queueId": id}},
			link{from, "DeleteQueue", "Delete the queue.", map[string]any{"queueId": id}},
		)
	}
	all := slices.Concat(
		queue("CreateQueue", newQueue),
		queue("ListQueues", firstQueue),
		[]link{
			{"CreateQueue", "CreateConsumerGroup", "A consumer group of the queue.", map[string]any{"": obj("displayName", "billing", "queueId", newQueue)}},

			{"GetQueue", "UpdateQueue", "Change just this version.", map[string]any{"queueId": sameQueue, "if-match": etag}},
			{"GetQueue", "PurgeQueue", "Empty just this version.", map[string]any{"queueId": sameQueue, "if-match": etag}},
			{"GetQueue", "ChangeQueueCompartment", "Move just this version.", map[string]any{"queueId": sameQueue, "if-match": etag}},
			{"GetQueue", "DeleteQueue", "Delete just this version.", map[string]any{"queueId": sameQueue, "if-match": etag}},
			{"UpdateQueue", "GetQueue", "The queue as it is now.", map[string]any{"queueId": sameQueue}},
			{"ChangeQueueCompartment", "GetQueue", "The queue as it is now.", map[string]any{"queueId": sameQueue}},
			{"PurgeQueue", "GetStats", "What is left.", map[string]any{"queueId": sameQueue}},
			{"PurgeQueue", "PutMessages", "Publish to the queue.", map[string]any{"queueId": sameQueue}},
			{"DeleteQueue", "GetQueue", "The queue, which is DELETED.", map[string]any{"queueId": sameQueue}},

			{"PutMessages", "GetMessages", "Consume from the queue.", map[string]any{"queueId": sameQueue}},
			{"PutMessages", "PutMessages", "Publish more.", map[string]any{"queueId": sameQueue}},
			{"PutMessages", "GetStats", "Count the messages.", map[string]any{"queueId": sameQueue}},
			{"PutMessages", "ListChannels", "The channels of the queue.", map[string]any{"queueId": sameQueue}},
			{"ListChannels", "GetMessages", "Consume from the first channel.", map[string]any{"queueId": sameQueue, "channelFilter": "$response.body#/items/0"}},
			{"ListChannels", "GetStats", "Count the messages of the first channel.", map[string]any{"queueId": sameQueue, "channelId": "$response.body#/items/0"}},
			{"ListChannels", "PurgeQueue", "Empty the first channel.", map[string]any{"queueId": sameQueue,
				"": obj("purgeType", "NORMAL", "channelIds", []string{"$response.body#/items/0"})}},

			{"GetMessages", "UpdateMessage", "How long the first message stays hidden.", map[string]any{"queueId": sameQueue, "messageReceipt": receipt}},
			{"GetMessages", "DeleteMessage", "Delete the first message.", map[string]any{"queueId": sameQueue, "messageReceipt": receipt}},
			{"GetMessages", "UpdateMessages", "How long messages stay hidden.", map[string]any{"queueId": sameQueue,
				"": obj("entries", []any{obj("receipt", receipt, "visibilityInSeconds", 60)})}},
			{"GetMessages", "DeleteMessages", "Delete messages.", map[string]any{"queueId": sameQueue,
				"": obj("entries", []any{obj("receipt", receipt)})}},
			{"GetMessages", "GetMessages", "Consume more.", map[string]any{"queueId": sameQueue}},
			{"UpdateMessage", "DeleteMessage", "Delete the message.", map[string]any{"queueId": sameQueue, "messageReceipt": "$request.path.messageReceipt"}},
			{"UpdateMessage", "UpdateMessage", "How long the message stays hidden.", map[string]any{"queueId": sameQueue, "messageReceipt": "$request.path.messageReceipt"}},
			{"DeleteMessage", "DeleteMessage", "Once more, which is a success too.", map[string]any{"queueId": sameQueue, "messageReceipt": "$request.path.messageReceipt"}},
			{"DeleteMessage", "GetStats", "What is left.", map[string]any{"queueId": sameQueue}},

			{"ListConsumerGroups", "GetConsumerGroup", "The first consumer group.", map[string]any{"consumerGroupId": firstQueue}},
			{"GetConsumerGroup", "UpdateConsumerGroup", "Change just this version.", map[string]any{"consumerGroupId": "$request.path.consumerGroupId", "if-match": etag}},
			{"GetConsumerGroup", "DeleteConsumerGroup", "Delete just this version.", map[string]any{"consumerGroupId": "$request.path.consumerGroupId", "if-match": etag}},
			{"GetConsumerGroup", "GetMessages", "Consume as this group.", map[string]any{"queueId": "$response.body#/queueId", "consumerGroupId": "$response.body#/id"}},
			{"UpdateConsumerGroup", "GetConsumerGroup", "The consumer group as it is now.", map[string]any{"consumerGroupId": "$request.path.consumerGroupId"}},
			{"DeleteConsumerGroup", "GetConsumerGroup", "The consumer group, which is DELETED.", map[string]any{"consumerGroupId": "$request.path.consumerGroupId"}},

			{"ListWorkRequests", "GetWorkRequest", "The first work request.", map[string]any{"workRequestId": firstQueue}},
			{"GetWorkRequest", "ListWorkRequestLogs", "Its steps.", map[string]any{"workRequestId": "$response.body#/id"}},
			{"GetWorkRequest", "ListWorkRequestErrors", "Its errors.", map[string]any{"workRequestId": "$response.body#/id"}},
			{"GetWorkRequest", "GetQueue", "The queue that was changed, if it was one.", map[string]any{"queueId": resource}},
			{"GetWorkRequest", "GetConsumerGroup", "The consumer group that was changed, if it was one.", map[string]any{"consumerGroupId": resource}},
		})
	for _, from := range []string{"CreateQueue", "UpdateQueue", "DeleteQueue", "ChangeQueueCompartment", "PurgeQueue",
		"CreateConsumerGroup", "UpdateConsumerGroup", "DeleteConsumerGroup"} {
		all = append(all, link{from, "GetWorkRequest", "The record of the change.", map[string]any{"workRequestId": workID}})
	}
	for list, of := range map[string]string{"ListQueues": "", "ListConsumerGroups": "", "ListWorkRequests": "",
		"ListWorkRequestErrors": "workRequestId", "ListWorkRequestLogs": "workRequestId", "ListChannels": "queueId"} {
		with := map[string]any{"page": nextPage}
		if of != "" {
			with[of] = "$request.path." + of
		}
		all = append(all, link{list, list, "The next page.", with})
	}
	return all
}

// addLinks adds to the answer of an operation the links that lead on from it.
func addLinks(response *object, operation string) {
	for _, l := range links() {
		if l.from != operation {
			continue
		}
		o := obj("operationId", l.to, "description", l.what)
		for _, name := range sortedKeys(l.with) {
			if name == "" {
				o.set("requestBody", l.with[name])
			} else {
				o.at("parameters").set(name, l.with[name])
			}
		}
		name := l.to
		for response.at("links").has(name) {
			name += "Again"
		}
		response.at("links").set(name, o)
	}
}
