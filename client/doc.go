// Package client publishes and consumes messages of queued over gRPC.
//
// It is a small layer over the generated code of api/gen, not another model of
// the service: a [Publisher] and [Client.Consume] drive the two streams, and
// [Client.Messages] and [Client.Queues] are the generated clients for all
// else. The idea to hold: a stream may break at any moment and nothing is
// lost by it. What was published and not answered is sent again under the same
// retry token, which stores nothing twice; what was delivered stays with its
// handler and is settled on the next stream.
//
// A delivery is at least once: a handler may see a message again, for example
// when its acknowledgement did not reach the server before the lease ended.
package client
