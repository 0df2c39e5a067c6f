package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/store/testdisk"
)

// newKinds are the kinds of rows that came with a format.
var newKinds = map[byte]int{kindBody: 2, kindHolders: 2, kindShared: 2}

// TestArchive: the archive of each format (broker/format_test.go makes and
// drains them) has rows of every kind there was, and opens for ever: as it is,
// for reading alone, and from a backup.
func TestArchive(t *testing.T) {
	for format := 1; format <= Format; format++ {
		disk := testdisk.New()
		if err := disk.Unpack(fmt.Sprintf("testdata/format-%d.tar.gz", format), "data"); err != nil {
			t.Fatal(err)
		}
		s, err := OpenReadOnly("data", Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[byte]int{}
		rows := messagesOf(t, s)
		for _, row := range dump(t, s) {
			kinds[row[0]]++
		}
		known := slices.DeleteFunc(slices.Clone(allKinds), func(k byte) bool { return newKinds[k] > format })
		if diff := cmp.Diff(slices.Sorted(slices.Values(known)), slices.Sorted(maps.Keys(kinds))); diff != "" {
			t.Errorf("kinds of rows (-known +there):\n%s", diff)
		}
		closed(t, s)
		m, err := CopyBackup("data", "backup", true, "", Options{FS: disk})
		if err != nil || m.Wrong != 0 || m.Format != uint64(format) {
			t.Fatalf("%+v, %v", m, err)
		}
		if _, err := Restore("backup", "restored", restoredAt, Options{FS: disk, QuietScheduler: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, rowsOf(t, disk, "restored/store")); diff != "" {
			t.Error(diff)
		}
		s = open(t, disk)
		if diff := cmp.Diff(rows, messagesOf(t, s)); diff != "" {
			t.Error(diff)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
