package service

import "context"

// Face names of Caller and of the Observe hook.
const (
	FaceREST  = "rest"
	FaceGRPC  = "grpc"
	FaceSTOMP = "stomp"
)

// Caller is who makes a request and by which way it came. The zero Caller is
// the program itself. With authentication (a later step) the principal joins
// it; until then everyone may do everything.
type Caller struct {
	Face      string // FaceREST, FaceGRPC, FaceSTOMP; "" is the program itself
	BaseURL   string // scheme://host[:port] the request was sent to: messagesEndpoint when no public URL is set
	RequestID string // opc-request-id as the response shows it, for the log
}

type callerKey struct{}

// WithCaller gives ctx its caller. The Caller must not be changed afterwards;
// a face may use one for all requests of a connection.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

var nobody Caller

// CallerOf is the caller of ctx, never nil; without one it is the zero Caller.
func CallerOf(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c
	}
	return &nobody
}
