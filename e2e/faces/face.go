// Package faces speaks with one tongue over all faces of the server: REST, gRPC
// unary, the two streams of gRPC, and STOMP. One scenario then runs over each of
// them alike.
//
//	for _, face := range faces.All {
//		c := face.Dial(s)
//		c.Publish("orders", "", faces.Message{Body: []byte("hello")})
//	}
//
// What a face cannot say stands in its Lacks, with the reason. Clients hide
// nothing: no request is sent twice, an error that the server named is a
// *Refusal, and any other error leaves in doubt what the server did. A client
// is for one goroutine at a time.
package faces

import (
	"errors"
	"time"

	"github.com/queued-mq/queued/e2e/server"
)

// Face is one way to speak with the server.
type Face struct {
	Name  string
	Lacks map[Ability]string // what it cannot say, and why
	Dial  func(*server.Server) Client
}

// All are the faces.
var All = []Face{REST, GRPC, Streams, STOMP}

// Ability is what not every face can say.
type Ability string

const (
	Batch         Ability = "publish several messages, all or none"
	Token         Ability = "publish under a retry token"
	OwnVisibility Ability = "publish with a visibility of the message's own"
	IDs           Ability = "tell the id of what was published"
	Extend        Ability = "extend a lease"
	ReturnLater   Ability = "return a message with a delay"
	LateReturn    Ability = "refuse to return what has come back by itself"
)

// Client is one client of a face. It connects when it must, also after the
// server has ended its connection.
type Client interface {
	// As has it receive and settle as a consumer group, by OCID or display name,
	// from now on; "" is the primary one.
	As(group string)
	// Publish publishes messages; token is a retry token, "" for none. The ids
	// are nil if the face does not tell them.
	Publish(queue, token string, messages ...Message) (ids []int64, err error)
	// Receive waits for a first message and returns it with those that are
	// there too.
	Receive(queue string, w Want) ([]Delivery, error)
	// Wait begins to receive.
	Wait(queue string, w Want) (*Waiting, error)
	// Extend hides a delivered message for so many seconds from now.
	Extend(queue, receipt string, seconds int) error
	// Return gives a delivered message back, to be visible after a delay in
	// seconds.
	Return(queue, receipt string, delay int) error
	// Until is when the message of the last Extend or Return that worked is
	// visible again; zero if the face does not tell.
	Until() time.Time
	// Delete deletes a delivered message.
	Delete(queue, receipt string) error
	// Drop ends the connection as a process does that is killed. The client may
	// be used again.
	Drop()
}

// Message is a message to publish. Times are in seconds, 0 for none.
type Message struct {
	Body        []byte
	Channel     string
	Properties  map[string]string
	ContentType string // over STOMP alone
	Delay       int
	Retention   int
	Visibility  int
}

// Text is a message of that text.
func Text(text string) Message { return Message{Body: []byte(text)} }

// Want is what to receive. The zero value is one message that is there.
type Want struct {
	Limit      int           // 0: 1
	For        time.Duration // how long to wait for the first message, whole seconds; 0 is not at all
	Visibility int           // seconds; 0: the message's own, or the queue's
	Channel    string        // or a pattern; "": all
}

// Delivery is a message that was received.
type Delivery struct {
	ID           int64
	Receipt      string
	Body         []byte
	Channel      string
	Properties   map[string]string // without what the face adds itself
	ContentType  string            // over STOMP alone
	Count        int
	CreatedAt    time.Time
	VisibleAfter time.Time
	ExpireAfter  time.Time
	Dead         *Dead
}

// Dead is why a message is in the dead letter queue.
type Dead struct {
	Reason string
	Count  int
	At     time.Time
}

// Waiting is a client that waits for messages.
type Waiting struct {
	Result func() ([]Delivery, error) // blocks until it is over
	Leave  func()                     // goes away without a word
}

// Refusal is an error that the server named.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Code is the name of a refusal; "" for any other error and for none.
func Code(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return ""
}

// ErrNotSent is a request of which no octet has left.
var ErrNotSent = errors.New("not sent")

// grace is how long clients that are pushed messages wait for one that is
// there, or for one more.
const grace = 500 * time.Millisecond

// limit is at least one.
func (w Want) limit() int { return max(w.Limit, 1) }

// first is how long one waits for a first message that is pushed.
func (w Want) first() time.Duration { return max(w.For, grace) }

// waiting runs receive in the background.
func waiting(leave func(), receive func() ([]Delivery, error)) *Waiting {
	type result struct {
		got []Delivery
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := receive()
		done <- result{got, err}
	}()
	return &Waiting{
		Result: func() ([]Delivery, error) {
			r := <-done
			done <- r
			return r.got, r.err
		},
		Leave: leave,
	}
}
