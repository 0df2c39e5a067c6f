// Package bench puts load on a running server and measures it: what `queued
// bench` does. It is a client. It knows the server by its wires alone, REST,
// gRPC, the gRPC streams and STOMP, and what a message cost by /metrics.
//
// A face is how sessions publish and consume (rest.go, grpc.go, streams.go,
// stomp.go), all behind the two interfaces of face.go. A shape is what is done
// with them (publish.go, drain.go, steady.go, latency.go). In between stands the
// run, which opens sessions, keeps to the rate, counts, and notices messages
// that are lost or come twice.
//
// The one idea to hold: with a rate, an operation has an instant at which it is
// meant to begin, and its latency is counted from that instant, whenever it does
// begin. A server that stands still for a second is then seen to do so by all
// the operations that were due in that second, not by one alone.
package bench
