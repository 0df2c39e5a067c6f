package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/store/testdisk"
)

// files is what is in a folder, but for the file that locks it.
func files(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		b, err := readFile(fs, fs.PathJoin(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // gone in between
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// untouched fails if a file that was there has gone or changed.
func untouched(t testing.TB, before, now map[string]string) {
	t.Helper()
	for name, b := range before {
		if got, ok := now[name]; !ok || got != b {
			t.Errorf("%s has changed or gone", name)
		}
	}
}

// TestForeignFolder: the database of another program is refused, and stays as
// it is, whatever is in it.
func TestForeignFolder(t *testing.T) {
	for name, fill := range map[string]func(*pebble.DB) error{
		"empty": func(*pebble.DB) error { return nil },
		"rows":  func(db *pebble.DB) error { return db.Set([]byte("a"), []byte("b"), pebble.Sync) },
		"our key": func(db *pebble.DB) error {
			return db.Set(storeKey("format"), u64(nil, Format), pebble.Sync)
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			db, err := pebble.Open("data", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatFlushableIngest})
			if err != nil {
				t.Fatal(err)
			}
			if err := fill(db); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			before := files(t, disk, "data")
			_, err = Open("data", Options{FS: disk})
			if want := "open store: data holds a database that is not a store of queued"; err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
			if diff := cmp.Diff(before, files(t, disk, "data")); diff != "" {
				t.Errorf("the folder has changed:\n%s", diff)
			}
		})
	}
}

// TestNewerFormat: a store that a later version wrote is refused in one
// sentence.
func TestNewerFormat(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	commit(t, s, exampleChangeSet())
	rows := dump(t, s)
	if err := s.db.Set(storeKey("format"), u64(nil, Format+1), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	_, err := Open("data", Options{FS: disk})
	if want := fmt.Sprintf("open store: data has format %d; this version of queued reads up to %d: use a newer one", Format+1, Format); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	// Nothing was lost by the attempt.
	db, err := pebble.Open("data", &pebble.Options{FS: disk, Merger: merger})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Set(storeKey("format"), u64(nil, Format), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, dump(t, &Store{db: db})); diff != "" {
		t.Errorf("rows have changed:\n%s", diff)
	}
}

// TestDamagedIdentity: what a store says of itself is checked when it opens.
func TestDamagedIdentity(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  []byte // nil: deleted
		want string
	}{
		{"format", nil, "holds a database that is not a store"},
		{"format", []byte{1}, "has format 01"},
		{"key", nil, "the receipt key is missing or damaged"},
		{"key", []byte("short"), "the receipt key is missing or damaged"},
		{"generation", nil, "the generation is missing or damaged"},
		{"generation", []byte{}, "the generation is missing or damaged"},
	} {
		disk := vfs.NewMem()
		s := open(t, disk)
		var err error
		if tt.set == nil {
			err = s.db.Delete(storeKey(tt.name), pebble.Sync)
		} else {
			err = s.db.Set(storeKey(tt.name), tt.set, pebble.Sync)
		}
		if err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		if _, err := Open("data", Options{FS: disk}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %x: error %v, want %q", tt.name, tt.set, err, tt.want)
		}
	}
}

// TestIdentityStays: the receipt key is made once, and another store has
// another one.
func TestIdentityStays(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	key := string(s.ReceiptKey())
	if !s.New() || len(key) != 32 || s.Generation() != 0 {
		t.Errorf("new %v, a key of %d octets, generation %d", s.New(), len(key), s.Generation())
	}
	closed(t, s)
	s = open(t, disk)
	if s.New() || string(s.ReceiptKey()) != key {
		t.Errorf("new %v, the same key: %v", s.New(), string(s.ReceiptKey()) == key)
	}
	if other := open(t, nil); string(other.ReceiptKey()) == key {
		t.Error("two stores have one key")
	}
}

// TestNewFolderSurvives: a loss of power right after the first commit leaves
// the store there, whoever made its folder, and however deep it lies.
func TestNewFolderSurvives(t *testing.T) {
	for _, made := range []bool{false, true} {
		disk := testdisk.New()
		if made {
			if err := disk.MkdirAll("/var/lib/queued/data", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open("/var/lib/queued/data", Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		commit(t, s, exampleChangeSet())
		after, err := Open("/var/lib/queued/data", Options{FS: disk.Crash(0, rand.NewPCG(1, 1))})
		if err != nil {
			t.Fatal(err)
		}
		defer after.Close()
		if after.New() {
			t.Errorf("folder made before %v: the store is gone", made)
		}
		if diff := cmp.Diff(dump(t, s), dump(t, after)); diff != "" {
			t.Errorf("folder made before %v (-before the crash +after):\n%s", made, diff)
		}
	}
}

// TestReadOnlyFolder: a folder that cannot be written is an error that says
// so, at the first start and at a later one.
func TestReadOnlyFolder(t *testing.T) {
	disk := vfs.NewMem()
	closed(t, open(t, disk))
	for dir, want := range map[string]error{"data": syscall.EROFS, "new": fs.ErrPermission} {
		hits := 0
		readOnly := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
				hits++
				return &fs.PathError{Op: "write", Path: op.Path, Err: want}
			}
			return nil
		}))
		_, err := Open(dir, Options{FS: readOnly, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
		if err == nil || !strings.Contains(err.Error(), want.Error()) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want one that tells of %q and of the folder", dir, err, want)
		}
		if hits == 0 {
			t.Errorf("%s: nothing was written", dir)
		}
	}
}

// TestSecondOpen: one process at a time.
func TestSecondOpen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if second, err := Open(dir, Options{}); err == nil {
		second.Close()
		t.Error("opened twice")
	}
}

// TestCompact: after messages are deleted, a compaction takes their octets out
// of the tables.
func TestCompact(t *testing.T) {
	s := open(t, nil)
	for id := range 200 {
		commit(t, s, putOne(uint64(id+1), 2048))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	before := s.Metrics().Total().TablesSize
	commit(t, s, &ChangeSet{Removed: []LaneID{1}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if now := s.Metrics().Total().TablesSize; now > before/10 {
		t.Errorf("tables have %d octets, before the deletion %d", now, before)
	}
}
