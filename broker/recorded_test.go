package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/internal/history"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// recorded is one queue whose clients write down all that they do and are told
// (internal/history). They read the broker's clock, so theirs and the server's
// is one.
type recorded struct {
	b      *Broker
	id     queue.ID
	groups []queue.ID                       // its consumer groups; none: it has none
	accept func(*queue.NewMessage) []string // ids of those that a message is for
	rec    history.Recorder

	mu  sync.Mutex
	odd []error // answers that no client should ever get
	n   int     // bodies that were made
}

func (r *recorded) now() time.Time { return r.b.Now().Time() }

// group is one of the consumer groups, if there are some.
func (r *recorded) group(random *rand.Rand) queue.ID {
	if len(r.groups) == 0 {
		return ""
	}
	return r.groups[random.IntN(len(r.groups))]
}

// body is a content that no other message has, of that many octets or a few
// more.
func (r *recorded) body(size int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return fmt.Appendf(nil, "%d %0*d", r.n, size, 0)
}

// outcome reads what became of a request.
func (r *recorded) outcome(err error) history.Outcome {
	switch code := queue.CodeOf(err); {
	case err == nil:
		return history.Done
	case code == queue.NotAuthorizedOrNotFound:
		return history.Stale
	case code == queue.ServiceUnavailable || code == queue.InsufficientStorage:
		return history.Refused
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return history.Doubt
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.odd = append(r.odd, err)
	return history.Doubt
}

func (r *recorded) publish(messages ...queue.NewMessage) ([]queue.Published, error) {
	start, h := r.now(), history.History{}
	for i := range messages {
		m := &messages[i]
		p := history.Publish{Content: string(m.Body), Channel: m.Channel, Delay: m.Delay, Start: start, Outcome: history.Doubt}
		if r.accept != nil {
			p.For = r.accept(m)
		}
		h.Publishes = append(h.Publishes, p)
	}
	told := r.rec.Begin(h)
	out, err := r.b.Publish(context.Background(), PublishRequest{Queue: r.id, Messages: messages})
	outcome, end, answer := r.outcome(err), r.now(), history.History{}
	for i, p := range h.Publishes {
		if p.Outcome, p.End = outcome, end; err == nil {
			p.ID, p.Expire = int64(out[i].ID), out[i].ExpireAfter.Time()
		}
		answer.Publishes = append(answer.Publishes, p)
	}
	told(answer)
	return out, err
}

// receive asks for messages; why is what it means when ctx ends before the
// answer.
func (r *recorded) receive(ctx context.Context, q ReceiveRequest, why history.Loss) ([]queue.Delivery, error) {
	q.Queue = r.id
	lost := history.Lost{Group: string(q.Group), Start: r.now(), Why: why}
	if channel, exact := q.Filter.Exact(); exact {
		lost.Channels = []string{channel}
	}
	told := r.rec.Begin(history.History{Lost: []history.Lost{lost}})
	out, err := r.b.Receive(ctx, q)
	var h history.History
	lost.End = r.now()
	switch o := r.outcome(err); {
	case o == history.Doubt:
		h.Lost = append(h.Lost, lost)
	case o == history.Done && len(out) < q.Limit:
		lost.Why = history.Short
		h.Lost = append(h.Lost, lost)
	}
	for i := range out {
		d := &out[i]
		x := history.Delivery{
			Start: lost.Start, End: lost.End, Group: string(q.Group), Dead: d.DeadLetter != nil, Visibility: q.Visibility,
			ID: int64(d.ID), Content: string(d.Body), Channel: d.Channel, Receipt: string(d.Receipt), Count: d.DeliveryCount,
			VisibleAfter: d.VisibleAfter.Time(), CreatedAt: d.CreatedAt.Time(), Expire: d.ExpireAfter.Time(),
		}
		if d.DeadLetter != nil {
			x.DeadCount, x.DeadAt = d.DeadLetter.DeliveryCount, d.DeadLetter.At.Time()
		}
		if x.Dead != q.Dead {
			r.outcome(fmt.Errorf("a get with Dead %v got %+v", q.Dead, x))
		}
		h.Deliveries = append(h.Deliveries, x)
	}
	told(h)
	return out, err
}

func (r *recorded) update(receipt queue.Receipt, visibility time.Duration) {
	u := history.Update{Receipt: string(receipt), Visibility: visibility, Start: r.now(), Outcome: history.Doubt}
	told := r.rec.Begin(history.History{Updates: []history.Update{u}})
	out, err := r.b.Update(context.Background(), r.id, queue.AnyGroup, []VisibilityUpdate{{Receipt: receipt, Visibility: visibility}})
	if err == nil {
		err = out[0].Err
		u.VisibleAfter = out[0].VisibleAfter.Time()
	}
	u.Outcome, u.End = r.outcome(err), r.now()
	told(history.History{Updates: []history.Update{u}})
}

// delete reports how many messages are gone.
func (r *recorded) delete(receipts ...queue.Receipt) (gone int) {
	start, h := r.now(), history.History{}
	for _, receipt := range receipts {
		h.Deletes = append(h.Deletes, history.Delete{Receipt: string(receipt), Start: start, Outcome: history.Doubt})
	}
	told := r.rec.Begin(h)
	errs, err := r.b.Delete(context.Background(), r.id, queue.AnyGroup, receipts)
	end, answer := r.now(), history.History{}
	for i, d := range h.Deletes {
		of := err
		if err == nil {
			of = errs[i]
		}
		if d.Outcome, d.End = r.outcome(of), end; d.Outcome == history.Done {
			gone++
		}
		answer.Deletes = append(answer.Deletes, d)
	}
	told(answer)
	return gone
}

func (r *recorded) undeliver(receipts ...queue.Receipt) {
	var h history.History
	for _, receipt := range receipts {
		h.Undelivers = append(h.Undelivers, history.Undeliver{Receipt: string(receipt), Start: r.now()})
	}
	r.rec.Add(h)
	r.b.Undeliver(receipts)
}

// purge empties channels of a group and of its dead letter queue.
func (r *recorded) purge(group queue.ID, channels ...string) {
	p := history.Purge{Group: string(group), Channels: channels, Normal: true, Dead: true, Start: r.now(), Outcome: history.Doubt}
	told := r.rec.Begin(history.History{Purges: []history.Purge{p}})
	err := r.b.Admin(context.Background(), func(tx *Tx) error {
		tx.Purge(r.id, group, queue.PurgeBoth, channels)
		return nil
	})
	p.Outcome, p.End = r.outcome(err), r.now()
	told(history.History{Purges: []history.Purge{p}})
}

func (r *recorded) stats(group queue.ID) history.Stats {
	s := recordedStats(r.b.Stats(r.id, group, nil))
	if len(r.groups) > 0 { // a history counts contents, and each has the property kind
		s.Bytes -= int64(len("kind")+1) * (s.Visible + s.InFlight + s.Delayed)
		s.DeadBytes -= int64(len("kind")+1) * (s.DeadVisible + s.DeadInFlight)
	}
	return s
}

func recordedStats(main, dead queue.Stats) history.Stats {
	return history.Stats{
		Visible: main.Visible, InFlight: main.InFlight, Delayed: main.Delayed, Bytes: main.Bytes,
		DeadVisible: dead.Visible, DeadInFlight: dead.InFlight, DeadBytes: dead.Bytes,
	}
}

// drain receives and deletes all there is, when all else is over, and gives the
// history of everything.
func (r *recorded) drain() *history.History {
	groups := r.groups
	if len(groups) == 0 {
		groups = []queue.ID{""}
	}
	before, drain := make(map[queue.ID]history.Stats), r.now()
	for _, group := range groups {
		before[group] = r.stats(group)
	}
	for _, group := range groups {
		for _, dead := range []bool{false, true} {
			for {
				got, err := r.receive(context.Background(), ReceiveRequest{Group: group, Dead: dead, Limit: 20, Visibility: time.Hour}, history.Unanswered)
				if err != nil || len(got) == 0 {
					break
				}
				r.delete(receiptsOf(got)...)
			}
		}
	}
	h := r.rec.History(r.now())
	h.Drain, h.Before, h.After = drain, before[""], r.stats("")
	for _, group := range r.groups {
		h.Groups = append(h.Groups, history.Group{Name: string(group), Before: before[group], After: r.stats(group)})
	}
	if len(r.groups) > 0 {
		h.Unrouted = r.b.Snapshot().Queues[0].Events[evUnrouted]
	}
	return h
}

// judge fails the test for what no broker can have done that keeps its
// promises.
func (r *recorded) judge(t *testing.T, h *history.History) {
	t.Helper()
	for i, v := range h.Check() {
		if t.Error(v); i == 20 {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, err := range r.odd {
		if t.Error(err); i == 20 {
			break
		}
	}
}

// cutOff ends a history with what a disk holds of its queue.
func cutOff(h *history.History, disk *testdisk.Disk) (err error) {
	s, err := store.Open("data", lookOptions(disk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := takeCensus(s, true)
	if err != nil {
		return err
	}
	// Groups are in the order of their numbers.
	rest, before := &history.Rest{}, &h.Before
	if h.Rest = rest; len(h.Groups) > 0 {
		h.Rest = nil
	}
	of := func(group uint32) (*history.Stats, *history.Rest) {
		if len(h.Groups) == 0 {
			return before, rest
		}
		return &h.Groups[group].Before, h.Groups[group].Rest
	}
	h.Groups = slices.Clone(h.Groups)
	for i := range h.Groups {
		h.Groups[i].Rest = &history.Rest{}
	}
	var sums [4][2]queue.Stats
	for key, l := range c.lanes {
		sum := &sums[key.Group][side(key.Dead)]
		*sum = sum.Plus(l.Stats())
		to, _ := of(key.Group)
		*to = recordedStats(sums[key.Group][0], sums[key.Group][1])
	}
	for at, m := range c.messages {
		_, rest := of(at.group)
		f := history.Found{
			ID: int64(at.id), Content: string(m.Body), Channel: m.key.Channel, Dead: m.key.Dead, Count: int(m.Deliveries),
			CreatedAt: m.CreatedAt.Time(), Expire: m.Entry.ExpireAfter.Time(),
		}
		switch m.state {
		case store.Leased:
			f.State, f.Until = history.InFlight, m.until.Time()
		case store.Delayed:
			f.State = history.Delayed
		}
		if m.Dead != nil {
			f.DeadCount, f.DeadAt = int(m.Dead.Deliveries), m.Dead.At.Time()
		}
		rest.Messages = append(rest.Messages, f)
	}
	return nil
}

// happened fails a history in which something never happened, for then nothing
// was shown.
func happened(t *testing.T, h *history.History, what ...string) {
	t.Helper()
	n := map[string]int{"publishes": len(h.Publishes), "deliveries": len(h.Deliveries), "taken back": len(h.Undelivers), "purges": len(h.Purges)}
	count := func(what string, is bool) {
		if is {
			n[what]++
		}
	}
	for _, p := range h.Publishes {
		count("delayed", p.Delay > 0)
		count("refused", p.Outcome == history.Refused)
	}
	for _, d := range h.Deliveries {
		count("not the first", d.Count > 1)
		count("dead letters", d.Dead)
		count("short lives", d.Expire.Sub(d.CreatedAt) < time.Minute)
	}
	for _, l := range h.Lost {
		count("given up", l.Why == history.TakenBack)
	}
	for _, u := range h.Updates {
		count("extended", u.Outcome == history.Done && u.Visibility > 0)
		count("given back", u.Outcome == history.Done && u.Visibility == 0)
		count("too late to extend", u.Outcome == history.Stale)
	}
	for _, d := range h.Deletes {
		count("deleted", d.Outcome == history.Done)
		count("too late to delete", d.Outcome == history.Stale)
	}
	t.Log(n)
	for _, w := range what {
		if n[w] == 0 {
			t.Errorf("there were none: %s", w)
		}
	}
}
