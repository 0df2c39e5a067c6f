package stomp

import (
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/store/testdisk"
)

// TestBeatsDuringSlowSyncs: while syncs of the log take 5 s each, sessions get
// their beats in time, those that wait for a RECEIPT too, and RECEIPTs come,
// late and in their order. Statistics can be read meanwhile.
func TestBeatsDuringSlowSyncs(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(h *house) {
		const slow = 5 * time.Second
		var begun, done atomic.Int64
		before := func(s testdisk.Step) {
			if s.Sync && path.Ext(s.Path) == ".log" {
				begun.Add(1)
				time.Sleep(slow) // in the sync
				done.Add(1)
			}
		}
		idle := h.connect("1.2", "heart-beat:0,1000")
		p := h.connect("1.2", "heart-beat:0,1000")
		h.before.Store(&before)
		const sends = 3
		for i := range sends {
			p.send(fmt.Sprintf("SEND\ndestination:orders\nreceipt:%d\n\nx^@", i))
		}
		synctest.Wait()
		if begun.Load() != 1 || done.Load() != 0 {
			t.Fatalf("%d syncs have begun, %d are done", begun.Load(), done.Load())
		}
		at := time.Now()
		if main, _ := h.stats("orders"); !main.Empty() {
			t.Errorf("shown before it is stored: %+v", main)
		}
		if took := time.Since(at); took != 0 {
			t.Errorf("stats took %v", took)
		}

		// beats reads what comes until so many octets that are no beats came,
		// or for so long.
		beats := func(p *peer, until string, most time.Duration) (n int, text string) {
			b := make([]byte, 4096)
			for began := time.Now(); time.Since(began) < most; {
				p.net.SetReadDeadline(time.Now().Add(time.Second))
				read, err := p.net.Read(b)
				if err != nil {
					t.Fatalf("no octet for a second after %v: %v", time.Since(began), err)
				}
				if strings.Trim(string(b[:read]), "\n") == "" {
					n += read
				} else if text += string(b[:read]); until != "" && strings.Contains(text, until) {
					return n, text
				}
			}
			return n, text
		}
		n, text := beats(p, fmt.Sprintf("receipt-id:%d", sends-1), time.Minute)
		if strings.Count(text, "RECEIPT\n") != sends || strings.Contains(text, "ERROR") || n < 4 {
			t.Errorf("%d beats, and %q", n, text)
		}
		if done.Load() == 0 || time.Since(at) < slow {
			t.Errorf("the receipts came after %v and %d syncs", time.Since(at), done.Load())
		}
		if n, text := beats(idle, "", slow); n < 4 || text != "" {
			t.Errorf("an idle session had %d beats, and %q", n, text)
		}
		h.before.Store(nil)
		if main, _ := h.stats("orders"); main.Visible != sends {
			t.Errorf("stats are %+v", main)
		}
		h.works()
	}, "orders")
}
