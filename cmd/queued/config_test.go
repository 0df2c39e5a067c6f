package main

import (
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/limits"
)

func TestDefaultIsValid(t *testing.T) {
	cfg := Default()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // in the error; "" is none
	}{
		{"no data dir", func(c *Config) { c.DataDir = "" }, "data-dir is empty"},
		{"port 0", func(c *Config) { c.RESTAddr, c.GRPCAddr = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{"localhost", func(c *Config) { c.RESTAddr = "localhost:80" }, ""},
		{"IPv6 loopback", func(c *Config) { c.RESTAddr = "[::1]:80" }, ""},
		{"mapped loopback", func(c *Config) { c.RESTAddr = "[::ffff:127.0.0.1]:80" }, ""},
		{"no port", func(c *Config) { c.StompAddr = "127.0.0.1" }, `stomp-addr is "127.0.0.1"; it must be host:port`},
		{"named port", func(c *Config) { c.GRPCAddr = "127.0.0.1:http" }, "grpc-addr"},
		{"port too high", func(c *Config) { c.AdminAddr = "127.0.0.1:65536" }, "0 to 65535"},
		{"URL for address", func(c *Config) { c.RESTAddr = "http://127.0.0.1:80" }, "rest-addr"},
		{"same address", func(c *Config) { c.GRPCAddr = c.RESTAddr }, "rest-addr and grpc-addr are both"},

		{"all interfaces", func(c *Config) { c.RESTAddr = "0.0.0.0:8080" }, "rest-addr 0.0.0.0:8080; set loopback"},
		{"no host", func(c *Config) { c.StompAddr = ":61613" }, "stomp-addr :61613"},
		{"other host", func(c *Config) { c.AdminAddr = "queue.example.com:80" }, "auth none"},
		{"insecure", func(c *Config) { c.RESTAddr, c.Insecure = "0.0.0.0:8080", true }, ""},
		{"auth token", func(c *Config) { c.Auth = "token" }, "auth token is not built yet"},
		{"auth iam", func(c *Config) { c.Auth = "iam" }, "auth iam is not built yet"},
		{"auth other", func(c *Config) { c.Auth = "basic" }, `auth is "basic"; it must be none, token or iam`},
		{"cert alone", func(c *Config) { c.TLSCert = "c.pem" }, "tls-cert and tls-key go together"},
		{"key alone", func(c *Config) { c.TLSKey = "k.pem" }, "tls-cert and tls-key go together"},
		{"cert and key", func(c *Config) { c.TLSCert, c.TLSKey = "c.pem", "k.pem" }, ""},

		{"public URL", func(c *Config) { c.PublicURL = "https://queue.example.com:8443" }, ""},
		{"public URL without port", func(c *Config) { c.PublicURL = "https://queue.example.com" }, ""},
		{"public URL IPv6", func(c *Config) { c.PublicURL = "http://[::1]:8080" }, ""},
		{"public URL with path", func(c *Config) { c.PublicURL = "http://host:80/queue" }, "without a path"},
		{"public URL with slash", func(c *Config) { c.PublicURL = "http://host:80/" }, "without a path"},
		{"public URL with query", func(c *Config) { c.PublicURL = "http://host:80?a" }, "public-url"},
		{"public URL with user", func(c *Config) { c.PublicURL = "http://me@host:80" }, "public-url"},
		{"public URL without scheme", func(c *Config) { c.PublicURL = "host:80" }, "public-url"},
		{"public URL of another scheme", func(c *Config) { c.PublicURL = "ftp://host:80" }, "public-url"},
		{"public URL without host", func(c *Config) { c.PublicURL = "http://:80" }, "public-url"},
		{"public URL with bad port", func(c *Config) { c.PublicURL = "http://host:99999" }, "public-url"},

		{"WebSocket origins", func(c *Config) {
			c.Stomp.WebSocketOrigins = []string{"https://app.example", "http://localhost:3000"}
		}, ""},
		{"any WebSocket origin", func(c *Config) { c.Stomp.WebSocketOrigins = []string{"*"} }, `stomp.websocket-origins has "*"`},
		{"empty WebSocket origin", func(c *Config) { c.Stomp.WebSocketOrigins = []string{""} }, "stomp.websocket-origins has"},
		{"WebSocket origin of a socket", func(c *Config) { c.Stomp.WebSocketOrigins = []string{"ws://app.example"} }, "stomp.websocket-origins has"},

		{"profile", func(c *Config) { c.LimitsProfile = "none" }, "it must be oci or unthrottled"},
		{"limit", func(c *Config) { c.Limits.MessageBytes = 0 }, "limits.message-bytes is 0"},
		{"log format", func(c *Config) { c.LogFormat = "xml" }, "log-format"},
		{"log level", func(c *Config) { c.LogLevel = "INFO" }, "log-level"},
		{"shutdown", func(c *Config) { c.ShutdownTimeout = -time.Second }, "shutdown-timeout is -1s"},
		{"grace", func(c *Config) { c.ClockGrace = 25 * time.Hour }, "clock-grace"},
		{"delivery count", func(c *Config) { c.DefaultDeliveryCount = 21 }, "default-delivery-count is 21; it must be 0 to 20"},
		{"no dead letter queue", func(c *Config) { c.DefaultDeliveryCount = 0 }, ""},
		{"get limit", func(c *Config) { c.DefaultGetLimit = 21 }, "default-get-limit is 21; it must be 1 to limits.batch-messages"},
		{"realm", func(c *Config) { c.Realm = "a.b" }, "realm"},
		{"region", func(c *Config) { c.Region = "" }, "region"},
		{"floors", func(c *Config) { c.DiskFloorLeaseBytes = 1 << 40 }, "disk-floor-lease-bytes"},
		{"no floors", func(c *Config) { c.DiskFloorLeaseBytes, c.DiskFloorPublishBytes, c.BallastBytes = 0, 0, 0 }, ""},
		{"window", func(c *Config) { c.WindowBytes = 0 }, "window-bytes"},
		{"memtable", func(c *Config) { c.MemtableBytes = 4 << 30 }, "memtable-bytes"},
		{"queue", func(c *Config) { c.CreateQueue = []string{"a", "b,x=1"} }, `create-queue "b,x=1"`},
		{"queue twice", func(c *Config) { c.CreateQueue = []string{"a", "a,dlq=3"} }, "there twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Default()
			tt.change(&cfg)
			err := cfg.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("%v; want %q in it", err, tt.want)
			}
			if n := len(parts(err)); tt.want != "" && n != 1 {
				t.Errorf("%d errors for one fault: %v", n, err)
			}
		})
	}
}

func TestValidateReportsAll(t *testing.T) {
	cfg := Default()
	cfg.RESTAddr, cfg.Auth, cfg.Limits.ListPage, cfg.LogLevel = "x", "y", 0, "z"
	err := cfg.Validate()
	for _, key := range []string{"rest-addr", "auth", "limits.list-page", "log-level"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not named in:\n%v", key, err)
		}
	}
}

// TestSettingsTable checks that every setting can be told apart wherever it is
// written, and tells the reader something.
func TestSettingsTable(t *testing.T) {
	cfg := Default()
	variables := map[string]bool{}
	n := 0
	for _, s := range cfg.settings() {
		if variables[s.variable()] {
			t.Errorf("%s: two settings share the variable %s", s.key, s.variable())
		}
		variables[s.variable()] = true
		if cluster.MatchString(s.variable()) || s.variable() == fileVariable {
			t.Errorf("%s: the variable %s means something else", s.key, s.variable())
		}
		if s.meaning == "" || strings.HasSuffix(s.meaning, ".") || strings.Contains(s.meaning, "\n") {
			t.Errorf("%s: meaning %q", s.key, s.meaning)
		}
		if strings.HasPrefix(s.key, "limits.") {
			n++
		}
	}
	oci := limits.OCI()
	if want := len(oci.Fields()); n != want {
		t.Errorf("%d limits in the table, want %d", n, want)
	}
}
