package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"slices"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/queue"
)

const compartment = "ocid1.compartment.oc1..go"

var (
	ctx           = context.Background()
	address       = cmp.Or(os.Getenv("QUEUED"), "http://127.0.0.1:8080")
	admin, client = connect(address)
)

func connect(address string) (queue.QueueAdminClient, queue.QueueClient) {
	who := anybody()
	admin := must(queue.NewQueueAdminClientWithConfigurationProvider(who))
	client := must(queue.NewQueueClientWithConfigurationProvider(who))
	admin.Host, client.Host = address, address
	return admin, client
}

// anybody signs with a key made just now, which a server without users takes.
func anybody() common.ConfigurationProvider {
	key := x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 2048)))
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: key})
	return common.NewRawConfigurationProvider("tenancy", "user", "us-ashburn-1", "fingerprint", string(text), nil)
}

// finished follows a work request to its end, and gives the queue or group that
// it was about.
func finished(id *string, operation queue.OperationTypeEnum, action queue.ActionTypeEnum, entity string) string {
	for {
		w := must(admin.GetWorkRequest(ctx, queue.GetWorkRequestRequest{WorkRequestId: id})).WorkRequest
		if w.Status == queue.OperationStatusAccepted || w.Status == queue.OperationStatusInProgress {
			time.Sleep(100 * time.Millisecond) // there is nothing else to ask
			continue
		}
		same(list{w.OperationType, w.Status, *w.PercentComplete, w.TimeFinished.Before(w.TimeAccepted.Time)},
			list{operation, queue.OperationStatusSucceeded, float32(100), false}, "work request")
		i := slices.IndexFunc(w.Resources, func(r queue.WorkRequestResource) bool { return *r.EntityType == entity })
		if i < 0 {
			fail("a work request without a %s: %v", entity, w)
		}
		same(w.Resources[i].ActionType, action, "what a work request did")
		return *w.Resources[i].Identifier
	}
}

// create makes a queue and gives its OCID.
func create(d queue.CreateQueueDetails) string {
	if d.CompartmentId == nil {
		d.CompartmentId = new(compartment)
	}
	made := must(admin.CreateQueue(ctx, queue.CreateQueueRequest{CreateQueueDetails: d}))
	return finished(made.OpcWorkRequestId, queue.OperationTypeCreateQueue, queue.ActionTypeCreated, "queue")
}

func remove(q string) {
	r := must(admin.DeleteQueue(ctx, queue.DeleteQueueRequest{QueueId: &q}))
	finished(r.OpcWorkRequestId, queue.OperationTypeDeleteQueue, queue.ActionTypeDeleted, "queue")
}

type (
	entry      = queue.PutMessagesDetailsEntry
	properties = map[string]string
)

func text(content string) entry { return entry{Content: &content} }

// message has properties, and a channel unless it is "".
func message(content, channel string, p properties) entry {
	m := &queue.MessageMetadata{CustomProperties: p}
	if channel != "" {
		m.ChannelId = &channel
	}
	return entry{Content: &content, Metadata: m}
}

func putRequest(q string, messages ...entry) queue.PutMessagesRequest {
	return queue.PutMessagesRequest{QueueId: &q, PutMessagesDetails: queue.PutMessagesDetails{Messages: messages}}
}

func put(q string, messages ...entry) []queue.PutMessage {
	return must(client.PutMessages(ctx, putRequest(q, messages...))).Messages
}

// getRequest does not wait, unless the options say so.
func getRequest(q string, options queue.GetMessagesRequest) queue.GetMessagesRequest {
	options.QueueId = &q
	if options.TimeoutInSeconds == nil {
		options.TimeoutInSeconds = new(0)
	}
	return options
}

func get(q string, options queue.GetMessagesRequest) []queue.GetMessage {
	return must(client.GetMessages(ctx, getRequest(q, options))).Messages
}

// one gets one message.
func one(q string, options queue.GetMessagesRequest) queue.GetMessage {
	got := get(q, options)
	if len(got) != 1 {
		fail("%d messages instead of one: %v", len(got), got)
	}
	return got[0]
}

func contents(messages []queue.GetMessage) (c []string) {
	for _, m := range messages {
		c = append(c, *m.Content)
	}
	slices.Sort(c)
	return c
}

func done(q string, m queue.GetMessage) {
	must(client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: &q, MessageReceipt: m.Receipt}))
}

func hide(q string, m queue.GetMessage, seconds int) queue.UpdatedMessage {
	return must(client.UpdateMessage(ctx, queue.UpdateMessageRequest{QueueId: &q, MessageReceipt: m.Receipt,
		UpdateMessageDetails: queue.UpdateMessageDetails{VisibilityInSeconds: &seconds}})).UpdatedMessage
}

func stats(q string, r queue.GetStatsRequest) queue.QueueStats {
	r.QueueId = &q
	return must(client.GetStats(ctx, r)).QueueStats
}
