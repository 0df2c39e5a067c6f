package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run found.
type Report struct {
	Face      string  `json:"face"`
	Shape     string  `json:"shape"`
	Producers int     `json:"producers"`
	Consumers int     `json:"consumers"`
	Ahead     int     `json:"ahead"`
	Batch     int     `json:"batch"`
	Size      int     `json:"size"`
	Queues    int     `json:"queues"`
	Channels  int     `json:"channels"`
	Rate      float64 `json:"rate"` // messages a second that were meant; 0: as many as could be

	Seconds     float64 `json:"seconds"` // that were measured
	Interrupted bool    `json:"interrupted"`

	Published Flow `json:"published"`
	Consumed  Flow `json:"consumed"`
	// Missed are messages that were due by the rate and whose publishing was not
	// begun by the end: their latencies count until then.
	Missed uint64 `json:"missed"`

	// Latencies; null for what was not done.
	Publish       *Latency `json:"publish"`
	Settle        *Latency `json:"settle"`
	ReceiveSettle *Latency `json:"receive_settle"`
	EndToEnd      *Latency `json:"end_to_end"`

	Errors   map[string]uint64 `json:"errors"` // operations by the code they failed with
	Verified Verified          `json:"verified"`
	Server   *Cost             `json:"server"` // null: no metrics
	Client   ClientCost        `json:"client"`
	Notes    []string          `json:"notes"` // what to know before the figures are believed
}

// Flow is a number of messages within the time that was measured.
type Flow struct {
	Messages   uint64  `json:"messages"`
	Operations uint64  `json:"operations"`
	PerSecond  float64 `json:"per_second"` // messages
}

// Verified is what became of all messages, those outside the time that was
// measured included.
type Verified struct {
	Published  uint64  `json:"published"`  // answered: durable
	Consumed   uint64  `json:"consumed"`   // answered: deleted
	Duplicates uint64  `json:"duplicates"` // came once more
	Left       uint64  `json:"left"`       // published and did not come before the end
	Lost       *uint64 `json:"lost"`       // of these, those that are not in the queue either; null: not known
}

// Cost is what the server spent. A message is half a published one and half a
// consumed one, where both is done.
type Cost struct {
	CPUSeconds       float64 `json:"cpu_seconds"`
	CPUMicros        float64 `json:"cpu_us_per_message"`
	Allocations      float64 `json:"allocations_per_message"`
	Syncs            float64 `json:"syncs"`
	MessagesEachSync float64 `json:"messages_per_sync"`
	ResidentBytes    float64 `json:"resident_bytes"` // at the end
}

// ClientCost is what this process spent.
type ClientCost struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	CPUMicros  float64 `json:"cpu_us_per_message"`
}

// report is made when the workers have ended.
func (r *run) report(ctx context.Context) *Report {
	o, rec := &r.o, r.rec
	seconds := time.Duration(rec.to.Load() - rec.from.Load()).Seconds()
	flow := func(messages, operations uint64) Flow {
		return Flow{messages, operations, float64(messages) / max(seconds, 1e-3)}
	}
	p := &Report{
		Face: o.Face, Shape: o.Shape, Producers: o.Producers, Consumers: o.Consumers, Ahead: o.Ahead, Batch: o.Batch,
		Size: o.Size, Queues: o.Queues, Channels: o.Channels, Rate: o.Rate,
		Seconds: seconds, Interrupted: ctx.Err() != nil,
		Published: flow(rec.published.Load(), rec.publishes.Load()),
		Consumed:  flow(rec.consumed.Load(), rec.settles.Load()),
		Missed:    rec.missed.Load(),
		Publish:   rec.distribution(publishing), Settle: rec.distribution(settling),
		ReceiveSettle: rec.distribution(cycling), EndToEnd: rec.distribution(endToEnd),
		Errors: maps.Clone(rec.errors), Notes: []string{},
	}
	if o.Shape == "publish" {
		p.Consumers = 0
	}
	p.Verified = r.verify()

	messages := float64(p.Published.Messages+p.Consumed.Messages) / 2
	if p.Published.Messages == 0 || p.Consumed.Messages == 0 {
		messages *= 2
	}
	messages = max(messages, 1)
	if b, a := r.before, r.after; b != nil && a != nil && a.cpu >= b.cpu {
		p.Server = &Cost{
			CPUSeconds: a.cpu - b.cpu, CPUMicros: (a.cpu - b.cpu) * 1e6 / messages, Allocations: (a.allocs - b.allocs) / messages,
			Syncs: a.syncs - b.syncs, MessagesEachSync: messages / max(a.syncs-b.syncs, 1), ResidentBytes: a.resident,
		}
	}
	spent := max(r.client[1]-r.client[0], 0).Seconds()
	if r.client[0] == 0 {
		spent = 0
	}
	p.Client = ClientCost{spent, spent * 1e6 / messages}
	p.notes(rec.first)
	return p
}

// verify compares what was published with what came and with what the queues
// still hold.
func (r *run) verify() Verified {
	rec := r.rec
	v := Verified{
		Published: rec.allPublished.Load(), Consumed: rec.allConsumed.Load(), Duplicates: rec.duplicates.Load(),
		Left: rec.acked.unseen(&rec.seen),
	}
	if v.Left == 0 {
		v.Lost = new(uint64(0))
		return v
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.hard), endWait)
	defer cancel()
	var stored int64
	for _, q := range r.queues {
		n, err := r.admin.stored(ctx, q)
		if err != nil {
			return v
		}
		stored += n
	}
	// What came and was not deleted is among the stored.
	unsettled := int64(rec.seen.unseen(new(ledger))) - int64(v.Consumed-min(v.Duplicates, v.Consumed))
	v.Lost = new(uint64(max(int64(v.Left)-stored+max(unsettled, 0), 0)))
	return v
}

// anyError is the commonest error that there was.
func (r *recorder) anyError() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) == 0 {
		return "no operation came to its end"
	}
	codes := slices.SortedFunc(maps.Keys(r.errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.errors[b], r.errors[a]), cmp.Compare(a, b))
	})
	return r.first[codes[0]]
}

// limitCodes are the refusals by which limits, not the server, are measured.
var limitCodes = []string{"TooManyRequests", "LimitExceeded", "QuotaExceeded", "PayloadTooLarge", "InsufficientStorage"}

// OCI's limits of a queue, which STOMP keeps to by being slow: no error tells.
const (
	ociRequests = 1000
	ociBytes    = 10 << 20
)

// notes says what is to be known about the figures; first holds the text of the
// first error of each code.
func (p *Report) notes(first map[string]string) {
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	for _, code := range slices.Sorted(maps.Keys(p.Errors)) {
		note("%d operations failed with %s, the first with: %s", p.Errors[code], code, strings.TrimPrefix(first[code], code+": "))
		if slices.Contains(limitCodes, code) {
			note("%s is a limit of the server: its limits are measured here, not what it can do; --limits-profile unthrottled lifts those on rates and storage", code)
		}
	}
	operations := p.Published
	if p.Shape == "drain" {
		operations = p.Consumed
	}
	each := operations.PerSecond / float64(max(p.Queues, 1))
	requests := each * float64(operations.Operations) / float64(max(operations.Messages, 1))
	if p.Face == "stomp" {
		requests = each
	}
	about := func(v, limit float64) bool { return v > 0.95*limit && v < 1.15*limit }
	if p.Rate == 0 && about(requests, ociRequests) || about(each*float64(p.Size), ociBytes) {
		note("this is about what the limits profile oci lets through in a queue (1000 requests and 10 MiB a second): if the server has it, it is what was measured")
	}
	due := p.Rate * p.Seconds
	if short := due - float64(p.Published.Messages); short > 0.02*due && short > float64(p.Producers*p.Ahead*p.Batch) {
		note("the rate was not reached: %.0f of %.0f messages a second; the latencies are of a line that grows for as long as it is measured", p.Published.PerSecond, p.Rate)
	}
	if p.Missed > 0 {
		note("%d messages were due and not begun by the end; their latencies count until then and are too good", p.Missed)
	}
	if p.Verified.Lost == nil {
		note("%d messages did not come before the end, and the server did not say whether it has them", p.Verified.Left)
	} else if *p.Verified.Lost > 0 {
		note("%d MESSAGES ARE LOST: published, not received, and not in the queue", *p.Verified.Lost)
	}
	if p.Seconds == 0 {
		note("nothing was measured: it ended before the measuring began")
	} else if p.Server == nil {
		note("no figures of the server: /metrics at the admin address could not be read")
	}
	if p.Interrupted {
		note("interrupted: the figures are of the time until then")
	}
}

// WriteJSON writes the report as one JSON object.
func (p *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p)
}

// WriteText writes the report for a person.
func (p *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	rate := "as fast as can be"
	if p.Rate > 0 {
		rate = fmt.Sprintf("%.0f messages a second meant", p.Rate)
	}
	fmt.Fprintf(&b, "%s over %s, %.1f s, %s\n", p.Shape, p.Face, p.Seconds, rate)
	fmt.Fprintf(&b, "producers %d, consumers %d, ahead %d, batch %d, size %d, queues %d, channels %d\n\n",
		p.Producers, p.Consumers, p.Ahead, p.Batch, p.Size, p.Queues, p.Channels)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tmessages\ta second\tMiB a second\t\n")
	for _, f := range []struct {
		name string
		flow Flow
	}{{"published", p.Published}, {"consumed", p.Consumed}} {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.1f\t\n", f.name, f.flow.Messages, f.flow.PerSecond, f.flow.PerSecond*float64(p.Size)/(1<<20))
	}
	t.Flush()
	b.WriteByte('\n')

	if p.Publish == nil && p.Settle == nil {
		b.WriteString("no latencies\n")
	} else {
		fmt.Fprint(t, "ms\tcount\tp50\tp90\tp99\tp99.9\tmax\t\n")
	}
	for _, l := range []struct {
		name    string
		latency *Latency
	}{{"publish", p.Publish}, {"settle", p.Settle}, {"receive+settle", p.ReceiveSettle}, {"end to end", p.EndToEnd}} {
		if d := l.latency; d != nil {
			fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", l.name, d.Count, d.P50, d.P90, d.P99, d.P999, d.Max)
		}
	}
	t.Flush()
	b.WriteByte('\n')

	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	if s := p.Server; s != nil {
		line("server", "%.1f µs CPU and %.1f allocations a message, %.0f syncs, %.1f messages a sync, %.0f MiB resident",
			s.CPUMicros, s.Allocations, s.Syncs, s.MessagesEachSync, s.ResidentBytes/(1<<20))
	} else {
		line("server", "n/a")
	}
	line("client", "%.1f µs CPU a message", p.Client.CPUMicros)
	lost := "not known"
	if p.Verified.Lost != nil {
		lost = fmt.Sprint(*p.Verified.Lost)
	}
	line("verified", "published %d, consumed %d, left %d, lost %s, duplicates %d",
		p.Verified.Published, p.Verified.Consumed, p.Verified.Left, lost, p.Verified.Duplicates)
	failed := "none"
	if len(p.Errors) > 0 {
		var all []string
		for _, code := range slices.Sorted(maps.Keys(p.Errors)) {
			all = append(all, fmt.Sprintf("%s %d", code, p.Errors[code]))
		}
		failed = strings.Join(all, ", ")
	}
	line("errors", "%s", failed)
	for _, n := range p.Notes {
		line("note", "%s", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
