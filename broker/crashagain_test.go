package broker

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// Power that fails while the server comes up from a loss of power: the store
// reads its log, writes it into tables, and changes the list of these; then
// the broker ends what fell due. Whenever that is cut short, the next start
// must find what the one before would have found.

// copyOf is the disk as it is.
func copyOf(disk *testdisk.Disk) *testdisk.Disk { return disk.Crash(100, rand.NewPCG(1, 1)) }

func lookOptions(disk *testdisk.Disk) store.Options {
	return store.Options{FS: disk, QuietScheduler: true, MemtableBytes: 1 << 20, CacheBytes: 1 << 20}
}

// copies are the crashes of a disk while something is done with it.
type copies struct {
	disk *testdisk.Disk

	mu  sync.Mutex
	off bool
	all []copied
}

type copied struct {
	percent int
	disk    *testdisk.Disk
}

// before is the hook of the disk.
func (c *copies) before(testdisk.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.off {
		for _, percent := range survivals {
			c.all = append(c.all, copied{percent, c.disk.Crash(percent, rand.NewPCG(uint64(len(c.all)), 7))})
		}
	}
	return nil
}

// begin begins anew.
func (c *copies) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off, c.all = false, nil
}

// end stops it, and gives what it has.
func (c *copies) end() []copied {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	return c.all
}

// crashAgain opens the copy of a crash whose content is that of w, crashes it
// at every step of that, and looks for the same in what is left. deep is how
// many crashes it had while it was opened.
func (c *crasher) crashAgain(w *world, p *crashPoint, began queue.Instant, disk *testdisk.Disk, deep int) error {
	made := &copies{disk: disk}
	o := lookOptions(nil)
	o.FS, o.MemtableBytes = disk.Watch(made.before), c.so.MemtableBytes // small: a replay of several tables
	s, err := store.Open("data", o)
	if err != nil {
		return fmt.Errorf("a copy does not open with small tables: %w", err)
	}
	list := made.end()
	if err := s.Close(); err != nil {
		return err
	}
	deeper := c.random.IntN(len(list) + 1)
	for i, again := range list {
		c.again++
		if deep > 0 {
			c.twice++
		}
		var unopened *testdisk.Disk
		if i == deeper && deep == 0 {
			unopened = copyOf(again.disk)
		}
		if err := holds(w, again.disk, p.at, began); err != nil {
			return fmt.Errorf("crash %d of %d while a start was under way (%d deep), with %d%%: %w", i+1, len(list), deep, again.percent, err)
		}
		if unopened != nil {
			if err := c.crashAgain(w, p, began, unopened, deep+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// crashStart starts the broker of a copy, and crashes every third of them at
// every step of that, up to when it has done what had fallen due.
func (c *crasher) crashStart(w *world) error {
	if c.revived%3 > 0 {
		w.start()
		return nil
	}
	made := &copies{disk: w.disk}
	w.hook = made.before
	w.start()
	before := w.fork() // follow allows for what time alone has made of it
	w.settle(0)
	w.hook = nil // the disk of this start keeps it
	at := w.now()
	for i, again := range made.end() {
		c.again++
		if err := holds(before, again.disk, at, 0); err != nil {
			return fmt.Errorf("crash %d of a start of the broker, with %d%%: %w", i+1, again.percent, err)
		}
	}
	return nil
}

// holds looks for the content of w in a copy.
func holds(w *world, disk *testdisk.Disk, at, began queue.Instant) (err error) {
	s, err := store.Open("data", lookOptions(disk))
	if err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	census, err := takeCensus(s, true)
	if err != nil {
		return err
	}
	w = w.fork()
	if err := w.agrees(s, census); err != nil {
		return err
	}
	return w.reconcile(w.messages, census, at, began)
}
