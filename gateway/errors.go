package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
)

// statuses is the face's table of errors (OCI reference 6.2, contract). The
// test walks queue.Codes through it.
var statuses = map[queue.Code]int{
	queue.CannotParseRequest:                     http.StatusBadRequest,
	queue.InvalidParameter:                       http.StatusBadRequest,
	queue.MissingParameter:                       http.StatusBadRequest,
	queue.LimitExceeded:                          http.StatusBadRequest,
	queue.QuotaExceeded:                          http.StatusBadRequest,
	queue.RelatedResourceNotAuthorizedOrNotFound: http.StatusBadRequest,
	queue.InvalidFrame:                           http.StatusBadRequest, // STOMP's own, never seen here
	queue.NotAuthenticated:                       http.StatusUnauthorized,
	queue.NotAuthorized:                          http.StatusForbidden,
	queue.NotAuthorizedOrNotFound:                http.StatusNotFound,
	queue.NotFound:                               http.StatusNotFound,
	queue.MethodNotAllowed:                       http.StatusMethodNotAllowed,
	queue.IncorrectState:                         http.StatusConflict,
	queue.Conflict:                               http.StatusConflict,
	queue.InvalidatedRetryToken:                  http.StatusConflict,
	queue.NotAuthorizedOrResourceAlreadyExists:   http.StatusConflict,
	queue.NoEtagMatch:                            http.StatusPreconditionFailed,
	queue.PayloadTooLarge:                        http.StatusRequestEntityTooLarge,
	queue.TooManyRequests:                        http.StatusTooManyRequests,
	queue.InternalServerError:                    http.StatusInternalServerError,
	queue.MethodNotImplemented:                   http.StatusNotImplemented,
	queue.ServiceUnavailable:                     http.StatusServiceUnavailable,
	queue.InsufficientStorage:                    http.StatusInsufficientStorage,
}

// retryAfter is how long to wait before asking again, in whole seconds, where
// waiting helps: a full disk frees itself by compaction, the others at once.
var retryAfter = map[queue.Code][]string{
	queue.InsufficientStorage: {"10"},
	queue.ServiceUnavailable:  {"1"},
	queue.TooManyRequests:     {"1"},
}

// appendError appends the body of an error: exactly these two keys, for the Go
// SDK reads more than it shows into errors with others (reference 6.1).
func appendError(dst []byte, code queue.Code, message string) []byte {
	dst = append(dst, `{"code":`...)
	dst = wire.AppendString(dst, string(code))
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, strings.ToValidUTF8(message, "�"))
	return append(dst, '}')
}

// errGone stands for a request whose context ended: the client has left, or
// the server is stopping and the client must ask elsewhere.
var errGone = queue.Errorf(queue.ServiceUnavailable, "the request was given up: the client has gone or the server is stopping")

// callerError is err as a *queue.Error, nil for an internal fault. It reads
// the errors of the service, and of the generated handlers, which come as gRPC
// statuses: with an ErrorInfo from the servers, and without one from our
// marshaler, whose queue.Error they have made into text.
func callerError(err error) *queue.Error {
	if e, ok := errors.AsType[*queue.Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errGone.(*queue.Error)
	}
	st, ok := status.FromError(err)
	if !ok {
		return nil
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return known(queue.Code(info.GetReason()), st.Message())
		}
	}
	switch st.Code() {
	case codes.InvalidArgument:
		code, message, _ := strings.Cut(st.Message(), ": ")
		return known(queue.Code(code), message)
	case codes.Canceled, codes.DeadlineExceeded:
		return errGone.(*queue.Error)
	}
	return nil
}

// isServed reports whether err, of a generated handler, comes from a server and
// so from the service, rather than from our marshaler.
func isServed(err error) bool {
	st, ok := status.FromError(err)
	return ok && (len(st.Details()) > 0 || st.Code() != codes.InvalidArgument)
}

func known(code queue.Code, message string) *queue.Error {
	if !slices.Contains(queue.Codes, code) || code == queue.InternalServerError {
		return nil
	}
	return &queue.Error{Code: code, Message: message}
}
