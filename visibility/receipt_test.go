package visibility

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/queue"
	"pgregory.net/rapid"
)

var testKey = []byte("0123456789abcdef0123456789ABCDEF")

// TestReceiptGolden pins the form: receipts in the hands of consumers must
// outlive an upgrade.
func TestReceiptGolden(t *testing.T) {
	s := NewSealer(testKey)
	for _, tt := range []struct {
		token Token
		want  queue.Receipt
	}{
		{Token{}, "AQAAAAAAB90EmaQm3yEbOrZSSKL7Tw"},
		{Token{Queue: 1, Lane: 2, Message: 3, Lease: 4, Generation: 5}, "AQECAwQFTlOBbhAcN2x--eYgAPzjYQ"},
		{Token{Queue: 7, Lane: 300, Message: queue.MaxMessageID, Lease: 1 << 40, Generation: 1}, "AQesAv________8PgICAgIAgAQaWWt38-QCjZb-0PUQZg_4"},
		{Token{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}, "Af___________wH___________8B____________Af___________wH___________8BQHWMLt3BvmTLsfpOeg6bGQ"},
	} {
		got := s.Seal(tt.token)
		if got != tt.want {
			t.Errorf("Seal(%+v) = %q, want %q", tt.token, got, tt.want)
		}
		back, err := s.Open(got)
		if err != nil {
			t.Errorf("Open(%q): %v", got, err)
		}
		if diff := cmp.Diff(tt.token, back); diff != "" {
			t.Errorf("Open(%q) (-sealed +opened):\n%s", got, diff)
		}
	}
}

func TestReceiptRoundTrip(t *testing.T) {
	s := NewSealer(testKey)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64()
		token := Token{
			Queue:      number.Draw(t, "queue"),
			Lane:       number.Draw(t, "lane"),
			Message:    queue.MessageID(number.Draw(t, "message")),
			Lease:      number.Draw(t, "lease"),
			Generation: number.Draw(t, "generation"),
		}
		r := s.Seal(token)
		if len(r) < minReceiptText || len(r) > maxReceiptText {
			t.Fatalf("Seal(%+v) has %d characters", token, len(r))
		}
		back, err := s.Open(r)
		if err != nil || back != token {
			t.Fatalf("Open(Seal(%+v)) = %+v, %v", token, back, err)
		}
	})
}

// TestReceiptOneText changes a receipt in every single place and by every
// trick of spelling; none may open.
func TestReceiptOneText(t *testing.T) {
	s := NewSealer(testKey)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=\r\n \x00"
	for _, token := range []Token{ // 22, 23 and 24 octets: every way base64 can end
		{1, 2, 3, 4, 5},
		{1, 2, 300, 4, 5},
		{1, 200, 300, 4, 5},
	} {
		good := string(s.Seal(token))
		refuse := func(text string) {
			t.Helper()
			if _, err := s.Open(queue.Receipt(text)); queue.CodeOf(err) != queue.InvalidParameter {
				t.Errorf("Open(%q) = %v, want InvalidParameter (the receipt is %q)", text, err, good)
			}
		}
		for i := range len(good) + 1 {
			for _, c := range []byte(alphabet) {
				refuse(good[:i] + string(c) + good[i:])
				if i < len(good) && good[i] != c {
					refuse(good[:i] + string(c) + good[i+1:])
				}
			}
			if i < len(good) {
				refuse(good[:i] + good[i+1:])
				refuse(good[:i])
			}
		}
		refuse(good + "=")
		refuse(good + "==")
		refuse(strings.Repeat("A", 1<<20))
	}
}

// TestReceiptSpelling seals texts that Seal would not write, with the right
// key: a second spelling, a rest, a foreign version.
func TestReceiptSpelling(t *testing.T) {
	s := NewSealer(testKey)
	sealed := func(data ...byte) queue.Receipt {
		w := s.pool.Get().(*sealing)
		return queue.Receipt(base64.RawURLEncoding.EncodeToString(append(data, w.authenticate(data)...)))
	}
	if _, err := s.Open(sealed(1, 1, 2, 3, 4, 5)); err != nil {
		t.Fatalf("the helper does not seal: %v", err)
	}
	for name, r := range map[string]queue.Receipt{
		"long varint":     sealed(1, 0x81, 0, 2, 3, 4, 5),
		"long zero":       sealed(1, 0x80, 0, 2, 3, 4, 5),
		"rest":            sealed(1, 1, 2, 3, 4, 5, 6),
		"one number less": sealed(1, 1, 2, 3, 0x81, 1),
		"cut":             sealed(1, 1, 2, 3, 4, 0x80),
		"too large":       sealed(append([]byte{1, 1, 2, 3, 4}, bytes.Repeat([]byte{0xff}, 10)...)...),
		"version":         sealed(2, 1, 2, 3, 4, 5),
	} {
		if _, err := s.Open(r); queue.CodeOf(err) != queue.InvalidParameter {
			t.Errorf("%s: %v, want InvalidParameter", name, err)
		}
	}
}

func TestReceiptOtherKey(t *testing.T) {
	other := bytes.Clone(testKey)
	other[31] ^= 1
	r := NewSealer(other).Seal(Token{1, 2, 3, 4, 5})
	if _, err := NewSealer(testKey).Open(r); queue.CodeOf(err) != queue.InvalidParameter {
		t.Errorf("a receipt of another key: %v, want InvalidParameter", err)
	}
}

func TestSealerKey(t *testing.T) {
	key := bytes.Clone(testKey)
	s := NewSealer(key)
	clear(key)
	if got, want := s.Seal(Token{}), NewSealer(testKey).Seal(Token{}); got != want {
		t.Error("the Sealer shares its key with the caller")
	}
	for _, size := range []int{0, 31, 33, 64} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a key of %d octets does not panic", size)
				}
			}()
			NewSealer(make([]byte, size))
		}()
	}
}

func TestSealerConcurrent(t *testing.T) {
	s := NewSealer(testKey)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				token := Token{Queue: uint64(g), Lane: 1 << g, Message: queue.MessageID(i), Lease: uint64(i)}
				if back, err := s.Open(s.Seal(token)); err != nil || back != token {
					t.Errorf("Open(Seal(%+v)) = %+v, %v", token, back, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzReceiptOpen(f *testing.F) {
	s := NewSealer(testKey)
	f.Add("")
	f.Add(string(s.Seal(Token{})))
	f.Add(string(s.Seal(Token{1, 2, 3, 4, 5})))
	f.Add(string(s.Seal(Token{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64})))
	f.Add(strings.Repeat("A", 30))
	f.Add(strings.Repeat("_", 90))
	f.Add("AQECAwQF\n" + strings.Repeat("A", 22))
	f.Add(base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{1}, math.MaxUint64)))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := s.Open(queue.Receipt(text))
		if err != nil {
			if queue.CodeOf(err) != queue.InvalidParameter || token != (Token{}) {
				t.Fatalf("Open(%q) = %+v, %v", text, token, err)
			}
			return
		}
		if again := s.Seal(token); string(again) != text {
			t.Fatalf("%q opens, but its token seals to %q", text, again)
		}
	})
}

func BenchmarkReceipt(b *testing.B) {
	s := NewSealer(testKey)
	token := Token{Queue: 3, Lane: 1000, Message: 1 << 30, Lease: 1 << 30, Generation: 1}
	r := s.Seal(token)
	b.Run("Seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Seal(token)
		}
	})
	b.Run("Open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Open(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("OpenForged", func(b *testing.B) {
		b.ReportAllocs()
		forged := "B" + r[1:]
		for b.Loop() {
			if _, err := s.Open(forged); err == nil {
				b.Fatal("opened")
			}
		}
	})
}
