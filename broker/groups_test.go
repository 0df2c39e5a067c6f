package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// groups gives a queue consumer groups with these filters, the primary one
// first.
func (x *bench) groups(id queue.ID, filters ...string) (ids []queue.ID) {
	x.t.Helper()
	err := x.b.Admin(context.Background(), func(tx *Tx) error {
		for i, f := range filters {
			g := queue.ConsumerGroup{
				ID: queue.ID(fmt.Sprintf("ocid1.queueconsumergroup.oc1.local.%s.%d", id[len(id)-1:], i)), QueueID: id,
				DisplayName: fmt.Sprint("group ", i), State: queue.Active, Filter: f, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
			}
			tx.PutGroup(g)
			ids = append(ids, g.ID)
		}
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return ids
}

// change changes a consumer group.
func (x *bench) change(id queue.ID, f func(*queue.ConsumerGroup)) {
	x.t.Helper()
	err := x.b.Admin(context.Background(), func(tx *Tx) error {
		g, found := tx.Group(id)
		if !found {
			return fmt.Errorf("no group %s", id)
		}
		f(&g)
		tx.PutGroup(g)
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// send publishes one message with the property kind.
func (x *bench) send(id queue.ID, channel, kind, body string) queue.MessageID {
	x.t.Helper()
	m := queue.NewMessage{Message: queue.Message{Body: []byte(body)}, Channel: channel}
	if kind != "" {
		m.Properties = []queue.Property{{Name: "kind", Value: kind}}
	}
	out, err := x.b.Publish(context.Background(), PublishRequest{Queue: id, Messages: []queue.NewMessage{m}})
	if err != nil {
		x.t.Fatal(err)
	}
	return out[0].ID
}

// take is the bodies that a get of all there is gives, and their receipts.
func (x *bench) take(r ReceiveRequest) (bodies string, receipts []queue.Receipt) {
	x.t.Helper()
	r.Limit = 100
	var all []string
	for _, m := range x.get(r) {
		all = append(all, string(m.Body))
		receipts = append(receipts, m.Receipt)
	}
	return strings.Join(all, " "), receipts
}

// counts are the statistics of a group in short.
func (x *bench) counts(id, group queue.ID) string {
	m, d := x.b.Stats(id, group, nil)
	return fmt.Sprintf("%d+%d/%d dead %d+%d/%d", m.Visible, m.InFlight, m.Bytes, d.Visible, d.InFlight, d.Bytes)
}

// stored is what a queue has on disk.
func (x *bench) stored(id queue.ID) int64 {
	for _, q := range x.b.Snapshot().Queues {
		if q.Queue.ID == id {
			return q.Stored
		}
	}
	return -1
}

// check recounts the store.
func (x *bench) check() {
	x.t.Helper()
	if err := x.s.Check(); err != nil {
		x.t.Error(err)
	}
}

func grouped(t *testing.T, f func(t *testing.T, x *bench)) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		defer x.shut()
		f(t, x)
	})
}

// TestGroupsFanOut: each group whose filter accepts a message has it for
// itself: with receipts, counts and dead letters of its own, and its body once.
func TestGroupsFanOut(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		id := x.queue("q", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
		x.send(id, "", "order", "before") // belongs to the primary group
		g := x.groups(id, "", `:kind = "order"`, `:kind`)
		x.send(id, "", "order", "one")
		x.send(id, "", "bill", "two")
		x.send(id, "", "", "three")
		if got := x.stored(id); got != int64(len("before")+len("one")+len("two")+len("three")+len("kindorder")*2+len("kindbill")) {
			t.Errorf("%d octets are stored", got)
		}
		for i, want := range []string{"before one two three", "one", "one two"} {
			group := g[i]
			if i == 0 {
				group = ""
			}
			if got, _ := x.take(ReceiveRequest{Queue: id, Group: group, Visibility: 30 * time.Second}); got != want {
				t.Errorf("group %d gets %q, want %q", i, got, want)
			}
		}
		time.Sleep(31 * time.Second) // every delivery was the last
		synctest.Wait()
		x.check()
		for i, want := range []string{"before one two three", "one", "one two"} {
			got, receipts := x.take(ReceiveRequest{Queue: id, Group: g[i], Dead: true, Visibility: time.Hour})
			if got != want {
				t.Errorf("group %d has the dead letters %q, want %q", i, got, want)
			}
			other := g[(i+1)%3]
			errs, err := x.b.Delete(t.Context(), id, other, receipts)
			if err != nil || slices.ContainsFunc(errs, func(err error) bool { return queue.CodeOf(err) != queue.NotAuthorizedOrNotFound }) {
				t.Errorf("receipts of group %d in another one: %v, %v", i, errs, err)
			}
			if errs, err = x.b.Delete(t.Context(), id, g[i], receipts); err != nil || slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
				t.Errorf("group %d: %v, %v", i, errs, err)
			}
			x.check()
		}
		if got := x.stored(id); got != 0 {
			t.Errorf("%d octets are stored for nobody", got)
		}
	})
}

// TestGroupsAreApart: a purge, a disabled group and a deleted one leave the
// others alone, across a restart too.
func TestGroupsAreApart(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		id := x.queue("q", nil)
		g := x.groups(id, "", "", "")
		for i := range 10 {
			x.send(id, fmt.Sprint("c", i%2), "", "0123456789")
		}
		if err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, g[1], queue.PurgeBoth, []string{"c0"}); return nil }); err != nil {
			t.Fatal(err)
		}
		wants := func(when string, stored int64, want ...string) {
			t.Helper()
			synctest.Wait()
			x.check()
			for i := range want {
				if got := x.counts(id, g[i]); got != want[i] {
					t.Errorf("%s: group %d counts %s, want %s", when, i, got, want[i])
				}
			}
			if got := x.stored(id); got != stored {
				t.Errorf("%s: %d octets are stored, want %d", when, got, stored)
			}
		}
		none := "0+0/0 dead 0+0/0"
		ten, five := "10+0/100 dead 0+0/0", "5+0/50 dead 0+0/0"
		wants("purged", 100, ten, five, ten)
		x.close()
		x.open()
		wants("restarted", 100, ten, five, ten)

		x.change(g[0], func(g *queue.ConsumerGroup) { g.State = queue.Inactive })
		if _, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: id, Limit: 1}); queue.CodeOf(err) != queue.IncorrectState {
			t.Errorf("a get from a disabled group: %v", err)
		}
		x.send(id, "c1", "", "for two")
		wants("disabled", 107, ten, "6+0/57 dead 0+0/0", "11+0/107 dead 0+0/0")

		x.change(g[2], func(g *queue.ConsumerGroup) { g.State = queue.Deleted })
		if _, err := x.b.Receive(t.Context(), ReceiveRequest{Queue: id, Group: g[2], Limit: 1}); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
			t.Errorf("a get from a deleted group: %v", err)
		}
		wants("deleted", 107, ten, "6+0/57 dead 0+0/0", none)
		x.close()
		x.open()
		wants("deleted and restarted", 107, ten, "6+0/57 dead 0+0/0", none)
		if g, found := x.b.FindGroup(g[2]); !found || g.State != queue.Deleted {
			t.Errorf("the deleted group is %+v, %v", g, found)
		}
		for _, group := range g[:2] {
			if err := x.b.Admin(t.Context(), func(tx *Tx) error { tx.Purge(id, group, queue.PurgeBoth, nil); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if got := x.stored(id); got != 0 { // at once, whatever is to be removed yet
			t.Errorf("%d octets are stored after all was purged", got)
		}
		wants("all purged", 0, none, none)
	})
}

// TestGroupsChooseFairly: inside a group a get without a filter takes from any
// channel that has messages for the group, each as likely as the others,
// however much waits in one of them.
func TestGroupsChooseFairly(t *testing.T) {
	grouped(t, func(t *testing.T, x *bench) {
		x.close()
		l := limits.Unthrottled()
		x.o.Limits, x.o.Random = &l, rand.NewPCG(1, 2) // so each run is the same
		x.open()
		id := x.queue("q", nil)
		g := x.groups(id, "", ":wanted")
		for i := range 1000 {
			x.send(id, "loud", []string{"", "x"}[i%2], "m") // none of them wanted
		}
		for range 400 {
			for _, channel := range []string{"", "a", "b"} {
				m := queue.NewMessage{Message: queue.Message{Body: []byte("m"), Properties: []queue.Property{{Name: "wanted"}}}, Channel: channel}
				if _, err := x.b.Publish(t.Context(), PublishRequest{Queue: id, Messages: []queue.NewMessage{m}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, want := range []int{4, 3} {
			from := map[string]int{}
			for range 300 {
				got := x.get(ReceiveRequest{Queue: id, Group: g[i], Limit: 1, Visibility: time.Hour})
				from[got[0].Channel]++
			}
			if len(from) != want {
				t.Errorf("group %d takes from %v", i, from)
			}
			for channel, n := range from {
				if share := 300 / want; n < share*2/3 || n > share*4/3 {
					t.Errorf("group %d takes %d of 300 from channel %q, one of %d", i, n, channel, want)
				}
			}
		}
	})
}

// TestUnrouted: what no group accepts is counted, and gone, or kept where it
// can be read, as the server is told.
func TestUnrouted(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := limits.Unthrottled()
			x := newBench(t, testdisk.New())
			defer x.shut()
			x.close()
			x.o.Limits, x.o.KeepUnrouted = &l, keep
			x.open()
			id := x.queue("q", nil)
			x.groups(id, `:kind = "order"`, `:kind = "bill"`)
			first := x.send(id, "c", "other", "lost?")
			if second := x.send(id, "c", "order", "routed"); second <= first {
				t.Errorf("id %d comes after %d", second, first)
			}
			x.close() // an id that was answered is never given out again
			x.open()
			if third := x.send(id, "", "other", "lost too?"); third <= first+1 {
				t.Errorf("id %d was given out before", third)
			}
			events := x.b.Snapshot().Queues[0].Events
			if events[evUnrouted] != 1 || events[evPublished] != 1 {
				t.Errorf("events since the restart: %v", events)
			}
			want := ""
			if keep {
				want = "lost too? lost?"
			}
			var got []string
			for range 2 { // channels come in any order
				bodies, receipts := x.take(ReceiveRequest{Queue: id, Group: queue.UnroutedGroup, Visibility: time.Hour})
				if bodies == "" {
					continue
				}
				got = append(got, bodies)
				if errs, err := x.b.Delete(t.Context(), id, queue.UnroutedGroup, receipts); err != nil || errs[0] != nil {
					t.Error(errs, err)
				}
			}
			if slices.Sort(got); strings.Join(got, " ") != want {
				t.Errorf("kept %v: got %q, want %q", keep, got, want)
			}
			x.check()
		})
	}
}
