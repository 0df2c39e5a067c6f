package broker

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// Below the first floor publishes are refused, below the second new leases
// too; what makes room goes on, and all comes back by itself.
func TestDiskFloors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := testdisk.New()
		disk.SetFree(1 << 30)
		x := newBench(t, disk)
		defer x.shut()
		id := x.queue("orders", nil)
		x.put(id, "", make([]string, 20)...)
		held := x.get(ReceiveRequest{Queue: id, Limit: 3, Visibility: time.Minute})
		var free int64
		try := func(octets uint64, publishes, leases bool) {
			t.Helper()
			disk.SetFree(octets)
			time.Sleep(time.Second)
			want := func(what string, err error, allowed bool) {
				t.Helper()
				if allowed != (err == nil) || err != nil && queue.CodeOf(err) != queue.InsufficientStorage {
					t.Errorf("with %d octets: %s: %v", octets, what, err)
				}
			}
			main, _ := x.b.Stats(id, "", nil)
			_, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 1)})
			want("publish", err, publishes)
			got, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Minute, Wait: time.Second})
			want("get", err, leases)
			if after, _ := x.b.Stats(id, "", nil); !publishes && after.Visible+after.InFlight != main.Visible+main.InFlight {
				t.Errorf("with %d octets: a refused publish left something: %+v %+v", octets, main, after)
			}
			// These go on.
			out, err := x.b.Update(t.Context(), id, queue.AnyGroup, []VisibilityUpdate{{Receipt: held[0].Receipt, Visibility: time.Minute}})
			want("update", errors.Join(err, out[0].Err), true)
			errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{held[1].Receipt})
			want("delete", errors.Join(append(errs, err)...), true)
			want("admin", x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, "", queue.PurgeDLQ, nil); return nil }), true)
			free = x.b.Snapshot().FreeBytes
			x.b.Undeliver(receiptsOf(got))
		}
		try(1<<30, true, true)
		try(255<<20, false, true)
		try(127<<20, false, false)
		try(0, false, false)
		if free > 0 {
			t.Errorf("the snapshot tells of %d free octets", free)
		}
		try(129<<20, false, true)
		try(300<<20, true, true)
	})
}

func receiptsOf(got []queue.Delivery) (out []queue.Receipt) {
	for _, d := range got {
		out = append(out, d.Receipt)
	}
	return out
}

// What is written between two looks at the disk counts.
func TestFloorBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := testdisk.New()
		disk.SetFree(256<<20 + 1<<20)
		x := newBench(t, disk)
		defer x.shut()
		id := x.queue("orders", nil)
		time.Sleep(1100 * time.Millisecond) // between two looks
		stored := 0
		for range 20 { // no time passes
			_, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{{Message: queue.Message{Body: make([]byte, 100<<10)}}}})
			if err != nil {
				break
			}
			stored++
		}
		if stored < 3 || stored > 8 {
			t.Errorf("%d times 100 KiB were stored in 1 MiB, each counting twice", stored)
		}
	})
}

// A compaction that takes long does not keep the floors from being lifted.
func TestLongCompaction(t *testing.T) {
	t.Parallel()
	disk := testdisk.New()
	disk.SetFree(1 << 30)
	x := newBench(t, disk)
	defer x.shut()
	x.close()
	gate := make(chan struct{})
	var stuck atomic.Bool
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	x.so.FS = disk.Watch(func(s testdisk.Step) error {
		if strings.HasSuffix(s.Path, ".sst") {
			stuck.Store(true)
			<-gate
		}
		return nil
	})
	x.open()
	id := x.queue("orders", nil)
	x.put(id, "", "a")
	disk.SetFree(0)
	for began := time.Now(); !stuck.Load() && time.Since(began) < 10*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	if !stuck.Load() {
		t.Fatal("no compaction was begun on a full disk")
	}
	disk.SetFree(1 << 30)
	var err error
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, err = x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 1)}); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("there is room again, and a publish gets: %v", err)
	}
	open()
}

// A sync that fails is told to Fatal, once and for all; the publish is never
// answered, and after a restart its messages are there whole or not at all.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	disk := testdisk.New()
	var broken atomic.Bool
	fatal := make(chan error, 10)
	stop := func(err error) {
		fatal <- err
		select {} // must not return
	}
	watched := disk.Watch(func(s testdisk.Step) error {
		if broken.Load() && s.Sync && strings.HasSuffix(s.Path, ".log") {
			return errors.New("the disk is broken")
		}
		return nil
	})
	// Nothing of this broker can be closed again.
	s, err := store.Open("data", store.Options{FS: watched, Fatal: stop})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(s, Options{Fatal: stop})
	if err != nil {
		t.Fatal(err)
	}
	x := &bench{t: t, b: b, s: s, fs: disk, dir: "data"}
	id := x.queue("orders", nil)
	before := x.put(id, "", "1", "2")
	broken.Store(true)
	answered := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := b.Publish(t.Context(), PublishRequest{Queue: id, Messages: make([]queue.NewMessage, 3)})
			answered <- err
		}()
	}
	select {
	case <-fatal:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
	select {
	case err := <-answered:
		t.Errorf("a publish was answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	for _, percent := range []int{0, 100} {
		y := newBench(t, disk.Crash(percent, rand.NewPCG(1, 1)))
		m, _ := y.b.Stats(id, "", nil)
		if m.Visible != 2 && m.Visible != 5 && m.Visible != 8 {
			t.Errorf("%d messages are there", m.Visible)
		}
		if got := y.get(ReceiveRequest{Queue: id, Limit: 2, Visibility: time.Minute}); len(got) != 2 || got[0].ID != before[0].ID {
			t.Errorf("got %+v", got)
		}
		y.close()
	}
}
