package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// stage is how far a message has come, by what its clients were told.
type stage int

const (
	isPublished stage = iota + 1
	isReceived
	updateAsked
	isUpdated
	deleteAsked
	isDeleted
)

// told is the last word to the clients of one message.
type told struct {
	stage stage
	until queue.Instant
}

// TestCrashUnderLoad crashes copies of the disk while many clients are at work
// in real time, and compares each with what the clients had been told by then.
func TestCrashUnderLoad(t *testing.T) {
	t.Parallel()
	clones, losses := crashUnderLoad(t, store.Options{})
	for _, err := range losses {
		t.Error(err)
	}
	if t.Logf("%d crashes", clones); clones < 20 {
		t.Error("too few crashes")
	}
}

// TestCrashUnderLoadWithoutSyncs is the control: it must find losses.
func TestCrashUnderLoadWithoutSyncs(t *testing.T) {
	t.Parallel()
	clones, losses := crashUnderLoad(t, store.Options{WithoutSyncs: true})
	if t.Logf("%d crashes, %d with losses", clones, len(losses)); len(losses) == 0 {
		t.Error("no loss was found where nothing is synced")
	}
}

func crashUnderLoad(t *testing.T, so store.Options) (clones int, losses []error) {
	type copied struct {
		told map[queue.MessageID]told
		disk *testdisk.Disk
	}
	var (
		mu     sync.Mutex
		ledger = make(map[queue.MessageID]told)
		copies []copied
		steps  int
		apart  = 5 // steps from one copy to the next
	)
	const most = 60
	disk := testdisk.New()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	so.FS = disk.Watch(func(testdisk.Step) error {
		mu.Lock()
		defer mu.Unlock()
		if steps++; steps%apart == 0 && len(copies) < most {
			now := maps.Clone(ledger) // first what was told, then the copy
			copies = append(copies, copied{now, disk.Crash(50*(len(copies)%2), rand.NewPCG(uint64(steps), 0))})
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
	id := x.queue("orders", nil)
	tell := func(st stage, until queue.Instant, ids ...queue.MessageID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			ledger[id] = told{st, until}
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				m := make([]queue.NewMessage, 1+rand.IntN(5))
				for i := range m {
					m[i].Body = make([]byte, 200)
				}
				out, err := b.Publish(context.Background(), PublishRequest{Queue: id, Messages: m})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, p := range out {
					if ledger[p.ID].stage == 0 { // a get may have been quicker to tell of it
						ledger[p.ID] = told{isPublished, 0}
					}
				}
				mu.Unlock()
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				got, err := b.Receive(ctx, ReceiveRequest{Queue: id, Limit: 3, Visibility: time.Hour, Wait: time.Second})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				for _, d := range got {
					tell(isReceived, d.VisibleAfter, d.ID)
				}
				for _, d := range got {
					if rand.IntN(2) == 0 {
						tell(updateAsked, 0, d.ID)
						out, err := b.Update(context.Background(), id, []VisibilityUpdate{{Receipt: d.Receipt, Visibility: 2 * time.Hour}})
						if err = errors.Join(err, out[0].Err); err != nil {
							t.Error(err)
							return
						}
						tell(isUpdated, out[0].VisibleAfter, d.ID)
					}
					if rand.IntN(3) > 0 {
						tell(deleteAsked, 0, d.ID)
						errs, err := b.Delete(context.Background(), id, []queue.Receipt{d.Receipt})
						if err = errors.Join(err, errs[0]); err != nil {
							t.Error(err)
							return
						}
						tell(isDeleted, 0, d.ID)
					}
				}
			}
		})
	}
	all.Wait()
	for i, c := range copies {
		if err := compareTold(c.told, c.disk); err != nil {
			losses = append(losses, fmt.Errorf("crash %d: %w", i, err))
		}
	}
	return len(copies), losses
}

// compareTold looks for what was told in a copy.
func compareTold(ledger map[queue.MessageID]told, disk *testdisk.Disk) (err error) {
	s, err := store.Open("data", store.Options{FS: disk})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := takeCensus(s, true)
	if err != nil {
		return err
	}
	for id, w := range ledger {
		m := c.messages[id]
		switch {
		case w.stage == isDeleted && m != nil:
			err = fmt.Errorf("message %d was deleted and is there: %+v", id, m)
		case w.stage == isPublished && m == nil:
			err = fmt.Errorf("message %d was published and is lost", id)
		case w.stage >= isReceived && w.stage <= isUpdated && (m == nil || m.state != store.Leased || m.Deliveries != 1):
			err = fmt.Errorf("message %d was received and is %+v", id, m)
		case (w.stage == isReceived || w.stage == isUpdated) && m.until != w.until:
			err = fmt.Errorf("message %d is hidden until %s, not %s", id, m.until, w.until)
		default:
			continue
		}
		return err
	}
	return nil
}
