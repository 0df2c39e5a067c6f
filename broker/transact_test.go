package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

func putting(id queue.ID, channel, body string) Action {
	return Action{Queue: id, Message: &queue.NewMessage{Message: queue.Message{Body: []byte(body)}, Channel: channel}}
}

func settling(id queue.ID, r queue.Receipt, back bool) Action {
	return Action{Queue: id, Receipt: r, Return: back}
}

// A transaction takes from one queue, gives to another, gives back to a third,
// and is all there when it is answered.
func TestTransactionOfSeveralQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		once := func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 }
		a, b, c := x.queue("a", nil), x.queue("b", nil), x.queue("c", once)
		x.put(a, "", "a1", "a2")
		x.put(c, "", "c1")
		x.put(b, "", "b1")
		fromA := x.get(ReceiveRequest{Queue: a, Visibility: time.Minute})
		fromB := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute})
		fromC := x.get(ReceiveRequest{Queue: c, Visibility: time.Minute})
		out, err := transact(x.b, []Action{
			putting(b, "", "one"), settling(a, fromA[0].Receipt, false), putting(c, "n", "else"), putting(b, "", "two"),
			settling(b, fromB[0].Receipt, true), settling(c, fromC[0].Receipt, true),
		})
		if err != nil || len(out) != 3 || out[0].ID >= out[2].ID {
			t.Fatal(out, err)
		}
		x.want(a, "visible 0 in flight 1 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		x.want(b, "visible 3 in flight 0 delayed 0 bytes 8, dead visible 0 in flight 0 bytes 0")
		synctest.Wait() // the last delivery of c1 is over, so it moves
		x.want(c, "visible 1 in flight 0 delayed 0 bytes 4, dead visible 1 in flight 0 bytes 2")
		var bodies []string
		for _, m := range x.get(ReceiveRequest{Queue: b, Visibility: time.Minute}) {
			bodies = append(bodies, fmt.Sprint(string(m.Body), m.DeliveryCount))
		}
		if got := strings.Join(bodies, " "); got != "b12 one1 two1" {
			t.Errorf("got %s", got)
		}
		x.close()
		x.open()
		x.want(a, "visible 0 in flight 1 delayed 0 bytes 2, dead visible 0 in flight 0 bytes 0")
		if _, err := takeCensus(x.s, true); err != nil {
			t.Error(err)
		}
	})
}

// A transaction of which one action cannot be done changes nothing, and names
// it.
func TestTransactionIsRefusedWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		limit func(*limits.Settings)
		bad   func(x *bench, a, b queue.ID) []Action // the last of them cannot be done, or names where to stop
		at    int                                    // which is named, behind the two that are fine; -1: none
		code  queue.Code
	}{
		{name: "lapsed", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: 5 * time.Second, Limit: 1})[0].Receipt
			time.Sleep(6 * time.Second)
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "lapsed and not given back yet", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: 5 * time.Second, Limit: 1})[0].Receipt
			time.Sleep(5 * time.Second)
			return []Action{settling(b, r, true)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "superseded", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: 5 * time.Second, Limit: 1})[0].Receipt
			time.Sleep(6 * time.Second)
			x.get(ReceiveRequest{Queue: b, Visibility: time.Minute})
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "expired", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: 12 * time.Hour, Limit: 1})[0].Receipt
			time.Sleep(11 * time.Hour)
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "deleted", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute, Limit: 1})[0].Receipt
			x.b.Delete(context.Background(), b, queue.AnyGroup, []queue.Receipt{r})
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "twice", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute, Limit: 1})[0].Receipt
			return []Action{settling(b, r, true), settling(b, r, false)}
		}, at: 1, code: queue.NotAuthorizedOrNotFound},
		{name: "of another queue", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute, Limit: 1})[0].Receipt
			return []Action{settling(a, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "purged", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute, Limit: 1})[0].Receipt
			x.b.Admin(context.Background(), func(tx *Tx) error { tx.Purge(b, "", queue.PurgeBoth, nil); return nil })
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "peeked", bad: func(x *bench, a, b queue.ID) []Action {
			return []Action{settling(b, x.get(ReceiveRequest{Queue: b, Limit: 1})[0].Receipt, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "no receipt", bad: func(x *bench, a, b queue.ID) []Action { return []Action{settling(b, "nonsense", false)} },
			code: queue.InvalidParameter},
		{name: "a queue that is gone", bad: func(x *bench, a, b queue.ID) []Action {
			gone(x, b)
			return []Action{putting(a, "", "x"), putting(b, "", "x")}
		}, at: 1, code: queue.NotAuthorizedOrNotFound},
		{name: "a message of a queue that is gone", bad: func(x *bench, a, b queue.ID) []Action {
			r := x.get(ReceiveRequest{Queue: b, Visibility: time.Minute, Limit: 1})[0].Receipt
			gone(x, b)
			return []Action{settling(b, r, false)}
		}, code: queue.NotAuthorizedOrNotFound},
		{name: "a full queue", limit: func(l *limits.Settings) { l.BytesPerQueue = 20 }, bad: func(x *bench, a, b queue.ID) []Action {
			return []Action{putting(b, "", "12345"), putting(a, "", "1"), putting(b, "", "12345"), putting(b, "", "12345"), putting(b, "", "1")}
		}, at: 2, code: queue.LimitExceeded},
		{name: "a full tenancy", limit: func(l *limits.Settings) { l.BytesPerTenancy = 30 }, bad: func(x *bench, a, b queue.ID) []Action {
			return []Action{putting(b, "", "1234567890"), putting(a, "", "1234567890")}
		}, at: -1, code: queue.LimitExceeded},
		{name: "channels", limit: func(l *limits.Settings) { l.ChannelsPerQueue = 2 }, bad: func(x *bench, a, b queue.ID) []Action {
			return []Action{putting(b, "1", "x"), putting(b, "2", "x"), putting(b, "1", "x"), putting(b, "3", "x"), putting(b, "4", "x")}
		}, at: 3, code: queue.LimitExceeded},
		{name: "a full disk", bad: func(x *bench, a, b queue.ID) []Action {
			x.fs.SetFree(1)
			x.b.disk.look()
			return []Action{putting(b, "", "x")}
		}, at: -1, code: queue.InsufficientStorage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newBench(t, testdisk.New())
				x.fs.SetFree(1 << 40)
				l := limits.Unthrottled()
				x.o.Limits = &l
				x.close()
				x.open()
				defer x.shut()
				long := func(q *queue.Queue) { q.Retention, q.Visibility = 10*time.Hour, time.Minute }
				a, b := x.queue("a", func(q *queue.Queue) { q.Retention = 24 * time.Hour }), x.queue("b", long)
				x.put(a, "", "mine")
				x.put(b, "", "first", "second")
				if c.limit != nil {
					c.limit(&l)
				}
				fine := x.get(ReceiveRequest{Queue: a, Visibility: 12 * time.Hour})[0].Receipt
				actions := append([]Action{settling(a, fine, false), putting(a, "", "fine")}, c.bad(x, a, b)...)
				before := x.stats(a) + x.stats(b)
				out, err := transact(x.b, actions)
				if queue.CodeOf(err) != c.code || out != nil {
					t.Fatalf("%v, %v, want %s", out, err, c.code)
				}
				named, ok := errors.AsType[*ActionError](err)
				if ok != (c.at >= 0) || ok && named.Action != c.at+2 {
					t.Errorf("%v, want action %d", err, c.at+2)
				}
				if after := x.stats(a) + x.stats(b); after != before {
					t.Errorf("before %s\nafter %s", before, after)
				}
				x.fs.SetFree(1 << 40)
				x.b.disk.look()
				if _, err := transact(x.b, actions[:2]); err != nil {
					t.Errorf("without it: %v", err)
				}
			})
		})
	}
}

func gone(x *bench, id queue.ID) {
	x.b.Admin(context.Background(), func(tx *Tx) error {
		q, _ := tx.Queue(id)
		q.State = queue.Deleted
		tx.PutQueue(q)
		return nil
	})
}

// A transaction that was decided behind the deletion of its queue, in the same
// group, changes nothing.
func TestTransactionBehindADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		a, b := x.queue("a", nil), x.queue("b", nil)
		var err error
		x.together(func() { gone(x, b) }, func() {
			_, err = transact(x.b, []Action{putting(a, "", "x"), putting(b, "", "x")})
		})
		if named, ok := errors.AsType[*ActionError](err); !ok || named.Action != 1 || queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Errorf("%v", err)
		}
		x.want(a, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 0 in flight 0 bytes 0")
	})
}

// Whenever the power fails while a transaction is under way, all of it is there
// afterwards or nothing; once it is answered, all.
func TestTransactionIsWholeAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type copied struct {
			disk *testdisk.Disk
			told bool
		}
		var (
			mu     sync.Mutex
			copies []copied
			on     bool
			told   bool
		)
		disk := testdisk.New()
		x := &bench{t: t, fs: disk, dir: "data", o: Options{Checked: true}}
		x.so = store.Options{QuietScheduler: true, MemtableBytes: 16 << 10} // so that tables are written too
		take := func() {
			for i, percent := range survivals {
				copies = append(copies, copied{disk.Crash(percent, rand.NewPCG(uint64(len(copies)), uint64(i))), told})
			}
		}
		x.so.FS = disk.Watch(func(testdisk.Step) error {
			mu.Lock()
			defer mu.Unlock()
			if on {
				take()
			}
			return nil
		})
		x.open()
		defer x.shut()
		a, b, c := x.queue("a", nil), x.queue("b", nil), x.queue("c", nil)
		x.put(a, "", "a1", "a2")
		x.put(c, "", "c1")
		fromA := x.get(ReceiveRequest{Queue: a, Visibility: time.Hour, Limit: 1})
		fromC := x.get(ReceiveRequest{Queue: c, Visibility: time.Hour})
		actions := []Action{settling(a, fromA[0].Receipt, false), settling(c, fromC[0].Receipt, true)}
		for range 20 {
			actions = append(actions, putting(b, "", strings.Repeat("x", 2000)), putting(c, "n", strings.Repeat("y", 1000)))
		}
		before := x.stats(a) + x.stats(b) + x.stats(c)
		mu.Lock()
		on = true
		mu.Unlock()
		if _, err := transact(x.b, actions); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		told = true
		take()
		on = false
		mu.Unlock()
		after := x.stats(a) + x.stats(b) + x.stats(c)
		all, none := 0, 0
		for i, copied := range copies {
			y := &bench{t: t, dir: "data", o: Options{Checked: true}, so: store.Options{FS: copied.disk, QuietScheduler: true, MemtableBytes: 1 << 20}}
			y.open()
			switch got := y.stats(a) + y.stats(b) + y.stats(c); {
			case got == after:
				all++
			case got == before && !copied.told:
				none++
			default:
				t.Errorf("copy %d of %d, told %v: %s\nbefore %s\nafter %s", i, len(copies), copied.told, got, before, after)
			}
			if _, err := takeCensus(y.s, true); err != nil {
				t.Errorf("copy %d: %v", i, err)
			}
			y.close()
		}
		t.Logf("%d copies hold all, %d nothing", all, none)
		if all < 3 || none < 3 {
			t.Error("these are too few")
		}
	})
}
