package broker

import (
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/internal/history"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// TestSlowSyncs: while every sync of the log takes long, answers are late and
// never wrong: none comes before what it tells of is durable, nobody's message
// is given twice, what needs no sync is answered at once, polls end in time,
// and what is more than may wait is refused at once.
func TestSlowSyncs(t *testing.T) {
	for _, slow := range []time.Duration{100 * time.Millisecond, 5 * time.Second} {
		t.Run(slow.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slowSyncs(t, slow)
			})
		})
	}
}

func slowSyncs(t *testing.T, slow time.Duration) {
	disk := testdisk.New()
	x := newBench(t, disk)
	defer x.shut()
	x.close()
	var on atomic.Bool
	var begun, done atomic.Int64
	x.so.FS = disk.Watch(func(s testdisk.Step) error {
		if on.Load() && s.Sync && path.Ext(s.Path) == ".log" {
			begun.Add(1)
			time.Sleep(slow) // in the sync
			done.Add(1)
		}
		return nil
	})
	x.o.Limits.PendingRequestsPerQueue = 12
	x.open()
	id, empty := x.queue("orders", nil), x.queue("empty", nil)
	on.Store(true)

	// A poll of an empty queue, which ends while a sync is under way.
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		began := time.Now()
		if got := x.get(ReceiveRequest{Queue: empty, Visibility: time.Hour, Wait: slow / 2}); len(got) > 0 {
			t.Errorf("got %d messages of an empty queue", len(got))
		}
		if took := time.Since(began); took != slow/2 {
			t.Errorf("a poll of %v took %v", slow/2, took)
		}
	}()
	synctest.Wait()

	r := &recorded{b: x.b, id: id}
	var all sync.WaitGroup
	for i := range 30 { // more than may wait
		all.Go(func() {
			began, synced := time.Now(), done.Load()
			_, err := r.publish(queue.NewMessage{Message: queue.Message{Body: r.body(1)}})
			switch {
			case err == nil && done.Load() == synced:
				t.Errorf("publish %d is answered before a sync", i)
			case err != nil && time.Since(began) != 0:
				t.Errorf("publish %d is refused after %v", i, time.Since(began))
			}
		})
	}
	synctest.Wait()
	if begun.Load() != 1 || done.Load() != 0 {
		t.Fatalf("%d syncs have begun, %d are done", begun.Load(), done.Load())
	}
	at := time.Now()
	if m, _ := x.b.Stats(id, "", nil); m.Visible != 0 {
		t.Errorf("%d messages are shown, none is stored", m.Visible)
	}
	if took := time.Since(at); took != 0 {
		t.Errorf("stats took %v", took)
	}
	all.Wait()
	<-polled

	// Each message goes to one of many consumers, and is deleted for good.
	before, drain := r.stats(""), r.now()
	for range 5 {
		all.Go(func() {
			for {
				got, err := r.receive(t.Context(), ReceiveRequest{Limit: 3, Visibility: time.Hour}, history.Unanswered)
				if len(got) == 0 || err != nil {
					return
				}
				r.delete(receiptsOf(got)...)
			}
		})
	}
	all.Wait()
	h := r.rec.History(r.now())
	h.Threshold, h.Drain, h.Before, h.After = 5, drain, before, r.stats("")
	r.judge(t, h)
	happened(t, h, "publishes", "refused", "deliveries", "deleted")
	x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 0 in flight 0 bytes 0")
	if done.Load() < 5 {
		t.Errorf("only %d syncs were slow", done.Load())
	}
	on.Store(false)
}
