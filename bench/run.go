package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// How long a run waits for what is under way when it is told to end, and for
// messages that were published and have not come.
const (
	endWait   = 10 * time.Second
	quietWait = 10 * time.Second
)

// run is one measurement.
type run struct {
	o        Options
	face     face
	admin    admin
	rec      *recorder
	bodies   *bodies
	queues   []string
	channels []string
	numbers  atomic.Uint64

	hard          context.Context // ends what is under way
	cut           context.CancelFunc
	before, after *server // the server at both ends of the window; nil if it does not say
	client        [2]time.Duration
}

// Run measures as o says. When ctx ends early, the report is of what was done
// until then. An error means that there is no report.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a, err := openAdmin(&o)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	f, err := openFace(&o)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endWait/2, cancel) })()

	r := newRun(o, f, a, hard, cancel)
	defer func() {
		if !o.Keep {
			err = errors.Join(err, r.deleteQueues(ctx))
		}
	}()
	if err := r.makeQueues(ctx); err != nil {
		return nil, err
	}

	progress := r.progress()
	switch o.Shape {
	case "publish":
		r.publish(ctx)
	case "drain":
		err = r.drain(ctx)
	case "steady":
		r.steady(ctx)
	case "latency":
		r.latency(ctx)
	}
	progress()
	if err != nil {
		return nil, err
	}
	report = r.report(ctx)
	if report.Verified.Published == 0 && len(report.Errors) > 0 && report.Consumed.Messages == 0 {
		return report, fmt.Errorf("nothing was published: %s", r.rec.anyError())
	}
	return report, nil
}

func newRun(o Options, f face, a admin, hard context.Context, cut context.CancelFunc) *run {
	return &run{o: o, face: f, admin: a, rec: newRecorder(), bodies: newBodies(o.Size), channels: channelNames(o.Channels), hard: hard, cut: cut}
}

// open begins the window, and shut ends it.
func (r *run) open() {
	r.before = readServer(r.hard, r.o.Admin)
	r.client[0] = processCPU()
	r.rec.from.Store(int64(r.rec.now()))
}

func (r *run) shut() {
	if r.rec.to.Load() != math.MaxInt64 {
		return
	}
	r.rec.to.Store(int64(r.rec.now()))
	r.client[1] = processCPU()
	if r.rec.from.Load() != math.MaxInt64 {
		r.after = readServer(r.hard, r.o.Admin)
	} else {
		r.rec.from.Store(r.rec.to.Load()) // it ended before it began
	}
}

// window lets the load that is there warm up, and measures it.
func (r *run) window(ctx context.Context) {
	if sleep(ctx, r.o.Warmup) {
		r.open()
		sleep(ctx, r.o.Duration)
	}
	r.shut()
}

// sleep reports whether ctx let it finish.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// workers run until they are told to stop.
type workers struct {
	sync.WaitGroup
	close []func() // their sessions
}

// end waits for workers that have been told to stop. What a server has not
// answered behind endWait it will not answer: then the run is cut.
func (r *run) end(w *workers) {
	patience := time.AfterFunc(endWait, r.cut)
	defer patience.Stop()
	w.Wait()
	for _, f := range w.close {
		f()
	}
}

// produce starts the producers.
func (r *run) produce(stop context.Context, batch int) *workers {
	w := &workers{}
	var interval time.Duration
	if r.o.Rate > 0 {
		interval = time.Duration(float64(batch) / r.o.Rate * float64(time.Second))
	}
	n := r.o.Producers * r.o.Ahead
	for i := range r.o.Producers {
		queue := r.queues[i%len(r.queues)]
		l := &link[producer]{open: func(ctx context.Context) (producer, error) { return r.face.producer(ctx, i, queue) }}
		w.close = append(w.close, l.close)
		for j := range r.o.Ahead {
			p := &pace{rec: r.rec, interval: interval, worker: j*r.o.Producers + i, workers: n}
			w.Go(func() { r.producer(stop, l, p, batch) })
		}
	}
	return w
}

func (r *run) producer(stop context.Context, l *link[producer], p *pace, batch int) {
	messages, numbers := make([]message, batch), make([]uint64, batch)
	buffer := make([]byte, 0, batch*r.o.Size)
	var rest pause
	for {
		meant, ok := p.wait(stop)
		if !ok {
			break
		}
		buffer = buffer[:0]
		for i := range messages {
			n := r.numbers.Add(1) - 1
			from := len(buffer)
			buffer = r.bodies.append(buffer, n, meant)
			numbers[i], messages[i].body = n, buffer[from:]
			if len(r.channels) > 0 {
				messages[i].channel = r.channels[n%uint64(len(r.channels))]
			}
		}
		session, made, err := l.use(r.hard)
		if err == nil {
			err = session.publish(r.hard, messages)
		}
		if err != nil {
			r.rec.failed(err)
			l.broken(made, err)
			if r.hard.Err() != nil {
				break
			}
			rest.wait(stop)
			buffer = make([]byte, 0, batch*r.o.Size) // the session may still read the old one
			continue
		}
		rest = 0
		ended := r.rec.now()
		r.rec.latency(p.worker, publishing, meant, ended)
		if r.rec.within(ended) {
			r.rec.published.Add(uint64(batch))
			r.rec.publishes.Add(1)
		}
		for _, n := range numbers {
			r.rec.acked.note(n)
		}
		r.rec.allPublished.Add(uint64(batch))
	}
	r.rec.missed.Add(uint64(p.missed()) * uint64(batch))
}

// consume starts the consumers.
func (r *run) consume(stop context.Context) *workers {
	w := &workers{}
	for i := range r.o.Consumers {
		queue := r.queues[i%len(r.queues)]
		l := &link[consumer]{open: func(ctx context.Context) (consumer, error) { return r.face.consumer(ctx, i, queue) }}
		w.close = append(w.close, l.close)
		for j := range r.o.Ahead {
			w.Go(func() { r.consumer(stop, l, i+j) })
		}
	}
	return w
}

func (r *run) consumer(stop context.Context, l *link[consumer], worker int) {
	var rest pause
	for stop.Err() == nil {
		began := r.rec.now()
		session, made, err := l.use(r.hard)
		var got []delivery
		if err == nil {
			got, err = session.receive(r.hard, r.o.Batch)
		}
		for _, d := range got {
			if !r.rec.seen.note(d.number) {
				r.rec.duplicates.Add(1)
			}
			if r.o.Shape != "drain" { // there it is the time in the backlog
				r.rec.latency(worker, endToEnd, d.meant, d.at.Sub(r.rec.base))
			}
		}
		received := r.rec.now()
		if err == nil && len(got) > 0 {
			err = session.settle(r.hard, got)
		}
		if err != nil {
			r.rec.failed(err)
			l.broken(made, err)
			if r.hard.Err() != nil {
				return
			}
			rest.wait(stop)
			continue
		}
		rest = 0
		if len(got) == 0 {
			continue
		}
		ended := r.rec.now()
		r.rec.latency(worker, settling, received, ended)
		r.rec.latency(worker, cycling, began, ended)
		if r.rec.within(ended) {
			r.rec.consumed.Add(uint64(len(got)))
			r.rec.settles.Add(1)
		}
		r.rec.allConsumed.Add(uint64(len(got)))
	}
}

// quiet waits until all that was published has been consumed, for as long as
// there is progress, and at most for atMost.
func (r *run) quiet(ctx context.Context, atMost time.Duration) {
	began := time.Now()
	last, moved := r.rec.allConsumed.Load(), time.Now()
	for time.Since(began) < atMost && time.Since(moved) < quietWait {
		if r.rec.allConsumed.Load() >= r.rec.allPublished.Load() || r.hard.Err() != nil {
			return
		}
		if !sleep(ctx, 2*time.Millisecond) {
			return
		}
		if n := r.rec.allConsumed.Load(); n != last {
			last, moved = n, time.Now()
		}
	}
}

// progress writes a line each second until the function it gives is called.
func (r *run) progress() (end func()) {
	if r.o.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		var published, consumed uint64
		at := r.rec.now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			p, c, now := r.rec.allPublished.Load(), r.rec.allConsumed.Load(), r.rec.now()
			phase := "warmup"
			if int64(now) >= r.rec.to.Load() {
				phase = "ending"
			} else if int64(now) >= r.rec.from.Load() {
				phase = "measuring"
			} else if r.o.Shape == "drain" {
				phase = "filling"
			}
			s := (now - at).Seconds()
			fmt.Fprintf(r.o.Progress, "%4.0fs  %-9s  published %8.0f/s  consumed %8.0f/s  behind %d  errors %d\n",
				now.Seconds(), phase, float64(p-published)/s, float64(c-consumed)/s, max(int64(p)-int64(c), 0), r.rec.failures())
			published, consumed, at = p, c, now
		}
	})
	return func() { cancel(); wg.Wait() }
}
