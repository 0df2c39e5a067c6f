package broker

import (
	"math"
	"slices"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// wholeLane is the bound of a window that holds everything there is.
const wholeLane queue.MessageID = math.MaxUint64

// window is the front of one visible order of a lane, in memory: every entry
// with an id up to and including through, ascending. What is above it is on
// disk only. A lane has two: the fresh ones, which a publish appends to, and
// the returned ones, which a lapse puts back in their place.
type window struct {
	entries []store.Entry
	head    int // entries before it have been taken
	through queue.MessageID
	cap     int // most entries it keeps; the rest is on disk
}

func (w *window) len() int { return len(w.entries) - w.head }

func (w *window) live() []store.Entry { return w.entries[w.head:] }

func (w *window) front() *store.Entry { return &w.entries[w.head] }

func (w *window) pop() store.Entry {
	e := w.entries[w.head]
	if w.head++; w.head == len(w.entries) {
		w.entries, w.head = w.entries[:0], 0
	}
	return e
}

// find reports where the entry of that id stands, or would stand.
func (w *window) find(id queue.MessageID) (int, bool) {
	i, ok := slices.BinarySearchFunc(w.live(), id, func(e store.Entry, id queue.MessageID) int {
		switch {
		case e.ID < id:
			return -1
		case e.ID > id:
			return 1
		}
		return 0
	})
	return w.head + i, ok
}

// add puts e in its place, if that is within the window. left is the entry
// that is now on disk only, e itself or one that had to make room.
func (w *window) add(e store.Entry) (left store.Entry, isLeft bool) {
	if e.ID > w.through {
		return e, true
	}
	if w.head > 64 && w.head*2 > len(w.entries) && len(w.entries) == cap(w.entries) {
		n := copy(w.entries, w.live())
		w.entries, w.head = w.entries[:n], 0
	}
	if n := len(w.entries); w.len() == 0 || w.entries[n-1].ID < e.ID {
		w.entries = append(w.entries, e)
	} else {
		i, _ := w.find(e.ID)
		w.entries = slices.Insert(w.entries, i, e)
	}
	if w.len() <= w.cap {
		return store.Entry{}, false
	}
	last := len(w.entries) - 1
	left = w.entries[last]
	w.entries = w.entries[:last]
	w.through = left.ID - 1
	return left, true
}

// remove takes the entry of that id out.
func (w *window) remove(id queue.MessageID) (store.Entry, bool) {
	i, ok := w.find(id)
	if !ok {
		return store.Entry{}, false
	}
	e := w.entries[i]
	if i == w.head {
		w.pop()
	} else {
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	return e, true
}

// forget lets go of the memory; through says up to where nothing is left.
func (w *window) forget(through queue.MessageID) {
	*w = window{through: through, cap: w.cap}
}
