// Gostomp checks queued with go-stomp, a STOMP client for Go.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/go-stomp/stomp/v3"
)

// letters is the queue of all checks; each leaves it empty.
const letters = "letters"

// patience is how long a message may take.
const patience = 30 * time.Second

func main() {
	for _, v := range []stomp.Version{stomp.V10, stomp.V11, stomp.V12} {
		sessions(v)
		bodies(v)
		headers(v)
		modes(v)
		refused(v)
		transactions(v)
		if v != stomp.V10 {
			back(v)
			beats(v)
		}
	}
	reconnects()
}

// ok says that something of a topic is as it must be.
func ok(topic string, v stomp.Version, what string) { fmt.Printf("ok\t%s\t%s: %s\n", topic, v, what) }

// same ends the program unless both are the same throughout.
func same[T any](got, want T, what string) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("%s: %#v, want %#v", what, got, want))
	}
}

// must ends the program at an error.
func must[T any](v T, err error) T {
	try(err)
	return v
}

func try(err error) {
	if err != nil {
		panic(err) // with the line it came from
	}
}

// next is the next message of a subscription.
func next(sub *stomp.Subscription) *stomp.Message {
	select {
	case m := <-sub.C:
		try(m.Err)
		return m
	case <-time.After(patience):
		panic("no message")
	}
}

// left ends the program unless so many messages are visible and in flight.
func left(visible, inFlight int, what string) { same(stats(), [2]int{visible, inFlight}, what) }

// gone waits until nothing is left, for what AckAuto has delivered is deleted
// soon behind.
func gone() {
	for end := time.Now().Add(patience); stats() != [2]int{} && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	left(0, 0, "auto")
}

func stats() [2]int {
	resp := must(http.Get(os.Getenv("QUEUED") + "/20210201/queues/" + letters + "/stats"))
	defer resp.Body.Close()
	var s struct {
		Queue struct{ VisibleMessages, InFlightMessages int }
	}
	try(json.NewDecoder(resp.Body).Decode(&s))
	return [2]int{s.Queue.VisibleMessages, s.Queue.InFlightMessages}
}

// unsubscribe is Unsubscribe, which in v3.1.5 may miss the receipt that it
// waits for: it is woken without the lock, perhaps before it sleeps. The
// channel is closed when the receipt is there.
func unsubscribe(sub *stomp.Subscription) error {
	err := sub.Unsubscribe()
	if errors.Is(err, &stomp.ErrUnsubscribeReceiptTimeout) {
		if _, open := <-sub.C; !open {
			return nil
		}
	}
	return err
}
