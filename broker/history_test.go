package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// turn is one delivery as its consumer saw it.
type turn struct {
	count   int
	from    queue.Instant // when it was leased
	until   queue.Instant // when the lease ended, as last told
	deleted queue.Instant // when a delete had succeeded
	dead    bool
}

// history is what many clients at once were told.
type history struct {
	mu        sync.Mutex
	published map[queue.MessageID]bool
	turns     map[queue.MessageID][]*turn
	wrong     []string
}

func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

// TestHistory lets many clients at once publish, receive, update, delete, give
// back and give up, in real time, and then judges what each was told: a
// message is with one consumer at a time, its count rises by one, what was
// deleted never comes again, and nothing is lost or made up.
func TestHistory(t *testing.T) {
	t.Parallel()
	x := newBench(t, testdisk.New())
	defer x.shut()
	x.close()
	x.o.WindowSize, x.o.BodyBytes, x.o.DeadLanes = 64, 20_000, 2
	x.open()
	const limit = 4
	id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = limit })
	h := &history{published: make(map[queue.MessageID]bool), turns: make(map[queue.MessageID][]*turn)}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	names := []string{"", "a", "b", "c", "d"}
	var backlog atomic.Int64
	var all sync.WaitGroup
	client := func(n int, do func(r *rand.Rand) error) {
		for i := range n {
			r := rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
			all.Go(func() {
				for ctx.Err() == nil {
					if err := do(r); err != nil && ctx.Err() == nil {
						h.fail("%v", err)
						return
					}
				}
			})
		}
	}
	client(4, func(r *rand.Rand) error {
		if backlog.Load() > 2000 {
			time.Sleep(5 * time.Millisecond)
			return nil
		}
		m := make([]queue.NewMessage, 1+r.IntN(10))
		for i := range m {
			m[i].Body, m[i].Channel = make([]byte, 10+r.IntN(100)), names[r.IntN(len(names))]
			if r.IntN(5) == 0 {
				m[i].Delay = time.Duration(r.IntN(100)) * time.Millisecond
			}
		}
		out, err := x.b.Publish(context.Background(), PublishRequest{Queue: id, Messages: m})
		if err != nil {
			return err
		}
		backlog.Add(int64(len(m)))
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, p := range out {
			if h.published[p.ID] {
				h.wrong = append(h.wrong, fmt.Sprintf("id %d was given twice", p.ID))
			}
			h.published[p.ID] = true
		}
		return nil
	})
	consume := func(dead bool) func(r *rand.Rand) error {
		return func(r *rand.Rand) error {
			hidden := time.Duration(30+r.IntN(150)) * time.Millisecond
			got, err := x.b.Receive(ctx, ReceiveRequest{Queue: id, Dead: dead, Limit: 1 + r.IntN(5), Visibility: hidden,
				Wait: time.Duration(r.IntN(50)) * time.Millisecond, Filter: filter([]string{"", "", "a", "*", "b*"}[r.IntN(5)])})
			if err != nil {
				return err
			}
			turns := h.received(got, dead, hidden)
			for i, d := range got {
				switch n := r.IntN(10); {
				case n < 5:
					errs, err := x.b.Delete(context.Background(), id, []queue.Receipt{d.Receipt})
					if err != nil {
						return err
					}
					if errs[0] == nil {
						backlog.Add(-1)
						h.mu.Lock()
						turns[i].deleted = x.b.Now()
						h.mu.Unlock()
					} else if x.b.Now() < d.VisibleAfter {
						return fmt.Errorf("delete of message %d before its visibility ended: %w", d.ID, errs[0])
					}
				case n < 8:
					hidden := time.Duration(r.IntN(3)) * 40 * time.Millisecond
					out, err := x.b.Update(context.Background(), id, []VisibilityUpdate{{Receipt: d.Receipt, Visibility: hidden}})
					if err != nil {
						return err
					}
					if out[0].Err == nil {
						h.mu.Lock()
						turns[i].until = out[0].VisibleAfter
						h.mu.Unlock()
					}
				}
			}
			return nil
		}
	}
	client(8, consume(false))
	client(1, consume(true))
	client(3, func(r *rand.Rand) error { // gives up at some moment
		ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		defer cancel()
		got, err := x.b.Receive(ctx, ReceiveRequest{Queue: id, Limit: 3, Visibility: time.Hour, Wait: 20 * time.Millisecond})
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
		turns := h.received(got, false, time.Hour)
		var receipts []queue.Receipt
		for _, d := range got {
			receipts = append(receipts, d.Receipt)
		}
		h.mu.Lock() // given back before anybody can have them again
		for i, d := range got {
			h.turns[d.ID] = slices.DeleteFunc(h.turns[d.ID], func(o *turn) bool { return o == turns[i] })
		}
		h.mu.Unlock()
		x.b.Undeliver(receipts)
		return nil
	})
	all.Wait()

	// What is left is received until nothing is in flight any more.
	moved := time.Now()
	for {
		main, dead := x.b.Stats(id, nil)
		if main.Empty() && dead.Empty() {
			break
		}
		if time.Since(moved) > 10*time.Second {
			t.Fatalf("stuck: %+v %+v", main, dead)
		}
		for _, side := range []bool{false, true} {
			got := x.get(ReceiveRequest{Queue: id, Dead: side, Visibility: time.Hour, Wait: 10 * time.Millisecond})
			for _, turn := range h.received(got, side, time.Hour) {
				turn.deleted = x.b.Now()
			}
			if len(got) > 0 {
				x.deleteAll(id, got)
				moved = time.Now()
			}
		}
	}
	h.judge(limit)
	if c, err := takeCensus(x.s, true); err != nil || len(c.messages) > 0 {
		h.wrong = append(h.wrong, fmt.Sprintf("%d messages are on disk: %v", len(c.messages), err))
	}
	for i, text := range h.wrong {
		if t.Error(text); i == 20 {
			break
		}
	}
	deliveries := 0
	for _, turns := range h.turns {
		deliveries += len(turns)
	}
	t.Logf("%d messages, %d deliveries", len(h.published), deliveries)
}

// received notes deliveries.
func (h *history) received(got []queue.Delivery, dead bool, hidden time.Duration) []*turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*turn, len(got))
	for i, d := range got {
		out[i] = &turn{count: d.DeliveryCount, from: d.VisibleAfter.Add(-hidden), until: d.VisibleAfter, dead: dead}
		h.turns[d.ID] = append(h.turns[d.ID], out[i])
	}
	return out
}

// judge looks at every message's turns in the order they were leased. A turn
// may be missing: a consumer that was so slow that its message was delivered
// anew and deleted, before it had read the body, was told of nothing.
func (h *history) judge(limit int) {
	missing, deliveries := 0, 0
	for id, turns := range h.turns {
		if !h.published[id] {
			h.wrong = append(h.wrong, fmt.Sprintf("message %d was never published", id))
		}
		slices.SortStableFunc(turns, func(a, b *turn) int { return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.from, b.from)) })
		text := fmt.Sprintf("message %d:", id)
		for _, t := range turns {
			text += fmt.Sprintf(" %+v", *t)
		}
		for i, t := range turns {
			before := 0
			if i > 0 {
				before = turns[i-1].count
			}
			deliveries++
			missing += max(0, t.count-before-1)
			switch {
			case t.count <= before:
				h.wrong = append(h.wrong, text+": the count does not rise")
			case t.dead != (t.count > limit):
				h.wrong = append(h.wrong, text+": it was in the wrong queue")
			case i > 0 && t.from < turns[i-1].until:
				h.wrong = append(h.wrong, text+": two had it at once")
			case i > 0 && turns[i-1].deleted != 0 && turns[i-1].deleted < t.from:
				// (A delete that comes when another consumer has deleted the
				// message is a success too.)
				h.wrong = append(h.wrong, text+": it came back")
			case i == len(turns)-1 && t.deleted == 0:
				h.wrong = append(h.wrong, text+": it was lost")
			default:
				continue
			}
			break
		}
	}
	if missing > 3+deliveries/100 {
		h.wrong = append(h.wrong, fmt.Sprintf("%d of %d deliveries were counted and not made", missing, deliveries))
	}
	for id := range h.published {
		if len(h.turns[id]) == 0 {
			h.wrong = append(h.wrong, fmt.Sprintf("message %d was never delivered", id))
		}
	}
}
