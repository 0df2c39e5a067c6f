package store

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/store/testdisk"
)

// older is a disk with a store of the first format.
func older(t *testing.T) *testdisk.Disk {
	t.Helper()
	disk := testdisk.New()
	if err := disk.Unpack("testdata/format-1.tar.gz", "data"); err != nil {
		t.Fatal(err)
	}
	return disk.Crash(100, rand.NewPCG(1, 1)) // all of it synced
}

// formatOf is the format of a store as it stands, and its messages.
func formatOf(t *testing.T, o Options) (uint64, []string) {
	t.Helper()
	s, err := OpenReadOnly("data", o)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	return s.format, messagesOf(t, s)
}

// TestUpgradeCrashes loses power at every write of the first start with an
// older store: it is one of the old format or of the new one, with all that
// was in it, and the next start ends what the first began.
func TestUpgradeCrashes(t *testing.T) {
	disk := older(t)
	_, want := formatOf(t, Options{FS: disk})
	var mu sync.Mutex
	var crashes []*testdisk.Disk
	watched := disk.Watch(func(testdisk.Step) error {
		mu.Lock()
		defer mu.Unlock()
		for _, unsynced := range []int{0, 50, 100} {
			crashes = append(crashes, disk.Crash(unsynced, rand.NewPCG(uint64(len(crashes)), 1)))
		}
		return nil
	})
	s, err := Open("data", Options{FS: watched, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	all := append(crashes, disk.Crash(0, rand.NewPCG(1, 1))) // the start has been answered
	mu.Unlock()
	closed(t, s)
	formats := map[uint64]int{}
	for i, c := range all {
		format, rows := formatOf(t, Options{FS: c})
		formats[format]++
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("crash %d, messages (-before the upgrade +after the crash):\n%s", i, diff)
		}
		if i == len(all)-1 && format != Format {
			t.Errorf("the upgrade was answered, and the format is %d", format)
		}
		s := open(t, c)
		if err := s.Check(); err != nil || s.format != Format {
			t.Errorf("crash %d, the start after it: format %d, %v", i, s.format, err)
		}
		if diff := cmp.Diff(want, messagesOf(t, s)); diff != "" {
			t.Errorf("crash %d, messages (-before the upgrade +after the start):\n%s", i, diff)
		}
		closed(t, s)
	}
	if t.Logf("crashes by format: %v", formats); formats[1] == 0 || formats[2] == 0 {
		t.Errorf("crashes by format: %v", formats)
	}
}

// TestUpgradeOnAFullDisk: without room for it the start ends with the disk's
// own error, and once there is room the next succeeds, with all that was there.
func TestUpgradeOnAFullDisk(t *testing.T) {
	_, want := formatOf(t, Options{FS: older(t)})
	refused := 0
	for room := int64(0); ; room += 256 {
		disk := older(t)
		small := &smallDisk{MemFS: disk.MemFS}
		small.size.Store(small.used() + room)
		fatal, died := mortal()
		var s *Store
		stopped, returned := until(t, died, func() (err error) {
			s, err = Open("data", Options{FS: small, Fatal: fatal, QuietScheduler: true})
			return err
		})
		if stopped == nil && returned == nil {
			closed(t, s)
			break
		}
		if err := errors.Join(stopped, returned); small.full.Load() == 0 || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			t.Fatalf("with %d octets of room: %v", room, err)
		}
		refused++
		for _, unsynced := range []int{0, 100} {
			after := open(t, disk.Crash(unsynced, rand.NewPCG(uint64(room), 1)))
			if diff := cmp.Diff(want, messagesOf(t, after)); diff != "" || after.format != Format {
				t.Errorf("with %d octets of room, the start after it: format %d, messages (-before +after):\n%s", room, after.format, diff)
			}
			closed(t, after)
		}
	}
	if t.Logf("%d starts had no room", refused); refused == 0 {
		t.Error("the disk was never full")
	}
}

// TestUnknownFormat: what is below the first format is refused as well.
func TestUnknownFormat(t *testing.T) {
	disk := older(t)
	s := open(t, disk)
	if err := s.db.Set(storeKey("format"), u64(nil, 0), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	for _, open := range []func(string, Options) (*Store, error){Open, OpenReadOnly} {
		if _, err := open("data", Options{FS: disk}); err == nil || !strings.Contains(err.Error(), "data has format 0; this version of queued reads up to 2") {
			t.Errorf("a store of no format there ever was: %v", err)
		}
	}
}
