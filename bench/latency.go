package bench

import "context"

// latency is the shape steady at a rate, which it must have: below what the
// server can do, the latencies are what a user sees.
func (r *run) latency(ctx context.Context) { r.steady(ctx) }
