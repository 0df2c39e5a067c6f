// Oci-go is the shortest program that uses queued by the official OCI Go SDK:
// nothing is set but Host.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log"
	"os"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/queue"
)

func main() {
	ctx, who := context.Background(), anybody()
	admin := must(queue.NewQueueAdminClientWithConfigurationProvider(who))
	client := must(queue.NewQueueClientWithConfigurationProvider(who))
	admin.Host = cmp.Or(os.Getenv("QUEUED"), "http://127.0.0.1:8080")
	client.Host = admin.Host

	must(admin.CreateQueue(ctx, queue.CreateQueueRequest{CreateQueueDetails: queue.CreateQueueDetails{
		DisplayName: new("greetings"), CompartmentId: new("mine")}}))
	id := new("greetings") // the OCID works too

	must(client.PutMessages(ctx, queue.PutMessagesRequest{QueueId: id, PutMessagesDetails: queue.PutMessagesDetails{
		Messages: []queue.PutMessagesDetailsEntry{{Content: new("hello")}}}}))

	got := must(client.GetMessages(ctx, queue.GetMessagesRequest{QueueId: id, VisibilityInSeconds: new(60)}))
	for _, m := range got.Messages {
		fmt.Println(*m.Content, "delivery", *m.DeliveryCount)
		must(client.DeleteMessage(ctx, queue.DeleteMessageRequest{QueueId: id, MessageReceipt: m.Receipt}))
	}
}

// anybody signs with a key made just now, which a server with auth none takes.
// With an OCI account common.DefaultConfigProvider() does as well.
func anybody() common.ConfigurationProvider {
	key := x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 2048)))
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: key})
	return common.NewRawConfigurationProvider("tenancy", "user", "us-ashburn-1", "fingerprint", string(text), nil)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
