package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/queued-mq/queued/bench"
)

func benchCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on a running server and measure it",
		Long: `Put load on a running server and measure it: messages a second, latencies, what
a message costs the server, and whether every message came once. It makes
queues of its own (bench-...) and deletes them at the end.

Shapes: publish (nobody consumes), drain (a backlog is consumed), steady
(producers and consumers at once), latency (steady at a rate). With --rate each
operation has an instant at which it is due, and latency counts from there.

The limits profile oci is reached soon: start the server with
--limits-profile unthrottled to measure the server instead.`,
		Args: cobra.NoArgs,
	}
	o := bench.Defaults()
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&o.Face, "face", o.Face, "rest, grpc (one call after the other), streams (of gRPC) or stomp")
	set.StringVar(&o.Shape, "shape", o.Shape, "publish, drain, steady or latency")
	set.IntVar(&o.Producers, "producers", o.Producers, "sessions that publish")
	set.IntVar(&o.Consumers, "consumers", o.Consumers, "sessions that consume")
	set.IntVar(&o.Ahead, "ahead", o.Ahead, "operations in flight on each session")
	set.IntVar(&o.Batch, "batch", o.Batch, "messages of an operation")
	set.IntVar(&o.Size, "size", o.Size, "octets of a message")
	set.IntVar(&o.Queues, "queues", o.Queues, "queues, which sessions are spread over")
	set.IntVar(&o.Channels, "channels", o.Channels, "channels of each queue, which messages are spread over")
	set.IntVar(&o.Window, "window", o.Window, "streams and stomp: messages that a consumer may have unsettled (0: two batches for each operation in flight)")
	set.DurationVar(&o.Duration, "duration", o.Duration, "how long is measured; for drain how long the backlog is published")
	set.DurationVar(&o.Warmup, "warmup", o.Warmup, "load before that")
	set.Float64Var(&o.Rate, "rate", o.Rate, "messages a second that are due (0: as many as can be)")
	set.IntVar(&o.Messages, "messages", o.Messages, "drain: messages of the backlog, instead of a duration")
	set.StringVar(&o.REST, "rest", o.REST, "where REST is")
	set.StringVar(&o.GRPC, "grpc", o.GRPC, "where gRPC is")
	set.StringVar(&o.STOMP, "stomp", o.STOMP, "where STOMP is")
	set.StringVar(&o.Admin, "admin", o.Admin, "where /metrics is")
	dir := set.String("data-dir", "", "take these addresses from the server that runs on this `folder`")
	asJSON := set.Bool("json", false, "write JSON")
	progress := set.Bool("progress", terminal(stderr), "write a line each second to stderr")
	set.BoolVar(&o.Keep, "keep", false, "leave the queues there")

	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
			var names []string
			set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			return fmt.Errorf("%w%s", err, meant("--", names, e.GetSpecifiedName()))
		}
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *dir != "" {
			if err := addressesOf(*dir, set, &o); err != nil {
				return err
			}
		}
		if err := o.Validate(); err != nil {
			return err
		}
		if *progress {
			o.Progress = stderr
		}
		report, err := bench.Run(cmd.Context(), o)
		if report != nil {
			write := report.WriteText
			if *asJSON {
				write = report.WriteJSON
			}
			err = errors.Join(err, write(cmd.OutOrStdout()))
			if lost := report.Verified.Lost; lost != nil && *lost > 0 {
				err = errors.Join(err, fmt.Errorf("%d messages are lost", *lost))
			}
		}
		if err != nil {
			return failure{err}
		}
		return nil
	}
	return cmd
}

// addressesOf takes the addresses that are not given from the file that a
// server has written in its data directory.
func addressesOf(dir string, set *pflag.FlagSet, o *bench.Options) error {
	text, err := os.ReadFile(filepath.Join(dir, "addresses.json"))
	if err != nil {
		return fmt.Errorf("data-dir %s: no server runs there: %w", dir, err)
	}
	var at struct{ REST, GRPC, STOMP, Admin string }
	if err := json.Unmarshal(text, &at); err != nil {
		return fmt.Errorf("data-dir %s: addresses.json: %w", dir, err)
	}
	for _, a := range []struct {
		flag string
		to   *string
		of   string
	}{{"rest", &o.REST, at.REST}, {"grpc", &o.GRPC, at.GRPC}, {"stomp", &o.STOMP, at.STOMP}, {"admin", &o.Admin, at.Admin}} {
		if !set.Changed(a.flag) {
			*a.to = a.of
		}
	}
	return nil
}
