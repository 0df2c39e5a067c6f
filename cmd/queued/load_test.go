package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/spf13/pflag"
)

// loadWith loads from a file of that text (none if empty), an environment and
// a command line.
func loadWith(t *testing.T, file string, environ []string, args ...string) (Config, origins, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := settingFlags(set)
	if file != "" {
		name := filepath.Join(t.TempDir(), "queued.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.load(environ)
}

func TestLoadPrecedence(t *testing.T) {
	const file = "rest-addr: 127.0.0.1:1\ngrpc-addr: 127.0.0.1:1001\nstomp-addr: 127.0.0.1:2001\n" +
		"limits:\n  message-bytes: 100KiB\n  list-page: 7\nstomp:\n  strict: true\n"
	environ := []string{
		"QUEUED_REST_ADDR=127.0.0.1:2", "QUEUED_GRPC_ADDR=127.0.0.1:1002", "QUEUED_LIMITS_MESSAGE_BYTES=200KiB",
		"QUEUED_STOMP_AUTO_CREATE=true", "HOME=/", "queued_auth=x",
	}
	cfg, from, err := loadWith(t, file, environ, "--rest-addr", "127.0.0.1:3", "--pprof", "--shutdown-timeout=90")
	if err != nil {
		t.Fatal(err)
	}

	want := Default()
	want.RESTAddr = "127.0.0.1:3"    // flag over environment over file
	want.GRPCAddr = "127.0.0.1:1002" // environment over file
	want.StompAddr = "127.0.0.1:2001"
	want.Pprof = true
	want.ShutdownTimeout = 90 * time.Second
	want.Limits.MessageBytes = 200 << 10
	want.Limits.ListPage = 7
	want.Stomp = StompConfig{Strict: true, AutoCreate: true, TransactionBytes: 8 << 20}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for key, origin := range map[string]string{
		"rest-addr":            "flag --rest-addr",
		"grpc-addr":            "environment QUEUED_GRPC_ADDR",
		"stomp-addr":           "file ",
		"limits.message-bytes": "environment QUEUED_LIMITS_MESSAGE_BYTES",
		"limits.list-page":     "file ",
		"admin-addr":           "",
	} {
		if got := from[key]; !strings.HasPrefix(got, origin) || origin == "" && got != "" {
			t.Errorf("%s comes from %q, want %q", key, got, origin)
		}
	}
}

func TestLoadDefault(t *testing.T) {
	cfg, from, err := loadWith(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), cfg); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(from) > 0 {
		t.Errorf("origins %v", from)
	}
}

// TestLoadProfile checks that single limits stand on the profile, wherever
// either is said.
func TestLoadProfile(t *testing.T) {
	cfg, _, err := loadWith(t, "limits:\n  gets-per-second: 5\n", []string{"QUEUED_LIMITS_PROFILE=oci"}, "--limits-profile", "unthrottled")
	if err != nil {
		t.Fatal(err)
	}
	want := limits.Unthrottled()
	want.GetsPerSecond = 5
	if diff := cmp.Diff(want, cfg.Limits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadShapes(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		environ    []string
		args       []string
		want       func(*Config)
	}{
		{"empty file", "# nothing\n", nil, nil, func(*Config) {}},
		{"empty group", "limits:\nstomp: {}\n", nil, nil, func(*Config) {}},
		{"dotted key", "limits.list-page: 5\n", nil, nil, func(c *Config) { c.Limits.ListPage = 5 }},
		{"list", "create-queue:\n- a\n- b,dlq=3\n", nil, nil, func(c *Config) { c.CreateQueue = []string{"a", "b,dlq=3"} }},
		{"list of one", "create-queue: a\n", nil, nil, func(c *Config) { c.CreateQueue = []string{"a"} }},
		{"list in the environment", "", []string{"QUEUED_CREATE_QUEUE=a;b,dlq=3"}, nil, func(c *Config) { c.CreateQueue = []string{"a", "b,dlq=3"} }},
		{"list of flags", "create-queue: [x]\n", nil, []string{"--create-queue", "a", "--create-queue", "b,dlq=3"}, func(c *Config) { c.CreateQueue = []string{"a", "b,dlq=3"} }},
		{"flag twice", "", nil, []string{"--region", "a", "--region", "b"}, func(c *Config) { c.Region = "b" }},
		{"no bool", "pprof: true\n", nil, []string{"--pprof=false"}, func(*Config) {}},
		{"yes", "pprof: yes\n", nil, nil, func(c *Config) { c.Pprof = true }},
		{"number as text", "metrics-queues: \"12\"\n", nil, nil, func(c *Config) { c.MetricsQueues = 12 }},
		{"text as number", "region: 12\n", nil, nil, func(c *Config) { c.Region = "12" }},
		{"seconds", "clock-grace: 60\n", nil, nil, func(c *Config) { c.ClockGrace = time.Minute }},
		{"large number", "limits: {bytes-per-queue: 1000000000000}\n", nil, nil, func(c *Config) { c.Limits.BytesPerQueue = 1e12 }},
		{"empty variable", "region: x\n", []string{"QUEUED_REGION=", "QUEUED_METRICS_QUEUES="}, nil, func(c *Config) { c.Region = "x" }},
		{"variables of a cluster", "", []string{
			"QUEUED_SERVICE_HOST=10.0.0.1", "QUEUED_SERVICE_PORT=8080", "QUEUED_SERVICE_PORT_REST=8080", "QUEUED_PORT=tcp://10.0.0.1:8080",
			"QUEUED_PORT_8080_TCP=tcp://10.0.0.1:8080", "QUEUED_PORT_8080_TCP_PROTO=tcp", "QUEUED_PORT_8080_TCP_ADDR=10.0.0.1", "QUEUED_EU_SERVICE_HOST=x",
		}, nil, func(*Config) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := loadWith(t, tt.file, tt.environ, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			want := Default()
			tt.want(&want)
			if diff := cmp.Diff(want, cfg); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFileOfEnvironment(t *testing.T) {
	name := filepath.Join(t.TempDir(), "q.yaml")
	if err := os.WriteFile(name, []byte("region: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, from, err := loadWith(t, "", []string{"QUEUED_CONFIG=" + name})
	if err != nil || cfg.Region != "here" || from["region"] != "file "+name {
		t.Fatalf("region %q from %q, %v", cfg.Region, from["region"], err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		environ    []string
		args       []string
		want       []string // one for each error
	}{
		{"unknown key", "rest-adr: x\n", nil, nil, []string{"rest-adr in ", "is no setting; did you mean rest-addr?"}},
		{"nothing like it", "colour: red\n", nil, nil, []string{"colour in "}},
		{"key of a group", "message-bytes: 5\n", nil, nil, []string{"did you mean limits.message-bytes?"}},
		{"in a group", "limits:\n  mesage-bytes: 5\n", nil, nil, []string{"limits.mesage-bytes", "did you mean limits.message-bytes?"}},
		{"underscores", "data_dir: x\n", nil, nil, []string{"did you mean data-dir?"}},
		{"group with a value", "limits: 5\n", nil, nil, []string{"limits in ", "is a group of settings"}},
		{"key with a group", "auth:\n  mode: none\n", nil, nil, []string{"auth.mode"}},
		{"list for one", "region: [a, b]\n", nil, nil, []string{"region is [a b] (file ", "it must be a single value"}},
		{"no value", "region:\n", nil, nil, []string{"region is empty (file ", "it must have a value"}},
		{"not YAML", "region: x\n\tauth: none\n", nil, nil, []string{"queued.yaml is not a YAML mapping", "line 2"}},
		{"twice", "region: a\nregion: b\n", nil, nil, []string{"already defined"}},
		{"no mapping", "- a\n", nil, nil, []string{"not a YAML mapping"}},
		{"unknown variable", "", []string{"QUEUED_REST_ADRR=x"}, nil, []string{"QUEUED_REST_ADRR in the environment is no setting; did you mean QUEUED_REST_ADDR?"}},
		{"bad flag", "", nil, []string{"--metrics-queues", "many"}, []string{`metrics-queues is "many" (flag --metrics-queues); it must be a whole number`}},
		{"bad variable", "", []string{"QUEUED_SHUTDOWN_TIMEOUT=soon"}, nil, []string{`shutdown-timeout is "soon" (environment QUEUED_SHUTDOWN_TIMEOUT); it must be a duration`}},
		{"bad size", "limits:\n  message-bytes: 1MB\n", nil, nil, []string{`limits.message-bytes is "1MB" (file `}},
		{"bad bool", "", nil, []string{"--pprof=maybe"}, []string{"pprof"}},
		{"bad profile", "", nil, []string{"--limits-profile", "none"}, []string{`limits-profile is "none" (flag --limits-profile); it must be oci or unthrottled`}},
		{"out of range", "", nil, []string{"--default-get-limit", "0"}, []string{"default-get-limit is 0"}},
		{"a limit out of range", "limits: {list-page: 0}\n", nil, nil, []string{"limits.list-page is 0"}},
		{"no such file", "", nil, []string{"--config", "/no/such/file"}, []string{"read the config file: open /no/such/file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := loadWith(t, tt.file, tt.environ, tt.args...)
			if len(parts(err)) != 1 || err == nil {
				t.Fatalf("want one error, got %v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestLoadReportsAll(t *testing.T) {
	_, _, err := loadWith(t, "colour: red\npprof: maybe\n", []string{"QUEUED_FOO=1"}, "--clock-grace", "x")
	if n := len(parts(err)); n != 4 {
		t.Errorf("%d errors, want 4: %v", n, err)
	}
}

func TestMeant(t *testing.T) {
	names := []string{"auth", "data-dir", "rest-addr", "limits.list-page"}
	for unknown, want := range map[string]string{
		"auht": "auth", "Auth": "auth", "datadir": "data-dir", "DATA_DIR": "data-dir", "list-page": "limits.list-page",
		"x": "", "path": "", "": "",
	} {
		got := meant("", names, unknown)
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("meant(%q) = %q, want %q", unknown, got, want)
		}
	}
}
