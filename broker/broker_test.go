package broker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// bench is a broker over a store that a test can stop, crash and open again.
type bench struct {
	t   testing.TB
	fs  *testdisk.Disk
	dir string
	o   Options
	so  store.Options
	s   *store.Store
	b   *Broker
}

func newBench(t testing.TB, fs *testdisk.Disk) *bench {
	l := limits.Unthrottled()
	x := &bench{t: t, fs: fs, dir: "data", o: Options{Limits: &l, Checked: true}, so: store.Options{FS: fs, QuietScheduler: true, MemtableBytes: 1 << 20}}
	x.open()
	return x
}

func (x *bench) open() {
	x.t.Helper()
	s, err := store.Open(x.dir, x.so)
	if err != nil {
		x.t.Fatal(err)
	}
	b, err := Open(s, x.o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.s, x.b = s, b
}

func (x *bench) close() {
	x.t.Helper()
	if err := x.b.Close(); err != nil {
		x.t.Fatal(err)
	}
	if err := x.s.Close(); err != nil {
		x.t.Fatal(err)
	}
}

// queue makes a queue of that name and id.
func (x *bench) queue(name string, change func(*queue.Queue)) queue.ID {
	x.t.Helper()
	q := queue.Queue{
		ID: queue.ID("ocid1.queue.oc1.local." + name), CompartmentID: "ocid1.tenancy.oc1..local", DisplayName: name,
		State: queue.Active, Retention: queue.DefaultRetention, Visibility: queue.DefaultVisibility,
		PollingTimeout: queue.DefaultPoll, DeadLetterDeliveryCount: 5, ChannelConsumptionLimit: 100,
	}
	if change != nil {
		change(&q)
	}
	if err := x.b.Admin(context.Background(), func(tx *Tx) error { tx.PutQueue(q); return nil }); err != nil {
		x.t.Fatal(err)
	}
	return q.ID
}

func (x *bench) put(id queue.ID, channel string, bodies ...string) []queue.Published {
	x.t.Helper()
	r := PublishRequest{Queue: id}
	for _, body := range bodies {
		r.Messages = append(r.Messages, queue.NewMessage{Message: queue.Message{Body: []byte(body)}, Channel: channel})
	}
	out, err := x.b.Publish(context.Background(), r)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func (x *bench) get(r ReceiveRequest) []queue.Delivery {
	x.t.Helper()
	if r.Limit == 0 {
		r.Limit = 20
	}
	out, err := x.b.Receive(context.Background(), r)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func (x *bench) stats(id queue.ID) string {
	m, d := x.b.Stats(id, "", nil)
	return fmt.Sprintf("visible %d in flight %d delayed %d bytes %d, dead visible %d in flight %d bytes %d",
		m.Visible, m.InFlight, m.Delayed, m.Bytes, d.Visible, d.InFlight, d.Bytes)
}

func (x *bench) want(id queue.ID, stats string) {
	x.t.Helper()
	if got := x.stats(id); got != stats {
		x.t.Errorf("stats are %s, want %s", got, stats)
	}
}

func TestLifeOfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 2 })
		x.put(id, "", "a", "b")
		x.want(id, "visible 2 in flight 0 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		got := x.get(ReceiveRequest{Queue: id, Visibility: 10 * time.Second})
		if len(got) != 2 || string(got[0].Body) != "a" || got[0].DeliveryCount != 1 {
			t.Fatalf("got %+v", got)
		}
		x.want(id, "visible 0 in flight 2 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got[0].Receipt}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		time.Sleep(11 * time.Second)
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 1, dead visible 0 in flight 0 bytes 0")
		x.close()
		x.open()
		x.want(id, "visible 1 in flight 0 delayed 0 bytes 1, dead visible 0 in flight 0 bytes 0")
		got = x.get(ReceiveRequest{Queue: id, Visibility: 10 * time.Second})
		if len(got) != 1 || string(got[0].Body) != "b" || got[0].DeliveryCount != 2 {
			t.Fatalf("got %+v", got)
		}
		time.Sleep(11 * time.Second)
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 1 in flight 0 bytes 1")
		got = x.get(ReceiveRequest{Queue: id, Dead: true, Visibility: 10 * time.Second})
		if len(got) != 1 || string(got[0].Body) != "b" || got[0].DeadLetter == nil || got[0].DeadLetter.DeliveryCount != 2 {
			t.Fatalf("got %+v", got)
		}
		x.close()
	})
}

func TestWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		id := x.queue("orders", nil)
		go func() {
			time.Sleep(3 * time.Second)
			x.put(id, "c", "late")
		}()
		began := time.Now()
		f, _ := channels.ParseFilter("c*")
		got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute, Wait: 20 * time.Second, Filter: f})
		if len(got) != 1 || time.Since(began) != 3*time.Second {
			t.Fatalf("got %d after %v", len(got), time.Since(began))
		}
		if got := x.get(ReceiveRequest{Queue: id, Visibility: time.Minute, Wait: 20 * time.Second}); len(got) != 0 || time.Since(began) != 23*time.Second {
			t.Fatalf("got %d after %v", len(got), time.Since(began))
		}
		x.close()
	})
}
