package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// afterStart is Pebble's own scheduler, but lets no compaction begin before the
// store is open. While Pebble opens it writes out what was in the log, which
// may make a compaction due, and then it waits until none is under way. So a
// start could take as long as a compaction, and that grows with the backlog.
type afterStart struct {
	pebble.CompactionScheduler
	quiet bool // no ticks

	// What Register was called with, until the store is open.
	goroutines int
	db         pebble.DBForCompaction

	begun atomic.Bool
	stop  chan struct{}
	wg    sync.WaitGroup
}

func newAfterStart(quiet bool) *afterStart {
	// Pebble does not give out the one with ticks; grant does what they do.
	return &afterStart{
		CompactionScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(),
		quiet:               quiet,
		stop:                make(chan struct{}),
	}
}

func (s *afterStart) Register(goroutines int, db pebble.DBForCompaction) {
	s.goroutines, s.db = goroutines, db
}

// begin lets compactions begin; the store is open.
func (s *afterStart) begin() {
	s.CompactionScheduler.Register(s.goroutines, s.db)
	s.begun.Store(true)
	s.grant()
	if !s.quiet {
		s.wg.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-s.stop:
					return
				case <-ticker.C:
					s.grant()
				}
			}
		})
	}
}

// grant has a compaction begin that was refused, if one may run now: a
// permission that is given back goes to it.
func (s *afterStart) grant() {
	if ok, permission := s.CompactionScheduler.TrySchedule(); ok {
		permission.Done()
	}
}

func (s *afterStart) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.begun.Load() {
		return false, nil
	}
	return s.CompactionScheduler.TrySchedule()
}

// UpdateGetAllowedWithoutPermission would have an early tick.
func (s *afterStart) UpdateGetAllowedWithoutPermission() {}

func (s *afterStart) Unregister() {
	if s.begun.Load() {
		close(s.stop)
		s.wg.Wait()
		s.CompactionScheduler.Unregister()
	}
}
