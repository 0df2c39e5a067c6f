package broker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// removing is a queue with three groups that share more messages than are
// removed in one step: fresh, leased, delayed and dead ones, some with nothing
// in them and some that expire out of order.
func removing(t *testing.T, x *bench) (id queue.ID, g []queue.ID) {
	id = x.queue("q", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
	g = x.groups(id, "", "", ":kind")
	for i := range 4 {
		r := PublishRequest{Queue: id}
		for j := range 100 {
			m := queue.NewMessage{Message: queue.Message{Body: fmt.Appendf(nil, "%d %d", i, j)}}
			switch j % 9 {
			case 0:
				m.Body = nil
			case 1:
				m.Delay = time.Hour
			case 2:
				m.Retention = 3 * time.Hour
			case 3:
				m.Properties = []queue.Property{{Name: "kind", Value: "a"}}
			}
			if i == 3 {
				m.Channel = "c"
			}
			r.Messages = append(r.Messages, m)
		}
		if _, err := x.b.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range g {
		x.take(ReceiveRequest{Queue: id, Group: group, Visibility: time.Second})
	}
	time.Sleep(2 * time.Second) // those are dead letters now
	synctest.Wait()
	for _, group := range g {
		x.take(ReceiveRequest{Queue: id, Group: group, Visibility: 5 * time.Hour})
	}
	return id, g
}

// TestCrashWhileSharedIsRemoved crashes at every write while messages are
// removed that several groups had: purged in one group, then with a group that
// is deleted, then in the last that had them. Whatever a crash leaves, the
// groups that were not purged have theirs with all that was in it, and when the
// removal has come to its end nothing is left for nobody.
func TestCrashWhileSharedIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		made := &copies{disk: x.fs, off: true}
		x.close()
		x.so.FS = x.fs.Watch(made.before)
		x.open()
		id, g := removing(t, x)
		counts := func(x *bench) (all [3]string) {
			for i := range g {
				all[i] = x.counts(id, g[i])
			}
			return all
		}
		crashes := 0
		for _, step := range []struct {
			name string
			do   func(tx *Tx)
		}{
			{"purge of one group", func(tx *Tx) { tx.Purge(id, g[1], queue.PurgeNormal, nil) }},
			{"purge of dead letters", func(tx *Tx) { tx.Purge(id, g[0], queue.PurgeDLQ, nil) }},
			{"deletion of a group", func(tx *Tx) {
				gone, _ := tx.Group(g[2])
				gone.State = queue.Deleted
				tx.PutGroup(gone)
			}},
			{"purge of the last", func(tx *Tx) { tx.Purge(id, "", queue.PurgeBoth, []string{""}) }},
			{"deletion of the queue", func(tx *Tx) {
				gone, _ := tx.Queue(id)
				gone.State = queue.Deleted
				tx.PutQueue(gone)
				tx.DropQueue(id)
			}},
		} {
			before := counts(x)
			made.begin()
			if err := x.b.Admin(t.Context(), func(tx *Tx) error { step.do(tx); return nil }); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			x.check()
			list, after := made.end(), counts(x)
			for i, c := range list {
				if c.percent == 50 {
					continue // whole records are lost or there, and nothing between
				}
				crashes++
				if err := removedAll(t, c.disk, 1+i%4/3, func(y *bench) error {
					if got := counts(y); got != before && got != after {
						return fmt.Errorf("the groups count %v, want %v or %v", got, before, after)
					}
					return nil
				}); err != nil {
					t.Errorf("%s, crash %d of %d with %d%%: %v", step.name, i, len(list), c.percent, err)
				}
			}
			if before == after {
				t.Errorf("%s: nothing was to be removed", step.name)
			}
		}
		if t.Logf("%d crashes", crashes); crashes < 40 {
			t.Error("these are too few")
		}
	})
}

// removedAll opens a copy so many times, each but the last time cut short
// while it removes what is to be removed, and looks whether all is as it should
// be then.
func removedAll(t *testing.T, disk *testdisk.Disk, times int, counted func(*bench) error) (err error) {
	y := &bench{t: t, fs: disk, dir: "data", so: lookOptions(disk)}
	for n := range times {
		if y.s, err = store.Open("data", y.so); err != nil {
			return err
		}
		if err := y.s.Check(); err != nil {
			return fmt.Errorf("start %d: %w", n, err)
		}
		if y.b, err = Open(y.s, Options{Checked: true}); err != nil {
			return err
		}
		if n < times-1 {
			cut := y.fs.Crash(100, rand.NewPCG(uint64(n), 1))
			y.close()
			y.fs, y.so = cut, lookOptions(cut)
			continue
		}
		defer y.close()
	}
	synctest.Wait()
	if _, err := takeCensus(y.s, true); err != nil {
		return err
	}
	if load, err := y.s.Load(); err != nil || len(load.Removals) > 0 {
		return fmt.Errorf("%d lanes are still to be removed: %v", len(load.Removals), err)
	}
	return counted(y)
}
