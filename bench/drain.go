package bench

import (
	"context"
	"fmt"
	"time"
)

// drain is the shape in which a backlog is consumed. First it is published, in
// batches as large as can be: so many messages as were asked for, or what can
// be in the duration. What is measured is the consuming.
func (r *run) drain(ctx context.Context) error {
	stop, cancel := context.WithCancel(ctx)
	batch := min(mostBatch, mostBytes/r.o.Size)
	producers := r.produce(stop, batch)
	if r.o.Messages == 0 {
		sleep(ctx, r.o.Duration)
	}
	for last, moved := uint64(0), time.Now(); ctx.Err() == nil && r.rec.allPublished.Load() < uint64(r.o.Messages); {
		if n := r.rec.allPublished.Load(); n != last {
			last, moved = n, time.Now()
		}
		if time.Since(moved) > quietWait {
			break
		}
		sleep(ctx, time.Millisecond)
	}
	cancel()
	r.end(producers)
	if ctx.Err() == nil && r.rec.allPublished.Load() == 0 {
		return fmt.Errorf("nothing was published: %s", r.rec.anyError())
	}

	stop, cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if ctx.Err() == nil {
		r.open()
	}
	consumers := r.consume(stop)
	r.quiet(ctx, 24*time.Hour)
	r.shut()
	cancel()
	r.end(consumers)
	return nil
}
