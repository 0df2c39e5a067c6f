package abuse

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// TestTenantAtItsLimit: rates are of a queue. One queue is flooded over all
// faces and refused what is too much, while clients of others are refused nothing.
func TestTenantAtItsLimit(t *testing.T) {
	t.Parallel()
	run(t, []row{{name: "prey", abuse: flood, most: 256 << 20}}, // memtables and caches among it
		"--limits-profile", "oci")
}

func flood(a *abuser) {
	const enough = 3000 // refusals over each face that refuses
	ctx, stop := context.WithTimeout(a.Context(), waitFor)
	defer stop()
	began := a.counts()
	var overREST, overGRPC, slowed atomic.Int64
	const body = `{"messages":[{"content":"a flood"}]}`
	request := strings.Repeat(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(body), body), 100)
	done := make(chan struct{})
	running := 0
	begin := func(f func() error) {
		running++
		go func() {
			for ctx.Err() == nil {
				if err := f(); err != nil && ctx.Err() == nil {
					a.Error(err)
					break
				}
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		c := a.open(a.s.REST)
		r := bufio.NewReader(c)
		begin(func() error {
			_ = c.SetDeadline(time.Now().Add(waitFor))
			if _, err := c.Write([]byte(request)); err != nil {
				return err
			}
			for answers := 0; answers < 100; {
				line, err := r.ReadString('\n')
				if err != nil {
					return err
				}
				if i := strings.Index(line, "HTTP/1.1 "); i >= 0 { // a body ends without a line
					answers++
					if code := line[i+len("HTTP/1.1 "):]; strings.HasPrefix(code, "429") || strings.HasPrefix(code, "503") {
						overREST.Add(1)
					}
				}
			}
			return nil
		})
	}
	conn, err := grpc.NewClient(a.s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Close()
	client := queuev1.NewQueueServiceClient(conn)
	put := &queuev1.PutMessagesRequest{QueueId: "prey", PutMessagesDetails: &queuev1.PutMessagesDetails{
		Messages: []*queuev1.PutMessagesDetailsEntry{{Content: []byte("a flood")}}}}
	for range 16 {
		begin(func() error {
			_, err := client.PutMessages(ctx, put)
			switch status.Code(err) {
			case codes.OK, codes.Canceled, codes.DeadlineExceeded:
				return nil
			case codes.ResourceExhausted, codes.Unavailable:
				overGRPC.Add(1)
				return nil
			}
			return err
		})
	}
	// STOMP refuses nothing: it reads more slowly, until the client cannot write.
	sends := []byte(strings.Repeat(send+"\na flood\x00", 1000))
	for range 4 {
		c := a.open(a.s.STOMP)
		a.flood(c, 1, []byte(connect))
		begin(func() error {
			_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := c.Write(sends)
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				slowed.Add(1)
				if n < len(sends) { // a frame has been cut short; go on behind its end
					_ = c.SetWriteDeadline(time.Now().Add(waitFor))
					_, err = c.Write(sends[n:])
				}
			}
			return err
		})
	}
	a.eventually("the flood is refused on every face, and the polite are not", func() error {
		for i, p := range a.polite {
			if err := p.failed.Load(); err != nil {
				a.Fatalf("the polite client over %s: %v", p.face, *err)
			}
			if n := int(p.rounds.Load()) - began[i]; n < 5*meanwhile {
				return fmt.Errorf("%s has done %d rounds", p.face, n)
			}
		}
		if overREST.Load() < enough || overGRPC.Load() < enough || slowed.Load() == 0 {
			return fmt.Errorf("refused: %d over REST, %d over gRPC; slowed %d", overREST.Load(), overGRPC.Load(), slowed.Load())
		}
		return nil
	})
	stop()
	a.Logf("refused: %d over REST, %d over gRPC; %d writes of STOMP were slowed", overREST.Load(), overGRPC.Load(), slowed.Load())
	a.leave()
	for range running {
		<-done
	}
	a.count.Add(overREST.Load() + overGRPC.Load())
}
