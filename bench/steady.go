package bench

import (
	"context"
	"time"
)

// steady is the shape in which messages are published and consumed at once, as
// fast as can be or at a rate. Behind the window the consumers go on until
// nothing is left, or for as long again.
func (r *run) steady(ctx context.Context) {
	stopProducers, cancelProducers := context.WithCancel(ctx)
	defer cancelProducers()
	stopConsumers, cancelConsumers := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelConsumers()
	consumers := r.consume(stopConsumers)
	producers := r.produce(stopProducers, r.o.Batch)
	r.window(ctx)
	cancelProducers()
	r.end(producers)
	r.quiet(ctx, max(r.o.Duration, 5*time.Second))
	cancelConsumers()
	r.end(consumers)
}
