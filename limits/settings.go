package limits

import (
	"errors"
	"math"

	"github.com/queued-mq/queued/queue"
)

// Settings are the limits in force. The numbers are plain counts or octets, as
// Fields says; where a field says so, 0 is no limit. Make one by Profile, OCI
// or Unthrottled, change fields, then Validate: the zero value is not valid.
type Settings struct {
	// Sizes and shapes: what one request may hold.
	MessageBytes         int64
	RequestBytes         int64
	LargeMessageBytes    int64 // of queues with LARGE_MESSAGES
	LargeRequestBytes    int64
	ResponseBytes        int64
	BatchMessages        int64
	PropertiesPerMessage int64
	PropertyNameBytes    int64
	PropertyBytes        int64
	ListPage             int64
	HeaderBytes          int64

	// Counts and storage: what a queue or a tenancy may hold.
	ChannelsPerQueue         int64
	GroupsPerQueue           int64
	InFlightPerQueue         int64
	InFlightTotal            int64
	InFlightReservedPerQueue int64
	RetryTokensPerQueue      int64
	QueuesPerTenancy         int64 // 0: no limit
	BytesPerQueue            int64 // 0: no limit
	BytesPerTenancy          int64 // 0: no limit

	// Rates.
	RequestsPerSecond     int64 // 0: no limit
	GetsPerSecond         int64 // 0: no limit
	IngressBytesPerSecond int64 // 0: no limit
	EgressBytesPerSecond  int64 // 0: no limit
	StompBytesPerSecond   int64 // 0: no limit

	// Overload: what may wait and what may be open.
	OpenPollsPerQueue       int64
	OpenPollsTotal          int64
	PendingRequestsPerQueue int64
	PendingBytesPerQueue    int64
	PendingBytesTotal       int64
	Connections             int64
	ConnectionsPerClient    int64
	StreamsPerConnection    int64
}

// Field is one setting: what the config file, the printed configuration and
// the documents need to know about it.
type Field struct {
	Key     string // within the group "limits"
	Meaning string // one line, no full stop
	Octets  bool   // counts octets, so may be written as "256KiB"
	NoLimit bool   // 0 is legal and means no limit
	Min     int64  // least legal value apart from that 0
	Max     int64  // greatest legal value
	Value   *int64 // into the Settings it was asked of
}

// Fields lists every setting in the order of the documents. Setting through
// Value changes s.
func (s *Settings) Fields() []Field {
	const (
		many = math.MaxInt32         // more of anything does not fit into memory
		huge = math.MaxInt64 / 1_000 // room to compute with
		body = 64 << 20              // one write to the store holds a whole request
	)
	octets := func(key, meaning string, v *int64, lo, hi int64) Field {
		return Field{Key: key, Meaning: meaning, Octets: true, Min: lo, Max: hi, Value: v}
	}
	count := func(key, meaning string, v *int64, lo, hi int64) Field {
		return Field{Key: key, Meaning: meaning, Min: lo, Max: hi, Value: v}
	}
	lifted := func(f Field) Field {
		f.NoLimit = true
		f.Meaning += "; 0 is no limit"
		return f
	}
	return []Field{
		octets("message-bytes", "one message: its content and the names and values of its properties", &s.MessageBytes, 1, body),
		octets("request-bytes", "all messages of one publish together", &s.RequestBytes, 1, body),
		octets("large-message-bytes", "one message of a queue with the capability LARGE_MESSAGES", &s.LargeMessageBytes, 1, body),
		octets("large-request-bytes", "all messages of one publish to a queue with the capability LARGE_MESSAGES", &s.LargeRequestBytes, 1, body),
		octets("response-bytes", "all messages of one answer to a get; a longer answer is cut short, its first message always fits", &s.ResponseBytes, 1, body),
		count("batch-messages", "messages in one publish or one get, entries in one batch of updates or deletes", &s.BatchMessages, 1, 10_000),
		count("properties-per-message", "custom properties of one message", &s.PropertiesPerMessage, 1, 10_000),
		octets("property-name-bytes", "the name of a property", &s.PropertyNameBytes, 1, 64<<10),
		octets("property-bytes", "the value of a property", &s.PropertyBytes, 1, body),
		count("list-page", "entries in one page of a list", &s.ListPage, 1, 100_000),
		octets("header-bytes", "all headers of one request over REST or gRPC", &s.HeaderBytes, 4<<10, 16<<20),

		count("channels-per-queue", "channels of one queue that hold a message", &s.ChannelsPerQueue, 1, 1_000_000),
		count("groups-per-queue", "consumer groups of one queue, the primary one included", &s.GroupsPerQueue, 1, 1000),
		count("in-flight-per-queue", "messages in flight of one queue, over all its groups; beyond it a get comes back empty", &s.InFlightPerQueue, 1, many),
		count("in-flight-total", "messages in flight of the whole server, as each takes memory", &s.InFlightTotal, 1, many),
		count("in-flight-reserved-per-queue", "messages in flight that each queue may have even when the server is at in-flight-total", &s.InFlightReservedPerQueue, 0, many),
		count("retry-tokens-per-queue", "retry tokens remembered for one queue; beyond it the oldest are forgotten", &s.RetryTokensPerQueue, 1, many),
		lifted(count("queues-per-tenancy", "queues that one tenancy may have", &s.QueuesPerTenancy, 1, many)),
		lifted(octets("bytes-per-queue", "stored octets of one queue, its dead letter queue included", &s.BytesPerQueue, 1, huge)),
		lifted(octets("bytes-per-tenancy", "stored octets of all queues of one tenancy", &s.BytesPerTenancy, 1, huge)),

		lifted(count("requests-per-second", "requests a second of each message operation but gets, for one queue", &s.RequestsPerSecond, 1, many)),
		lifted(count("gets-per-second", "gets a second for one queue", &s.GetsPerSecond, 1, many)),
		lifted(octets("ingress-bytes-per-second", "octets a second published to one queue", &s.IngressBytesPerSecond, 1, huge)),
		lifted(octets("egress-bytes-per-second", "octets a second received from one queue", &s.EgressBytesPerSecond, 1, huge)),
		lifted(octets("stomp-bytes-per-second", "octets a second read from one STOMP connection; beyond it reading slows down", &s.StompBytesPerSecond, 1, huge)),

		count("open-polls-per-queue", "gets waiting for a message of one queue", &s.OpenPollsPerQueue, 1, many),
		count("open-polls-total", "gets waiting for a message of any queue", &s.OpenPollsTotal, 1, many),
		count("pending-requests-per-queue", "requests of one queue waiting for their turn", &s.PendingRequestsPerQueue, 1, many),
		octets("pending-bytes-per-queue", "octets of the publishes of one queue waiting for their turn", &s.PendingBytesPerQueue, 1, huge),
		octets("pending-bytes-total", "octets of all request bodies being read or waiting for their turn", &s.PendingBytesTotal, 1, huge),
		count("connections", "open connections of each listener", &s.Connections, 1, many),
		count("connections-per-client", "open connections of each listener from one address", &s.ConnectionsPerClient, 1, many),
		count("streams-per-connection", "requests and streams at once on one HTTP/2 or gRPC connection", &s.StreamsPerConnection, 1, many),
	}
}

// OCI are the limits of the OCI service as its documents state them, and
// bounds of our own where they state none.
func OCI() Settings {
	return Settings{
		MessageBytes:         256 << 10,
		RequestBytes:         512 << 10,
		LargeMessageBytes:    512 << 10,
		LargeRequestBytes:    1 << 20,
		ResponseBytes:        2 << 20,
		BatchMessages:        20,
		PropertiesPerMessage: 64,
		PropertyNameBytes:    64,
		PropertyBytes:        4096,
		ListPage:             1000,
		HeaderBytes:          64 << 10,

		ChannelsPerQueue:         256,
		GroupsPerQueue:           10,
		InFlightPerQueue:         100_000,
		InFlightTotal:            2_000_000,
		InFlightReservedPerQueue: 1000,
		RetryTokensPerQueue:      100_000,
		QueuesPerTenancy:         10,
		BytesPerQueue:            2 << 30,
		BytesPerTenancy:          20 << 30,

		RequestsPerSecond:     1000,
		GetsPerSecond:         1000,
		IngressBytesPerSecond: 10 << 20,
		EgressBytesPerSecond:  10 << 20,
		StompBytesPerSecond:   10 << 20,

		OpenPollsPerQueue:       20_000,
		OpenPollsTotal:          100_000,
		PendingRequestsPerQueue: 1024,
		PendingBytesPerQueue:    16 << 20,
		PendingBytesTotal:       256 << 20,
		Connections:             20_000,
		ConnectionsPerClient:    10_000,
		StreamsPerConnection:    1000,
	}
}

// Unthrottled are OCI's limits without those on request rate, data rate,
// number of queues and storage: the machine is the limit. Sizes, batches,
// channels, groups, messages in flight and the overload bounds stay.
func Unthrottled() Settings {
	s := OCI()
	s.QueuesPerTenancy, s.BytesPerQueue, s.BytesPerTenancy = 0, 0, 0
	s.RequestsPerSecond, s.GetsPerSecond = 0, 0
	s.IngressBytesPerSecond, s.EgressBytesPerSecond, s.StompBytesPerSecond = 0, 0, 0
	return s
}

// Profiles lists the names that Profile knows.
var Profiles = []string{"oci", "unthrottled"}

// Profile is the Settings of that name; any other name is InvalidParameter.
func Profile(name string) (Settings, error) {
	switch name {
	case "oci":
		return OCI(), nil
	case "unthrottled":
		return Unthrottled(), nil
	}
	return Settings{}, queue.Errorf(queue.InvalidParameter, "limits-profile is %q; it must be oci or unthrottled", name)
}

// Validate checks every setting for its range and those that depend on one
// another, and reports all that is wrong, each as InvalidParameter naming its
// key.
func (s *Settings) Validate() error {
	var errs []error
	for _, f := range s.Fields() {
		v := *f.Value
		if v >= f.Min && v <= f.Max || f.NoLimit && v == 0 {
			continue
		}
		none := ""
		if f.NoLimit {
			none = ", or 0 for no limit"
		}
		errs = append(errs, queue.Errorf(queue.InvalidParameter,
			"limits.%s is %d; it must be %d to %d%s", f.Key, v, f.Min, f.Max, none))
	}
	atLeast := func(big string, b int64, small string, a int64) {
		if b < a {
			errs = append(errs, queue.Errorf(queue.InvalidParameter,
				"limits.%s is %d; it must be at least limits.%s, which is %d", big, b, small, a))
		}
	}
	atLeast("request-bytes", s.RequestBytes, "message-bytes", s.MessageBytes)
	atLeast("large-message-bytes", s.LargeMessageBytes, "message-bytes", s.MessageBytes)
	atLeast("large-request-bytes", s.LargeRequestBytes, "request-bytes", s.RequestBytes)
	atLeast("large-request-bytes", s.LargeRequestBytes, "large-message-bytes", s.LargeMessageBytes)
	atLeast("response-bytes", s.ResponseBytes, "message-bytes", s.MessageBytes)
	atLeast("response-bytes", s.ResponseBytes, "large-message-bytes", s.LargeMessageBytes)
	atLeast("pending-bytes-per-queue", s.PendingBytesPerQueue, "request-bytes", s.RequestBytes)
	atLeast("pending-bytes-per-queue", s.PendingBytesPerQueue, "large-request-bytes", s.LargeRequestBytes)
	atLeast("pending-bytes-total", s.PendingBytesTotal, "pending-bytes-per-queue", s.PendingBytesPerQueue)
	atLeast("open-polls-total", s.OpenPollsTotal, "open-polls-per-queue", s.OpenPollsPerQueue)
	atLeast("connections", s.Connections, "connections-per-client", s.ConnectionsPerClient)
	if s.InFlightReservedPerQueue > s.InFlightPerQueue {
		atLeast("in-flight-per-queue", s.InFlightPerQueue, "in-flight-reserved-per-queue", s.InFlightReservedPerQueue)
	}
	return errors.Join(errs...)
}
