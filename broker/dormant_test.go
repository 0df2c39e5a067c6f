package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// Dead letters in far more channels than may be in memory: all of them are
// counted, listed, read, purged and expire as if they were.
func TestDormantDeadLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		x := &bench{t: t, fs: testdisk.New(), dir: "data", o: Options{Checked: true, DeadLanes: 8}}
		x.so.FS, x.so.QuietScheduler = x.fs, true
		x.open()
		defer func() { x.close() }()
		id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
		kill := func() {
			for i := range n {
				x.put(id, fmt.Sprintf("c%03d", i), "x")
			}
			for got := 0; got < n; {
				got += len(x.get(ReceiveRequest{Queue: id, Visibility: time.Second}))
			}
			time.Sleep(5 * time.Second)
		}
		check := func(want int) {
			t.Helper()
			x.b.do(func(g *group) {
				if want > 0 && g.b.dormant < want-x.o.DeadLanes {
					t.Errorf("%d lanes of %d are dormant", g.b.dormant, want)
				}
			})
			x.want(id, fmt.Sprintf("visible 0 in flight 0 delayed 0 bytes 0, dead visible %d in flight 0 bytes %d", want, want))
			if got := x.b.Channels(id, "", true, channels.Filter{}, "", 1000); len(got) != want {
				t.Errorf("%d channels, want %d", len(got), want)
			}
		}
		kill()
		check(n)
		x.close()
		x.open()
		check(n)

		c := "c042"
		if _, dead := x.b.Stats(id, "", &c); dead.Visible != 1 {
			t.Errorf("stats of %s: %+v", c, dead)
		}
		f, _ := channels.ParseFilter(c)
		got := x.get(ReceiveRequest{Queue: id, Dead: true, Filter: f, Visibility: time.Second})
		if len(got) != 1 || got[0].Channel != c {
			t.Fatalf("got %+v", got)
		}
		time.Sleep(2 * time.Second) // it is visible again, and its lane may sleep
		if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{got[0].Receipt}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		check(n - 1)

		seen := map[string]bool{}
		for len(seen) < n-1 {
			got := x.get(ReceiveRequest{Queue: id, Dead: true, Visibility: time.Hour})
			if len(got) == 0 {
				t.Fatalf("nothing more after %d channels", len(seen))
			}
			for _, d := range got {
				if seen[d.Channel] {
					t.Errorf("channel %s twice", d.Channel)
				}
				seen[d.Channel] = true
			}
		}
		time.Sleep(2 * time.Hour)
		check(n - 1)

		f, _ = channels.ParseFilter("c09*")
		for range 10 {
			if got := x.get(ReceiveRequest{Queue: id, Dead: true, Filter: f, Visibility: time.Minute}); len(got) != 1 {
				t.Fatalf("pattern: got %+v", got)
			}
		}
		if got := x.get(ReceiveRequest{Queue: id, Dead: true, Filter: f, Visibility: time.Minute}); len(got) != 0 {
			t.Fatalf("pattern: got %+v", got)
		}
		time.Sleep(time.Hour)
		check(n - 1)

		purge := func(channels []string) {
			if err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, "", queue.PurgeDLQ, channels); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		purge([]string{"c001", "c002"})
		check(n - 3)
		purge(nil)
		check(0)
		x.close()
		x.open()
		check(0)
		time.Sleep(time.Minute)
		rows := 0
		if err := x.s.Lanes(func(store.Lane) error { rows++; return nil }); err != nil || rows > 1 {
			t.Errorf("%d lanes are left, %v", rows, err)
		}

		kill()
		check(n)
		time.Sleep(queue.DefaultRetention)
		check(0)
	})
}

// A dead lane that was purged while it was dormant, and made anew before the
// remover came, left the rows of the old one behind for ever.
func TestPurgedDormantLaneMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &bench{t: t, fs: testdisk.New(), dir: "data", o: Options{Checked: true, DeadLanes: 2}}
		x.so.FS, x.so.QuietScheduler = x.fs, true
		x.open()
		defer func() { x.close() }()
		id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
		kill := func(n int) {
			for i := range n {
				x.put(id, fmt.Sprintf("c%d", i), "x")
			}
			for got := 0; got < n; {
				got += len(x.get(ReceiveRequest{Queue: id, Visibility: time.Second}))
			}
			time.Sleep(5 * time.Second)
		}
		kill(8)
		x.b.do(func(g *group) {
			if g.b.dormant == 0 {
				t.Error("none is dormant")
			}
			g.b.remover = newWorker[removal]() // the remover is slow
		})
		if err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, "", queue.PurgeDLQ, nil); return nil }); err != nil {
			t.Fatal(err)
		}
		kill(8)
		x.close()
		x.open()
		time.Sleep(time.Minute)
		if err := x.s.Check(); err != nil {
			t.Error(err)
		}
		x.want(id, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 8 in flight 0 bytes 8")
	})
}
