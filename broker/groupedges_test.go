package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// TestIDsOfLostMessages: an id that was answered is never given out again,
// also when nothing was stored under it and power fails right after.
func TestIDsOfLostMessages(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		id := x.queue("q", nil)
		x.groups(id, ":kind")
		lost := x.send(id, "", "", "lost")
		disk := x.fs.Crash(0, nil)
		x.close()
		x.fs, x.so.FS = disk, disk
		x.open()
		if next := x.send(id, "", "", "lost too"); next <= lost {
			t.Errorf("id %d was given out twice: %d", lost, next)
		}
		x.check()
	})
}

// TestPurgeAndPublishTogether: a purge of all groups and publishes that are
// decided in one group, in either order.
func TestPurgeAndPublishTogether(t *testing.T) {
	for _, empty := range []bool{false, true} {
		grouped(t, func(t *testing.T, x *bench) {
			id := x.queue("q", nil)
			g := x.groups(id, "", "")
			purge := func() {
				err := x.b.Admin(t.Context(), func(tx *Tx) error {
					for _, group := range g {
						tx.Purge(id, group, queue.PurgeBoth, nil)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			publish := func(bodies ...string) func() {
				return func() { x.put(id, "c", bodies...) }
			}
			last := []string{"12", "3"}
			if empty {
				last = []string{"", ""}
			}
			for range 2 {
				publish("old", "")()
				x.together(publish("before", ""), purge, publish(last...))
				synctest.Wait()
				x.check()
				want := int64(len(last[0]) + len(last[1]))
				if got := x.stored(id); got != want {
					t.Errorf("%d octets are stored, want %d", got, want)
				}
				for _, group := range g {
					if got, want := x.counts(id, group), fmt.Sprintf("2+0/%d dead 0+0/0", want); got != want {
						t.Errorf("a group counts %s, want %s", got, want)
					}
				}
				x.close()
				x.open()
				purge()
				if got := x.stored(id); got != 0 {
					t.Errorf("%d octets are stored after all was purged", got)
				}
				synctest.Wait()
				x.check()
			}
		})
	}
}

// TestLastReaderWhileOthersAreRemoved: messages that one group has purged and
// the others have deleted count no more, before the rows of the purge are
// removed and after it.
func TestLastReaderWhileOthersAreRemoved(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		id := x.queue("q", nil)
		g := x.groups(id, "", "", "")
		x.put(id, "c", "one", "two", "")
		remover := x.b.remover
		x.b.remover = newWorker[removal]() // nobody works on it
		err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, g[1], queue.PurgeBoth, nil); return nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 2} {
			if got := x.stored(id); got != 6 {
				t.Errorf("%d octets are stored, want 6", got)
			}
			_, receipts := x.take(ReceiveRequest{Queue: id, Group: g[i], Visibility: time.Hour})
			if errs, err := x.b.Delete(t.Context(), id, g[i], receipts); err != nil || errors.Join(errs...) != nil {
				t.Fatal(errs, err)
			}
			x.check()
		}
		if got := x.stored(id); got != 0 {
			t.Errorf("%d octets are stored for a purge", got)
		}
		x.put(id, "c", "three")
		x.b.remover = remover
		x.close()
		x.open() // now they are removed
		synctest.Wait()
		x.check()
		if got := x.stored(id); got != 5 {
			t.Errorf("%d octets are stored, want 5", got)
		}
	})
}

// TestPollsOfAGroupThatEnds: who waits in a group that is disabled or deleted
// is told at once; who waits in another goes on.
func TestPollsOfAGroupThatEnds(t *testing.T) {
	for state, code := range map[queue.LifecycleState]queue.Code{
		queue.Inactive: queue.IncorrectState, queue.Deleted: queue.NotAuthorizedOrNotFound,
	} {
		grouped(t, func(t *testing.T, x *bench) {
			id := x.queue("q", nil)
			g := x.groups(id, "", "", "")
			began := time.Now()
			ends := make(chan error)
			for _, dead := range []bool{false, true} {
				for _, group := range g[:2] {
					go func() {
						_, err := x.b.Receive(context.Background(), ReceiveRequest{Queue: id, Group: group, Dead: dead, Limit: 1, Visibility: time.Hour, Wait: 20 * time.Second})
						if after := time.Since(began); group == g[1] && (queue.CodeOf(err) != code || after != time.Second) || group == g[0] && (err != nil || after != 20*time.Second) {
							err = fmt.Errorf("%s (dead %v) was answered after %v: %v", group, dead, after, err)
						} else {
							err = nil
						}
						ends <- err
					}()
				}
			}
			time.Sleep(time.Second)
			x.change(g[1], func(g *queue.ConsumerGroup) { g.State = state })
			for range 4 {
				if err := <-ends; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if n := x.b.Snapshot().Waiters; n != 0 {
				t.Errorf("%d still wait", n)
			}
		})
	}
}

// TestGroupsShareLeasesFairly: when a queue has all the leases it may have,
// each one that ends goes to the groups in turn, so that none starves.
func TestGroupsShareLeasesFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits.Unthrottled()
		l.InFlightPerQueue = 1
		x := newBench(t, testdisk.New())
		defer x.shut()
		x.close()
		x.o.Limits = &l
		x.open()
		id := x.queue("q", nil)
		g := x.groups(id, "", "", "")
		for range 30 {
			x.send(id, "", "", "body")
		}
		ctx, cancel := context.WithCancel(t.Context())
		had := make(chan queue.ID)
		for _, group := range g {
			for range 3 {
				go func() {
					for ctx.Err() == nil {
						got, err := x.b.Receive(ctx, ReceiveRequest{Queue: id, Group: group, Limit: 1, Visibility: time.Hour, Wait: 20 * time.Second})
						if err != nil || len(got) == 0 {
							continue
						}
						had <- group
						time.Sleep(time.Second) // the others wait by now
						if errs, err := x.b.Delete(context.Background(), id, group, []queue.Receipt{got[0].Receipt}); err != nil || errs[0] != nil {
							t.Error(errs, err)
						}
					}
				}()
			}
		}
		times := make(map[queue.ID]int)
		for range 30 {
			times[<-had]++
		}
		cancel()
		synctest.Wait()
		for {
			select {
			case <-had:
				continue
			case <-time.After(time.Minute):
			}
			break
		}
		for _, group := range g {
			if times[group] < 5 {
				t.Errorf("of 30 deliveries one of three groups had %d: %v", times[group], times)
			}
		}
	})
}

// TestUnreadableFilter: a store with a filter that this version cannot read is
// refused, naming the group, and not opened to end in a panic.
func TestUnreadableFilter(t *testing.T) {
	x := newBench(t, testdisk.New())
	g := x.groups(x.queue("q", nil), "", ":kind")
	x.close()
	s, err := store.Open(x.dir, x.so)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	load, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	load.Queues[0].Groups[1].Filter = ":kind ~ later"
	if err := s.Commit(&store.ChangeSet{State: load.State, Queues: load.Queues}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s, x.o); err == nil || !strings.Contains(err.Error(), string(g[1])) {
		t.Errorf("opened with %v", err)
	}
}
