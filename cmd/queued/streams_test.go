package main

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// Open streams do not hold a stop up: what was received is answered, then they
// end with Unavailable.
func TestStopWithStreams(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders"} })
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := queuev1.NewQueueServiceClient(conn)
	publish, err := client.PublishMessages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	consume, err := client.ConsumeMessages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say := func(r *queuev1.ConsumeMessagesRequest) {
		t.Helper()
		if err := consume.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: &queuev1.ConsumeSubscription{QueueId: "orders", Credit: 1000}}})
	const messages = 200
	for i := range uint64(messages) {
		one := []*queuev1.PutMessagesDetailsEntry{{Content: []byte("x")}}
		if err := publish.Send(&queuev1.PublishMessagesRequest{Number: i, QueueId: "orders", Messages: one}); err != nil {
			t.Fatal(err)
		}
	}
	received, settled := 0, 0
	for received < messages || settled < messages {
		r, err := consume.Recv()
		if err != nil {
			t.Fatal(err)
		}
		received += len(r.Messages)
		settled += len(r.Settled)
		if len(r.Messages) == 0 {
			continue
		}
		settle := &queuev1.ConsumeSettlements{}
		for _, m := range r.Messages {
			settle.Settlements = append(settle.Settlements, &queuev1.Settlement{Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
		}
		say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: settle}})
	}

	began := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for i := range uint64(messages) { // none was read before
		if r, err := publish.Recv(); err != nil || r.Number != i || r.Error != nil {
			t.Fatalf("answer %d: %v, %v", i, r, err)
		}
	}
	_, ends := publish.Recv()
	_, endsToo := consume.Recv()
	for _, err := range []error{ends, endsToo} {
		st := status.Convert(err)
		info, ok := append(st.Details(), nil)[0].(*errdetails.ErrorInfo)
		if st.Code() != codes.Unavailable || !ok || info.Reason != "ServiceUnavailable" {
			t.Errorf("a stream ended with %v, details %v", err, st.Details())
		}
	}
}
