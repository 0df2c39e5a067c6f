package bench

import "context"

// publish is the shape in which nobody consumes.
func (r *run) publish(ctx context.Context) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	producers := r.produce(stop, r.o.Batch)
	r.window(ctx)
	cancel()
	r.end(producers)
}
