package visibility

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"
	"sync"

	"github.com/queued-mq/queued/queue"
)

// Token names one delivery of one message; a receipt is a sealed token. All
// five numbers together are unique: a lease number is never used twice, and a
// restored store has another generation.
type Token struct {
	Queue      uint64 // number of the queue
	Lane       uint64 // number of the lane, so group, channel and dead letter queue too
	Message    queue.MessageID
	Lease      uint64 // number of the lease
	Generation uint64 // of the store, raised by every restore
}

// The octets of a receipt, written in base64url without padding:
//
//	┌─────────┬───────┬──────┬─────────┬───────┬────────────┬──────────────────────┐
//	│ version │ queue │ lane │ message │ lease │ generation │ HMAC-SHA256, first 16│
//	│ 1 octet │          five unsigned varints               │ octets, over the rest│
//	└─────────┴───────┴──────┴─────────┴───────┴────────────┴──────────────────────┘
const (
	receiptVersion = 1
	receiptNumbers = 5
	receiptMAC     = 16

	minReceipt = 1 + receiptNumbers + receiptMAC
	maxReceipt = 1 + receiptNumbers*binary.MaxVarintLen64 + receiptMAC
)

// Text is strict: a receipt with stray bits behind its last octet is refused.
var receiptText = base64.RawURLEncoding.Strict()

var (
	minReceiptText = receiptText.EncodedLen(minReceipt)
	maxReceiptText = receiptText.EncodedLen(maxReceipt)
)

// KeySize is the length of a Sealer's key in octets.
const KeySize = 32

// Sealer makes receipts and opens them, with a key that serves nothing else.
// It is safe for concurrent use.
type Sealer struct {
	pool sync.Pool // of *sealing
}

// sealing is what one call works with.
type sealing struct {
	mac  hash.Hash
	text [(maxReceipt*8 + 5) / 6]byte
	data [maxReceipt]byte
	sum  [sha256.Size]byte
}

// NewSealer is a Sealer with a key of KeySize octets; any other length is a
// fault of ours and panics. The key is copied.
func NewSealer(key []byte) *Sealer {
	if len(key) != KeySize {
		panic("visibility: a receipt key must have 32 octets")
	}
	key = append([]byte(nil), key...)
	s := new(Sealer)
	s.pool.New = func() any { return &sealing{mac: hmac.New(sha256.New, key)} }
	return s
}

// Seal makes the receipt of t: 30 to 90 characters of the base64url alphabet,
// the same for the same token and key.
func (s *Sealer) Seal(t Token) queue.Receipt {
	w := s.pool.Get().(*sealing)
	defer s.pool.Put(w)

	data := append(w.data[:0], receiptVersion)
	for _, n := range [receiptNumbers]uint64{t.Queue, t.Lane, uint64(t.Message), t.Lease, t.Generation} {
		data = binary.AppendUvarint(data, n)
	}
	data = append(data, w.authenticate(data)...)
	n := receiptText.EncodedLen(len(data))
	receiptText.Encode(w.text[:n], data)
	return queue.Receipt(w.text[:n])
}

// Open is the token that r was made of. A text that Seal with this key did not
// make, octet for octet, is InvalidParameter; nothing is worked on before its
// length is known to be possible. Whether the delivery still holds, and
// whether its generation is that of the store, is the caller's to judge.
func (s *Sealer) Open(r queue.Receipt) (Token, error) {
	// The decoder skips line ends, so a text with one would be a second
	// spelling.
	if len(r) < minReceiptText || len(r) > maxReceiptText || strings.ContainsAny(string(r), "\r\n") {
		return Token{}, errReceipt()
	}
	w := s.pool.Get().(*sealing)
	defer s.pool.Put(w)

	n, err := receiptText.Decode(w.data[:], w.text[:copy(w.text[:], r)])
	if err != nil || n < minReceipt {
		return Token{}, errReceipt()
	}
	data, mac := w.data[:n-receiptMAC], w.data[n-receiptMAC:n]
	if subtle.ConstantTimeCompare(w.authenticate(data), mac) != 1 {
		return Token{}, errReceipt()
	}

	// What is left was sealed with our key; the checks below only see what
	// another version of us may have sealed.
	if data[0] != receiptVersion {
		return Token{}, errReceipt()
	}
	data = data[1:]
	var numbers [receiptNumbers]uint64
	for i := range numbers {
		v, size := binary.Uvarint(data)
		if size <= 0 || size > 1 && data[size-1] == 0 { // cut, too large, or longer than need be
			return Token{}, errReceipt()
		}
		numbers[i], data = v, data[size:]
	}
	if len(data) > 0 {
		return Token{}, errReceipt()
	}
	return Token{
		Queue:      numbers[0],
		Lane:       numbers[1],
		Message:    queue.MessageID(numbers[2]),
		Lease:      numbers[3],
		Generation: numbers[4],
	}, nil
}

// authenticate is the code over data, valid until the next call.
func (w *sealing) authenticate(data []byte) []byte {
	w.mac.Reset()
	w.mac.Write(data)
	return w.mac.Sum(w.sum[:0])[:receiptMAC]
}

func errReceipt() error {
	return queue.Errorf(queue.InvalidParameter, "receipt is not one of ours")
}
