package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/queued-mq/queued/queue"
)

// Every code of the domain has a status, and nothing else has one.
func TestStatusWalksAllCodes(t *testing.T) {
	t.Parallel()
	want := map[queue.Code]codes.Code{ // the contract's sentence, spelt out
		"CannotParseRequest":                     codes.InvalidArgument,
		"InvalidParameter":                       codes.InvalidArgument,
		"MissingParameter":                       codes.InvalidArgument,
		"PayloadTooLarge":                        codes.InvalidArgument,
		"RelatedResourceNotAuthorizedOrNotFound": codes.InvalidArgument,
		"LimitExceeded":                          codes.ResourceExhausted,
		"QuotaExceeded":                          codes.ResourceExhausted,
		"NotAuthenticated":                       codes.Unauthenticated,
		"NotAuthorized":                          codes.PermissionDenied,
		"NotAuthorizedOrNotFound":                codes.NotFound,
		"NotFound":                               codes.NotFound,
		"MethodNotAllowed":                       codes.Unimplemented,
		"MethodNotImplemented":                   codes.Unimplemented,
		"IncorrectState":                         codes.FailedPrecondition,
		"Conflict":                               codes.FailedPrecondition,
		"InvalidatedRetryToken":                  codes.FailedPrecondition,
		"NotAuthorizedOrResourceAlreadyExists":   codes.AlreadyExists,
		"NoEtagMatch":                            codes.Aborted,
		"TooManyRequests":                        codes.ResourceExhausted,
		"InsufficientStorage":                    codes.ResourceExhausted,
		"InternalServerError":                    codes.Internal,
		"ServiceUnavailable":                     codes.Unavailable,
		"InvalidFrame":                           codes.InvalidArgument,
	}
	for _, code := range queue.Codes {
		err := Status(fmt.Errorf("put messages: %w", queue.Errorf(code, "say why")))
		st, ok := status.FromError(err)
		if !ok || st.Code() != want[code] || st.Message() != "say why" {
			t.Errorf("%s: %v, want %v", code, err, want[code])
		}
		if info := infoOf(st); info.GetReason() != string(code) || info.GetDomain() != ErrorDomain {
			t.Errorf("%s: ErrorInfo %v", code, info)
		}
	}
	if len(statusCodes) != len(queue.Codes) {
		t.Errorf("the table has %d codes, the domain %d", len(statusCodes), len(queue.Codes))
	}
}

func infoOf(st *status.Status) *errdetails.ErrorInfo {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

func TestStatusOfOtherErrors(t *testing.T) {
	t.Parallel()
	if Status(nil) != nil {
		t.Error("nil is an error")
	}
	for _, tt := range []struct {
		err     error
		code    codes.Code
		message string
		reason  string
	}{
		{errors.New("pebble: /var/lib/secret is broken"), codes.Internal, "internal error", "InternalServerError"},
		{fmt.Errorf("receive: %w", context.Canceled), codes.Canceled, "the caller has gone", ""},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "the caller's deadline has passed", ""},
		{queue.Errorf("NotListed", "new"), codes.Unknown, "new", "NotListed"},
	} {
		st, _ := status.FromError(Status(tt.err))
		if st.Code() != tt.code || st.Message() != tt.message || infoOf(st).GetReason() != tt.reason {
			t.Errorf("%v: %v, reason %q", tt.err, st, infoOf(st).GetReason())
		}
	}
}
