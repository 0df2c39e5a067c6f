package store

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
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
