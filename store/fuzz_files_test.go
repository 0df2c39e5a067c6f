package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What lies in the folder as files is read by us before Pebble opens it, or
// comes with a backup from elsewhere. No octets of it may end in a panic.

// logRecord is a sound chunk of the log of that number.
func logRecord(number uint32, kind byte, payload []byte) []byte {
	b := make([]byte, logHead, logHead+len(payload))
	binary.LittleEndian.PutUint16(b[4:], uint16(logHead-7-4-8+len(payload)))
	b[6] = logFull + kind
	binary.LittleEndian.PutUint32(b[7:], number)
	return seal(append(b, payload...))
}

func manifestRecord(kind byte, payload []byte) []byte {
	b := make([]byte, manifestHead, manifestHead+len(payload))
	binary.LittleEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6] = manifestFull + kind
	return seal(append(b, payload...))
}

// seal writes the checksum of a chunk.
func seal(b []byte) []byte {
	sum := crc32.Checksum(b[6:], castagnoli)
	binary.LittleEndian.PutUint32(b, (sum>>15|sum<<17)+0xa282ead8)
	return b
}

func FuzzLogBlock(f *testing.F) {
	whole := append(logRecord(3, 0, []byte("abc")), logRecord(3, 1, []byte("begins"))...)
	f.Add(whole, uint32(3))
	f.Add(whole[:len(whole)-2], uint32(3))
	f.Add(append(logRecord(3, 3, []byte("ends")), logRecord(2, 0, []byte("older"))...), uint32(3))
	f.Add(bytes.Repeat([]byte{0xff}, 64), uint32(0))
	f.Add([]byte{}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, number uint32) {
		b = b[:min(len(b), blockLen)]
		sound, begins, ends := logBlock(b, number)
		if sound < 0 || sound > len(b) || begins >= sound && begins >= 0 && sound > 0 || ends > sound {
			t.Fatalf("of %d octets %d are sound, a record begins at %d and ends at %d", len(b), sound, begins, ends)
		}
		if s, bs, es := logBlock(b[:sound], number); s != sound || bs != begins || es != ends {
			t.Fatalf("the sound part alone says %d, %d, %d instead of %d, %d, %d", s, bs, es, sound, begins, ends)
		}
		more := append(append([]byte(nil), b[:sound]...), logRecord(number, 0, []byte("next"))...)
		if s, _, es := logBlock(more, number); s != len(more) || es != s {
			t.Fatalf("a sound record behind %d sound octets is not seen: %d of %d", sound, s, len(more))
		}
	})
}

func FuzzManifest(f *testing.F) {
	whole := append(manifestRecord(0, []byte("abc")), manifestRecord(1, bytes.Repeat([]byte("x"), 100))...)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	damage := append([]byte(nil), append(whole, manifestRecord(0, []byte("later"))...)...)
	damage[9] ^= 1
	f.Add(damage)
	f.Add(bytes.Repeat([]byte{1}, 3*blockLen/2))
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := vfs.NewMem()
		check := func(b []byte) error {
			file, err := disk.Create("MANIFEST", vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			return checkManifest(disk, "MANIFEST")
		}
		if check(b) != nil {
			return
		}
		// Of what is taken for sound or torn every shorter piece is too: it is
		// what a crash can leave.
		for _, n := range []int{len(b) / 2, len(b) - 1} {
			if n > 0 {
				if err := check(b[:n]); err != nil {
					t.Fatalf("%d octets are no damage, the first %d are: %v", len(b), n, err)
				}
			}
		}
	})
}

func FuzzBackupManifest(f *testing.F) {
	f.Add([]byte(`{"backup":1,"format":1,"files":[{"name":"000001.log","bytes":3,"sha256":"00"}]}`))
	f.Add([]byte(`{"backup":1,"format":1,"files":[{"name":"../../passwd"}]}`))
	f.Add([]byte(`{"backup":99}`))
	f.Add([]byte(`{"backup":1,"files":[{"name":".."},{"name":""}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		disk := vfs.NewMem()
		file, err := disk.Create(backupManifest, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Write(text)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		var m *Manifest
		frugal(t, text, func() { m, err = ReadBackup("", disk) })
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if file.Name == "" || file.Name == "." || file.Name == ".." || disk.PathBase(file.Name) != file.Name {
				t.Fatalf("a backup may name the file %q", file.Name)
			}
		}
	})
}
