package broker

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
)

// However many publish, are given up and are consumed at once, in whatever
// order: nobody is held for longer than paceMost, those who came first go on
// first, and in the end none is left.
func TestPaceUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{}
		p.behind.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var consumers, publishers sync.WaitGroup
		for i := range uint64(40) {
			consumers.Go(func() {
				for r := rand.New(rand.NewPCG(i, 1)); ctx.Err() == nil; {
					p.consumed()
					time.Sleep(time.Duration(r.IntN(20_000)) * time.Microsecond)
				}
			})
		}
		var mu sync.Mutex
		atOnce, turns, over, left := 0, 0, 0, 0
		for i := range uint64(600) {
			publishers.Go(func() {
				r := rand.New(rand.NewPCG(i, 2))
				for range 50 {
					time.Sleep(time.Duration(r.IntN(100_000)) * time.Microsecond)
					one, end := context.WithCancel(ctx)
					if r.IntN(4) == 0 {
						time.AfterFunc(time.Duration(r.IntN(30_000))*time.Microsecond, end)
					}
					began := time.Now()
					p.wait(one)
					d := time.Since(began)
					mu.Lock()
					switch {
					case d > paceMost:
						t.Errorf("held %v", d)
					case one.Err() != nil:
						left++
					case d == paceMost:
						over++
					case d == 0:
						atOnce++
					default:
						turns++
					}
					mu.Unlock()
					end()
				}
			})
		}
		publishers.Wait()
		cancel()
		consumers.Wait()
		if atOnce == 0 || turns == 0 || over == 0 || left == 0 {
			t.Errorf("%d went on at once, %d in their turn, %d when their time was over, %d left", atOnce, turns, over, left)
		}
		if len(p.waiting) != 0 || p.credit < 0 || p.credit > paceCredit {
			t.Errorf("%d wait, the credit is %d", len(p.waiting), p.credit)
		}
	})
}

// Turns are given in the order of arrival: one publisher who comes again and
// again does not go ahead of another.
func TestPaceIsFair(t *testing.T) {
	paced(t, paceSeveral, func(t *testing.T, p *pace) {
		var done []chan time.Duration
		for range 10 {
			done = append(done, held(t.Context(), p))
		}
		for i := range done {
			p.consumed()
			p.consumed()
			if passed(done[i]) < 0 {
				t.Fatalf("publish %d was not the next", i)
			}
			again := held(t.Context(), p) // whose turn it was comes back, to the end
			for j := i + 1; j < len(done); j++ {
				if passed(done[j]) >= 0 {
					t.Fatalf("publish %d went ahead of %d", j, i+1)
				}
			}
			if passed(again) >= 0 {
				t.Fatal("who came back went ahead")
			}
		}
		time.Sleep(paceMost)
	})
}

// What is held does not hold up the end: the queue is deleted or the broker
// closes, and who was held is told so when its time is over.
func TestPaceAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(x *bench, id queue.ID) (queue.Code, error){
		"closed": func(x *bench, _ queue.ID) (queue.Code, error) {
			x.close()
			return queue.ServiceUnavailable, nil
		},
		"deleted": func(x *bench, id queue.ID) (queue.Code, error) {
			return queue.NotAuthorizedOrNotFound, x.b.Admin(context.Background(), func(tx *Tx) error {
				q, _ := tx.Queue(id)
				q.State = queue.Deleted
				tx.PutQueue(q)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, x *bench, id queue.ID) {
				x.put(id, "", "a")
				q, err := x.b.find(id)
				if err != nil {
					t.Fatal(err)
				}
				// Several consumers were at work in the period before.
				q.pace.mu.Lock()
				q.pace.begun, q.pace.count = time.Now().Add(-paceMost), paceSeveral
				q.pace.mu.Unlock()
				type outcome struct {
					err   error
					after time.Duration
				}
				const n = 20
				done, began := make(chan outcome, n), time.Now()
				for range n {
					go func() {
						_, err := x.b.Publish(context.Background(), PublishRequest{Queue: id, Messages: []queue.NewMessage{{}}})
						done <- outcome{err, time.Since(began)}
					}()
				}
				synctest.Wait()
				q.pace.mu.Lock()
				waiting := len(q.pace.waiting)
				q.pace.mu.Unlock()
				if waiting != n {
					t.Fatalf("%d are held", waiting)
				}
				code, err := end(x, id)
				if err != nil {
					t.Fatal(err)
				}
				for range n {
					if got := <-done; queue.CodeOf(got.err) != code || got.after > paceMost {
						t.Errorf("a publish was answered %v after %v", got.err, got.after)
					}
				}
			})
		})
	}
}
