package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// Damage and torn ends. A crash may cut the last write of a file short, and
// that is no loss: it was never acknowledged. Damage anywhere else is one.
// Pebble takes much of it for a torn end, so two files are read here first:
//
// The manifest, the list of the tables: Pebble reads it up to the first octet
// that is wrong. It would open the store as it was long ago, or empty, and
// delete every table that the older list does not name.
//
// The newest log: every chunk says how far the log had been synced when it was
// written, and Pebble takes damage before that place for what it is. But the
// place it writes falls back with every block, by megabytes in the end.
//
// Records of both files are written one by one, each synced before the next
// (Commit is for one at a time). So a record behind the damage proves that what
// is damaged had been stored. What is left is damage of the last record of the
// manifest and of the last block of the log: that looks just like a write that
// was cut short.

// Both files are blocks of chunks: a record is cut so that no chunk crosses a
// block.
const (
	blockLen = 32 << 10

	manifestHead = 7         // checksum 4, length 2, kind 1
	logHead      = 7 + 4 + 8 // and number of the log 4, how far it was synced 8
	manifestFull = 1         // kinds of chunks: a whole record, then first, middle and last
	logFull      = 9         // the same in a log
	kinds        = 4         // of each
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is the length of the sound chunk that b begins with, its head
// included, and its kind; 0 if there is none. Kinds begin at full.
func chunk(b []byte, head int, full byte) (length int, kind byte) {
	if len(b) < head || b[6] < full || b[6] >= full+kinds {
		return 0, 0
	}
	end := head + int(binary.LittleEndian.Uint16(b[4:]))
	if end > len(b) {
		return 0, 0
	}
	sum := crc32.Checksum(b[6:end], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0, 0
	}
	return end, b[6] - full
}

// checkManifest refuses a manifest that is damaged before its last record.
func checkManifest(disk vfs.FS, path string) error {
	b, err := readFile(disk, path)
	if err != nil {
		return err
	}
	block := func(at int) []byte { return b[at:min(len(b), at-at%blockLen+blockLen)] }
	inside := false // a record that has begun and not ended
	for at := 0; at < len(b); {
		rest := block(at)
		if len(rest) < manifestHead && at+len(rest) < len(b) { // no chunk fits in
			at += len(rest)
			continue
		}
		n, kind := chunk(rest, manifestHead, manifestFull)
		if goesOn := kind > 1; n > 0 && goesOn == inside {
			inside = kind == 1 || kind == 2
			at += n
			continue
		}
		// Records are synced one by one, so none begins behind a torn one.
		for next := at; next < len(b); next++ {
			if n, kind := chunk(block(next), manifestHead, manifestFull); n > 0 && kind < 2 {
				return damaged(path, at, next)
			}
		}
		return nil
	}
	return nil
}

// checkLog refuses the newest log if it is damaged before its last block.
func checkLog(disk vfs.FS, dir string) error {
	logs, err := wal.Scan(wal.Dir{FS: disk, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return err
	}
	last := logs[len(logs)-1]
	_, path := last.SegmentLocation(0)
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, blockLen)
	wrong := -1
	for at := 0; ; at += blockLen {
		n, err := io.ReadFull(f, buf)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		sound, begins, _ := logBlock(buf[:n], uint32(last.Num))
		if wrong >= 0 && begins >= 0 {
			return damaged(path, wrong, at+begins)
		}
		if wrong < 0 && sound < n-logHead {
			wrong = at + sound
		}
		if n < blockLen {
			return nil
		}
	}
}

// logBlock walks one block of the log of that number up to the first chunk
// that is wrong. sound is how far it came, begins where a record begins in that
// part, -1 if none does, ends where the last one that ends there does, -1 if
// none. It does not look behind that chunk: what stands there
// may be what a message holds, or be left from an older log, and could be made
// to look like a chunk.
func logBlock(b []byte, number uint32) (sound, begins, ends int) {
	begins, ends = -1, -1
	for sound < len(b) {
		n, kind := chunk(b[sound:], logHead, logFull)
		if n == 0 || binary.LittleEndian.Uint32(b[sound+7:]) != number {
			break
		}
		if begins < 0 && kind < 2 {
			begins = sound
		}
		sound += n
		if kind == 0 || kind == 3 {
			ends = sound
		}
	}
	return sound, begins, ends
}

func damaged(path string, at, next int) error {
	return fmt.Errorf("%s is damaged at octet %d: what follows at %d was stored later; nothing was changed: restore the folder from a backup", path, at, next)
}
