package stomp

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/service"
)

// The clients of the benchmarks make no garbage of their own: what is counted
// is the server, from the socket to the store.

// BenchmarkSend publishes small messages without waiting, each with a receipt.
func BenchmarkSend(b *testing.B) {
	for _, connections := range []int{1, 64} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			h := openUnchecked(b, "orders")
			var peers []*peer
			for range connections {
				p := h.connect("1.2")
				p.net.SetReadDeadline(time.Time{})
				peers = append(peers, p)
			}
			const batch = 50
			frames := []byte(strings.Repeat("SEND\ndestination:orders\ncontent-length:100\nreceipt:r\n\n"+strings.Repeat("x", 100)+"\x00", batch))
			answers := len("RECEIPT\nreceipt-id:r\n\n\x00\n") * batch
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, p := range peers {
				rounds := b.N / batch / connections
				if i == 0 {
					rounds = (b.N+batch-1)/batch - rounds*(connections-1)
				}
				wg.Go(func() {
					sent := make(chan struct{}, 8) // so many batches are under way
					go func() {
						defer close(sent)
						for range rounds {
							sent <- struct{}{}
							if _, err := p.net.Write(frames); err != nil {
								b.Error(err)
								return
							}
						}
					}()
					buf := make([]byte, answers)
					for range sent {
						if _, err := io.ReadFull(p.net, buf); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// BenchmarkDeliver receives small messages in mode auto, which are deleted when
// they are written.
func BenchmarkDeliver(b *testing.B) {
	h := openUnchecked(b, "orders")
	messages := make([]service.PutMessage, 20)
	for i := range messages {
		messages[i].Content = bytes.Repeat([]byte("x"), 100)
	}
	for range (b.N + len(messages) - 1) / len(messages) {
		h.batch("orders", messages...)
	}
	p := h.connect("1.2")
	p.net.SetReadDeadline(time.Time{})
	b.ReportAllocs()
	b.ResetTimer()
	p.send("SUBSCRIBE\ndestination:orders\nid:1\nprefetch-count:1000\n\n^@")
	buf, n := make([]byte, 64<<10), 0
	for n < b.N {
		got, err := p.net.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		n += bytes.Count(buf[:got], []byte{0})
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

func openUnchecked(b *testing.B, queues ...string) *house {
	l := limits.Unthrottled()
	return openHouse(b, Options{}, &l, false, false, queues...)
}
