package visibility

import (
	"math"
	"math/bits"
	"time"

	"github.com/queued-mq/queued/queue"
)

// Tick is how much later than its deadline a timer may be noticed by a loop
// that sleeps until Next.
const Tick = 100 * time.Millisecond

// Wheel holds timers and fires each at its instant, never before. It is not
// safe for concurrent use. Scheduling, moving and cancelling take constant
// time whatever the number of timers, and a cancelled timer is gone at once;
// a timer passes through one level after the other, once each, as its
// deadline comes nearer.
//
// The levels are hands of one clock that counts milliseconds in base 64: a
// slot of level 0 is one millisecond, of level 1 64 ms, of level 2 4 s, then
// 4 minutes, 5 hours, 12 days and so on to the end of time.
//
//	level       3    2    1    0
//	now         3 · 17 · 60 · 05
//	deadline    3 · 17 · 60 · 40     level 0, slot 40
//	deadline    3 · 17 · 61 · 02     level 1, slot 61
//	deadline    3 · 19 · 00 · 00     level 2, slot 19
//
// A timer lies on the level of the first digit in which its deadline differs
// from now, in the slot of that digit. So all slots in use are ahead of now,
// every timer of a level is due before any of the next, and one bit set per
// level finds the nearest: hours without a timer cost nothing. When now comes
// to a slot of a level above 0, its timers move to the levels below.
type Wheel[T any] struct {
	cur queue.Instant // what was due before it has been fired
	now queue.Instant // the latest that Advance was told, not before cur
	len int

	used  uint16              // bit l: level l has timers
	slots [levels]uint64      // bit s of slots[l]: slot s of level l has timers
	lists [late + 1]*Timer[T] // the first timer of each slot, of level 0 first

	sinking uint16 // the list whose timers are being moved down; 0 is none
	firing  bool   // Advance is at work
}

const (
	digit  = 6 // bits
	levels = (63 + digit - 1) / digit

	// Beside the slots is the list of those that are due when fire schedules
	// them: they wait for the next Advance, so that every Advance ends.
	late = levels << digit
)

// sinkFactor is how many timers an Advance may move down for each one it may
// fire: moving is that much cheaper than what firing leads to.
const sinkFactor = 16

// Timer is one deadline and what it is about. The zero Timer is ready to be
// scheduled. A scheduled Timer must not be copied, and belongs to one Wheel.
type Timer[T any] struct {
	Value T

	at         queue.Instant
	next, prev *Timer[T] // in a ring; nil when not scheduled
	list       uint16    // whose ring
}

// Scheduled reports whether t waits in a wheel: from Schedule until it fires
// or is cancelled.
func (t *Timer[T]) Scheduled() bool { return t.next != nil }

// At is the instant that t was last scheduled for, 0 if it never was.
func (t *Timer[T]) At() queue.Instant { return t.at }

// NewWheel is a wheel without timers that stands at now.
func NewWheel[T any](now queue.Instant) *Wheel[T] {
	now = max(now, 0)
	return &Wheel[T]{cur: now, now: now}
}

// Len is how many timers are scheduled.
func (w *Wheel[T]) Len() int { return w.len }

// Schedule makes t fire at the instant at, or at the next Advance if that has
// passed. If t is scheduled already it is moved.
func (w *Wheel[T]) Schedule(t *Timer[T], at queue.Instant) {
	if t.next != nil {
		w.unlink(t)
	} else {
		w.len++
	}
	t.at = at
	if w.firing && at <= w.now {
		w.link(t, late)
		return
	}
	w.place(t)
}

// Cancel makes t not fire. A timer that is not scheduled is left alone.
func (w *Wheel[T]) Cancel(t *Timer[T]) {
	if t.next == nil {
		return
	}
	w.unlink(t)
	w.len--
}

// Advance brings the wheel to now and fires the timers due at or before it, in
// the order of their deadlines, no more than max. A timer is no longer
// scheduled when fire is called with it; fire may schedule and cancel any
// timer, that one included, and one that it schedules for now or earlier waits
// for the next Advance. more is whether something is left to be done at now:
// then Advance wants to be called again. One call takes time in proportion to
// max, not to the timers or to the time passed; it can return more without
// having fired any. A now before that of an earlier call is taken as that one.
func (w *Wheel[T]) Advance(now queue.Instant, max int, fire func(*Timer[T])) (more bool) {
	if now > w.now {
		w.now = now
	}
	w.firing = true
	more = w.run(max, fire)
	w.firing = false

	if w.lists[late] != nil {
		more = true
		for t := w.lists[late]; t != nil; t = w.lists[late] {
			w.unlink(t)
			w.place(t)
		}
	}
	return more
}

// run does the work of Advance. While it has not come to an end, cur stays
// behind now, and timers are placed relative to cur.
func (w *Wheel[T]) run(max int, fire func(*Timer[T])) (more bool) {
	sink := sinkFactor * min(max, math.MaxInt/sinkFactor)
	for {
		if w.sinking != 0 {
			for t := w.lists[w.sinking]; t != nil; t = w.lists[w.sinking] {
				if sink <= 0 {
					return true
				}
				sink--
				w.unlink(t)
				w.place(t)
			}
			w.sinking = 0
		}

		list, at, ok := w.first()
		if !ok || at > w.now {
			w.cur = w.now
			return false
		}
		if max <= 0 {
			return true
		}
		w.cur = at
		if list>>digit > 0 {
			w.sinking = list // cur has come to it, so nothing is placed there any more
			continue
		}
		for t := w.lists[list]; t != nil; t = w.lists[list] {
			if max <= 0 {
				return true
			}
			max--
			w.unlink(t)
			w.len--
			fire(t)
		}
	}
}

// Next is an instant to sleep until: nothing is due before it, rounded up to a
// whole Tick, so that a loop that calls Advance then fires no timer more than
// a Tick late and many timers together. When something is due already it is an
// instant not after the last Advance. The time may come without anything being
// due; then Next says more. ok is false when no timer is scheduled.
func (w *Wheel[T]) Next() (at queue.Instant, ok bool) {
	if w.sinking != 0 && w.lists[w.sinking] != nil {
		return w.cur, true
	}
	_, at, ok = w.first()
	if at > w.now {
		const tick = queue.Instant(Tick / time.Millisecond)
		at += (tick - at%tick) % tick
	}
	return at, ok
}

// first is the nearest list in use and where it begins: on level 0 the very
// deadline of all its timers, unless that has passed.
func (w *Wheel[T]) first() (list uint16, at queue.Instant, ok bool) {
	if w.used == 0 {
		return 0, 0, false
	}
	level := bits.TrailingZeros16(w.used)
	slot := bits.TrailingZeros64(w.slots[level])
	shift := digit * level
	at = w.cur>>(shift+digit)<<(shift+digit) | queue.Instant(slot)<<shift
	return uint16(level<<digit | slot), at, true
}

// place puts t where its deadline belongs as seen from cur.
func (w *Wheel[T]) place(t *Timer[T]) {
	at := max(t.at, w.cur)
	level := (bits.Len64(uint64(at^w.cur)|1) - 1) / digit
	slot := int(at>>(digit*level)) & (1<<digit - 1)
	w.link(t, uint16(level<<digit|slot))
}

// link puts t at the end of a list.
func (w *Wheel[T]) link(t *Timer[T], list uint16) {
	t.list = list
	head := w.lists[list]
	if head == nil {
		t.next, t.prev = t, t
		w.lists[list] = t
		w.mark(list, true)
		return
	}
	t.next, t.prev = head, head.prev
	head.prev.next = t
	head.prev = t
}

// unlink takes t out of its list.
func (w *Wheel[T]) unlink(t *Timer[T]) {
	list := t.list
	if t.next == t {
		w.lists[list] = nil
		w.mark(list, false)
	} else {
		t.next.prev, t.prev.next = t.prev, t.next
		if w.lists[list] == t {
			w.lists[list] = t.next
		}
	}
	t.next, t.prev = nil, nil
}

// mark notes whether a slot has timers.
func (w *Wheel[T]) mark(list uint16, used bool) {
	if list == late {
		return
	}
	level, slot := list>>digit, list&(1<<digit-1)
	if used {
		w.slots[level] |= 1 << slot
	} else {
		w.slots[level] &^= 1 << slot
	}
	if w.slots[level] != 0 {
		w.used |= 1 << level
	} else {
		w.used &^= 1 << level
	}
}
