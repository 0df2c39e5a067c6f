package grpcapi

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/queued-mq/queued/queue"
)

// ErrorDomain is the domain of the ErrorInfo that every error carries.
const ErrorDomain = "queued"

// statusCodes is the face's table of errors (contract, gRPC). The test walks
// queue.Codes through it.
var statusCodes = map[queue.Code]codes.Code{
	queue.CannotParseRequest:                     codes.InvalidArgument,
	queue.InvalidParameter:                       codes.InvalidArgument,
	queue.MissingParameter:                       codes.InvalidArgument,
	queue.RelatedResourceNotAuthorizedOrNotFound: codes.InvalidArgument,
	queue.PayloadTooLarge:                        codes.InvalidArgument,
	queue.InvalidFrame:                           codes.InvalidArgument, // STOMP's own, never seen here
	queue.LimitExceeded:                          codes.ResourceExhausted,
	queue.QuotaExceeded:                          codes.ResourceExhausted,
	queue.TooManyRequests:                        codes.ResourceExhausted,
	queue.InsufficientStorage:                    codes.ResourceExhausted,
	queue.NotAuthenticated:                       codes.Unauthenticated,
	queue.NotAuthorized:                          codes.PermissionDenied,
	queue.NotAuthorizedOrNotFound:                codes.NotFound,
	queue.NotFound:                               codes.NotFound,
	queue.MethodNotAllowed:                       codes.Unimplemented,
	queue.MethodNotImplemented:                   codes.Unimplemented,
	queue.IncorrectState:                         codes.FailedPrecondition,
	queue.Conflict:                               codes.FailedPrecondition,
	queue.InvalidatedRetryToken:                  codes.FailedPrecondition,
	queue.NotAuthorizedOrResourceAlreadyExists:   codes.AlreadyExists,
	queue.NoEtagMatch:                            codes.Aborted,
	queue.InternalServerError:                    codes.Internal,
	queue.ServiceUnavailable:                     codes.Unavailable,
}

// Status is err as a gRPC status error: the code of the table, the text a
// caller may see, and a google.rpc.ErrorInfo whose reason is the queue.Code. A
// context that has ended is Canceled or DeadlineExceeded, without ErrorInfo,
// for nobody reads it. nil stays nil.
func Status(err error) error {
	if err == nil {
		return nil
	}
	code := queue.CodeOf(err)
	if code == queue.InternalServerError {
		switch {
		case errors.Is(err, context.Canceled):
			return status.Error(codes.Canceled, "the caller has gone")
		case errors.Is(err, context.DeadlineExceeded):
			return status.Error(codes.DeadlineExceeded, "the caller's deadline has passed")
		}
	}
	of, ok := statusCodes[code]
	if !ok {
		of = codes.Unknown
	}
	st := status.New(of, queue.MessageOf(err))
	if full, err := st.WithDetails(&errdetails.ErrorInfo{Reason: string(code), Domain: ErrorDomain}); err == nil {
		st = full
	}
	return st.Err()
}
