package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

func verifyCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [BACKUP]",
		Short: "Recount a store or a backup and say whether it is in order",
		Long: `Open the data directory, or a backup, for reading alone, recount every counter
and check everything that must hold. Not one octet there is changed. No server
may run on the directory; of a running one make a backup and verify that.

Exit code 0: all is in order. 1: it is not, or could not be read.`,
		Args: cobra.MaximumNArgs(1),
	}
	settings := settingFlags(cmd.Flags(), storeFlags...)
	asJSON := cmd.Flags().Bool("json", false, "print JSON instead of a table")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, _, err := settings.load(os.Environ())
		if err != nil {
			return err
		}
		defer endAtOnce(cmd.Context(), stderr)()
		found, err := verify(cfg, args, storeOptions(cfg, stderr))
		if err != nil {
			return failure{err}
		}
		write := found.write
		if *asJSON {
			write = found.writeJSON
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return failure{err}
		}
		if n := len(found.Differences) + found.More; n > 0 {
			return failure{fmt.Errorf("%s is not in order: %s", found.Store, amount(n, "difference"))}
		}
		return nil
	}
	return cmd
}

// finding is what verify found, as --json prints it.
type finding struct {
	Store       string        `json:"store"` // the folder
	Format      uint64        `json:"format"`
	Generation  uint64        `json:"generation"`
	Position    uint64        `json:"position"`
	Now         time.Time     `json:"now,omitzero"` // of the last commit
	Rows        []laneFinding `json:"rows"`
	Total       pair          `json:"total"`
	Removals    int           `json:"removals"` // purged lanes whose rows are yet to go
	Differences []difference  `json:"differences"`
	More        int           `json:"moreDifferences"`
}

// laneFinding is one channel of one queue with its dead letters.
type laneFinding struct {
	Queue   string `json:"queue"`
	Group   string `json:"consumerGroup,omitempty"` // display name; "": the queue has no consumer groups
	Channel string `json:"channel"`
	pair
	number store.QueueNumber
	group  uint32
}

// pair is what is there, and what counters say.
type pair struct {
	Stored  counts `json:"stored"`
	Counted counts `json:"counted"`
}

type counts struct {
	Visible  int64 `json:"visible"`
	InFlight int64 `json:"inFlight"`
	Delayed  int64 `json:"delayed"`
	Dead     int64 `json:"dead"`
	Bytes    int64 `json:"bytes"`
}

func (c *counts) add(l *store.Lane) {
	s := l.Stats()
	c.Bytes += s.Bytes
	if l.Key.Dead {
		c.Dead += s.Visible + s.InFlight
		return
	}
	c.Visible += s.Visible
	c.InFlight += s.InFlight
	c.Delayed += s.Delayed
}

type difference struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// verify reads the data directory, or the backup that args name.
func verify(cfg Config, args []string, o store.Options) (_ *finding, err error) {
	var folder string
	if len(args) == 1 {
		if _, err := store.VerifyBackup(args[0], nil); err != nil {
			return nil, err
		}
		folder = store.BackupStore(args[0])
	} else {
		dir, err := dataDir(cfg)
		if err != nil {
			return nil, err
		}
		release, err := lockToRead(dir)
		if running, ok := errors.AsType[inUse](err); ok {
			return nil, fmt.Errorf("data-dir %s is in use by %s, and what changes cannot be counted; stop it, or make a backup and verify that", running.dir, running.holder)
		}
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
		folder = filepath.Join(dir, "store")
	}
	s, err := store.OpenReadOnly(folder, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := s.Verify()
	if err != nil {
		return nil, err
	}
	return findingOf(folder, r), nil
}

func findingOf(folder string, r *store.Report) *finding {
	f := &finding{
		Store: folder, Format: r.Format, Generation: r.Generation, Position: r.State.Position, Now: r.State.Now.Time(),
		Rows: []laneFinding{}, Removals: r.Removals, Differences: []difference{}, More: r.More,
	}
	for i := range r.Lanes { // those of one queue and channel stand together
		l := &r.Lanes[i]
		key := l.Counted.Key
		if n := len(f.Rows); n == 0 || f.Rows[n-1].number != key.Queue || f.Rows[n-1].group != key.Group || f.Rows[n-1].Channel != key.Channel {
			name := cmp.Or(l.Queue, fmt.Sprintf("queue %d, which is gone", key.Queue))
			f.Rows = append(f.Rows, laneFinding{Queue: name, Group: groupName(r, key), Channel: key.Channel, number: key.Queue, group: key.Group})
		}
		row := &f.Rows[len(f.Rows)-1]
		row.Stored.add(&l.Have)
		row.Counted.add(&l.Counted)
		f.Total.Stored.add(&l.Have)
		f.Total.Counted.add(&l.Counted)
	}
	for i := range r.Queues { // those that hold nothing
		q := &r.Queues[i]
		if q.State == queue.Active && !slices.ContainsFunc(f.Rows, func(r laneFinding) bool { return r.number == q.Number }) {
			f.Rows = append(f.Rows, laneFinding{Queue: q.DisplayName, number: q.Number})
		}
	}
	slices.SortStableFunc(f.Rows, func(a, b laneFinding) int { return cmp.Compare(a.number, b.number) })
	for _, d := range r.Differences {
		f.Differences = append(f.Differences, difference(d))
	}
	return f
}

// groupName is the display name of the consumer group that a lane is of; "" if
// its queue has none.
func groupName(r *store.Report, key store.LaneKey) string {
	for i := range r.Queues {
		if r.Queues[i].Number != key.Queue || len(r.Queues[i].Groups) == 0 {
			continue
		}
		for _, g := range r.Queues[i].Groups {
			if g.Number == key.Group {
				return g.DisplayName
			}
		}
		if key.Group == store.UnroutedGroup {
			return unrouted
		}
		return fmt.Sprintf("group %d, which is gone", key.Group)
	}
	return ""
}

func (f *finding) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(f)
}

// write prints the table, then the differences.
func (f *finding) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading := "" // a column more, if a queue has some
	if slices.ContainsFunc(f.Rows, func(r laneFinding) bool { return r.Group != "" }) {
		heading = "CONSUMER GROUP\t"
	}
	fmt.Fprintln(t, "QUEUE\t"+heading+"CHANNEL\tVISIBLE\tIN FLIGHT\tDELAYED\tDEAD\tBYTES STORED\tBYTES COUNTED")
	line := func(name, group, channel string, p pair) {
		if heading != "" {
			name += "\t" + group
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", name, channel,
			cell(p.Stored.Visible, p.Counted.Visible), cell(p.Stored.InFlight, p.Counted.InFlight),
			cell(p.Stored.Delayed, p.Counted.Delayed), cell(p.Stored.Dead, p.Counted.Dead), p.Stored.Bytes, p.Counted.Bytes)
	}
	for _, r := range f.Rows {
		line(plain(r.Queue), cmp.Or(plain(r.Group), "-"), cmp.Or(plain(r.Channel), "-"), r.pair)
	}
	line("total", "", "", f.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nformat %d, generation %d, position %d, as of %s", f.Format, f.Generation, f.Position, instant(f.Now))
	if f.Removals > 0 {
		fmt.Fprintf(w, "; %s yet to be removed after a purge", amount(f.Removals, "lane"))
	}
	fmt.Fprintln(w)
	for _, d := range f.Differences {
		fmt.Fprintf(w, "%s: %s\n", plain(cmp.Or(d.Key, "store")), d.Text)
	}
	if f.More > 0 {
		fmt.Fprintf(w, "and %d more\n", f.More)
	}
	if len(f.Differences) == 0 {
		_, err := fmt.Fprintln(w, "everything is in order")
		return err
	}
	return nil
}

// cell is what is there, and what the counter says if that is something else.
func cell(stored, counted int64) string {
	if stored == counted {
		return strconv.FormatInt(stored, 10)
	}
	return fmt.Sprintf("%d (counted %d)", stored, counted)
}

// instant spells the instant of a commit as the API does.
func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return queue.InstantOf(t).String()
}

// plain is a name as it is, or quoted if it would spoil the table.
func plain(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
