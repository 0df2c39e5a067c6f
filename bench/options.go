package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Faces and Shapes are the names that Options know.
var (
	Faces  = []string{"rest", "grpc", "streams", "stomp"}
	Shapes = []string{"publish", "drain", "steady", "latency"}
)

// Bounds of what may be asked for: those of the server, and of one client.
const (
	mostSessions = 10_000
	mostBatch    = 20 // of one request; the server's limits.batch-messages
	mostAhead    = 1000
	mostChannels = 256
	mostBytes    = 512 << 10 // of one batch
	mostWindow   = 10_000
	mostRate     = 10_000_000
)

// Options say what is measured, and where. Make them by Defaults.
type Options struct {
	Face  string // one of Faces
	Shape string // one of Shapes

	Producers int           // sessions that publish
	Consumers int           // sessions that consume
	Ahead     int           // operations in flight on each session
	Batch     int           // messages of an operation
	Size      int           // octets of a body
	Queues    int           // queues, which sessions are spread over
	Channels  int           // channels of each queue, which messages are spread over; 0 is none
	Window    int           // streams and STOMP: messages a session may have unsettled; 0 chooses
	Rate      float64       // messages a second that are meant to be published; 0 is as many as can be
	Messages  int           // shape drain: how many to publish before; 0 is what can be in Duration
	Duration  time.Duration // what is measured
	Warmup    time.Duration // load before that

	REST  string // host:port or a URL; "" if it is not to be used
	GRPC  string // host:port
	STOMP string // host:port
	Admin string // host:port or a URL of /metrics; "" is no figures of the server

	Keep     bool      // leave the queues there
	Progress io.Writer // a line each second; nil is none
}

// Defaults are the options when nothing is said: the addresses are those of a
// server of whom nothing was asked either.
func Defaults() Options {
	return Options{
		Face: "rest", Shape: "steady",
		Producers: 16, Consumers: 16, Ahead: 1, Batch: 10, Size: 1024, Queues: 1,
		Duration: 10 * time.Second, Warmup: 2 * time.Second,
		REST: "127.0.0.1:8080", GRPC: "127.0.0.1:8081", STOMP: "127.0.0.1:61613", Admin: "127.0.0.1:8082",
	}
}

// Validate names everything that is wrong with o, by its flags.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	within := func(flag string, v, low, high int) {
		if v < low || v > high {
			bad("%s is %d; it must be %d to %d", flag, v, low, high)
		}
	}
	if !slices.Contains(Faces, o.Face) {
		bad("face is %q; it must be one of %v", o.Face, Faces)
	}
	if !slices.Contains(Shapes, o.Shape) {
		bad("shape is %q; it must be one of %v", o.Shape, Shapes)
	}
	within("producers", o.Producers, 1, mostSessions)
	within("consumers", o.Consumers, 1, mostSessions)
	within("ahead", o.Ahead, 1, mostAhead)
	within("batch", o.Batch, 1, mostBatch)
	within("size", o.Size, headBytes, 256<<10)
	within("queues", o.Queues, 1, min(o.Producers, o.Consumers, 1000))
	within("channels", o.Channels, 0, mostChannels)
	within("window", o.Window, 0, mostWindow)
	within("messages", o.Messages, 0, 1<<30)
	if o.Batch*o.Size > mostBytes {
		bad("batch x size are %d octets; a request may have %d", o.Batch*o.Size, mostBytes)
	}
	if o.Rate < 0 || o.Rate > mostRate {
		bad("rate is %v; it must be 0 (as many as can be) or up to %d messages a second", o.Rate, mostRate)
	}
	if o.Rate == 0 && o.Shape == "latency" {
		bad("the shape latency needs a rate, in messages a second")
	}
	if o.Rate > 0 && o.Shape == "drain" {
		bad("the shape drain has no rate: it consumes as fast as can be")
	}
	if o.Messages > 0 && o.Shape != "drain" {
		bad("messages is for the shape drain alone")
	}
	if o.Duration < 100*time.Millisecond || o.Duration > 24*time.Hour {
		bad("duration is %v; it must be 100ms to 24h", o.Duration)
	}
	if o.Warmup < 0 || o.Warmup > time.Hour {
		bad("warmup is %v; it must be 0s to 1h", o.Warmup)
	}
	if o.REST == "" && o.GRPC == "" {
		bad("rest or grpc must name an address: the queues are made there")
	}
	addr := map[string]string{"rest": o.REST, "grpc": o.GRPC, "streams": o.GRPC, "stomp": o.STOMP}[o.Face]
	if slices.Contains(Faces, o.Face) && addr == "" {
		bad("face %s has no address", o.Face)
	}
	return errors.Join(errs...)
}

// window is how many messages a session may hold unsettled: two operations
// each, so that one comes while the other is settled.
func (o *Options) window() int {
	if o.Window > 0 {
		return o.Window
	}
	return min(2*o.Batch*o.Ahead, mostWindow)
}
