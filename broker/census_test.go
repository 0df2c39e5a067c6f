package broker

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// found is one message as the rows of a store tell of it.
type found struct {
	store.ScannedMessage
	key   store.LaneKey
	state store.Row
	until queue.Instant // leased: when the visibility timeout ends
}

// census is everything a store holds, read row by row and counted anew.
type census struct {
	store.Load
	lanes    map[store.LaneKey]store.Lane
	messages map[place]*found
}

// place is where a message is: what several groups have has one id.
type place struct {
	id    queue.MessageID
	group uint32
}

func (f *found) place() place { return place{f.ID, f.key.Group} }

// id is the queue of that number, "" if there is none.
func (c *census) id(n store.QueueNumber) queue.ID {
	for i := range c.Queues {
		if c.Queues[i].Number == n {
			return c.Queues[i].ID
		}
	}
	return ""
}

// takeCensus reads the whole store and fails where two rows contradict one
// another: a counter and what it counts, an index and what it points to. It
// counts apart from store.Check, which it calls too if it is to look at all,
// rows that were left over included. Lanes that are being removed are passed
// over.
func takeCensus(s *store.Store, all bool) (*census, error) {
	load, err := s.Load()
	if err != nil {
		return nil, err
	}
	c := &census{Load: load, lanes: make(map[store.LaneKey]store.Lane), messages: make(map[place]*found)}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	queues := make(map[store.QueueNumber]store.Queue)
	for _, q := range load.Queues {
		queues[q.Number] = q
	}
	live := make(map[store.LaneID]store.Lane)
	waiting := len(load.Removals) > 0
	err = s.Lanes(func(l store.Lane) error {
		if q, known := queues[l.Key.Queue]; known && (!l.Key.Dead || l.ID > deadThrough(&q, l.Key.Group)) {
			live[l.ID], c.lanes[l.Key] = l, l
		} else if !l.Key.Dead {
			wrong("lane %d is of queue %d, which is not there", l.ID, l.Key.Queue)
		} else {
			waiting = true // its row goes yet
		}
		if l.Key.Dead {
			if d, ok, err := s.DeadLane(l.ID); err != nil || !ok || d.ID != l.ID || d.Key != l.Key {
				wrong("dead lane %d is not found by its number: %+v %v %v", l.ID, d, ok, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	leases := make(map[store.LaneID]map[queue.MessageID]store.Lease)
	err = s.Leases(func(id store.LaneID, l store.Lease) error {
		if leases[id] == nil {
			leases[id] = make(map[queue.MessageID]store.Lease)
		}
		leases[id][l.ID] = l
		return nil
	})
	if err != nil {
		return nil, err
	}
	timers := func(scan func(from, through queue.Instant, max int) ([]store.Timer, queue.Instant, error), from queue.Instant, name string) map[store.Timer]bool {
		rows, _, err := scan(0, math.MaxInt64, math.MaxInt)
		if err != nil {
			wrong("%s rows: %v", name, err)
		}
		out := make(map[store.Timer]bool)
		for _, t := range rows {
			out[t] = true
			if _, there := live[t.Lane]; t.At < from && (there || name == "t") {
				wrong("%s row %+v is before the lower bound %d", name, t, from)
			}
		}
		return out
	}
	due := timers(s.ScanDue, load.State.DueFrom, "t")
	expiry := timers(s.ScanExpiry, load.State.ExpiryFrom, "x")

	for id, l := range live {
		messages, _, err := s.ScanMessages(id, 0, math.MaxInt, math.MaxInt64, false)
		if err != nil {
			return nil, err
		}
		returned, _, err := s.ScanReturned(id, 0, math.MaxInt)
		if err != nil {
			return nil, err
		}
		back := make(map[queue.MessageID]store.Entry)
		for _, e := range returned {
			back[e.ID] = e
			if e.ID < l.Returning {
				wrong("lane %d: message %d is below the bound of v rows %d", id, e.ID, l.Returning)
			}
		}
		count := store.Lane{ID: l.ID, Key: l.Key, Cursor: l.Cursor, Oldest: l.Oldest, Returning: l.Returning, LastAfter: l.LastAfter}
		for _, m := range messages {
			f := &found{ScannedMessage: m, key: l.Key}
			lease, leased := leases[id][m.ID]
			e, isBack := back[m.ID]
			timer := store.Timer{At: m.DueAt, Lane: id, ID: m.ID}
			delayed := m.DueAt != 0 && due[timer]
			switch {
			case leased && !isBack && !delayed:
				f.state, f.Entry, f.until = store.Leased, lease.Entry, lease.VisibleAfter
				count.InFlight++
			case isBack && !leased && !delayed:
				f.state, f.Entry = store.Returned, e
				count.Returned++
			case delayed && !leased && !isBack:
				f.state = store.Delayed
				count.Delayed++
			case !leased && !isBack && !delayed && m.ID > l.Cursor && !l.Key.Dead:
				f.state = store.Fresh
				count.Fresh++
			default:
				wrong("lane %d: message %d is in no one state: lease %v, returned %v, delayed %v, cursor %d",
					id, m.ID, leased, isBack, delayed, l.Cursor)
			}
			if f.Entry.Size != m.Entry.Size || f.Entry.ExpireAfter != m.Entry.ExpireAfter ||
				f.Entry.Indexed != m.Entry.Indexed || f.Entry.Visibility != m.Entry.Visibility {
				wrong("message %d is %+v in its own row and %+v in that of its state", m.ID, m.Entry, f.Entry)
			}
			if int64(f.Entry.Size) != f.Message.Size() {
				wrong("message %d counts %d octets and has %d", m.ID, f.Entry.Size, f.Message.Size())
			}
			if !m.Entry.Indexed && m.ID < l.Oldest {
				wrong("lane %d: message %d is below the oldest, %d", id, m.ID, l.Oldest)
			}
			if x := (store.Timer{At: m.Entry.ExpireAfter, Lane: id, ID: m.ID}); m.Entry.Indexed {
				count.Indexed++
				if !expiry[x] {
					wrong("message %d has no x row", m.ID)
				}
				delete(expiry, x)
			}
			count.Bytes += int64(f.Entry.Size)
			delete(leases[id], m.ID)
			delete(back, m.ID)
			delete(due, timer)
			if c.messages[f.place()] != nil {
				wrong("message %d is there twice", m.ID)
			}
			if f.Entry.Shared != m.Entry.Shared {
				wrong("message %d is shared: %v in its own row and %v in that of its state", m.ID, m.Entry.Shared, f.Entry.Shared)
			}
			if m.Entry.Shared {
				count.Shared += int64(m.Entry.Size)
			}
			if m.ID > load.State.Message || f.Entry.Lease > load.State.Lease {
				wrong("message %d with lease %d is beyond the highest: %+v", m.ID, f.Entry.Lease, load.State)
			}
			c.messages[f.place()] = f
		}
		if count != l {
			wrong("lane %d is\n%+v and counts\n%+v", id, l, count)
		}
		if n := len(leases[id]) + len(back); n > 0 {
			wrong("lane %d: %d rows tell the state of no message", id, n)
		}
	}
	for _, rows := range []map[store.Timer]bool{due, expiry} {
		for t := range rows {
			if _, known := live[t.Lane]; known {
				wrong("timer row %+v has no message", t)
			}
		}
	}
	if err := c.bodies(s, waiting); err != nil {
		errs = append(errs, err)
	}
	if all {
		errs = append(errs, s.Check())
	}
	return c, errors.Join(errs...)
}

// deadThrough is up to which number the dead lanes of a group were purged: all,
// if the group is gone.
func deadThrough(q *store.Queue, group uint32) store.LaneID {
	if group == 0 {
		return q.DeadThrough
	}
	for i := range q.Groups {
		if g := &q.Groups[i]; g.Number == group && g.Live() {
			return g.DeadThrough
		}
	}
	return math.MaxUint64
}

// bodies looks whether what several groups have is counted as they have it.
// Lanes that are being removed have some too.
func (c *census) bodies(s *store.Store, waiting bool) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	type channel struct {
		queue store.QueueNumber
		name  string
	}
	has, octets := make(map[queue.MessageID]uint32), make(map[channel]int64)
	for at, f := range c.messages {
		if !f.Entry.Shared {
			continue
		}
		if has[at.id]++; has[at.id] == 1 {
			octets[channel{f.key.Queue, f.key.Channel}] += int64(f.Entry.Size)
		}
	}
	for id, n := range has {
		says, err := s.Holders(id)
		if err != nil || says < n || says > n && !waiting {
			wrong("message %d says that %d have it (%v), and %d have", id, says, err, n)
		}
	}
	err := s.Shared(func(u store.Shared) {
		at := channel{u.Queue, u.Channel}
		if u.Bytes < octets[at] || u.Bytes > octets[at] && !waiting {
			wrong("channel %+v says that %d octets are shared, and %d are", at, u.Bytes, octets[at])
		}
		delete(octets, at)
	})
	for at, n := range octets {
		if n > 0 {
			wrong("channel %+v does not say that %d octets are shared", at, n)
		}
	}
	return errors.Join(append(errs, err)...)
}

// memoryAgrees compares what the broker has in memory with the rows on disk,
// and both bounds of it.
func memoryAgrees(b *Broker, c *census) error {
	type order struct{ fresh, returned []store.Entry }
	disk := make(map[store.LaneKey]*order)
	for _, at := range slices.SortedFunc(maps.Keys(c.messages), place.compare) {
		f, id := c.messages[at], at.id
		o := disk[f.key]
		if o == nil {
			o = &order{}
			disk[f.key] = o
		}
		l := b.lanes[c.lanes[f.key].ID]
		switch {
		case l == nil:
			if !f.key.Dead {
				return fmt.Errorf("the lane %+v is not in memory", f.key)
			}
		case f.state == store.Fresh && id <= l.fresh.through:
			o.fresh = append(o.fresh, f.Entry)
		case f.state == store.Returned && id <= l.returned.through && l.parked[id] != f.Entry && l.dying[id] != f.Entry:
			o.returned = append(o.returned, f.Entry)
		}
	}
	entries, reading := 0, 0
	for _, l := range b.lanes {
		o := disk[l.row.Key]
		if o == nil {
			o = &order{}
		}
		if !slices.Equal(l.fresh.live(), o.fresh) || !slices.Equal(l.returned.live(), o.returned) {
			return fmt.Errorf("lane %+v has in memory\n%+v\n%+v\nand on disk\n%+v\n%+v", l.row, l.fresh, l.returned, o.fresh, o.returned)
		}
		if have := cap(l.fresh.entries) + cap(l.returned.entries); have != l.charged {
			return fmt.Errorf("lane %+v holds %d entries and is charged for %d", l.row.Key, have, l.charged)
		}
		if entries += l.charged; l.refill != nil {
			reading += l.charged // they are let go of later
		}
	}
	if entries != b.windows.total || entries-reading > b.windows.limit {
		return fmt.Errorf("windows hold %d entries, %d are counted, %d may be", entries, b.windows.total, b.windows.limit)
	}
	var octets int64
	for _, m := range b.bodies.byID {
		octets += cost(m)
	}
	if octets != b.bodies.size || octets > b.bodies.limit {
		return fmt.Errorf("bodies of %d octets are in memory, %d are counted, %d may be", octets, b.bodies.size, b.bodies.limit)
	}
	return nil
}
