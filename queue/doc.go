// Package queue holds the words of the domain: queues, messages, receipts,
// channels, statistics, work requests, and the one error type a caller can
// act on. It knows nothing of bytes on disk, of clocks or of wires, and
// imports the standard library alone; every other package speaks in its terms.
//
// Instants are [Instant], milliseconds since the Unix epoch in UTC, because
// that is the precision the API shows and the store keeps: what a client is
// told is exactly what the server will do. Lengths are time.Duration.
package queue
