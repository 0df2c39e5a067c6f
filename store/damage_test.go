package store

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
)

// flip is a copy of the disk in which one bit of a file is wrong.
func flip(t testing.TB, disk vfs.FS, file string, offset int) *vfs.MemFS {
	t.Helper()
	out := vfs.NewMem()
	if _, err := vfs.Clone(disk, out, "data", "data"); err != nil {
		t.Fatal(err)
	}
	b, err := readFile(out, out.PathJoin("data", file))
	if err != nil {
		t.Fatal(err)
	}
	b[offset] ^= 0x10
	write(t, out, out.PathJoin("data", file), b)
	return out
}

// TestDamagedLog: one wrong bit in the log stops Open with an error that names
// the file, and nothing is changed. Only in the last block it cannot be told
// from a torn tail: what was stored before it is there, and nothing that was
// stored behind it.
func TestDamagedLog(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	const commits = 60
	ends := []int{0} // of each commit
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 4000))
		all := files(t, disk, "data")
		ends = append(ends, len(all[newest(t, all, "*.log")]))
	}
	closed(t, s)
	all := files(t, disk, "data")
	log := newest(t, all, "*.log")
	lastBlock := ends[commits] / blockLen * blockLen
	var refused, torn int
	for offset := 7; offset < len(all[log]); offset += 2999 {
		damaged := flip(t, disk, log, offset)
		before := files(t, damaged, "data")
		s, err := Open("data", Options{FS: damaged})
		if err == nil {
			torn++
			intact, _ := slices.BinarySearch(ends, offset+1)
			l, err := s.Load()
			if err != nil || l.State.Position != uint64(intact-1) || offset < lastBlock-4096 {
				t.Errorf("offset %d of %d: %d commits are there, %d were stored before it, %v", offset, len(all[log]), l.State.Position, intact-1, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		refused++
		if !strings.Contains(err.Error(), log) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, log, err)
		}
		if diff := cmp.Diff(before, files(t, damaged, "data")); diff != "" {
			t.Errorf("offset %d: the folder has changed:\n%s", offset, diff)
		}
	}
	if refused < 60 || torn == 0 || torn > 12 {
		t.Errorf("%d offsets refused, %d taken for a torn tail", refused, torn)
	}
}

// TestDamagedOldLog: a log that another one came after was ended in order, so
// nothing wrong in it is a torn tail.
func TestDamagedOldLog(t *testing.T) {
	disk := vfs.NewMem()
	release := make(chan struct{})
	var blocked atomic.Bool
	slow := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if blocked.Load() && op.Kind == errorfs.OpCreate && path.Ext(op.Path) == ".sst" {
			<-release
		}
		return nil
	}))
	s, err := Open("data", Options{FS: slow, MemtableBytes: 1 << 20, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	// The memtable is full and cannot be written yet: there are two logs.
	blocked.Store(true)
	old, n := newest(t, files(t, disk, "data"), "*.log"), uint64(0)
	for newest(t, files(t, disk, "data"), "*.log") == old {
		n++
		commit(t, s, putOne(n, 4000))
	}
	both := vfs.NewMem()
	if _, err := vfs.Clone(disk, both, "data", "data"); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := files(t, both, "data")
	for _, back := range []int{100, 5000, 50_000} {
		damaged := flip(t, both, old, len(before[old])-back)
		_, err := Open("data", Options{FS: damaged})
		if err == nil || !strings.Contains(err.Error(), old) {
			t.Errorf("%d octets before its end: %v", back, err)
		}
		now := files(t, damaged, "data")
		now[old] = before[old]
		untouched(t, before, now)
	}
	whole := open(t, both)
	if l, err := whole.Load(); err != nil || l.State.Position != n {
		t.Errorf("undamaged: %d commits of %d, %v", l.State.Position, n, err)
	}
}

// TestDamagedTable: one wrong bit in a table stops the store, when it is
// opened or when the place is read, and names the file; nothing is deleted.
func TestDamagedTable(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	const commits = 100
	for n := uint64(1); n <= commits; n++ {
		commit(t, s, putOne(n, 1000))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	all := files(t, disk, "data")
	table := newest(t, all, "*.sst")
	for offset := 11; offset < len(all[table]); offset += len(all[table]) / 12 {
		damaged := flip(t, disk, table, offset)
		before := files(t, damaged, "data")[table]
		fatal, died := mortal()
		stopped, returned := until(t, died, func() error {
			s, err := Open("data", Options{FS: damaged, Fatal: fatal, QuietScheduler: true})
			if err != nil {
				return err
			}
			found, _, err := s.ScanMessages(1, 0, 1000, 1<<30, false)
			if err == nil && len(found) == commits {
				return s.Close() // the bit is of no account
			}
			if err == nil {
				t.Errorf("offset %d: %d messages of %d, and no error", offset, len(found), commits)
			}
			return err
		})
		err := stopped
		if err == nil {
			err = returned
		}
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(table, ".sst")) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, table, err)
		}
		// Other files may go, as at any start.
		if b, err := readFile(damaged, damaged.PathJoin("data", table)); err != nil || string(b) != before {
			t.Errorf("offset %d: the table has changed: %v", offset, err)
		}
	}
}

// TestDamagedManifest: the list of the tables is guarded in the same way.
// Pebble alone would take damage in it for its end, open the store as it was
// long ago or empty, and delete the tables that came later.
func TestDamagedManifest(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	last, manifest := 0, ""
	const commits = 5
	for n := uint64(1); n <= commits; n++ {
		all := files(t, disk, "data")
		manifest = newest(t, all, "MANIFEST-*")
		last = len(all[manifest])
		commit(t, s, putOne(n, 1000))
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	all := files(t, disk, "data")
	if err := checkManifest(disk, "data/"+manifest); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for offset := 0; offset < last; offset += 3 {
		damaged := flip(t, disk, manifest, offset)
		before := files(t, damaged, "data")
		s, err := Open("data", Options{FS: damaged})
		if err == nil {
			t.Errorf("offset %d of %d: opened", offset, len(all[manifest]))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		refused++
		if !strings.Contains(err.Error(), manifest) {
			t.Errorf("offset %d: the error does not name %s: %v", offset, manifest, err)
		}
		if diff := cmp.Diff(before, files(t, damaged, "data")); diff != "" {
			t.Errorf("offset %d: the folder has changed:\n%s", offset, diff)
		}
	}
	if refused < 50 {
		t.Errorf("%d offsets were tried", refused)
	}
	// A torn end is no damage: it was never synced.
	for length := last + 1; length < len(all[manifest]); length++ {
		torn := vfs.NewMem()
		write(t, torn, "data/"+manifest, []byte(all[manifest][:length]))
		if err := checkManifest(torn, "data/"+manifest); err != nil {
			t.Errorf("the first %d of %d octets: %v", length, len(all[manifest]), err)
		}
	}
}

// TestLongManifest: records that go over several blocks.
func TestLongManifest(t *testing.T) {
	disk := vfs.NewMem()
	var b bytes.Buffer
	w := record.NewWriter(&b)
	var begins []int
	for _, n := range []int{10, 40_000, 5, 100_000, 32_740, 1, 32_768 - 7, 70_000, 3} {
		r, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Write(bytes.Repeat([]byte{7}, n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		begins = append(begins, b.Len())
	}
	check := func(b []byte) error {
		write(t, disk, "m", b)
		return checkManifest(disk, "m")
	}
	if err := check(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	last := begins[len(begins)-2]
	for i := 0; i < last; i += 4999 {
		wrong := bytes.Clone(b.Bytes())
		wrong[i] ^= 4
		if err := check(wrong); err == nil && wrong[i] != 4 { // a flip in padding does no harm
			t.Errorf("a wrong bit at %d of %d was not seen", i, len(wrong))
		}
		// A write that was cut short leaves the beginning of a record, or
		// zeroes in the middle of one.
		if err := check(b.Bytes()[:i]); err != nil {
			t.Errorf("the first %d octets: %v", i, err)
		}
	}
	// The last record but one in three blocks: its second was not written.
	torn := bytes.Clone(b.Bytes()[:last])
	clear(torn[last-40_000 : last-39_000])
	if err := check(torn); err != nil {
		t.Errorf("a hole in the last record: %v", err)
	}
}
