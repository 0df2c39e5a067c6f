package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/queued-mq/queued/client"
	"github.com/queued-mq/queued/internal/queuetest"
)

// dial is a client of a new server in memory. A program writes
//
//	c, err := client.Dial("localhost:8081", client.Options{})
func dial() (c *client.Client, closed func()) {
	server, err := queuetest.Open()
	if err != nil {
		log.Fatal(err)
	}
	c, err = client.Dial(server.Target(), client.Options{DialOptions: server.DialOptions(), OnError: func(error) {}})
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		if err := errors.Join(c.Close(), server.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

// One message is published and consumed.
func Example() {
	c, closed := dial()
	defer closed()
	ctx, cancel := context.WithCancel(context.Background())

	if _, err := c.EnsureQueue(ctx, "orders", client.QueueOptions{Retention: time.Hour}); err != nil {
		log.Fatal(err)
	}
	orders := c.Publisher("orders", client.PublisherOptions{})
	if _, err := orders.Publish(ctx, client.Message{Body: []byte("two cups of tea")}); err != nil {
		log.Fatal(err)
	}

	err := c.Consume(ctx, "orders", func(ctx context.Context, m *client.Delivery) error {
		fmt.Printf("%s, delivery %d\n", m.Body, m.Count)
		cancel() // this program wants one message only
		return nil
	}, client.ConsumerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// two cups of tea, delivery 1
}

// Many messages are on their way at once; Flush tells whether all arrived.
func ExamplePublisher_Send() {
	c, closed := dial()
	defer closed()
	ctx := context.Background()
	if _, err := c.EnsureQueue(ctx, "orders", client.QueueOptions{}); err != nil {
		log.Fatal(err)
	}

	orders := c.Publisher("orders", client.PublisherOptions{})
	for i := range 1000 {
		orders.Send(ctx, client.Message{Body: fmt.Append(nil, i)})
	}
	fmt.Println("all durable:", orders.Flush(ctx) == nil)

	last := orders.Send(ctx, client.Message{Channel: "not a name"})
	_, err := last.Wait(ctx)
	fmt.Println(client.CodeOf(err))
	// Output:
	// all durable: true
	// InvalidParameter
}

// A handler that fails has the message back later, and waits longer each time.
func ExampleClient_Consume() {
	c, closed := dial()
	defer closed()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := c.EnsureQueue(ctx, "orders", client.QueueOptions{Deliveries: 5}); err != nil {
		log.Fatal(err)
	}
	orders := c.Publisher("orders", client.PublisherOptions{})
	if _, err := orders.Publish(ctx, client.Message{Body: []byte("tea"), Channel: "kitchen"}); err != nil {
		log.Fatal(err)
	}

	err := c.Consume(ctx, "orders", func(ctx context.Context, m *client.Delivery) error {
		if m.Count < 3 {
			fmt.Printf("%s for the %s: the kettle is cold\n", m.Body, m.Channel)
			return errors.New("the kettle is cold")
		}
		fmt.Printf("%s for the %s: done\n", m.Body, m.Channel)
		cancel()
		return nil
	}, client.ConsumerOptions{
		Channel:     "kitchen",
		Concurrency: 8,
		ReturnDelay: func(m *client.Delivery, err error) time.Duration {
			if m.Count == 1 {
				return 0 // at once
			}
			return time.Duration(m.Count-1) * time.Second
		},
	})
	fmt.Println(err)
	// Output:
	// tea for the kitchen: the kettle is cold
	// tea for the kitchen: the kettle is cold
	// tea for the kitchen: done
	// <nil>
}

// What went wrong is told by a code.
func ExampleCodeOf() {
	c, closed := dial()
	defer closed()
	err := c.Consume(context.Background(), "nowhere", func(context.Context, *client.Delivery) error { return nil }, client.ConsumerOptions{})
	if client.CodeOf(err) == client.NotAuthorizedOrNotFound {
		fmt.Println("there is no such queue")
	}
	// Output:
	// there is no such queue
}
