package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// command runs the program with args in an environment without settings.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, envPrefix) {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	var out, log bytes.Buffer
	code = exitCode(run(t.Context(), args, &out, &log), &log)
	return code, out.String(), log.String()
}

func TestCommands(t *testing.T) {
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string // each in it; an empty one is nothing at all
	}{
		{"", 0, "Available Commands", ""},
		{"help", 0, "serve", ""},
		{"serve --help", 0, "--data-dir", ""},
		{"version", 0, "queued ", ""},
		{"config", 0, "data-dir: ./queued-data", ""},
		{"config --region there", 0, "region: there", ""},
		{"versoin", 2, "", "unknown command"},
		{"version now", 2, "", "unknown command"},
		{"serve --data-dri x", 2, "", "unknown flag: --data-dri; did you mean --data-dir?"},
		{"serve --limits.message-bytes 1MiB", 2, "", "unknown flag: --limits.message-bytes; limits.message-bytes goes into the config file, or into the environment as QUEUED_LIMITS_MESSAGE_BYTES"},
		{"serve --message-bytes 1MiB", 2, "", "; limits.message-bytes goes into the config file"},
		{"config --stomp-strict", 2, "", "; stomp.strict goes into the config file"},
		{"config --auth token", 2, "", "queued: auth token is not built yet"},
		{"serve --auth iam", 2, "", "queued: auth iam is not built yet"},
		{"serve --rest-addr 0.0.0.0:80 --log-level loud", 2, "", "queued: log-level"},
		{"serve --config", 2, "", "flag needs an argument: --config"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			code, stdout, stderr := command(t, strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for name, s := range map[string][2]string{"stdout": {stdout, tt.stdout}, "stderr": {stderr, tt.stderr}} {
				if !strings.Contains(s[0], s[1]) || s[1] == "" && s[0] != "" {
					t.Errorf("%s is %q, want %q", name, s[0], s[1])
				}
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	var b bytes.Buffer
	if code := exitCode(failure{errors.Join(errors.New("a"), errors.New("b"))}, &b); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if diff := cmp.Diff("queued: a\nqueued: b\n", b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConfigReadsBack prints settings of all kinds and reads what was printed.
func TestConfigReadsBack(t *testing.T) {
	args := []string{
		"--limits-profile", "unthrottled", "--create-queue", "orders,dlq=3", "--create-queue", "#: \"x\"",
		"--public-url", "https://queue.example.com:8443", "--clock-grace", "90s", "--window-bytes", "12345678", "--region", "12", "--pprof",
	}
	code, printed, stderr := command(t, append([]string{"config"}, args...)...)
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"# the region in the OCIDs that are made [flag --region]\nregion: \"12\"\n",
		"[profile unthrottled]\n  message-bytes: 256KiB\n",
		"\nlimits:\n", "\nstomp:\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in:\n%s", want, printed)
		}
	}

	name := filepath.Join(t.TempDir(), "q.yaml")
	if err := os.WriteFile(name, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(args ...string) Config {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f := settingFlags(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := f.load(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	if diff := cmp.Diff(load(args...), load("--config", name)); diff != "" {
		t.Errorf("(-given +read back):\n%s", diff)
	}
}
