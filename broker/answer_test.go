package broker

import (
	"bytes"
	"slices"
	"testing"

	"github.com/queued-mq/queued/queue"
)

// FuzzAnswer reads what is kept under a retry token: what is accepted means one
// thing, and nothing ends in a panic.
func FuzzAnswer(f *testing.F) {
	var print [32]byte
	copy(print[:], "a fingerprint of some messages")
	f.Add(encodeAnswer(print, []queue.Published{{ID: 1, ExpireAfter: 2}, {ID: 1 << 52, ExpireAfter: 1 << 41}}))
	f.Add(encodeAnswer(print, nil))
	f.Add(print[:31])
	f.Add(append(print[:], 0x80))
	f.Add(append(print[:], 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Fuzz(func(t *testing.T, b []byte) {
		print, out, ok := decodeAnswer(b)
		if !ok {
			return
		}
		if !bytes.Equal(print[:], b[:len(print)]) {
			t.Fatal("another fingerprint is read than is there")
		}
		printed, got, ok := decodeAnswer(encodeAnswer(print, out))
		if !ok || printed != print || !slices.Equal(got, out) {
			t.Fatalf("%v comes back as %v", out, got)
		}
	})
}
