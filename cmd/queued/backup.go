package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/queued-mq/queued/store"
)

// storeFlags are the settings that the commands about a data directory take as
// flags.
var storeFlags = []string{"data-dir", "log-format", "log-level"}

func backupCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup TARGET",
		Short: "Back a data directory up, while its server runs or not",
		Long: `Make a backup of the data directory in the folder TARGET, which must be empty
or not exist. If a server runs on it, that goes on; the backup holds everything
that was acknowledged before. The backup is whole when backup.json is there.

The copy is opened and recounted, which --recount=false leaves out.`,
		Args: oneFolder("the backup is to be made in"),
	}
	settings := settingFlags(cmd.Flags(), storeFlags...)
	recount := cmd.Flags().Bool("recount", true, "recount the copy, as queued verify does")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, _, err := settings.load(os.Environ())
		if err != nil {
			return err
		}
		defer endAtOnce(cmd.Context(), stderr)()
		if err := backUp(cmd.Context(), cfg, args[0], *recount, storeOptions(cfg, stderr), cmd.OutOrStdout()); err != nil {
			return failure{err}
		}
		return nil
	}
	return cmd
}

func restoreCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Make a data directory anew from a backup",
		Long: `Make the data directory, which must be empty or not exist, from a backup.
Every file is compared with its checksum. Receipts that were given out before
the restore are dead, and no number of a message is given out twice; leases
hold until they end. A restore that was interrupted is run again; until then no
server starts there.`,
		Args: oneFolder("the backup is in"),
	}
	settings := settingFlags(cmd.Flags(), storeFlags...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, _, err := settings.load(os.Environ())
		if err != nil {
			return err
		}
		defer endAtOnce(cmd.Context(), stderr)()
		if err := restore(cfg, args[0], storeOptions(cfg, stderr), cmd.OutOrStdout()); err != nil {
			return failure{err}
		}
		return nil
	}
	return cmd
}

// endAtOnce has the first signal end the process. That is safe at any moment: what
// was begun is recognised as unfinished.
func endAtOnce(ctx context.Context, stderr io.Writer) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		fmt.Fprintf(stderr, "queued: %v\n", context.Cause(ctx))
		os.Exit(1)
	})
}

// oneFolder wants one argument, and says what is in it.
func oneFolder(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s takes the folder that %s, and nothing else", cmd.CommandPath(), what)
		}
		return nil
	}
}

// storeOptions are for a command that is no server.
func storeOptions(cfg Config, stderr io.Writer) store.Options {
	return store.Options{
		MemtableBytes: cfg.MemtableBytes,
		CacheBytes:    cfg.BlockCacheBytes,
		Logger:        newLogger(cfg, stderr),
		Fatal:         func(error) { os.Exit(1) }, // it is logged
	}
}

// dataDir is the data directory in full, which must hold a store.
func dataDir(cfg Config) (string, error) {
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return "", fmt.Errorf("data-dir %s: %w", cfg.DataDir, err)
	}
	if store.Unfinished(dir, nil) {
		return "", unfinished(dir)
	}
	if info, err := os.Stat(filepath.Join(dir, "store")); err != nil || !info.IsDir() {
		return "", fmt.Errorf("data-dir %s holds no store", dir)
	}
	return dir, nil
}

func unfinished(dir string) error {
	return fmt.Errorf("data-dir %s holds a restore that was not finished; run queued restore again, or remove %s there", dir, store.Restoring)
}

// backUp makes the backup: of what the server that runs gives, or of the
// folder itself if none does.
func backUp(ctx context.Context, cfg Config, target string, recount bool, o store.Options, out io.Writer) error {
	dir, err := dataDir(cfg)
	if err != nil {
		return err
	}
	if target, err = filepath.Abs(target); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if rel, err := filepath.Rel(dir, target); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return fmt.Errorf("backup: %s lies in the data directory, and would be lost with it; choose another folder", target)
	}
	from, how := filepath.Join(dir, "store"), "no server runs on it"
	var release func() error
	lock, err := lockDir(dir)
	if running, ok := errors.AsType[inUse](err); ok {
		from, how = filepath.Join(dir, checkpointName), running.holder+" goes on"
		release, err = askCheckpoint(ctx, dir, running)
	} else if err == nil {
		release = lock.release
	}
	if err != nil {
		return err
	}
	m, err := store.CopyBackup(from, target, recount, programVersion(), o)
	if errors.Is(err, fs.ErrNotExist) && from != filepath.Join(dir, "store") {
		err = fmt.Errorf("%w; has the server ended?", err)
	}
	if err := errors.Join(err, release()); err != nil {
		return err
	}
	counted := "not recounted"
	if m.Recounted {
		counted = "recounted"
	}
	if _, err := fmt.Fprintf(out, "backup of %s in %s: %s in %s, %s, %s, %s; as of %s (position %d); %s\n", dir, target,
		size(m.Bytes()), amount(len(m.Files), "file"), amount(m.Queues, "queue"), amount(m.Messages, "message"), counted,
		instant(m.Now), m.Position, how); err != nil {
		return err
	}
	if m.Wrong > 0 {
		return fmt.Errorf("the backup is whole, but the store is not in order: %s; queued verify %s lists them", amount(m.Wrong, "difference"), target)
	}
	return nil
}

// askCheckpoint has the server that runs on dir make a checkpoint, which stays
// until end is called.
func askCheckpoint(ctx context.Context, dir string, running inUse) (end func() error, err error) {
	notReady := func(err error) error {
		return fmt.Errorf("backup: data-dir %s is in use by %s, which is not ready to make a backup: %w", dir, running.holder, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "addresses.json"))
	if err != nil {
		return nil, notReady(err)
	}
	var at struct{ Admin string }
	if err := json.Unmarshal(text, &at); err != nil || at.Admin == "" {
		return nil, notReady(fmt.Errorf("addresses.json is damaged"))
	}
	secret, err := os.ReadFile(secretFile(dir))
	if err != nil {
		return nil, notReady(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.Admin+"/backup", nil)
	if err != nil {
		return nil, notReady(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
	client := &http.Client{Transport: &http.Transport{
		Proxy:                 nil, // the server is this machine's
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: 10 * time.Minute,
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, notReady(err)
	}
	line, err := bufio.NewReader(io.LimitReader(resp.Body, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		resp.Body.Close()
		return nil, notReady(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		var refusal struct{ Message string }
		_ = json.Unmarshal([]byte(line), &refusal)
		return nil, fmt.Errorf("backup: %s says: %s (%s)", running.holder, refusal.Message, resp.Status)
	}
	return func() error {
		err := resp.Body.Close()
		// The server notices, and gives the space back.
		for range 500 {
			if _, gone := os.Stat(filepath.Join(dir, checkpointName)); gone != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}, nil
}

// restore makes the data directory from the backup.
func restore(cfg Config, backup string, o store.Options, out io.Writer) (err error) {
	if _, err := store.ReadBackup(backup, nil); err != nil { // before anything is made
		return err
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return fmt.Errorf("data-dir %s: %w", cfg.DataDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data-dir %s: %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	m, err := store.Restore(backup, dir, time.Now(), o, "lock")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "restored %s from %s: %s, %s; as of %s; receipts of before are dead\n", dir, backup,
		amount(m.Queues, "queue"), amount(m.Messages, "message"), instant(m.Now))
	return err
}

// amount spells a number of things.
func amount[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// size spells octets for a person.
func size(n int64) string {
	for _, unit := range []struct {
		octets int64
		name   string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.octets {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.octets), unit.name)
		}
	}
	return fmt.Sprintf("%d octets", n)
}
