package queue

import (
	"errors"
	"fmt"
)

// Code names a kind of failure the caller can act on. The text is the OCI
// error code and is the same over every face (OCI reference, section 6.2);
// InsufficientStorage and InvalidFrame are ours.
type Code string

// The codes. Each face owns a table from these to its own language.
const (
	CannotParseRequest                     Code = "CannotParseRequest"                     // the body is not JSON
	InvalidParameter                       Code = "InvalidParameter"                       // a value is out of range or ill-formed
	MissingParameter                       Code = "MissingParameter"                       // a required field is absent
	LimitExceeded                          Code = "LimitExceeded"                          // a limit of the service is reached
	QuotaExceeded                          Code = "QuotaExceeded"                          // an administrator's quota is reached
	RelatedResourceNotAuthorizedOrNotFound Code = "RelatedResourceNotAuthorizedOrNotFound" // a resource named in the body is unknown
	NotAuthenticated                       Code = "NotAuthenticated"                       // who is calling cannot be told
	NotAuthorized                          Code = "NotAuthorized"                          // the caller may not do this
	NotAuthorizedOrNotFound                Code = "NotAuthorizedOrNotFound"                // unknown, or the caller may not see it
	NotFound                               Code = "NotFound"                               // no operation at this path
	MethodNotAllowed                       Code = "MethodNotAllowed"                       // the path exists, the method does not
	IncorrectState                         Code = "IncorrectState"                         // not in this state; try later
	Conflict                               Code = "Conflict"                               // never in this state
	InvalidatedRetryToken                  Code = "InvalidatedRetryToken"                  // the token's resource has been deleted since
	NotAuthorizedOrResourceAlreadyExists   Code = "NotAuthorizedOrResourceAlreadyExists"   // the name is taken
	NoEtagMatch                            Code = "NoEtagMatch"                            // if-match names another version
	PayloadTooLarge                        Code = "PayloadTooLarge"                        // message or request over its size
	TooManyRequests                        Code = "TooManyRequests"                        // over a rate
	InternalServerError                    Code = "InternalServerError"                    // our fault
	MethodNotImplemented                   Code = "MethodNotImplemented"                   // not built yet
	ServiceUnavailable                     Code = "ServiceUnavailable"                     // draining or overloaded; try later
	InsufficientStorage                    Code = "InsufficientStorage"                    // no room on the disk; try later
	InvalidFrame                           Code = "InvalidFrame"                           // a STOMP frame breaks the protocol
)

// Codes lists every code, for tests that walk the faces' tables.
var Codes = []Code{
	CannotParseRequest, InvalidParameter, MissingParameter, LimitExceeded, QuotaExceeded,
	RelatedResourceNotAuthorizedOrNotFound, NotAuthenticated, NotAuthorized,
	NotAuthorizedOrNotFound, NotFound, MethodNotAllowed, IncorrectState, Conflict,
	InvalidatedRetryToken, NotAuthorizedOrResourceAlreadyExists, NoEtagMatch,
	PayloadTooLarge, TooManyRequests, InternalServerError, MethodNotImplemented,
	ServiceUnavailable, InsufficientStorage, InvalidFrame,
}

// Error is a failure the caller can act on. Anything else is an internal
// fault: logged in full, shown only as "internal error".
type Error struct {
	Code    Code   // what kind; see the Code constants
	Message string // for a person, safe to show, says what to change
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an Error of the kind code with a formatted message.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf reports the code carried by err, or InternalServerError if it carries
// none. A nil err has no code: "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return InternalServerError
}

// MessageOf is the text a caller may see: the message of the Error that err
// carries, or "internal error".
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "internal error"
}
