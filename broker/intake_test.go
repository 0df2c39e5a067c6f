package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// A flood of one queue fills its own list, and is refused at once; another
// queue has its turn in the next group.
func TestFloodOfOneQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		flooded, calm := x.queue("flooded", nil), x.queue("calm", nil)
		free := x.busy()
		most := int(limits.OCI().PendingRequestsPerQueue)
		type answer struct {
			err error
			id  queue.MessageID // tells the order of decisions
		}
		answers := make(chan answer, most+100)
		publish := func(id queue.ID, to chan answer) {
			out, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 1)})
			a := answer{err: err}
			if err == nil {
				a.id = out[0].ID
			}
			to <- a
		}
		for range most + 50 {
			go publish(flooded, answers)
		}
		synctest.Wait()
		for range 50 {
			select {
			case a := <-answers:
				if queue.CodeOf(a.err) != queue.ServiceUnavailable {
					t.Errorf("one too many: %v", a.err)
				}
			default:
				t.Fatal("one too many is not refused at once")
			}
		}
		other, gets := make(chan answer, 1), make(chan answer, 1)
		go publish(calm, other)
		go func() { // its publishes do not keep out its consumers
			got, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: flooded, Limit: 20, Visibility: time.Hour})
			a := answer{err: err}
			if len(got) > 0 {
				a.id = got[len(got)-1].ID
			}
			gets <- a
		}()
		synctest.Wait()
		free()
		if a := <-other; a.err != nil || a.id > 5 {
			t.Errorf("the other queue: %+v", a)
		}
		if a := <-gets; a.err != nil || a.id == 0 || a.id > 30 {
			t.Errorf("a get of the flooded queue: %+v", a)
		}
		for range most {
			if a := <-answers; a.err != nil {
				t.Error(a.err)
			}
		}
		m, _ := x.b.Stats(flooded, "", nil)
		if m.Visible+m.InFlight != int64(most) {
			t.Errorf("stats are %+v", m)
		}
	})
}

// Octets that wait are bounded per queue and in all; a request that is alone
// may be of any size.
func TestPendingOctets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		l := limits.Unthrottled()
		l.PendingBytesPerQueue, l.PendingBytesTotal = 1000, 1500
		x.o.Limits = &l
		x.open()
		one, two := x.queue("one", nil), x.queue("two", nil)
		free := x.busy()
		publish := func(id queue.ID, n int) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{{Message: queue.Message{Body: make([]byte, n)}}}})
				done <- err
			}()
			synctest.Wait()
			return done
		}
		a := publish(one, 900)
		if err := <-publish(one, 200); queue.CodeOf(err) != queue.ServiceUnavailable {
			t.Errorf("over the octets of a queue: %v", err)
		}
		b := publish(two, 500)
		if err := <-publish(two, 200); queue.CodeOf(err) != queue.ServiceUnavailable {
			t.Errorf("over the octets of all: %v", err)
		}
		free()
		if err := errors.Join(<-a, <-b); err != nil {
			t.Error(err)
		}
		if err := <-publish(one, 1200); err != nil {
			t.Errorf("alone: %v", err)
		}
		x.b.in.mu.Lock()
		defer x.b.in.mu.Unlock()
		if x.b.in.bytes != 0 {
			t.Errorf("%d octets are said to wait", x.b.in.bytes)
		}
	})
}

// A decision that panics before it has changed anything is that request's own
// failure; the others of its group, and the broker, go on.
func TestPanicOfOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		var bad, good error
		x.together(
			func() { bad = x.b.Admin(t.Context(), func(*Tx) error { panic("a fault of ours") }) },
			func() {
				_, good = x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 1)})
			},
		)
		if queue.CodeOf(bad) != queue.InternalServerError || queue.MessageOf(bad) != "internal error" {
			t.Errorf("the request that panicked: %v", bad)
		}
		if good != nil {
			t.Error(good)
		}
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 0, dead visible 0 in flight 0 bytes 0")
	})
}

// A panic after a change ends the process before anything of the group is
// stored or answered.
func TestPanicAfterAChange(t *testing.T) {
	t.Parallel()
	x := newBench(t, testdisk.New())
	x.close()
	fatal := make(chan error, 10)
	x.o.Fatal = func(err error) {
		fatal <- err
		select {} // must not return
	}
	x.open() // and is never closed
	id := x.queue("orders", nil)
	answered := make(chan error, 1)
	go func() {
		answered <- x.b.Admin(t.Context(), func(tx *Tx) error {
			tx.g.put(tx.find(id), &queue.NewMessage{})
			panic("a fault of ours")
		})
	}()
	select {
	case <-fatal:
	case err := <-answered:
		t.Fatalf("it was answered: %v", err)
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
	if c, err := takeCensus(x.s, true); err != nil || len(c.messages) > 0 {
		t.Errorf("%d messages are stored: %v", len(c.messages), err)
	}
	if m, _ := x.b.Stats(id, "", nil); !m.Empty() {
		t.Errorf("shown are %+v", m)
	}
}

// What a control-plane operation refuses changes nothing.
func TestAdminThatRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
		no := queue.Errorf(queue.Conflict, "no")
		if err := x.b.Admin(t.Context(), func(*Tx) error { return no }); !errors.Is(err, no) {
			t.Error(err)
		}
	})
}
