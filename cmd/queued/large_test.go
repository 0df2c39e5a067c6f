package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// Over gRPC, unary and by stream, a queue takes as much at once as its
// capabilities say, and gives it out.
func TestLargeMessagesOverGRPC(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"small"} })
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, admin, client := t.Context(), queuev1.NewQueueAdminServiceClient(conn), queuev1.NewQueueServiceClient(conn)
	if _, err := admin.CreateQueue(ctx, &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{
		DisplayName: new("large"), Capabilities: []*queuev1.CapabilityDetails{{Type: new("LARGE_MESSAGES")}},
	}}); err != nil {
		t.Fatal(err)
	}
	entries := func(sizes ...int) (all []*queuev1.PutMessagesDetailsEntry) {
		for _, n := range sizes {
			all = append(all, &queuev1.PutMessagesDetailsEntry{Content: bytes.Repeat([]byte{0xff}, n)})
		}
		return all
	}
	publish, err := client.PublishMessages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		queue string
		sizes []int
		key   string // of the limit that is broken; "": none is
	}{
		{"small", []int{256 << 10, 256 << 10}, ""},
		{"small", []int{512 << 10}, "(limits.message-bytes)"},
		{"small", []int{256 << 10, 256 << 10, 1}, "(limits.request-bytes)"},
		{"large", []int{512 << 10, 512 << 10}, ""},
		{"large", []int{512<<10 + 1}, "(limits.large-message-bytes)"},
		{"large", []int{512 << 10, 512 << 10, 1}, "(limits.large-request-bytes)"},
		{"large", []int{4 << 20}, "(limits.large-message-bytes)"},
	} {
		_, err := client.PutMessages(ctx, &queuev1.PutMessagesRequest{QueueId: c.queue, PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: entries(c.sizes...)}})
		if (err == nil) != (c.key == "") || err != nil && !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s %v: %v, want %q", c.queue, c.sizes, err, c.key)
		}
		if err := publish.Send(&queuev1.PublishMessagesRequest{Number: uint64(i), QueueId: c.queue, Messages: entries(c.sizes...)}); err != nil {
			t.Fatal(err)
		}
		answer, err := publish.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if said := answer.Error.GetMessage(); (answer.Error == nil) != (c.key == "") || !strings.Contains(said, c.key) {
			t.Errorf("by stream %s %v: %v, want %q", c.queue, c.sizes, answer.Error, c.key)
		}
	}

	got, err := client.GetMessages(ctx, &queuev1.GetMessagesRequest{QueueId: "large", Limit: new(int32(1))})
	if err != nil || len(got.GetMessages.Messages) != 1 || len(got.GetMessages.Messages[0].Content) != 512<<10 {
		t.Errorf("unary: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consume, err := client.ConsumeMessages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := consume.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{
		Subscribe: &queuev1.ConsumeSubscription{QueueId: "large", Credit: 3},
	}}); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 3; {
		r, err := consume.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Messages {
			if len(m.Content) != 512<<10 {
				t.Errorf("by stream a message of %d octets", len(m.Content))
			}
			n++
		}
	}
}
