package bench

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// streamFace speaks the streams of gRPC, one for each session.
type streamFace struct {
	*grpcFace
	window int
}

func newStreams(o *Options) (*streamFace, error) {
	f, err := newGRPC(o)
	if err != nil {
		return nil, err
	}
	return &streamFace{f, o.window()}, nil
}

// answers are the operations that wait for what the server says to their
// number.
type answers struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan error
	failed  error
}

// add is a new number, and where its answer comes.
func (a *answers) add() (number uint64, answer chan error, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != nil {
		return 0, nil, a.failed
	}
	if a.waiting == nil {
		a.waiting = map[uint64]chan error{}
	}
	a.last++
	answer = make(chan error, 1)
	a.waiting[a.last] = answer
	return a.last, answer, nil
}

func (a *answers) done(number uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer, ok := a.waiting[number]; ok {
		delete(a.waiting, number)
		answer <- err
	}
}

// fail answers all that wait, now and later.
func (a *answers) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != nil {
		return
	}
	a.failed = err
	for number, answer := range a.waiting {
		delete(a.waiting, number)
		answer <- err
	}
}

// await waits for an answer.
func await(ctx context.Context, answer chan error) error {
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// streamError is what a stream said to one number.
func streamError(e *queuev1.StreamError) error {
	if e == nil {
		return nil
	}
	return &Refusal{Code: e.Code, Message: e.Message}
}

// publishStream is a PublishMessages.
type publishStream struct {
	queue   string
	answers answers
	cancel  context.CancelFunc
	readers sync.WaitGroup

	mu     sync.Mutex // of Send
	stream grpc.BidiStreamingClient[queuev1.PublishMessagesRequest, queuev1.PublishMessagesResponse]
}

func (f *streamFace) producer(ctx context.Context, index int, queue string) (producer, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := f.client(index).PublishMessages(ctx)
	if err != nil {
		cancel()
		return nil, refused(err)
	}
	s := &publishStream{queue: queue, stream: stream, cancel: cancel}
	s.readers.Go(func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				s.answers.fail(refused(err))
				return
			}
			s.answers.done(r.Number, streamError(r.Error))
		}
	})
	return s, nil
}

func (s *publishStream) publish(ctx context.Context, batch []message) error {
	number, answer, err := s.answers.add()
	if err != nil {
		return err
	}
	s.mu.Lock()
	_ = s.stream.Send(&queuev1.PublishMessagesRequest{Number: number, QueueId: s.queue, Messages: entries(batch)}) // the reader knows why
	s.mu.Unlock()
	return await(ctx, answer)
}

func (s *publishStream) Close() error {
	s.cancel()
	s.readers.Wait()
	return nil
}

// consumeStream is a ConsumeMessages.
type consumeStream struct {
	inbox   *inbox
	answers answers
	cancel  context.CancelFunc
	readers sync.WaitGroup

	mu     sync.Mutex // of Send
	stream grpc.BidiStreamingClient[queuev1.ConsumeMessagesRequest, queuev1.ConsumeMessagesResponse]
}

func (f *streamFace) consumer(ctx context.Context, index int, queue string) (consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := f.client(index).ConsumeMessages(ctx)
	if err != nil {
		cancel()
		return nil, refused(err)
	}
	s := &consumeStream{inbox: newInbox(), stream: stream, cancel: cancel}
	subscribe := &queuev1.ConsumeSubscription{QueueId: queue, Credit: int32(f.window)}
	_ = stream.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: subscribe}}) // the reader knows why
	s.readers.Go(s.read)
	return s, nil
}

func (s *consumeStream) read() {
	for {
		r, err := s.stream.Recv()
		var got []delivery
		if err == nil {
			got, err = deliveries(r.Messages)
		}
		if err != nil {
			err = refused(err)
			s.inbox.fail(err)
			s.answers.fail(err)
			return
		}
		if len(got) > 0 {
			s.inbox.put(got...)
		}
		for _, x := range r.Settled {
			s.answers.done(x.Number, streamError(x.Error))
		}
	}
}

func (s *consumeStream) receive(ctx context.Context, max int) ([]delivery, error) {
	return s.inbox.take(ctx, max)
}

func (s *consumeStream) settle(ctx context.Context, batch []delivery) error {
	settle := &queuev1.ConsumeSettlements{Settlements: make([]*queuev1.Settlement, len(batch))}
	waiting := make([]chan error, len(batch))
	for i, d := range batch {
		number, answer, err := s.answers.add()
		if err != nil {
			return err
		}
		waiting[i] = answer
		settle.Settlements[i] = &queuev1.Settlement{Number: number, Receipt: d.receipt, Action: queuev1.Settlement_ACKNOWLEDGE}
	}
	credit := &queuev1.ConsumeCredit{Messages: int32(len(batch))}
	s.mu.Lock()
	_ = s.stream.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: settle}}) // the reader knows why
	_ = s.stream.Send(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: credit}})
	s.mu.Unlock()
	var failed error
	for _, answer := range waiting {
		if err := await(ctx, answer); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

func (s *consumeStream) Close() error {
	s.cancel()
	s.readers.Wait()
	return nil
}
