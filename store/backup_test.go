package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

var restoredAt = exampleAt.Time().Add(time.Hour)

// backUp makes a backup of an open store.
func backUp(t testing.TB, s *Store, target string) *Manifest {
	t.Helper()
	if err := s.Checkpoint("checkpoint"); err != nil {
		t.Fatal(err)
	}
	m, err := CopyBackup("checkpoint", target, true, "test", Options{FS: s.fs})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rowsOf is every row of the store in dir, but for what the store says of itself.
func rowsOf(t testing.TB, disk vfs.FS, dir string) []string {
	t.Helper()
	s, err := OpenReadOnly(dir, Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return messagesOf(t, s)
}

func messagesOf(t testing.TB, s *Store) (out []string) {
	for _, row := range dump(t, s) {
		if row[0] != kindStore {
			out = append(out, row)
		}
	}
	return out
}

// TestBackupAndRestore: a restored store holds what was backed up, has another
// generation, and gives out numbers that nobody has.
func TestBackupAndRestore(t *testing.T) {
	s := orderly(t)
	rows := messagesOf(t, s)
	m := backUp(t, s, "backup")
	if m.Format != Format || m.Position != 1 || m.Now != exampleAt.Time() || m.Queues != 1 || m.Messages != 6 || !m.Recounted || m.Wrong != 0 || m.Bytes() == 0 {
		t.Errorf("the manifest is %+v", m)
	}
	commit(t, s, &ChangeSet{State: State{2, exampleAt, 9, 4, 4, 2, 0, 0}}) // of no concern to the backup
	if again, err := VerifyBackup("backup", s.fs); err != nil || cmp.Diff(m, again) != "" {
		t.Errorf("error %v, and the manifest differs:\n%s", err, cmp.Diff(m, again))
	}

	generations := map[uint64]bool{s.Generation(): true}
	highest := State{}
	for i, name := range []string{"first", "second"} {
		at := restoredAt.Add(time.Duration(i) * time.Second)
		if _, err := Restore("backup", name, at, Options{FS: s.fs}, "lock"); err != nil {
			t.Fatal(err)
		}
		r, err := Open(s.fs.PathJoin(name, "store"), Options{FS: s.fs})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, messagesOf(t, r)); diff != "" {
			t.Errorf("rows have changed:\n%s", diff)
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		l, err := r.Load()
		if err != nil {
			t.Fatal(err)
		}
		if generations[r.Generation()] || string(r.ReceiptKey()) != string(s.ReceiptKey()) {
			t.Errorf("generation %d is there already, or the key is another one", r.Generation())
		}
		generations[r.Generation()] = true
		have := l.State
		want := State{1, exampleAt, 8, 3, 3, 1, exampleAt, exampleAt}
		skip := uint64(have.Message - want.Message)
		if skip < 1<<32+3_600_000_000 || have.Message < highest.Message+1_000_000 && i > 0 {
			t.Errorf("restore %d skips %d ids, to %d", i, skip, have.Message)
		}
		highest = have
		want.Message, want.Lease, want.Lane, want.Queue = have.Message, want.Lease+skip, want.Lane+LaneID(skip), want.Queue+QueueNumber(skip)
		if have != want {
			t.Errorf("the state is %+v, want %+v", have, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoreRises: whatever the clock says.
func TestRestoreRises(t *testing.T) {
	s := State{Now: exampleAt, Message: 100}
	if got, generation, err := renewed(s, 1<<50, 0); err != nil || generation != 1<<50+1 || got.Message != 100+1<<32 {
		t.Errorf("a clock before all: generation %d, %+v, %v", generation, got, err)
	}
	if _, _, err := renewed(s, 0, 1<<53); err == nil || !strings.Contains(err.Error(), "is the clock of this machine right?") {
		t.Errorf("a clock far ahead: %v", err)
	}
}

// TestBackupRefusals: each in one sentence, and nothing is changed.
func TestBackupRefusals(t *testing.T) {
	s := orderly(t)
	disk := s.fs
	m := backUp(t, s, "backup")
	write := func(path, text string) {
		t.Helper()
		if err := disk.MkdirAll(disk.PathDir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	restore := func(backup, dir string) func() error {
		return func() error { _, err := Restore(backup, dir, restoredAt, Options{FS: disk}, "lock"); return err }
	}
	backup := func(target string) func() error {
		return func() error { _, err := CopyBackup("checkpoint", target, true, "", Options{FS: disk}); return err }
	}
	write("full/notes", "mine")
	write("used/store/MANIFEST-000001", "x")
	write("none/x", "")
	write("unfinished/store/x", "")
	write("newer/backup.json", `{"backup":1,"format":99}`)
	write("form/backup.json", `{"backup":2,"format":1}`)
	write("damaged/backup.json", `{"backup"`)
	write("evil/backup.json", `{"backup":1,"format":1,"files":[{"name":"../x"}]}`)
	write("short/backup.json", fmt.Sprintf(`{"backup":1,"format":1,"files":[{"name":"%s","bytes":1}]}`, m.Files[0].Name))
	write("short/store/"+m.Files[0].Name, "ab")
	write("other/backup.json", fmt.Sprintf(`{"backup":1,"format":1,"files":[{"name":"%s","bytes":2}]}`, m.Files[0].Name))
	write("other/store/"+m.Files[0].Name, "ab")
	write("gone/backup.json", `{"backup":1,"format":1,"files":[{"name":"MANIFEST-000001"}]}`)
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a target that holds something", backup("full"), "backup: full is not empty: it holds notes"},
		{"a backup over another", backup("backup"), "backup: backup is not empty: it holds "},
		{"a directory in use", restore("backup", "used"), "restore: used is not empty: it holds store"},
		{"no backup", restore("none", "new"), "none is not a backup: it has no backup.json"},
		{"nothing at all", restore("nowhere", "new"), "nowhere is not a backup: it has no backup.json"},
		{"an unfinished one", restore("unfinished", "new"), "unfinished is a backup that was not finished: it has no backup.json; make it again"},
		{"a newer format", restore("newer", "new"), "the backup newer has form 1 and format 99; this version of queued reads 1 and 2: use a newer one"},
		{"a newer form", restore("form", "new"), "the backup form has form 2 and format 1;"},
		{"a damaged manifest", restore("damaged", "new"), "backup.json of the backup damaged is damaged"},
		{"a file elsewhere", restore("evil", "new"), `backup.json of the backup evil is damaged: it names the file "../x"`},
		{"a file of another length", restore("short", "new"), "has 2 octets, and the backup says 1"},
		{"a file with other octets", restore("other", "new"), "is not what was backed up"},
		{"a file that is missing", restore("gone", "new"), "file does not exist"},
	} {
		if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := disk.Stat("new/store"); err == nil {
		t.Error("a restore that failed left a store")
	}
	if err := restore("backup", "new")(); err != nil {
		t.Errorf("a restore after others were interrupted: %v", err)
	}
	for _, dir := range []string{"short", "other", "gone"} {
		if _, err := VerifyBackup(dir, disk); err == nil {
			t.Errorf("the backup %s is in order", dir)
		}
	}
}

// TestBackupCrash: power is lost ahead of every operation of a backup. What is
// left is a whole backup or is called unfinished.
func TestBackupCrash(t *testing.T) {
	disk := testdisk.New()
	s := orderlyOn(t, disk)
	rows := messagesOf(t, s)
	if err := s.Checkpoint("checkpoint"); err != nil {
		t.Fatal(err)
	}
	var left []*testdisk.Disk
	watched := disk.Watch(func(testdisk.Step) error {
		left = append(left, disk.Crash(0, rand.NewPCG(1, 1)), disk.Crash(50, rand.NewPCG(2, 2)), disk.Crash(100, rand.NewPCG(3, 3)))
		return nil
	})
	if _, err := CopyBackup("checkpoint", "backup", true, "", Options{FS: watched}); err != nil {
		t.Fatal(err)
	}
	left = append(left, disk.Crash(0, rand.NewPCG(1, 1)))
	whole := 0
	for i, d := range left {
		if _, err := VerifyBackup("backup", d); err != nil {
			if _, err := ReadBackup("backup", d); err == nil {
				t.Errorf("crash %d: there is a manifest, and not what it tells of", i)
			}
			continue
		}
		whole++
		if diff := cmp.Diff(rows, rowsOf(t, d, "backup/store")); diff != "" {
			t.Errorf("crash %d:\n%s", i, diff)
		}
	}
	if whole == 0 || whole > 6 || len(left) < 30 {
		t.Errorf("%d of %d crashes left a whole backup", whole, len(left))
	}
}

// TestBackupFault: any write or sync that fails is an error that tells of it,
// leaves no manifest, and the target can be used again.
func TestBackupFault(t *testing.T) {
	disk := testdisk.New()
	s := orderlyOn(t, disk)
	if err := s.Checkpoint("checkpoint"); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		count := 0
		faulty := disk.Watch(func(testdisk.Step) error {
			if count++; count == n+1 {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := CopyBackup("checkpoint", "backup", true, "", Options{FS: faulty})
		if count <= n {
			if n < 20 || err != nil {
				t.Errorf("after %d faults: %v", n, err)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fault %d: error %v", n, err)
		}
		if _, err := ReadBackup("backup", disk); err == nil {
			t.Fatalf("fault %d left a manifest", n)
		}
	}
}

// TestVerifyDamage: a table that cannot be read ends the recount with its name.
func TestVerifyDamage(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	for n := range uint64(100) {
		commit(t, s, putOne(n+1, 2000))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "backup")
	closed(t, s)
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	spoilt := ""
	for _, name := range names {
		if b, err := readFile(disk, "data/"+name); err == nil && strings.HasSuffix(name, ".sst") && len(b) > 100_000 {
			b[50_000] ^= 1
			f, err := disk.Create("data/"+name, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(b); err != nil {
				t.Fatal(err)
			}
			f.Close()
			spoilt = name
		}
	}
	r, err := OpenReadOnly("data", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Verify()
	if err == nil || spoilt == "" || !strings.Contains(err.Error(), spoilt+" is damaged: ") {
		t.Errorf("%s is damaged: %v", spoilt, err)
	}
	// And no backup is made of it that would hide that.
	if _, err := CopyBackup("data", "second", true, "", Options{FS: disk}); err == nil {
		t.Error("a backup was made of a damaged store")
	}
}

// TestRestoreCrash: power is lost ahead of every operation of a restore. Either
// the store is there, whole and renewed, or a second try makes it.
func TestRestoreCrash(t *testing.T) {
	disk := testdisk.New()
	s := orderlyOn(t, disk)
	rows := messagesOf(t, s)
	backUp(t, s, "backup")
	var mu sync.Mutex // the restored store writes in the background too
	var left []*testdisk.Disk
	watched := disk.Watch(func(testdisk.Step) error {
		mu.Lock()
		defer mu.Unlock()
		left = append(left, disk.Crash(0, rand.NewPCG(1, 1)), disk.Crash(50, rand.NewPCG(2, 2)))
		return nil
	})
	o := Options{FS: watched, QuietScheduler: true, MemtableBytes: 1 << 20}
	if _, err := Restore("backup", "new", restoredAt, o); err != nil {
		t.Fatal(err)
	}
	left = append(left, disk.Crash(0, rand.NewPCG(1, 1)))
	there, unfinished := 0, 0
	for i, d := range left {
		_, err := d.Stat("new/store")
		if there++; err != nil {
			there--
			if Unfinished("new", d) {
				unfinished++
			}
			if _, err := Restore("backup", "new", restoredAt, Options{FS: d, QuietScheduler: true, MemtableBytes: 1 << 20}); err != nil {
				t.Fatalf("crash %d: %v", i, err)
			}
		}
		if diff := cmp.Diff(rows, rowsOf(t, d, "new/store")); diff != "" {
			t.Fatalf("crash %d:\n%s", i, diff)
		}
		r, err := OpenReadOnly("new/store", Options{FS: d})
		if err != nil {
			t.Fatal(err)
		}
		if r.Generation() != uint64(restoredAt.UnixMilli()) {
			t.Errorf("crash %d: generation %d", i, r.Generation())
		}
		if err := errors.Join(r.Check(), r.Close()); err != nil {
			t.Errorf("crash %d: %v", i, err)
		}
	}
	if there == 0 || unfinished < 20 {
		t.Errorf("of %d crashes %d left the store and %d a restore to be finished", len(left), there, unfinished)
	}
}

// TestBackupUnderLoad makes backups while messages come and go. Each holds
// everything that was committed before it was asked for, and is as of one
// commit: counters and rows agree.
func TestBackupUnderLoad(t *testing.T) {
	dir := t.TempDir()
	o := Options{MemtableBytes: 256 << 10} // so that logs and tables change under it
	s, err := Open(filepath.Join(dir, "store"), o)
	if err != nil {
		t.Fatal(err)
	}
	key := LaneKey{Queue: 1}
	q := queueExample()
	q.Number, q.DeadThrough = 1, 0
	const alive = 100 // the newest that are there at any time
	size := func(n uint64) int64 { return int64(100 + n*977%20_000) }
	state := func(n uint64) State {
		return State{Position: n, Now: exampleAt, Message: queue.MessageID(n), Lane: 1, Queue: 1}
	}
	commit(t, s, &ChangeSet{State: State{Lane: 1, Queue: 1}, Lanes: []Lane{{ID: 1, Key: key, LastAfter: exampleAt}}, Queues: []Queue{q}})
	var acknowledged atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := uint64(1); !stop.Load(); n++ {
			m := &Message{Message: queue.Message{Body: make([]byte, size(n))}, CreatedAt: 1, ExpireAfter: exampleAt}
			e := Entry{ID: queue.MessageID(n), ExpireAfter: exampleAt, Size: uint32(len(m.Body))}
			cs := &ChangeSet{State: state(n), Effects: []Effect{{Kind: Put, Lane: 1, Entry: e, Message: m}}}
			l := Lane{ID: 1, Key: key, LastAfter: exampleAt}
			for i := max(alive, n) - alive + 1; i <= n; i++ {
				l.Fresh++
				l.Bytes += size(i)
			}
			if n > alive {
				cs.Effects = append(cs.Effects, Effect{Kind: Drop, From: Fresh, Lane: 1, Entry: Entry{ID: queue.MessageID(n - alive)}})
			}
			cs.Lanes = []Lane{l}
			if err := s.Commit(cs); err != nil {
				t.Error(err)
				return
			}
			acknowledged.Store(n)
		}
	})
	for acknowledged.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	for i := range 10 {
		before := acknowledged.Load()
		from, target := filepath.Join(dir, fmt.Sprint("checkpoint", i)), filepath.Join(dir, fmt.Sprint("backup", i))
		if err := s.Checkpoint(from); err != nil {
			t.Fatal(err)
		}
		m, err := CopyBackup(from, target, true, "", o)
		if err != nil {
			t.Fatal(err)
		}
		wrong := ""
		if m.Wrong > 0 {
			r, err := OpenReadOnly(BackupStore(target), o)
			if err != nil {
				t.Fatal(err)
			}
			wrong = fmt.Sprint(errors.Join(r.Check(), r.Close()))
		}
		if m.Position < before || m.Wrong != 0 || m.Messages != int64(min(m.Position, alive)) {
			t.Errorf("backup %d, asked for after %d commits, holds %d and %d messages: %s", i, before, m.Position, m.Messages, wrong)
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d commits", acknowledged.Load())
	closed(t, s)

	// At rest the folder itself is copied.
	m, err := CopyBackup(filepath.Join(dir, "store"), filepath.Join(dir, "last"), true, "", o)
	if err != nil || m.Position != acknowledged.Load() || m.Wrong != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestTornCopy: a log that was copied while it was written is cut at the last
// whole record, and what was stored before is there.
func TestTornCopy(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	for n := range uint64(100) {
		commit(t, s, putOne(n+1, 2000))
	}
	if err := s.Checkpoint("checkpoint"); err != nil {
		t.Fatal(err)
	}
	name, length, err := soundLog(disk, "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	b, err := readFile(disk, "checkpoint/"+name)
	if err != nil || int64(len(b)) < length || length < 200_000 {
		t.Fatalf("%d of %d octets are sound: %v", length, len(b), err)
	}
	// The copy has read block 3 too early for its end.
	clear(b[3*blockLen+10_000 : 4*blockLen])
	f, err := disk.Create("checkpoint/"+name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := OpenReadOnly("checkpoint", Options{FS: disk}); err == nil || !strings.Contains(err.Error(), "is damaged at octet") {
		t.Errorf("the copy as it is: %v", err)
	}
	m, err := CopyBackup("checkpoint", "backup", false, "", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if len(rowsOf(t, disk, "backup/store")) < 40 || m.Recounted {
		t.Errorf("%d rows are there; %+v", len(rowsOf(t, disk, "backup/store")), m)
	}
}

// TestReadOnly: reading a store changes no octet of its folder, even after a
// crash that left a log to be replayed; and what would write is refused.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := orderlyOn(t, vfs.Default)
	rows := dump(t, s)
	crashed := filepath.Join(dir, "crashed")
	if err := os.CopyFS(crashed, os.DirFS(filepath.Join(dir, "data"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(crashed, "LOCK")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, crashed)
	r, err := OpenReadOnly(crashed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, dump(t, r)); diff != "" {
		t.Error(diff)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if err := r.db.Set([]byte("m"), nil, pebble.Sync); !errors.Is(err, pebble.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, crashed)); diff != "" {
		t.Errorf("the folder has changed:\n%s", diff)
	}
	for name, want := range map[string]string{"nothing": "there is no store in", "crashed/..": "there is no store in"} {
		if _, err := OpenReadOnly(filepath.Join(dir, name), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a folder was made")
	}
}

// tree is every file of a folder, with its octets and its times.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), b)
	}
	return out
}

// TestNewerFormatReadOnly: what a later version wrote is not read as ours.
func TestNewerFormatReadOnly(t *testing.T) {
	disk := vfs.NewMem()
	s := open(t, disk)
	if err := s.db.Set(storeKey("format"), u64(nil, Format+1), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	want := fmt.Sprintf("open store: data has format %d; this version of queued reads up to %d: use a newer one", Format+1, Format)
	if _, err := OpenReadOnly("data", Options{FS: disk}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
