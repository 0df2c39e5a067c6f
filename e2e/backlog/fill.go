package backlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// ahead is how many batches are unanswered on a stream of Fill.
const ahead = 8

// Load says what Fill publishes.
type Load struct {
	Queue    string
	Messages int
	Octets   int // of each content; at least 10
	Batch    int // messages in a batch, at most the server's limits.batch-messages
	Streams  int

	Acknowledged atomic.Int64 // messages so far; may be read meanwhile
}

// Content is that of the message with this number: the number, and letters that
// do not compress beyond three quarters.
func Content(number, octets int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	text := fmt.Appendf(make([]byte, 0, octets), "%010d", number)
	for x := uint64(number); len(text) < octets; {
		x = x*6364136223846793005 + 1442695040888963407 // Knuth's
		for bits := x >> 16; bits != 0 && len(text) < octets; bits >>= 6 {
			text = append(text, letters[bits&63])
		}
	}
	return string(text)
}

// Fill publishes over gRPC streams, as fast as the server takes it. The
// contents of the messages are numbered from 0; with one stream they stand in
// this order in the queue.
func Fill(ctx context.Context, addr string, l *Load) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := queuev1.NewQueueServiceClient(conn)
	errs := make([]error, l.Streams)
	var wg sync.WaitGroup
	for i := range l.Streams {
		wg.Go(func() {
			errs[i] = l.fill(ctx, client, l.Messages*i/l.Streams, l.Messages*(i+1)/l.Streams)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fill publishes the messages from first to before end over one stream.
func (l *Load) fill(ctx context.Context, client queuev1.QueueServiceClient, first, end int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the sender ends with the stream
	s, err := client.PublishMessages(ctx)
	if err != nil {
		return err
	}
	window := make(chan struct{}, ahead)
	go func() {
		for first < end {
			select {
			case window <- struct{}{}:
			case <-ctx.Done():
				return
			}
			r := &queuev1.PublishMessagesRequest{QueueId: l.Queue}
			for ; first < end && len(r.Messages) < l.Batch; first++ {
				r.Messages = append(r.Messages, &queuev1.PutMessagesDetailsEntry{Content: []byte(Content(first, l.Octets))})
			}
			if s.Send(r) != nil {
				return // Recv knows why
			}
		}
	}()
	for left := end - first; left > 0; {
		r, err := s.Recv()
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if r.Error != nil {
			return fmt.Errorf("publish: %s: %s", r.Error.Code, r.Error.Message)
		}
		<-window
		left -= len(r.Messages)
		l.Acknowledged.Add(int64(len(r.Messages)))
	}
	return s.CloseSend()
}
