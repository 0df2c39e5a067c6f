package main

import (
	"strings"

	"github.com/oracle/oci-go-sdk/v65/queue"
)

// refusals is what the SDK makes of the server's refusals.
func refusals() {
	q := create(queue.CreateQueueDetails{DisplayName: new("refusals"), VisibilityInSeconds: new(600)})
	nobody := "ocid1.queue.oc1.local.nobody"
	e := refused[queue.GetQueueResponse](404, "NotAuthorizedOrNotFound")(
		admin.GetQueue(ctx, queue.GetQueueRequest{QueueId: &nobody, OpcRequestId: new("mine")}))
	same(strings.Split(e.GetOpcRequestID(), "/")[0], "mine", "request id")
	refused[queue.GetMessagesResponse](404, "NotAuthorizedOrNotFound")(client.GetMessages(ctx, getRequest(nobody, queue.GetMessagesRequest{})))
	ok("errors", "404 of a queue that is not there, with the caller's request id")

	e = refused[queue.CreateQueueResponse](400, "InvalidParameter")(admin.CreateQueue(ctx, queue.CreateQueueRequest{
		CreateQueueDetails: queue.CreateQueueDetails{DisplayName: new("short"), CompartmentId: new(compartment), RetentionInSeconds: new(5)}}))
	same(strings.Contains(e.GetMessage(), "retentionInSeconds"), true, e.GetMessage())
	refused[queue.GetMessagesResponse](400, "InvalidParameter")(client.GetMessages(ctx, getRequest(q, queue.GetMessagesRequest{Limit: new(21)})))
	refused[queue.PutMessagesResponse](400, "InvalidParameter")(client.PutMessages(ctx, putRequest(q, message("x", "", properties{"größe": "1"}))))
	ok("errors", "400 of a value out of its range, which it names")
	large := strings.Repeat("x", 256<<10+1)
	refused[queue.PutMessagesResponse](413, "PayloadTooLarge")(client.PutMessages(ctx, putRequest(q, text(large))))
	ok("errors", "413 of a message that is too large")
	refused[queue.DeleteQueueResponse](412, "NoEtagMatch")(admin.DeleteQueue(ctx, queue.DeleteQueueRequest{QueueId: &q, IfMatch: new("stale")}))
	ok("errors", "412 of an etag that is not that of now")

	put(q, text("x"))
	first := one(q, queue.GetMessagesRequest{VisibilityInSeconds: new(0)})
	one(q, queue.GetMessagesRequest{})
	refused[queue.DeleteMessageResponse](404, "NotAuthorizedOrNotFound")(
		client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: first.Receipt}))
	refused[queue.DeleteMessageResponse](400, "InvalidParameter")(
		client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: new("no-receipt")}))
	ok("errors", "404 of a receipt whose message went to another, 400 of none")
	remove(q)
}
