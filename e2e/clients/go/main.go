// Go checks queued with the OCI SDK for Go: every operation of the Queue API
// once at least, as a program written for OCI calls it. Package ocisdk has the
// tests that go deep.
package main

import (
	"fmt"
	"reflect"

	"github.com/oracle/oci-go-sdk/v65/common"
)

func main() {
	queues()
	messages()
	refusals()
	groups()
}

// ok says that something of an operation is as it must be.
func ok(operation, what string) { fmt.Printf("ok\t%s\t%s\n", operation, what) }

// same ends the program unless both are the same throughout.
func same(got, want any, what string) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: %v, want %v", what, got, want)
	}
}

// refused ends the program unless err is a refusal with this status and code.
func refused[T any](status int, code string) func(T, error) common.ServiceError {
	return func(_ T, err error) common.ServiceError {
		e, is := common.IsServiceError(err)
		if !is {
			fail("%v, want a refusal with %d %s", err, status, code)
		}
		same(list{e.GetHTTPStatusCode(), e.GetCode(), e.GetOpcRequestID() != ""}, list{status, code, true}, e.GetMessage())
		return e
	}
}

// list is several values, to be compared at once.
type list []any

// must ends the program at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // with the line it came from
	}
	return v
}

func fail(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
