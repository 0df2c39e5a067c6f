package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store/testdisk"
)

// TestDeletedMessagesLeaveTheDisk: large messages of which only a part is left
// do not stay on the disk of an idle server, in whatever way they went; and
// when nothing more can be given back nothing is rewritten.
func TestDeletedMessagesLeaveTheDisk(t *testing.T) {
	t.Parallel()
	const messages, size, from = 80, 100_000, 1 << 20
	random := rand.NewChaCha8([32]byte{1})
	body := func() string { // not to be compressed away
		b := make([]byte, size)
		_, _ = random.Read(b)
		return string(b)
	}
	for _, tt := range []struct {
		name string
		left int
		end  func(x *bench, id queue.ID)
	}{
		{"deleted", 0, func(x *bench, id queue.ID) {
			for range messages / 20 {
				x.deleteAll(id, x.get(ReceiveRequest{Queue: id, Visibility: time.Hour}))
			}
		}},
		{"all but some deleted", 10, func(x *bench, id queue.ID) {
			for range (messages - 10) / 10 {
				x.deleteAll(id, x.get(ReceiveRequest{Queue: id, Visibility: time.Hour, Limit: 10}))
			}
		}},
		{"purged", 0, func(x *bench, id queue.ID) {
			err := x.b.Admin(context.Background(), func(tx *Tx) error { tx.Purge(id, "", queue.PurgeNormal, nil); return nil })
			if err != nil {
				t.Error(err)
			}
		}},
		{"expired", 0, func(x *bench, id queue.ID) { time.Sleep(queue.DefaultRetention) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := testdisk.New()
				x := newBench(t, disk)
				x.close()
				x.o.ReclaimBytes = from
				x.open()
				defer x.shut()
				id := x.queue("orders", nil)
				for range messages {
					x.put(id, "", body())
				}
				time.Sleep(time.Minute)
				if n := tables(t, disk); n < messages*size/2 {
					t.Fatalf("%d octets of tables before", n)
				}
				compacted := x.s.Metrics().Compact.Count
				time.Sleep(time.Minute)
				if n := x.s.Metrics().Compact.Count; n != compacted {
					t.Errorf("%d compactions though nothing was deleted", n-compacted)
				}

				tt.end(x, id)
				time.Sleep(time.Minute)
				if n, most := tables(t, disk), int64(from+2*tt.left*size); n > most {
					t.Errorf("tables of %d octets, want %d at most", n, most)
				}
				x.want(id, fmt.Sprintf("visible %d in flight 0 delayed 0 bytes %d, dead visible 0 in flight 0 bytes 0", tt.left, tt.left*size))
				compacted = x.s.Metrics().Compact.Count
				time.Sleep(time.Hour)
				if n := x.s.Metrics().Compact.Count; n != compacted {
					t.Errorf("%d compactions of what is in order", n-compacted)
				}
			})
		})
	}
}

// TestNothingIsGivenBackTwice: rows that are no messages are rewritten once for
// nothing, and then left alone.
func TestNothingIsGivenBackTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, testdisk.New())
		x.close()
		x.o.ReclaimBytes = 1
		x.open()
		defer x.shut()
		x.queue("orders", nil)
		time.Sleep(time.Minute)
		once := x.s.Metrics().Compact.Count
		if once == 0 {
			t.Fatal("nothing was rewritten")
		}
		time.Sleep(time.Hour)
		if n := x.s.Metrics().Compact.Count; n != once {
			t.Errorf("%d more compactions", n-once)
		}
	})
}

// tables is how many octets the tables have on the disk.
func tables(t *testing.T, disk *testdisk.Disk) (n int64) {
	t.Helper()
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if path.Ext(name) == ".sst" {
			f, err := disk.Stat(disk.PathJoin("data", name))
			if err != nil {
				t.Fatal(err)
			}
			n += f.Size()
		}
	}
	return n
}
