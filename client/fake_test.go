package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// fake is a server whose streams do what a test says, for moments that a real
// server does not have on demand. Streams come in order, one function for each;
// the last one serves all that follow.
type fake struct {
	queuev1.UnimplementedQueueServiceServer
	publish []func(queuev1.QueueService_PublishMessagesServer) error
	consume []func(queuev1.QueueService_ConsumeMessagesServer) error

	release chan struct{} // closed by the test; made in the bubble

	mu      sync.Mutex
	streams int
	batches []*queuev1.PublishMessagesRequest // received, in order
}

func (f *fake) turn(of int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams++
	return min(f.streams, of) - 1
}

func (f *fake) PublishMessages(s queuev1.QueueService_PublishMessagesServer) error {
	return f.publish[f.turn(len(f.publish))](s)
}

func (f *fake) ConsumeMessages(s queuev1.QueueService_ConsumeMessagesServer) error {
	return f.consume[f.turn(len(f.consume))](s)
}

// take receives a batch and remembers it.
func (f *fake) take(s queuev1.QueueService_PublishMessagesServer) (*queuev1.PublishMessagesRequest, error) {
	r, err := s.Recv()
	if err == nil {
		f.mu.Lock()
		f.batches = append(f.batches, r)
		f.mu.Unlock()
	}
	return r, err
}

// ok answers a batch; the ids count from the number in the first body.
func ok(s queuev1.QueueService_PublishMessagesServer, r *queuev1.PublishMessagesRequest) error {
	resp := &queuev1.PublishMessagesResponse{Number: r.Number}
	for _, m := range r.Messages {
		var id int64
		if _, err := fmt.Sscan(string(m.Content), &id); err != nil {
			return err
		}
		resp.Messages = append(resp.Messages, &queuev1.PutMessage{Id: id})
	}
	return s.Send(resp)
}

// serve answers every batch.
func (f *fake) serve(s queuev1.QueueService_PublishMessagesServer) error {
	for {
		r, err := f.take(s)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ok(s, r); err != nil {
			return err
		}
	}
}

// failed is the status of a call that failed with a code.
func failed(of codes.Code, code Code) error {
	st, err := status.New(of, "so it is").WithDetails(&errdetails.ErrorInfo{Reason: string(code), Domain: "queued"})
	if err != nil {
		return err
	}
	return st.Err()
}

// withFake runs test with a client of f in a bubble.
func withFake(t *testing.T, f *fake, o Options, test func(t *testing.T, c *Client)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f.release = make(chan struct{})
		wire := bufconn.Listen(1 << 16)
		srv := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.WaitForHandlers(true))
		queuev1.RegisterQueueServiceServer(srv, f)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(wire) }()
		if o.OnError == nil {
			o.OnError = func(error) {}
		}
		o.DialOptions = append(o.DialOptions, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
		c, err := Dial("passthrough:fake", o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// While batches are on their way, messages gather; a full batch goes at once,
// one that is not full waits its turn. All are in order.
func TestBatching(t *testing.T) {
	f := &fake{}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{func(s queuev1.QueueService_PublishMessagesServer) error {
		var held []*queuev1.PublishMessagesRequest
		for range earlyBatches + 2 {
			r, err := f.take(s)
			if err != nil {
				return err
			}
			held = append(held, r)
		}
		<-f.release
		for _, r := range held {
			if err := ok(s, r); err != nil {
				return err
			}
		}
		return f.serve(s)
	}}
	withFake(t, f, Options{}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{})
		var all []*Pending
		send := func() {
			all = append(all, p.Send(t.Context(), Message{Body: fmt.Append(nil, len(all))}))
		}
		for range earlyBatches {
			send()
			synctest.Wait() // it is on its way, alone
		}
		for range 45 {
			send()
		}
		synctest.Wait()
		close(f.release)
		for i, d := range all {
			if id, err := d.Wait(t.Context()); err != nil || id != int64(i) {
				t.Errorf("message %d: id %d, %v", i, id, err)
			}
		}
		var sizes []int
		next := 0
		for _, b := range f.batches {
			sizes = append(sizes, len(b.Messages))
			for _, m := range b.Messages {
				if string(m.Content) != fmt.Sprint(next) {
					t.Errorf("message %s came when %d was due", m.Content, next)
				}
				next++
			}
		}
		if want := []int{1, 1, 1, 1, 20, 20, 5}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %v, want %v", sizes, want)
		}
	})
}

// Octets end a batch too, and no batch has more than it may.
func TestBatchOctets(t *testing.T) {
	f := &fake{}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{func(s queuev1.QueueService_PublishMessagesServer) error {
		for {
			r, err := f.take(s)
			if err != nil {
				return nil
			}
			n := 0
			for _, m := range r.Messages {
				n += len(m.Content)
			}
			if n > 100 {
				return errors.New("too much")
			}
			if err := s.Send(&queuev1.PublishMessagesResponse{Number: r.Number, Messages: make([]*queuev1.PutMessage, len(r.Messages))}); err != nil {
				return err
			}
		}
	}}
	var told []error
	withFake(t, f, Options{OnError: func(err error) { told = append(told, err) }}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{BatchBytes: 100, WindowBytes: 150})
		for i := range 100 {
			p.Send(t.Context(), Message{Body: make([]byte, i)})
		}
		if err := errors.Join(p.Close(), errors.Join(told...)); err != nil {
			t.Error(err)
		}
	})
}

// Send waits while the window is full.
func TestWindow(t *testing.T) {
	f := &fake{}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{func(s queuev1.QueueService_PublishMessagesServer) error {
		<-f.release
		return f.serve(s)
	}}
	withFake(t, f, Options{}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{Window: 3})
		for i := range 3 {
			p.Send(t.Context(), Message{Body: fmt.Append(nil, i)})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Send(ctx, Message{}).Wait(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the window is full: %v", err)
		}
		var waiting sync.WaitGroup
		for i := range 4 {
			waiting.Go(func() { p.Send(t.Context(), Message{Body: fmt.Append(nil, 3+i)}) })
			synctest.Wait()
		}
		close(f.release)
		waiting.Wait()
		if err := p.Flush(t.Context()); !errors.Is(err, context.DeadlineExceeded) { // of the one above
			t.Error(err)
		}
		var got []string
		for _, b := range f.batches {
			for _, m := range b.Messages {
				got = append(got, string(m.Content))
			}
		}
		slices.Sort(got[min(3, len(got)):]) // those who wait are let in together
		if want := []string{"0", "1", "2", "3", "4", "5", "6"}; !slices.Equal(got, want) {
			t.Errorf("%v came, want %v", got, want)
		}
	})
}

// Batches without an answer, or with one that says that they may have been
// stored, are sent again as they were, in their order and before all others.
func TestResend(t *testing.T) {
	f := &fake{}
	some := func(end func(queuev1.QueueService_PublishMessagesServer, *queuev1.PublishMessagesRequest) error) func(queuev1.QueueService_PublishMessagesServer) error {
		return func(s queuev1.QueueService_PublishMessagesServer) error {
			var last *queuev1.PublishMessagesRequest
			for range 3 {
				r, err := f.take(s)
				if err != nil {
					return err
				}
				last = r
			}
			return end(s, last)
		}
	}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{
		some(func(queuev1.QueueService_PublishMessagesServer, *queuev1.PublishMessagesRequest) error {
			return failed(codes.Unavailable, ServiceUnavailable)
		}),
		some(func(s queuev1.QueueService_PublishMessagesServer, r *queuev1.PublishMessagesRequest) error {
			err := s.Send(&queuev1.PublishMessagesResponse{Number: r.Number - 2, Error: &queuev1.StreamError{Code: string(InternalServerError), Message: "a fault"}})
			_, _ = s.Recv()
			return err
		}),
		some(func(queuev1.QueueService_PublishMessagesServer, *queuev1.PublishMessagesRequest) error { return nil }), // OK, out of turn
		some(func(s queuev1.QueueService_PublishMessagesServer, r *queuev1.PublishMessagesRequest) error {
			err := ok(s, r) // not the first one
			_, _ = s.Recv()
			return err
		}),
		f.serve,
	}
	var mu sync.Mutex
	var told []error
	withFake(t, f, Options{OnError: func(err error) { mu.Lock(); told = append(told, err); mu.Unlock() }}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{})
		for i := range 3 {
			p.Send(t.Context(), Message{Body: fmt.Append(nil, i)})
			synctest.Wait()
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if len(told) != 4 || len(f.batches) != 15 {
			t.Fatalf("%d batches came, told %v", len(f.batches), told)
		}
		tokens := map[string]int{}
		for i, b := range f.batches {
			tokens[b.GetRetryToken()]++
			if first := f.batches[i%3]; b.Number != first.Number || b.GetRetryToken() != first.GetRetryToken() || string(b.Messages[0].Content) != string(first.Messages[0].Content) {
				t.Errorf("batch %d: %v, at first %v", i, b, first)
			}
		}
		if len(tokens) != 3 {
			t.Errorf("tokens %v", tokens)
		}
	})
}

// A batch that meets one fault after the other fails in the end, and one that
// was not answered in time for its retry token is not sent again.
func TestNoEndlessResend(t *testing.T) {
	f := &fake{}
	fault := func(s queuev1.QueueService_PublishMessagesServer) error {
		r, err := f.take(s)
		if err == nil {
			err = s.Send(&queuev1.PublishMessagesResponse{Number: r.Number, Error: &queuev1.StreamError{Code: string(InternalServerError), Message: "a fault"}})
			_, _ = s.Recv()
		}
		return err
	}
	f.publish = slices.Repeat([]func(queuev1.QueueService_PublishMessagesServer) error{fault}, mostFaults+1)
	f.publish = append(f.publish, func(s queuev1.QueueService_PublishMessagesServer) error {
		_, _ = f.take(s)
		time.Sleep(24 * time.Hour)
		return failed(codes.Unavailable, ServiceUnavailable)
	})
	withFake(t, f, Options{DialOptions: []grpc.DialOption{grpc.WithKeepaliveParams(noKeepalive)}}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{})
		if _, err := p.Publish(t.Context(), Message{}); CodeOf(err) != InternalServerError || len(f.batches) != mostFaults+1 {
			t.Errorf("%v after %d batches", err, len(f.batches))
		}
		f.batches = nil
		if _, err := p.Publish(t.Context(), Message{}); CodeOf(err) != ServiceUnavailable || len(f.batches) != 1 {
			t.Errorf("%v after %d batches", err, len(f.batches))
		}
	})
}

// A stream that is refused fails what it was to publish, and the next message
// begins anew.
func TestRefusedStream(t *testing.T) {
	f := &fake{}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{
		func(s queuev1.QueueService_PublishMessagesServer) error {
			if said := metadata.ValueFromIncomingContext(s.Context(), "authorization"); !slices.Equal(said, []string{"Bearer secret"}) {
				return fmt.Errorf("the client said %q", said)
			}
			return failed(codes.Unauthenticated, NotAuthenticated)
		},
		f.serve,
	}
	withFake(t, f, Options{Token: "secret"}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{})
		_, err := p.Publish(t.Context(), Message{Body: []byte("1")})
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != NotAuthenticated || e.Message != "so it is" || e.Temporary() || status.Code(err) != codes.Unauthenticated {
			t.Error(err)
		}
		if id, err := p.Publish(t.Context(), Message{Body: []byte("2")}); id != 2 || err != nil {
			t.Errorf("%d, %v", id, err)
		}
	})
}

// A message that no batch has taken yet goes with its context.
func TestWithdraw(t *testing.T) {
	f := &fake{}
	f.publish = []func(queuev1.QueueService_PublishMessagesServer) error{func(s queuev1.QueueService_PublishMessagesServer) error {
		<-f.release
		return f.serve(s)
	}}
	withFake(t, f, Options{}, func(t *testing.T, c *Client) {
		p := c.Publisher("q", PublisherOptions{})
		for i := range earlyBatches {
			p.Send(t.Context(), Message{Body: fmt.Append(nil, i)})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Publish(ctx, Message{Body: []byte("99")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(f.release)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if len(f.batches) != earlyBatches {
			t.Errorf("%v", f.batches)
		}
	})
}

// An acknowledgement whose answer was lost is given again on the next stream,
// whose credit leaves out what is still held. One that cannot be done is told.
func TestAcknowledgeAgain(t *testing.T) {
	var first, second *queuev1.Settlement
	var credit int32
	subscribe := func(s queuev1.QueueService_ConsumeMessagesServer) (int32, error) {
		r, err := s.Recv()
		if err != nil || r.GetSubscribe() == nil {
			return 0, errors.Join(err, errors.New("no subscription"))
		}
		return r.GetSubscribe().Credit, s.Send(&queuev1.ConsumeMessagesResponse{Subscribed: &queuev1.ConsumeSubscribed{}})
	}
	settlement := func(s queuev1.QueueService_ConsumeMessagesServer) *queuev1.Settlement {
		for {
			r, err := s.Recv()
			if err != nil {
				return nil
			}
			if some := r.GetSettle(); some != nil {
				return some.Settlements[0]
			}
		}
	}
	f := &fake{}
	f.consume = []func(queuev1.QueueService_ConsumeMessagesServer) error{
		func(s queuev1.QueueService_ConsumeMessagesServer) error {
			if _, err := subscribe(s); err != nil {
				return err
			}
			for i := range 2 { // the second one is held to the end
				if err := s.Send(&queuev1.ConsumeMessagesResponse{Messages: []*queuev1.GetMessage{{Id: int64(i), Receipt: fmt.Sprint("r", i)}}}); err != nil {
					return err
				}
			}
			first = settlement(s)
			return failed(codes.Unavailable, ServiceUnavailable)
		},
		func(s queuev1.QueueService_ConsumeMessagesServer) (err error) {
			if credit, err = subscribe(s); err != nil {
				return err
			}
			second = settlement(s)
			// It may have been done already, but this server says no.
			if err := s.Send(&queuev1.ConsumeMessagesResponse{Settled: []*queuev1.SettlementResult{{Number: second.Number, Error: &queuev1.StreamError{Code: string(NotAuthorizedOrNotFound)}}}}); err != nil {
				return err
			}
			for {
				r, err := s.Recv()
				if err != nil {
					return nil
				}
				resp := &queuev1.ConsumeMessagesResponse{Drained: r.GetDrain() != nil}
				for _, one := range r.GetSettle().GetSettlements() {
					resp.Settled = append(resp.Settled, &queuev1.SettlementResult{Number: one.Number})
				}
				if err := s.Send(resp); err != nil {
					return err
				}
			}
		},
	}
	var mu sync.Mutex
	var told []error
	withFake(t, f, Options{OnError: func(err error) { mu.Lock(); told = append(told, err); mu.Unlock() }}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Consume(ctx, "q", func(_ context.Context, m *Delivery) error {
				if m.ID == 1 {
					time.Sleep(time.Minute)
				}
				return nil
			}, ConsumerOptions{Concurrency: 2, Prefetch: 10})
		}()
		time.Sleep(10 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if first.GetReceipt() != "r0" || second.GetReceipt() != "r0" || second.Action != queuev1.Settlement_ACKNOWLEDGE || credit != 9 {
			t.Errorf("%v, then %v, credit %d", first, second, credit)
		}
		if len(told) != 2 || CodeOf(told[0]) != ServiceUnavailable {
			t.Fatalf("told %v", told)
		}
		if d, ok := errors.AsType[*DeliveryError](told[1]); !ok || d.Op != "acknowledge" || d.Message.ID != 0 || CodeOf(d) != NotAuthorizedOrNotFound {
			t.Errorf("told %v", told[1])
		}
	})
}

// noKeepalive is for tests that pass many hours.
var noKeepalive = keepalive.ClientParameters{Time: 1000 * time.Hour}
