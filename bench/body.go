package bench

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// A body is, in printable characters:
//
//	16 hex digits  its number: 0, 1, 2, … of the run
//	16 hex digits  when it was meant to be published, ns since the run began
//	the rest       random text
const headBytes = 32

// bodies makes the bodies of a run. The random text is made once and each body
// is a piece of it that begins elsewhere, so that neither a body nor its
// neighbours compress.
type bodies struct {
	size int
	text []byte
}

func newBodies(size int) *bodies {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := &bodies{size: size, text: make([]byte, max(1<<20, 16*size))}
	for i := range b.text {
		b.text[i] = letters[rand.IntN(len(letters))]
	}
	return b
}

// append adds the body of this number.
func (b *bodies) append(to []byte, number uint64, meant time.Duration) []byte {
	var head [16]byte
	binary.BigEndian.PutUint64(head[:8], number)
	binary.BigEndian.PutUint64(head[8:], uint64(meant))
	to = hex.AppendEncode(to, head[:])
	rest := b.size - headBytes
	// Behind the piece before, and a prime away, so that pieces of the next
	// round begin elsewhere.
	from := int(number * uint64(rest+7919) % uint64(len(b.text)-rest))
	return append(to, b.text[from:from+rest]...)
}

var errNotOurs = errors.New("a message that this run did not publish")

// readHead reads the head of a body.
func readHead(body []byte) (number uint64, meant time.Duration, err error) {
	var head [16]byte
	if len(body) < headBytes {
		return 0, 0, errNotOurs
	}
	if _, err := hex.Decode(head[:], body[:headBytes]); err != nil {
		return 0, 0, errNotOurs
	}
	return binary.BigEndian.Uint64(head[:8]), time.Duration(binary.BigEndian.Uint64(head[8:])), nil
}

// ledger notes which numbers were seen: a bit each, in pages that are made when
// they are needed.
type ledger struct {
	mu    sync.Mutex
	pages []*[pageBits / 64]uint64
}

const (
	pageBits  = 1 << 16
	mostPages = 1 << 16 // four thousand million messages in 512 MiB
)

// note reports whether the number is seen for the first time. Numbers that no
// run can have are not noted.
func (l *ledger) note(number uint64) bool {
	page := number / pageBits
	if page >= mostPages {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for uint64(len(l.pages)) <= page {
		l.pages = append(l.pages, nil)
	}
	if l.pages[page] == nil {
		l.pages[page] = new([pageBits / 64]uint64)
	}
	word, bit := &l.pages[page][number%pageBits/64], uint64(1)<<(number%64)
	first := *word&bit == 0
	*word |= bit
	return first
}
