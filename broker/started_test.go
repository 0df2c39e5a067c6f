package broker

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
)

// What is started is decided in its order, answered when it is durable, and
// never after an error of the start itself.
func TestStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		const n = 50
		answers := make(chan queue.MessageID, n)
		for i := range n {
			r := PublishRequest{Queue: id, Messages: []queue.NewMessage{{Message: queue.Message{Body: fmt.Appendf(nil, "%d", i)}}}}
			if err := x.b.StartPublish(r, func(out []queue.Published, err error) {
				if err != nil || len(out) != 1 {
					t.Errorf("publish %d: %v %v", i, out, err)
				}
				answers <- out[0].ID
			}); err != nil {
				t.Fatal(err)
			}
		}
		last := queue.MessageID(0)
		for range n {
			if got := <-answers; got <= last {
				t.Fatalf("message %d is answered after %d", got, last)
			} else {
				last = got
			}
		}
		got := x.get(ReceiveRequest{Queue: id, Limit: n, Visibility: 10 * time.Second})
		for i, m := range got {
			if string(m.Body) != fmt.Sprint(i) {
				t.Fatalf("message %d is %q", i, m.Body)
			}
		}
		deleted := make(chan []error, 1)
		if err := x.b.StartDelete(id, queue.AnyGroup, []queue.Receipt{got[0].Receipt, "none"}, func(results []error, err error) {
			if err != nil {
				t.Error(err)
			}
			deleted <- results
		}); err != nil {
			t.Fatal(err)
		}
		if errs := <-deleted; errs[0] != nil || queue.CodeOf(errs[1]) != queue.InvalidParameter {
			t.Error(errs)
		}
		updated := make(chan []VisibilityResult, 1)
		if err := x.b.StartUpdate(id, queue.AnyGroup, []VisibilityUpdate{{Receipt: got[1].Receipt, Visibility: time.Minute}}, func(results []VisibilityResult, err error) {
			if err != nil {
				t.Error(err)
			}
			updated <- results
		}); err != nil {
			t.Fatal(err)
		}
		if r := (<-updated)[0]; r.Err != nil || r.ID != got[1].ID {
			t.Errorf("%+v", r)
		}
		never := func(string) { t.Error("called after an error") }
		if err := x.b.StartPublish(PublishRequest{Queue: "none"}, func([]queue.Published, error) { never("publish") }); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Error(err)
		}
		if err := x.b.StartDelete("none", queue.AnyGroup, nil, func([]error, error) { never("delete") }); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Error(err)
		}
		if err := x.b.StartUpdate("none", queue.AnyGroup, nil, func([]VisibilityResult, error) { never("update") }); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Error(err)
		}
	})
}

// What is started each by itself is stored up to the first that is refused.
func TestStartedEach(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.b.limits.BytesPerQueue = 10
		type outcome struct {
			stored int
			err    error
		}
		start := func(bodies ...string) outcome {
			r := PublishRequest{Queue: id}
			for _, body := range bodies {
				r.Messages = append(r.Messages, queue.NewMessage{Message: queue.Message{Body: []byte(body)}})
			}
			done := make(chan outcome, 1)
			if err := x.b.StartPublishEach(r, func(stored int, err error) { done <- outcome{stored, err} }); err != nil {
				t.Fatal(err)
			}
			return <-done
		}
		if got := start("1234", "5678"); got != (outcome{stored: 2}) {
			t.Error(got)
		}
		if got := start("a", "too much", "b"); got.stored != 1 || queue.CodeOf(got.err) != queue.LimitExceeded {
			t.Error(got)
		}
		var bodies []string
		for _, m := range x.get(ReceiveRequest{Queue: id, Limit: 10, Visibility: time.Minute}) {
			bodies = append(bodies, string(m.Body))
		}
		if want := []string{"1234", "5678", "a"}; !slices.Equal(bodies, want) {
			t.Errorf("stored are %q, not %q", bodies, want)
		}
		none := PublishRequest{Queue: "none", Messages: []queue.NewMessage{{}}}
		if err := x.b.StartPublishEach(none, func(int, error) { t.Error("called after an error") }); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Error(err)
		}
	})
}

// A publish is answered before a get that waited for it.
func TestPublishIsAnsweredFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		for range 20 {
			order := make(chan string, 2)
			go func() {
				got, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Minute, Wait: time.Minute})
				if err != nil || len(got) != 1 {
					t.Error(got, err)
				}
				order <- "received"
			}()
			synctest.Wait()
			r := PublishRequest{Queue: id, Messages: []queue.NewMessage{{}}}
			if err := x.b.StartPublish(r, func([]queue.Published, error) { order <- "published" }); err != nil {
				t.Fatal(err)
			}
			if first := <-order; first != "published" {
				t.Fatal(first, "first")
			}
			<-order
		}
	})
}

// Release gives messages back at once and counts the delivery; the receipt is
// dead, and after the last delivery the message is.
func TestRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) { // five deliveries
		x.put(id, "", "a")
		for count := 1; count <= 5; count++ {
			got := x.get(ReceiveRequest{Queue: id, Visibility: time.Hour})
			if len(got) != 1 || got[0].DeliveryCount != count {
				t.Fatalf("delivery %d: %+v", count, got)
			}
			x.b.Release([]queue.Receipt{got[0].Receipt, "none", got[0].Receipt})
			synctest.Wait()
			errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got[0].Receipt})
			if err != nil || queue.CodeOf(errs[0]) != queue.NotAuthorizedOrNotFound {
				t.Errorf("the receipt lives: %v %v", errs, err)
			}
		}
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 1 in flight 0 bytes 1")
	})
}

// A return of what has come back by itself is a success only for who asks so,
// and only as long as nobody else has it.
func TestOrOver(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		x.put(id, "", "a")
		first := x.get(ReceiveRequest{Queue: id, Visibility: time.Second})[0].Receipt
		try := func(orOver bool) error {
			t.Helper()
			out, err := x.b.Update(t.Context(), id, queue.AnyGroup, []VisibilityUpdate{{Receipt: first, OrOver: orOver}})
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Err
		}
		time.Sleep(2 * time.Second)
		if err := try(true); err != nil {
			t.Error(err)
		}
		if err := try(false); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Error(err)
		}
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 1, dead visible 0 in flight 0 bytes 0")
		x.get(ReceiveRequest{Queue: id, Visibility: time.Minute})
		if err := try(true); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Errorf("superseded: %v", err)
		}
	})
}

// The queue of a receipt is found, whatever has become of the delivery.
func TestQueueOf(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		other := x.queue("other", nil)
		x.put(other, "", "a")
		r := x.get(ReceiveRequest{Queue: other, Visibility: time.Minute})[0].Receipt
		if got, err := x.b.QueueOf(r); got != other || err != nil {
			t.Error(got, err)
		}
		if _, err := x.b.QueueOf("none"); queue.CodeOf(err) != queue.InvalidParameter {
			t.Error(err)
		}
	})
}
