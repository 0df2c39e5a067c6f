package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/internal/history"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// TestCrashUnderLoad crashes copies of the disk while many clients are at work
// in real time, and judges each with what the clients had been told by then.
func TestCrashUnderLoad(t *testing.T) {
	for name, filters := range map[string][]string{"queue": nil, "groups": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clones, losses := crashUnderLoad(t, store.Options{}, filters)
			for _, err := range losses {
				t.Error(err)
			}
			if t.Logf("%d crashes", clones); clones < 20 {
				t.Error("too few crashes")
			}
		})
	}
}

// TestCrashUnderLoadWithoutSyncs is the control: it must find losses.
func TestCrashUnderLoadWithoutSyncs(t *testing.T) {
	t.Parallel()
	clones, losses := crashUnderLoad(t, store.Options{WithoutSyncs: true}, nil)
	if t.Logf("%d crashes, %d with losses", clones, len(losses)); len(losses) == 0 {
		t.Error("no loss was found where nothing is synced")
	}
}

func crashUnderLoad(t *testing.T, so store.Options, filters []string) (clones int, losses []error) {
	type copied struct {
		told *history.History
		disk *testdisk.Disk
	}
	var (
		clients atomic.Pointer[recorded] // nil: not yet, or no more
		mu      sync.Mutex
		copies  []copied
		deleted atomic.Int64
		steps   int
		apart   = 5 // steps from one copy to the next
	)
	const limit = 2 // deliveries
	most := 60
	if len(filters) > 0 {
		most = 25 // each takes longer to judge
	}
	disk := testdisk.New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // on a slow machine; it is over with the last copy
	defer cancel()
	so.FS = disk.Watch(func(testdisk.Step) error {
		r := clients.Load()
		if r == nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if steps++; steps%apart == 0 && len(copies) < most {
			now := r.now()
			told := r.rec.History(now) // first what was told, then the copy
			told.Threshold, told.Drain = limit, now
			for _, group := range r.groups {
				told.Groups = append(told.Groups, history.Group{Name: string(group), Threshold: limit})
			}
			copies = append(copies, copied{told, disk.Crash(50*(len(copies)%2), rand.NewPCG(uint64(steps), 0))})
			if apart += 3; len(copies) == most {
				cancel()
			}
		}
		return nil
	})
	so.MemtableBytes = 64 << 10
	s, err := store.Open("data", so)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(s, Options{Checked: true, WindowSize: 64})
	if err != nil {
		t.Fatal(err)
	}
	x := &bench{t: t, b: b, s: s}
	defer x.shut()
	r := &recorded{b: b, id: x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = limit })}
	if len(filters) > 0 { // they accept everything
		r.groups = x.groups(r.id, filters...)
		r.accept = func(*queue.NewMessage) []string { return []string{string(r.groups[0]), string(r.groups[1])} }
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				m := make([]queue.NewMessage, 1+rand.IntN(5))
				for i := range m {
					if m[i].Body = r.body(200); rand.IntN(10) == 0 {
						m[i].Delay = time.Hour
					}
				}
				_, _ = r.publish(m...)
			}
		})
		all.Go(func() {
			random := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for ctx.Err() == nil {
				got, _ := r.receive(ctx, ReceiveRequest{Group: r.group(random), Dead: rand.IntN(4) == 0, Limit: 3, Visibility: time.Hour, Wait: 10 * time.Millisecond}, history.Unanswered)
				for _, d := range got {
					if d.DeadLetter != nil && deleted.Load() > 50 {
						clients.Store(r) // by now there is some of everything
					}
					switch rand.IntN(4) {
					case 0:
						r.update(d.Receipt, 2*time.Hour)
					case 1, 2:
						r.update(d.Receipt, 0)
						continue
					}
					if rand.IntN(3) > 0 {
						deleted.Add(int64(r.delete(d.Receipt)))
					}
				}
			}
		})
	}
	all.Wait()
	clients.Store(nil)
	for _, err := range r.odd {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, c := range copies {
		err := cutOff(c.told, c.disk)
		if found := c.told.Check(); err == nil && len(found) > 0 {
			err = fmt.Errorf("%d violations, the first: %s", len(found), found[0])
		}
		if err != nil {
			losses = append(losses, fmt.Errorf("crash %d: %w", i, err))
		}
	}
	happened(t, copies[len(copies)-1].told, "publishes", "deliveries", "delayed", "not the first", "dead letters", "extended", "given back", "deleted")
	return len(copies), losses
}
