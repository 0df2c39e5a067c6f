package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queued-mq/queued/queue"
)

// open opens a store on fs, nil for a new disk in memory, until the test ends.
func open(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	if fs == nil {
		fs = vfs.NewMem()
	}
	s, err := Open("data", Options{FS: fs, MemtableBytes: 1 << 20, QuietScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.db != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// closed ends the store before the test does.
func closed(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.db = nil
}

// failer is a *testing.T or a *rapid.T.
type failer interface{ Fatal(...any) }

// dump is every row, in the order of the keys.
func dump(t failer, s *Store) []string {
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out []string
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, fmt.Sprintf("%s %x = %x", it.Key()[:1], it.Key()[1:], it.Value()))
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return out
}

func commit(t testing.TB, s *Store, cs *ChangeSet) {
	t.Helper()
	if err := s.Commit(cs); err != nil {
		t.Fatal(err)
	}
}

// putOne is the nth commit of a store that gets one message after the other.
func putOne(n uint64, octets int) *ChangeSet {
	body := make([]byte, octets)
	for i := range body { // not to be compressed away
		body[i] = byte(rand.Uint32())
	}
	e := Entry{ID: queue.MessageID(n), ExpireAfter: exampleAt, Size: uint32(octets)}
	return &ChangeSet{
		State:   State{Position: n, Message: e.ID},
		Effects: []Effect{{Kind: Put, Lane: 1, Entry: e, Message: &Message{Message: queue.Message{Body: body}, ExpireAfter: exampleAt}}},
		Lanes:   []Lane{{ID: 1, Key: LaneKey{Queue: 1}, Fresh: int64(n), Bytes: int64(n) * int64(octets)}},
	}
}

// steps tells a batch in words: one line for each row that is set or deleted.
func steps(t failer, b *pebble.Batch) []string {
	var out []string
	key := func(k []byte) string {
		switch k[0] {
		case kindMessage, kindLease, kindReturned:
			if lane, id, ok := parseRowKey(k); ok {
				return fmt.Sprintf("%c lane %d id %d", k[0], lane, id)
			}
		case kindDue, kindExpiry:
			if timer, ok := parseTimerKey(k); ok {
				return fmt.Sprintf("%c at %d lane %d id %d", k[0], timer.At, timer.Lane, timer.ID)
			}
		case kindLane:
			if l, ok := parseLaneKey(k); ok {
				return fmt.Sprintf("c queue %d group %d dead %v channel %q", l.Queue, l.Group, l.Dead, l.Channel)
			}
		case kindDeadLane, kindRemoval, kindQueue:
			return fmt.Sprintf("%c %d", k[0], be.Uint64(k[1:]))
		case kindStore:
			return "s " + string(k[1:])
		}
		return fmt.Sprintf("%c %x", k[0], k[1:])
	}
	for r := b.Reader(); len(r) > 0; {
		kind, k, v, ok, err := r.Next()
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		switch kind {
		case pebble.InternalKeyKindSet:
			if len(v) > 1 && v[1] == '{' {
				out = append(out, "set "+key(k)+" = json")
			} else {
				out = append(out, strings.TrimSpace(fmt.Sprintf("set %s = %x", key(k), v)))
			}
		case pebble.InternalKeyKindDelete:
			out = append(out, "delete "+key(k))
		case pebble.InternalKeyKindRangeDelete:
			out = append(out, fmt.Sprintf("delete from %c %x to %c %x", k[0], k[1:], v[0], v[1:]))
		default:
			t.Fatal("a batch holds a", kind)
		}
	}
	return out
}

func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newest is the last file of a kind: their names rise.
func newest(t testing.TB, all map[string]string, pattern string) string {
	t.Helper()
	var out string
	for name := range all {
		if ok, _ := path.Match(pattern, name); ok {
			out = max(out, name)
		}
	}
	if out == "" {
		t.Fatalf("no %s among %v", pattern, slices.Sorted(maps.Keys(all)))
	}
	return out
}

func write(t testing.TB, disk vfs.FS, path string, b []byte) {
	t.Helper()
	if err := disk.MkdirAll(disk.PathDir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b)) // in a race build the disk spoils what it was given
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
