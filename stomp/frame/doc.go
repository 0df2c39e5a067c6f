// Package frame reads and writes the frames of STOMP 1.0, 1.1 and 1.2. It
// knows octets and no meaning: which headers a command needs, who may send
// what and in which order is the business of package stomp. It has no clock,
// no goroutine and no connection, only an io.Reader on one side and append
// functions on the other.
//
//	SEND LF                      the command
//	destination:orders LF        headers, "name:value", escaped by the version
//	content-length:5 LF
//	LF                           the empty line ends them
//	hello                        the body: content-length octets, else up to NUL
//	NUL LF LF ...                the end; line ends between frames are heart-beats
//
// The idea to hold: every octet is judged when it arrives, in order, and
// nothing that is announced is believed. Where reads begin and end changes
// nothing, neither the frames nor the error that ends them, and a peer makes
// the Decoder hold no more memory than the Limits allow and its own octets
// have paid for.
package frame

import "strconv"

// Version is a version of the protocol: ten times its number.
type Version uint8

const (
	V10 Version = 10
	V11 Version = 11
	V12 Version = 12
)

// String is the version as it stands in headers, "1.2".
func (v Version) String() string {
	return strconv.Itoa(int(v/10)) + "." + strconv.Itoa(int(v%10))
}

// The commands. They are case-sensitive.
const (
	Connect     = "CONNECT"
	Stomp       = "STOMP"
	Send        = "SEND"
	Subscribe   = "SUBSCRIBE"
	Unsubscribe = "UNSUBSCRIBE"
	Ack         = "ACK"
	Nack        = "NACK"
	Begin       = "BEGIN"
	Commit      = "COMMIT"
	Abort       = "ABORT"
	Disconnect  = "DISCONNECT"

	Connected   = "CONNECTED"
	Message     = "MESSAGE"
	Receipt     = "RECEIPT"
	ServerError = "ERROR"
)

// Header is one header line, decoded. Its strings may be kept; all those of
// one frame share one piece of memory, so whoever keeps a short one for long
// should clone it.
type Header struct{ Name, Value string }

// Frame is a client's frame.
type Frame struct {
	Command string   // one of the constants, or any other text
	Headers []Header // in order; of a repeated name only the first
	Body    []byte   // of a SEND, never nil and the owner's to keep; else nil
}

// Get is the value of the header with the name, and whether there is one.
func (f *Frame) Get(name string) (string, bool) {
	for i := range f.Headers {
		if f.Headers[i].Name == name {
			return f.Headers[i].Value, true
		}
	}
	return "", false
}

// knownCommand is a command as a constant, "" for any other: to use it costs
// no memory.
func knownCommand(b []byte) string {
	switch string(b) {
	case Connect:
		return Connect
	case Stomp:
		return Stomp
	case Send:
		return Send
	case Subscribe:
		return Subscribe
	case Unsubscribe:
		return Unsubscribe
	case Ack:
		return Ack
	case Nack:
		return Nack
	case Begin:
		return Begin
	case Commit:
		return Commit
	case Abort:
		return Abort
	case Disconnect:
		return Disconnect
	case Connected:
		return Connected
	case Message:
		return Message
	case Receipt:
		return Receipt
	case ServerError:
		return ServerError
	}
	return ""
}

const (
	contentLength = "content-length"
	receipt       = "receipt"
)

// knownName is the name of a header that clients send all the time, as a
// constant; "" for any other. None of them has an octet that is escaped.
func knownName(b []byte) string {
	switch string(b) {
	case "destination":
		return "destination"
	case contentLength:
		return contentLength
	case "content-type":
		return "content-type"
	case receipt:
		return receipt
	case "id":
		return "id"
	case "ack":
		return "ack"
	case "message-id":
		return "message-id"
	case "subscription":
		return "subscription"
	case "transaction":
		return "transaction"
	case "accept-version":
		return "accept-version"
	case "host":
		return "host"
	case "login":
		return "login"
	case "passcode":
		return "passcode"
	case "heart-beat":
		return "heart-beat"
	case "selector":
		return "selector"
	case "prefetch-count":
		return "prefetch-count"
	case "persistent":
		return "persistent"
	case "priority":
		return "priority"
	case "expires":
		return "expires"
	}
	return ""
}
