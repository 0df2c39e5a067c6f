// Package service holds the use cases: what a request must look like, who may
// make it, which limits it meets, and which call of the broker answers it. One
// file is one use case, named as the OCI operation is, with its request, its
// response and its method; what several share lies in a file of its own
// (caller.go, find.go, page.go, tags.go and their like).
//
// It is the one door: REST, gRPC and STOMP all come through here, so that form,
// rights, limits and errors are the same over each of them. It decides nothing
// about messages (that is the broker's) and knows neither protobuf nor HTTP.
//
// Requests are plain structs that spell the API's fields in Go. An optional
// field is a pointer, or a nil slice or map, so that "absent", "zero" and
// "empty" stay apart; a face passes what it was given and checks nothing.
// Lengths in requests are whole seconds, as the API has them, so that a refusal
// can repeat the caller's own number; they become time.Duration here and stay
// that below. Responses are the domain's own types.
//
// Every failure a caller can act on is a *queue.Error whose message names the
// field as the API spells it. Anything else is an internal fault: logged here,
// once, with the request id, and shown by queue.MessageOf as "internal error".
// A context that ends comes back as its own error (context.Canceled or
// context.DeadlineExceeded): nobody is there to read an answer.
package service
