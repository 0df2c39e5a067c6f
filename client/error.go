package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// ErrClosed is what is left of work when its Client or Publisher is closed.
// A message that ends with it may have been published or not.
var ErrClosed = errors.New("client: closed")

// ErrLeaseLost is the cause (context.Cause) why the context of a handler has
// ended: the message could not be kept hidden, others may get it now.
var ErrLeaseLost = errors.New("client: the lease of the message is lost")

// ErrUnsettled is in the error of a Consume that had to leave without the
// answers to some settlements: those messages may come again.
var ErrUnsettled = errors.New("client: not settled")

// Code names a kind of failure. It is the same word over every face of the
// server; a server may know more of them than are listed here.
type Code string

// The codes that a program is likely to look at.
const (
	InvalidParameter        Code = "InvalidParameter"        // a value is out of range or ill-formed
	MissingParameter        Code = "MissingParameter"        // a required field is absent
	PayloadTooLarge         Code = "PayloadTooLarge"         // a message or a batch is over its size
	LimitExceeded           Code = "LimitExceeded"           // a limit of the service is reached, such as the storage of the queue
	NotAuthenticated        Code = "NotAuthenticated"        // who is calling cannot be told
	NotAuthorized           Code = "NotAuthorized"           // the caller may not do this
	NotAuthorizedOrNotFound Code = "NotAuthorizedOrNotFound" // unknown, or the caller may not see it
	IncorrectState          Code = "IncorrectState"          // not in this state; try later
	Conflict                Code = "Conflict"                // never in this state
	InvalidatedRetryToken   Code = "InvalidatedRetryToken"   // what the token made has been deleted since
	TooManyRequests         Code = "TooManyRequests"         // over a rate
	InsufficientStorage     Code = "InsufficientStorage"     // no room on the server's disk
	MethodNotImplemented    Code = "MethodNotImplemented"    // the server does not have this operation
	InternalServerError     Code = "InternalServerError"     // a fault of the server
	ServiceUnavailable      Code = "ServiceUnavailable"      // not reachable, stopping or overloaded; try later
)

// Error is a failure that the server named, or one of the connection. Every
// error of a Client that is neither an Error nor ErrClosed is that of a
// context. Use errors.As, or [CodeOf].
type Error struct {
	Code    Code   // what kind of failure
	Message string // for a person: what went wrong and what to change

	status *status.Status // nil for an answer on a stream
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// GRPCStatus is the status that the call ended with, so that package status
// understands the error; nil if no call ended.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Temporary says whether the same request may succeed later.
func (e *Error) Temporary() bool {
	switch e.Code {
	case ServiceUnavailable, InternalServerError, TooManyRequests, InsufficientStorage, IncorrectState:
		return true
	}
	return false
}

// CodeOf is the code that err carries, also if it comes from the generated
// clients. nil, the error of a context and ErrClosed have none: "".
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](wrap(err)); ok {
		return e.Code
	}
	return ""
}

// codesOf is for calls that ended without a word of the server.
var codesOf = map[codes.Code]Code{
	codes.InvalidArgument:   InvalidParameter,
	codes.OutOfRange:        InvalidParameter,
	codes.NotFound:          NotAuthorizedOrNotFound,
	codes.Unauthenticated:   NotAuthenticated,
	codes.PermissionDenied:  NotAuthorized,
	codes.Unimplemented:     MethodNotImplemented,
	codes.ResourceExhausted: TooManyRequests,
	codes.Unavailable:       ServiceUnavailable,
}

// wrap makes an Error of the error of a call. That of a context stays one, and
// so does everything that is not from gRPC.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return &Error{Code: Code(info.Reason), Message: st.Message(), status: st}
		}
	}
	switch st.Code() {
	case codes.Canceled:
		return fmt.Errorf("%s: %w", st.Message(), context.Canceled)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w", st.Message(), context.DeadlineExceeded)
	}
	code, ok := codesOf[st.Code()]
	if !ok {
		code = InternalServerError
	}
	return &Error{Code: code, Message: st.Message(), status: st}
}

// answer is the error in an answer on a stream, nil if there is none.
func answer(e *queuev1.StreamError) *Error {
	if e == nil {
		return nil
	}
	return &Error{Code: Code(e.Code), Message: e.Message}
}

// permanent says whether a stream that ended so would end so again.
func permanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !e.Temporary()
}

// outOfStep is a server that breaks the rules of a stream. A new stream begins
// afresh.
func outOfStep(format string, args ...any) error {
	return &Error{Code: InternalServerError, Message: fmt.Sprintf(format, args...)}
}

// refusal is an error that needs no server to be found.
func refusal(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
