package store

import (
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queued-mq/queued/store/testdisk"
)

// stuck is a disk on which no compaction can write a table before it is
// released.
type stuck struct {
	vfs.FS
	reached chan struct{} // takes one for each that has begun to
	release chan struct{}
}

func (d *stuck) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c == "pebble-compaction" {
		d.reached <- struct{}{}
		<-d.release
	}
	return d.FS.Create(name, c)
}

func stick(fs vfs.FS) *stuck {
	return &stuck{fs, make(chan struct{}, 100), make(chan struct{})}
}

// TestStartDoesNotCompact: a store with much to compact is open before any of
// that is done, however long it takes, and then does it.
func TestStartDoesNotCompact(t *testing.T) {
	for name, quiet := range map[string]bool{"quiet": true, "with ticks": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crashed := overdue(t, quiet)
				disk := stick(crashed)
				var s *Store
				var err error
				opened := make(chan struct{})
				go func() {
					defer close(opened)
					s, err = Open("data", Options{FS: disk, QuietScheduler: quiet})
				}()
				synctest.Wait()
				select {
				case <-opened:
				default:
					t.Error("the start waits for a compaction")
				}
				if len(disk.reached) == 0 {
					t.Error("there is nothing to compact")
				}
				close(disk.release)
				<-opened
				if err != nil {
					t.Fatal(err)
				}
				if l, err := s.Load(); err != nil || l.State.Position != overdueCommits {
					t.Errorf("%d commits are there, %v", l.State.Position, err)
				}
				closed(t, s)
			})
		})
	}
}

const overdueCommits = 12

// overdue is a disk whose store is to be compacted, and has commits in its log.
func overdue(t *testing.T, quiet bool) *testdisk.Disk {
	t.Helper()
	whole := testdisk.New()
	disk := stick(whole)
	s, err := Open("data", Options{FS: disk, QuietScheduler: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(overdueCommits) {
		commit(t, s, putOne(n+1, 1000))
		if n < overdueCommits-3 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Wait()
	if len(disk.reached) == 0 {
		t.Fatal("there is nothing to compact")
	}
	crashed := whole.Crash(0, nil)
	close(disk.release)
	closed(t, s)
	return crashed
}
