package broker

import (
	"context"
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

// TestHistory lets many clients at once publish, receive, update, delete, give
// back, give up and purge, in real time, and then judges what each was told:
// of a queue, and of one with consumer groups, each of which is judged.
func TestHistory(t *testing.T) {
	for name, filters := range map[string][]string{"queue": nil, "groups": {`:kind`, `:kind = "a"`, `:kind = "a" OR :kind = "b"`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clientsAtOnce(t, filters)
		})
	}
}

func clientsAtOnce(t *testing.T, filters []string) {
	x := newBench(t, testdisk.New())
	defer x.shut()
	x.close()
	x.o.WindowSize, x.o.BodyBytes, x.o.DeadLanes = 64, 20_000, 2
	x.open()
	const (
		limit   = 4
		shortly = 400 * time.Millisecond // the shortest retention
	)
	id := x.queue("orders", func(q *queue.Queue) { q.DeadLetterDeliveryCount = limit })
	r := &recorded{b: x.b, id: id}
	ofLast := 2 // deliveries, if there are groups
	if len(filters) > 0 {
		r.groups = x.groups(id, filters...)
		x.change(r.groups[2], func(g *queue.ConsumerGroup) { g.DeadLetterDeliveryCount = &ofLast })
		r.accept = func(m *queue.NewMessage) (to []string) {
			for _, p := range m.Properties {
				to = append(to, string(r.groups[0]))
				if p.Value == "a" {
					to = append(to, string(r.groups[1]))
				}
				if p.Value == "a" || p.Value == "b" {
					to = append(to, string(r.groups[2]))
				}
			}
			return to
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	names := []string{"", "a", "b", "c", "d"}
	var backlog atomic.Int64
	var all sync.WaitGroup
	client := func(n int, do func(random *rand.Rand)) {
		for i := range n {
			random := rand.New(rand.NewPCG(uint64(i), rand.Uint64()))
			all.Go(func() {
				for ctx.Err() == nil {
					do(random)
				}
			})
		}
	}
	client(4, func(random *rand.Rand) {
		if backlog.Load() > 2000 {
			time.Sleep(5 * time.Millisecond) // the consumers are behind
			return
		}
		m := make([]queue.NewMessage, 1+random.IntN(10))
		for i := range m {
			m[i].Body, m[i].Channel = r.body(10+random.IntN(100)), names[random.IntN(len(names))]
			if kind := random.IntN(5); kind > 0 && r.accept != nil {
				m[i].Properties = []queue.Property{{Name: "kind", Value: []string{"a", "a", "b", "c"}[kind-1]}}
			}
			switch random.IntN(20) {
			case 0, 1, 2, 3:
				m[i].Delay = time.Duration(random.IntN(100)) * time.Millisecond
			case 4:
				m[i].Retention = shortly
			}
		}
		if _, err := r.publish(m...); err == nil {
			backlog.Add(int64(len(m)) * int64(max(1, len(r.groups)-1)))
		}
	})
	consume := func(dead bool) func(random *rand.Rand) {
		return func(random *rand.Rand) {
			got, _ := r.receive(ctx, ReceiveRequest{Group: r.group(random), Dead: dead, Limit: 1 + random.IntN(5),
				Visibility: time.Duration(30+random.IntN(150)) * time.Millisecond, Wait: time.Duration(random.IntN(50)) * time.Millisecond,
				Filter: only([]string{"", "", "a", "*", "b*"}[random.IntN(5)])}, history.Unanswered)
			for _, d := range got {
				switch n := random.IntN(10); {
				case n < 5:
					backlog.Add(-int64(r.delete(d.Receipt)))
				case n < 8:
					r.update(d.Receipt, time.Duration(random.IntN(3))*40*time.Millisecond)
				}
			}
		}
	}
	client(8, consume(false))
	client(1, consume(true))
	client(3, func(random *rand.Rand) { // gives up at some moment, or gives back: receipts in these channels may be dead
		ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
		defer cancel()
		if got, err := r.receive(ctx, ReceiveRequest{Group: r.group(random), Limit: 3, Visibility: time.Hour, Wait: 20 * time.Millisecond,
			Filter: only([]string{"a", "c"}[random.IntN(2)])}, history.TakenBack); err == nil {
			r.undeliver(receiptsOf(got)...)
		}
	})
	client(1, func(random *rand.Rand) {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
			r.purge(r.group(random), "d")
		}
	})
	client(1, late(r, ctx))
	all.Wait()
	settled(t, x, r.now().Add(shortly))
	h := r.drain()
	h.Threshold = limit
	for i := range h.Groups {
		if h.Groups[i].Threshold = limit; i == 2 {
			h.Groups[i].Threshold = ofLast
		}
	}
	if len(filters) > 0 && h.Unrouted == 0 {
		t.Error("there was nothing that no group accepted")
	}
	r.judge(t, h)
	if c, err := takeCensus(x.s, true); err != nil || len(c.messages) > 0 {
		t.Errorf("%d messages are on disk: %v", len(c.messages), err)
	}
	happened(t, h, "publishes", "deliveries", "delayed", "not the first", "dead letters", "short lives", "extended", "given back",
		"too late to extend", "deleted", "too late to delete", "given up", "taken back", "purges")
}

// late is a consumer that acts with receipts whose time may be over.
func late(r *recorded, ctx context.Context) func(*rand.Rand) {
	var kept []queue.Receipt
	return func(random *rand.Rand) {
		got, _ := r.receive(ctx, ReceiveRequest{Group: r.group(random), Limit: 5, Visibility: 20 * time.Millisecond, Wait: 10 * time.Millisecond}, history.Unanswered)
		kept = append(kept, receiptsOf(got)...)
		for len(kept) > 50 {
			if random.IntN(2) == 0 {
				r.delete(kept[0])
			} else {
				r.update(kept[0], 20*time.Millisecond)
			}
			kept = kept[1:]
		}
	}
}

// settled waits until it is past an instant and every lease, delay and end
// until then has come.
func settled(t *testing.T, x *bench, past time.Time) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		now := x.b.Now()
		c, err := takeCensus(x.s, false)
		if err == nil && now.Time().After(past) {
			rest := 0
			for _, m := range c.messages {
				if m.state == store.Leased || m.state == store.Delayed || m.Entry.ExpireAfter <= now {
					rest++
				}
			}
			if rest == 0 {
				return
			}
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("stuck: %v, %s", err, x.stats("ocid1.queue.oc1.local.orders"))
		}
	}
}
