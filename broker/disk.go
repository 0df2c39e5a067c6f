package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// disk knows how much room is left, and refuses what would use it up: below
// the first floor publishes, below the second new leases too. Deletes, purges
// and settings go on; they are what makes room.
type disk struct {
	store                    *store.Store
	publishFloor, leaseFloor int64
	ballast                  int64

	free    atomic.Int64 // at the last look; -1: not known
	written atomic.Int64 // octets committed at that time
}

func newDisk(s *store.Store, o Options) *disk {
	d := &disk{store: s, publishFloor: o.PublishFloor, leaseFloor: o.LeaseFloor, ballast: o.BallastBytes}
	d.free.Store(-1)
	return d
}

// look measures; between looks what was written counts twice, as the log and
// as the tables it becomes.
func (d *disk) look() error {
	free, ok, err := d.store.FreeBytes()
	if err != nil {
		return err
	}
	if !ok {
		d.free.Store(-1)
		return nil
	}
	d.written.Store(d.store.Written())
	d.free.Store(int64(min(free, 1<<62)))
	return nil
}

// room is what is left by now; ok is false where that cannot be known.
func (d *disk) room() (free int64, ok bool) {
	free = d.free.Load()
	if free < 0 {
		return 0, false
	}
	return free - 2*(d.store.Written()-d.written.Load()), true
}

func (d *disk) publish() error {
	return d.above(d.publishFloor, "publishes", "disk-floor-publish-bytes")
}

func (d *disk) lease() error {
	return d.above(d.leaseFloor, "new deliveries", "disk-floor-lease-bytes")
}

func (d *disk) above(floor int64, what, key string) error {
	if free, ok := d.room(); ok && free < floor {
		return queue.Errorf(queue.InsufficientStorage,
			"the disk has %d octets left and %s are refused below %d; delete or purge messages, make room on the disk, or lower %s", max(free, 0), what, floor, key)
	}
	return nil
}

// watch looks at the disk and at the clock until ctx is done.
func (b *Broker) watch(ctx context.Context) {
	const often = 250 * time.Millisecond
	known := false
	var low, lower bool
	var compacting atomic.Bool
	compacted := time.Now().Add(-time.Minute)
	for {
		if err := b.disk.look(); err != nil {
			b.log.Error("read free space", "error", err)
		}
		if b.clock.check() {
			b.lapser.recheck()
			b.keeper.recheck()
		}
		free, ok := b.disk.room()
		if known = ok; known && (free < b.disk.publishFloor) != low {
			if low = !low; low {
				b.log.Warn("disk low: publishes are refused", "free_bytes", free)
			} else {
				b.log.Info("disk has room again", "free_bytes", free)
			}
		}
		if known && (free < b.disk.leaseFloor) != lower {
			if lower = !lower; lower {
				b.log.Warn("disk very low: new deliveries are refused too", "free_bytes", free)
			}
		}
		if compacting.Load() {
			compacted = time.Now()
		} else if low && time.Since(compacted) > 10*time.Second {
			// Deletes make room only when what they deleted is rewritten,
			// which may take long.
			compacting.Store(true)
			b.wg.Go(func() {
				defer compacting.Store(false)
				if err := b.store.Compact(ctx); err != nil && ctx.Err() == nil {
					b.log.Error("compact", "error", err)
				}
			})
		} else if live, yes := b.reclaim.wants(b); yes {
			compacting.Store(true)
			b.wg.Go(func() {
				defer compacting.Store(false)
				b.reclaim.run(ctx, b, live)
			})
		} else if known && !low {
			if err := b.store.RestoreBallast(b.disk.ballast); err != nil {
				b.log.Error("restore ballast", "error", err)
			}
		}
		pause := often
		if !known {
			pause = time.Second // the clock alone
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
