package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/queued-mq/queued/queue"
)

// The action with transactions: in the model and at every crash they are whole,
// or not there.

// wantAction is an action and what the model knows of it.
type wantAction struct {
	Action
	q *wantQueue // of the message, or of the receipt if it is one of ours
	r issued
}

// transact is StartTransact for who waits.
func transact(b *Broker, actions []Action) (out []queue.Published, err error) {
	done := make(chan struct{})
	refused := b.StartTransact(actions, func(o []queue.Published, e error) {
		out, err = o, e
		close(done)
	})
	if refused != nil {
		return nil, refused
	}
	<-done
	return out, err
}

func (w *world) transact() {
	var list []wantAction
	for range w.roll("puts", 4) {
		q := w.queue()
		for _, m := range w.newMessages(q, 3) {
			list = append(list, wantAction{Action: Action{Queue: q.ID, Message: &m}, q: q})
		}
	}
	for _, r := range w.running(3) {
		q := r.q
		if w.roll("wrong queue", 40) == 0 {
			q = w.queue()
		}
		list = append(list, wantAction{Action{Queue: q.ID, Receipt: r.receipt, Return: w.roll("return", 3) == 0}, q, r})
	}
	for i := len(list) - 1; i > 0; i-- {
		k := w.roll("order", i+1)
		list[i], list[k] = list[k], list[i]
	}
	w.note("transaction: %s", describe(list))
	actions := make([]Action, len(list))
	for i := range list {
		actions[i] = list[i].Action
	}
	out, err := transact(w.b, actions)
	w.transacted(list, out, err)
	w.settle(0)
}

// running are receipts of which nearly all may be settled.
func (w *world) running(most int) (list []issued) {
	for _, r := range w.receipts(most) {
		if m, there, ok := w.delivery(r.q, r); ok && there && w.runs(m) || w.roll("stale", 12) == 0 {
			list = append(list, r)
		}
	}
	return list
}

func (w *world) runs(m want) bool {
	return m.state == inFlight && m.until > w.now() && m.expire > w.now()
}

func describe(list []wantAction) string {
	var b strings.Builder
	for _, a := range list {
		switch {
		case a.Message != nil:
			fmt.Fprintf(&b, "put to %s channel %q; ", a.Queue, a.Message.Channel)
		default:
			fmt.Fprintf(&b, "end %d by lease %d in %s, return %v; ", a.r.id, a.r.lease, a.Queue, a.Return)
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// wrong says which actions of a transaction cannot be done.
func (w *world) wrong(list []wantAction) (at []int) {
	puts := make(map[*wantQueue][]queue.NewMessage)
	used := make(map[queue.Receipt]bool)
	for i, a := range list {
		if a.Message != nil {
			before := puts[a.q]
			all := append(slices.Clip(before), *a.Message)
			if puts[a.q] = all; w.refuses(a.q, all) && (len(before) == 0 || !w.refuses(a.q, before)) {
				at = append(at, i)
			}
			continue
		}
		m, there, ok := w.delivery(a.q, a.r)
		if !there || !ok || !w.runs(m) || used[a.Receipt] {
			at = append(at, i)
		}
		used[a.Receipt] = true
	}
	return at
}

// transacted takes a transaction into the model.
func (w *world) transacted(list []wantAction, out []queue.Published, err error) {
	w.t.Helper()
	wrong := w.wrong(list)
	if len(wrong) > 0 {
		w.hits["transactions refused"]++
		named, ok := errors.AsType[*ActionError](err)
		if !ok || !slices.Contains(wrong, named.Action) {
			w.fail("a transaction of which %d cannot be done: %v", wrong, err)
		}
		code := queue.LimitExceeded
		if list[named.Action].Message == nil {
			code = queue.NotAuthorizedOrNotFound
		}
		if queue.CodeOf(err) != code {
			w.fail("a transaction is refused with %v, want %s", err, code)
		}
		return
	}
	if err != nil {
		w.fail("transaction: %v", err)
	}
	now, queues := w.now(), make(map[*wantQueue]sent)
	for _, a := range list {
		if a.Message != nil {
			s := queues[a.q]
			s.Messages, s.out = append(s.Messages, *a.Message), append(s.out, out[0])
			queues[a.q], out = s, out[1:]
			continue
		}
		m, _, _ := w.delivery(a.q, a.r)
		switch m.until = now; {
		case !a.Return:
			delete(w.messages, m.place())
			continue
		case !m.exhausted():
			m.state = visible
		}
		w.messages[m.place()] = m
	}
	if len(out) > 0 {
		w.fail("a transaction tells of %d messages too many", len(out))
	}
	last := w.lastID
	for q, s := range queues {
		w.lastID = last // queues are in no order
		w.published(q, s, false)
	}
	for _, s := range queues {
		w.lastID = max(w.lastID, s.out[len(s.out)-1].ID)
	}
	if w.hits["transactions"]++; len(queues) > 1 {
		w.hits["transactions of several queues"]++
	}
}

// TestModelOfTransactions is the world of TestModel with little but
// transactions, gets and time.
func TestModelOfTransactions(t *testing.T) {
	t.Parallel()
	whole, refused, several := 0, 0, 0
	for range 6 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t, func(_ string, n int) int { return r.IntN(n) })
			defer w.shut()
			w.note("seed %d", seed)
			w.settings()
			w.start()
			for range 3 {
				w.createQueue()
			}
			for range 80 {
				w.act([]wantAct{
					{20, "transact", w.transact}, {20, "get", w.get}, {4, "publish", w.publish}, {3, "sleep", w.sleep}, {2, "update", w.update},
					{1, "delete", w.delete}, {1, "purge", w.purge}, {1, "deleteQueue", w.deleteQueue}, {1, "restart", w.restart}, {2, "crash", w.crash},
					{1, "changeGroup", w.changeGroup}, {1, "changeLimit", w.changeLimit},
				})
			}
			w.finish()
			whole, refused, several = whole+w.hits["transactions"], refused+w.hits["transactions refused"], several+w.hits["transactions of several queues"]
		})
	}
	t.Logf("%d transactions, %d of them of several queues, and %d refused", whole, several, refused)
	if whole < 40 || refused < 10 || several < 10 {
		t.Error("these are too few")
	}
}
