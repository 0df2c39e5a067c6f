package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// Options are what Dial may be told. The zero value is a server without TLS
// and authentication, as it runs on one's own machine.
type Options struct {
	// TLS is how the connection is secured; nil is not at all. It must not be
	// changed afterwards.
	TLS *tls.Config
	// Token goes with every call, for a server with --auth token. Without TLS
	// it can be read on the way.
	Token string
	// OnError is told what no caller is told: that a stream broke and is tried
	// again, that a handler failed, that an acknowledgement was in vain. It is
	// called from many goroutines and should return soon. nil writes to
	// slog.Default().
	OnError func(error)
	// DialOptions are added to those of the package and win over them.
	DialOptions []grpc.DialOption
}

// Client is a connection to a server. It may be used by many goroutines.
type Client struct {
	conn     *grpc.ClientConn
	admin    queuev1.QueueAdminServiceClient
	messages queuev1.QueueServiceClient
	onError  func(error)

	mu     sync.Mutex
	closed bool
	users  map[any]func() // what ends each publisher and each Consume
	using  sync.WaitGroup // of users; Add under mu while not closed
}

// Dial is a client of the server at target, such as "localhost:8081". It does
// not wait for the connection, which is made when it is needed and again
// whenever it is lost: a server that is not there yet is no error. It fails
// only if target or an option is ill-formed. Close it after use.
func Dial(target string, o Options) (*Client, error) {
	secured := insecure.NewCredentials()
	if o.TLS != nil {
		secured = credentials.NewTLS(o.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secured),
		// The server drops clients that ask more often than every 5 seconds;
		// it asks idle ones itself.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           grpcbackoff.Config{BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: 5 * time.Second,
		}),
		// Answers have up to 2 MiB of content, unless the server is set
		// otherwise; requests are the server's to refuse.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.ForceCodecV2(codec.New())),
		grpc.WithUnaryInterceptor(named),
	}
	if o.Token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(o.Token)))
	}
	conn, err := grpc.NewClient(target, append(options, o.DialOptions...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	c := &Client{
		conn:     conn,
		admin:    queuev1.NewQueueAdminServiceClient(conn),
		messages: queuev1.NewQueueServiceClient(conn),
		onError:  o.OnError,
		users:    map[any]func(){},
	}
	if c.onError == nil {
		c.onError = func(err error) { slog.Default().Warn("queued client", "error", err) }
	}
	return c, nil
}

// Close closes every Publisher of c, ends every Consume as the end of its
// context would, waits for them, and then gives up the connection. It must not
// be called by a handler, for which it would wait. Closing again waits too and
// is no error.
func (c *Client) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	var ending sync.WaitGroup
	for _, end := range c.users {
		ending.Go(end)
	}
	c.mu.Unlock()
	ending.Wait()
	c.using.Wait()
	if closed {
		return nil
	}
	return c.conn.Close()
}

// use registers a user of c, which end ends; it calls left when it is over.
func (c *Client) use(user any, end func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.users[user] = end
	c.using.Add(1)
	return nil
}

func (c *Client) left(user any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.users, user)
	c.using.Done()
}

// Queues is the generated client of the control plane. Its errors are *Error.
func (c *Client) Queues() queuev1.QueueAdminServiceClient { return c.admin }

// Messages is the generated client of the data plane. The errors of its calls
// are *Error; those of its streams are gRPC's, which CodeOf understands.
func (c *Client) Messages() queuev1.QueueServiceClient { return c.messages }

// QueueOptions are the settings of a new queue. What is zero is left to the
// server; what they do not have can be set by way of Client.Queues.
type QueueOptions struct {
	Retention  time.Duration // how long a message lives; 10 s to 7 days
	Visibility time.Duration // how long a delivered message is hidden; 1 s to 12 h
	Deliveries int           // how many before a message moves to the dead letter queue; 1 to 20, or -1 for never
}

// EnsureQueue makes the queue if there is none that bears the name, and is its
// OCID. A queue that is there already stays as it is, whatever o says. Programs
// that start together make one queue, not several.
func (c *Client) EnsureQueue(ctx context.Context, name string, o QueueOptions) (id string, err error) {
	q, err := c.admin.GetQueue(ctx, &queuev1.GetQueueRequest{QueueId: name})
	if err == nil && q.Queue.LifecycleState != queuev1.Queue_DELETED {
		return q.Queue.Id, nil
	}
	if err != nil && CodeOf(err) != NotAuthorizedOrNotFound {
		return "", err
	}
	details := &queuev1.CreateQueueDetails{DisplayName: &name, RetentionInSeconds: seconds(o.Retention), VisibilityInSeconds: seconds(o.Visibility)}
	if o.Deliveries != 0 {
		details.DeadLetterQueueDeliveryCount = proto.Int32(int32(max(o.Deliveries, 0)))
	}
	// The same token for the same queue: of two that ask at once, one makes it
	// and the other is told so. It is of no use once that queue is deleted.
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v", name, o))
	token := "ensure-" + hex.EncodeToString(sum[:16])
	made, err := c.admin.CreateQueue(ctx, &queuev1.CreateQueueRequest{CreateQueueDetails: details, RetryToken: &token})
	if CodeOf(err) == InvalidatedRetryToken {
		made, err = c.admin.CreateQueue(ctx, &queuev1.CreateQueueRequest{CreateQueueDetails: details})
	}
	if err != nil {
		return "", err
	}
	return made.CreatedQueue.GetId(), nil
}

// named gives the errors of calls their names.
func named(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return wrap(invoke(ctx, method, req, reply, conn, opts...))
}

// bearer is the secret of a server with --auth token.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false: on one's own machine there is no TLS, and
// elsewhere the server insists on it.
func (bearer) RequireTransportSecurity() bool { return false }
