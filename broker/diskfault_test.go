package broker

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/internal/history"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// unreadable is a disk whose tables cannot be read while it is broken.
type unreadable struct{ testdisk.Unreadable }

// reads opens a broker on such a disk that has three messages in tables and
// nothing of them in memory.
func (u *unreadable) reads(x *bench) queue.ID {
	x.close()
	x.o.BodyBytes = 1
	x.so.FS, x.so.MemtableBytes, x.so.CacheBytes = u.Wrap(x.fs), 16<<10, 1
	x.open()
	id := x.queue("orders", nil)
	for _, letter := range []string{"a", "b", "c"} {
		x.put(id, "", strings.Repeat(letter, 30_000)) // too large to stay in the log
	}
	x.close()
	x.open()
	return id
}

// TestUnreadableBody: a get whose bodies cannot be read is answered with an
// internal error; the messages are given back as if they had not been taken,
// and the server goes on.
func TestUnreadableBody(t *testing.T) {
	for _, visibility := range []time.Duration{time.Hour, 0} {
		t.Run(visibility.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newBench(t, testdisk.New())
				defer x.shut()
				x.o.Fatal = func(err error) { panic(err) }
				var disk unreadable
				id := disk.reads(x)
				first := x.get(ReceiveRequest{Queue: id, Limit: 1, Visibility: time.Hour})
				if len(first) != 1 {
					t.Fatalf("got %d messages", len(first))
				}
				synctest.Wait() // nothing else is about to read
				disk.Broken.Store(true)
				for range 10 { // more often than a message may be delivered
					out, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: id, Limit: 5, Visibility: visibility})
					if len(out) > 0 || queue.CodeOf(err) != queue.InternalServerError || !errors.Is(err, syscall.EIO) {
						t.Fatalf("got %d messages, %v", len(out), err)
					}
					synctest.Wait()
				}
				if disk.Hits.Load() < 10 {
					t.Errorf("the fault was hit %d times", disk.Hits.Load())
				}
				x.want(id, "visible 2 in flight 1 delayed 0 bytes 90000, dead visible 0 in flight 0 bytes 0")
				x.put(id, "", "d") // what needs no table goes on
				if errs, err := x.b.Delete(t.Context(), id, queue.AnyGroup, []queue.Receipt{first[0].Receipt}); errors.Join(err, errs[0]) != nil {
					t.Error(err, errs)
				}
				disk.Broken.Store(false)
				got := x.get(ReceiveRequest{Queue: id, Limit: 5, Visibility: time.Hour})
				text := ""
				for _, d := range got {
					text += string(d.Body[:1])
					if d.DeliveryCount != 1 {
						t.Errorf("message %d is delivered for the %d. time", d.ID, d.DeliveryCount)
					}
				}
				if text != "bcd" {
					t.Errorf("got %q", text)
				}
			})
		})
	}
}

// TestUnreadableRows: when a start cannot read what is there it fails, and when
// a server cannot read which messages a queue has it ends, in both cases with
// the name of the file; once the disk can be read everything is there.
func TestUnreadableRows(t *testing.T) {
	t.Parallel()
	x := newBench(t, testdisk.New())
	var disk unreadable
	id := disk.reads(x)
	x.close()
	disk.Broken.Store(true)
	s, err := store.Open(x.dir, x.so)
	if err == nil {
		_, err = Open(s, x.o)
		err = errors.Join(err, s.Close())
	}
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), ".sst") || disk.Hits.Load() == 0 {
		t.Errorf("start: %v, after %d hits", err, disk.Hits.Load())
	}

	disk.Broken.Store(false)
	disk.Hits.Store(0)
	died := mortal(x)
	x.open()
	disk.Broken.Store(true)
	answered := make(chan error, 1)
	go func() {
		_, err := x.b.Receive(context.Background(), ReceiveRequest{Queue: id, Limit: 5, Visibility: time.Hour})
		answered <- err
	}()
	select {
	case err = <-died:
	case err = <-answered:
		t.Fatalf("answered with %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("neither an answer nor an end")
	}
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), ".sst") || disk.Hits.Load() == 0 {
		t.Errorf("it ended with %v, after %d hits", err, disk.Hits.Load())
	}

	after := newBench(t, x.fs.Crash(0, rand.NewPCG(1, 1)))
	defer after.shut()
	if got := after.get(ReceiveRequest{Queue: id, Limit: 5, Visibility: time.Hour}); len(got) != 3 || got[0].DeliveryCount != 1 {
		t.Errorf("got %d messages", len(got))
	}
}

// mortal makes Fatal what it is to a process: whoever calls it never goes on,
// and others learn of it.
func mortal(x *bench) <-chan error {
	died := make(chan error, 1)
	x.o.Fatal = func(err error) {
		select {
		case died <- err:
		default:
		}
		select {}
	}
	x.so.Fatal = x.o.Fatal
	return died
}

// TestFailedLogUnderLoad: the log cannot be written, or not be synced, while
// many clients are at work. The process ends at once, nobody is told that
// something was stored that was not, and the next start has all that anybody
// was told of.
func TestFailedLogUnderLoad(t *testing.T) {
	for _, what := range []string{"write", "sync"} {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
			t.Run(what+" "+cause.Error(), func(t *testing.T) {
				t.Parallel()
				failedLog(t, what == "sync", cause)
			})
		}
	}
}

func failedLog(t *testing.T, syncs bool, cause error) {
	disk := testdisk.New()
	x := newBench(t, disk)
	x.close()
	var broken atomic.Bool
	var hits atomic.Int64
	x.so.FS = disk.Watch(func(s testdisk.Step) error {
		if broken.Load() && path.Ext(s.Path) == ".log" && s.Sync == syncs && s.Data != syncs {
			hits.Add(1)
			return &fs.PathError{Op: "log", Path: s.Path, Err: cause}
		}
		return nil
	})
	died := mortal(x)
	x.open()
	r := &recorded{b: x.b, id: x.queue("orders", nil)}
	enough := make(chan struct{})
	var deleted atomic.Int64
	for range 4 {
		go func() { // until its call is never answered
			for {
				messages := make([]queue.NewMessage, 3)
				for i := range messages {
					messages[i].Body = r.body(1)
				}
				if _, err := r.publish(messages...); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			for {
				got, err := r.receive(context.Background(), ReceiveRequest{Limit: 1, Visibility: time.Hour, Wait: time.Hour}, history.Unanswered)
				if err != nil {
					t.Error(err)
					return
				}
				if r.delete(receiptsOf(got)...); deleted.Add(1) == 100 {
					close(enough)
				}
			}
		}()
	}
	<-enough
	broken.Store(true)
	select {
	case err := <-died:
		if !strings.Contains(err.Error(), cause.Error()) || !strings.Contains(err.Error(), ".log") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the process goes on")
	}
	if hits.Load() == 0 {
		t.Error("the fault was not hit")
	}

	now := r.now()
	told := r.rec.History(now) // first what was told, then the copy
	told.Drain, told.Threshold = now, 5
	if err := cutOff(told, disk.Crash(0, rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	r.judge(t, told)
	happened(t, told, "publishes", "deliveries", "deleted")
}
