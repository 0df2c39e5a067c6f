package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run does what args say and returns when it is done or ctx ends. It reads the
// environment, and writes what was asked for to stdout and logs to stderr. An
// error is for exitCode to report.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:               "queued",
		Short:             "A durable message queue over REST, gRPC and STOMP",
		SilenceErrors:     true, // exitCode reports them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(serveCommand(stderr), backupCommand(stderr), restoreCommand(stderr), verifyCommand(stderr), configCommand(), versionCommand())
	root.AddCommand(benchCommand(stderr))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
			if s, ok := withoutFlag(e.GetSpecifiedName()); ok {
				return fmt.Errorf("%w; %s goes into the config file, or into the environment as %s", err, s.key, s.variable())
			}
			return fmt.Errorf("%w%s", err, meant("--", flagNames(), e.GetSpecifiedName()))
		}
		return err
	})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// failure is an error of a server that was told rightly what to do.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// exitCode is 0 without an error, 1 for a failure, 2 when the command or the
// settings are wrong; an error is written to w, a line for each part of it.
func exitCode(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	for _, e := range parts(err) {
		fmt.Fprintf(w, "queued: %v\n", e)
	}
	if _, ok := errors.AsType[failure](err); ok {
		return 1
	}
	return 2
}

// parts are the errors that were joined.
func parts(err error) (all []error) {
	if f, ok := err.(failure); ok {
		err = f.error
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

func serveCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it is told to stop by SIGTERM or SIGINT.

Every setting is a flag, a key of the config file (--config) and an environment
variable (QUEUED_ and the key in capitals with underscores); a flag beats the
environment, that the file, that the default. The groups "limits" and "stomp"
have no flags. "queued config" lists all settings.`,
		Args: cobra.NoArgs,
	}
	settings := settingFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := settings.load(os.Environ())
		if err != nil {
			return err
		}
		log := newLogger(cfg, stderr)
		cfg.limitMemory()
		if err := serve(cmd.Context(), cfg, log, cmd.OutOrStdout(), os.Exit); err != nil {
			return failure{err}
		}
		return nil
	}
	return cmd
}

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting in force, as a config file",
		Long: `Print every setting in force with its meaning and where its value comes from.
It takes the flags of serve and reads the same file and environment. The output
is itself a config file.`,
		Args: cobra.NoArgs,
	}
	settings := settingFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, from, err := settings.load(os.Environ())
		if err != nil {
			return err
		}
		if err := writeConfig(cmd.OutOrStdout(), &cfg, from); err != nil {
			return failure{err}
		}
		return nil
	}
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), version()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

// version is what the binary knows about itself. One made by "go run" or
// without a git history does not know its commit.
func version() string {
	v, commit, changed := programVersion(), "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("queued %s, commit %s%s, %s %s/%s",
		v, commit, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// programVersion is the version of the module that was built.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// newLogger writes to w as the settings say; "auto" is text for a person and
// JSON for a machine.
func newLogger(cfg Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[cfg.LogLevel]}
	if cfg.LogFormat == "text" || cfg.LogFormat == "auto" && terminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
