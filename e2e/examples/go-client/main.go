// Go-client is the shortest program that uses queued by its own Go client.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/queued-mq/queued/client"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	c := must(client.Dial(cmp.Or(os.Getenv("QUEUED_GRPC"), "localhost:8081"), client.Options{}))
	defer c.Close()
	must(c.EnsureQueue(ctx, "greetings", client.QueueOptions{}))

	greetings := c.Publisher("greetings", client.PublisherOptions{})
	must(greetings.Publish(ctx, client.Message{Body: []byte("hello")})) // it is on disk now

	err := c.Consume(ctx, "greetings", func(ctx context.Context, m *client.Delivery) error {
		fmt.Println(string(m.Body), "delivery", m.Count)
		stop() // a service goes on until it is told to stop
		return nil
	}, client.ConsumerOptions{Concurrency: 8})
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
