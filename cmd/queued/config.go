package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// Config is every setting of the server; settings tells the key and meaning of
// each field. Make one by Default, change fields, then Validate.
type Config struct {
	DataDir       string
	RESTAddr      string // host:port, as all addresses; port 0 is any free one
	GRPCAddr      string
	StompAddr     string
	AdminAddr     string
	PublicURL     string // "": the request's own host
	Auth          string // none, token, iam
	Insecure      bool
	LimitsProfile string
	CreateQueue   []string // for Queues to read
	TLSCert       string   // "": no TLS
	TLSKey        string

	LogFormat       string // text, json, auto
	LogLevel        string // debug, info, warn, error
	ShutdownTimeout time.Duration
	Pprof           bool
	MetricsQueues   int64

	DefaultDeliveryCount int64
	DefaultGetLimit      int64
	KeepUnrouted         bool
	Realm                string
	Region               string

	DiskFloorPublishBytes int64
	DiskFloorLeaseBytes   int64
	BallastBytes          int64
	ClockGrace            time.Duration
	WindowBytes           int64
	BodyCacheBytes        int64
	MemtableBytes         int64
	BlockCacheBytes       int64

	Limits limits.Settings
	Stomp  StompConfig
}

// StompConfig are the settings of the group "stomp".
type StompConfig struct {
	Strict           bool
	AutoCreate       bool
	TransactionBytes int64

	WebSocketOrigins []string // of pages that may connect, beside the server's own
}

// Default is the configuration when nothing is said.
func Default() Config {
	return Config{
		DataDir:       "./queued-data",
		RESTAddr:      "127.0.0.1:8080",
		GRPCAddr:      "127.0.0.1:8081",
		StompAddr:     "127.0.0.1:61613",
		AdminAddr:     "127.0.0.1:8082",
		Auth:          "none",
		LimitsProfile: "oci",

		LogFormat:       "auto",
		LogLevel:        "info",
		ShutdownTimeout: 10 * time.Second,
		MetricsQueues:   200,

		DefaultDeliveryCount: 5,
		DefaultGetLimit:      20,
		Realm:                "oc1",
		Region:               "local",

		DiskFloorPublishBytes: 512 << 20,
		DiskFloorLeaseBytes:   256 << 20,
		BallastBytes:          64 << 20,
		ClockGrace:            5 * time.Minute,
		WindowBytes:           64 << 20,
		BodyCacheBytes:        64 << 20,
		MemtableBytes:         64 << 20,
		BlockCacheBytes:       64 << 20,

		Limits: limits.OCI(),
		Stomp:  StompConfig{TransactionBytes: 8 << 20},
	}
}

// settings lists every setting of c in the order of the documents. Parsing
// into a value changes c.
func (c *Config) settings() []setting {
	all := []setting{
		{"data-dir", "folder of the store; one process at a time", text(&c.DataDir, "folder")},
		{"rest-addr", "where REST is served, over HTTP/1.1 and HTTP/2; port 0 is any free one", text(&c.RESTAddr, "host:port")},
		{"grpc-addr", "where gRPC is served", text(&c.GRPCAddr, "host:port")},
		{"stomp-addr", "where STOMP is served", text(&c.StompAddr, "host:port")},
		{"admin-addr", "where /metrics, /healthz and /readyz are served", text(&c.AdminAddr, "host:port")},
		{"public-url", "what messagesEndpoint says, scheme://host:port without a path; empty is the host of each request", text(&c.PublicURL, "url")},
		{"auth", "who may come in: none (everybody), token (one secret) or iam (request signatures and policies)", text(&c.Auth, "mode")},
		{"insecure", "allow auth none on addresses that other machines can reach", boolean(&c.Insecure)},
		{"limits-profile", "what the group limits starts from: oci, or unthrottled (no limit on rates, number of queues and storage)", text(&c.LimitsProfile, "profile")},
		{"create-queue", "a queue to make at the start unless there is one of its name: orders or orders,dlq=3,visibility=60,retention=3600; more than once for more queues (in the environment one text, with ; between them)", list(&c.CreateQueue, "queue")},
		{"tls-cert", "file of the certificate for TLS on REST, gRPC and STOMP; empty is no TLS", text(&c.TLSCert, "file")},
		{"tls-key", "file of its key", text(&c.TLSKey, "file")},

		{"log-format", "text, json, or auto: text on a terminal, else json", text(&c.LogFormat, "format")},
		{"log-level", "debug, info, warn or error", text(&c.LogLevel, "level")},
		{"shutdown-timeout", "how long a stop waits for work under way; what is left then is cut", duration(&c.ShutdownTimeout)},
		{"pprof", "serve /debug/pprof/ on admin-addr", boolean(&c.Pprof)},
		{"metrics-queues", "queues with metrics of their own; the rest are counted as _other", count(&c.MetricsQueues)},

		{"default-delivery-count", "deadLetterQueueDeliveryCount of a queue that is made without one; 0 is no dead letter queue", count(&c.DefaultDeliveryCount)},
		{"default-get-limit", "messages in the answer to a get that names no limit", count(&c.DefaultGetLimit)},
		{"keep-unrouted", "keep what no consumer group of a queue accepts, for <queue>_unrouted to read; else it is dropped", boolean(&c.KeepUnrouted)},
		{"realm", "the realm in the OCIDs that are made", text(&c.Realm, "name")},
		{"region", "the region in the OCIDs that are made", text(&c.Region, "name")},

		{"disk-floor-publish-bytes", "free space on the disk below which publishes are refused", octets(&c.DiskFloorPublishBytes)},
		{"disk-floor-lease-bytes", "free space on the disk below which gets are refused too", octets(&c.DiskFloorLeaseBytes)},
		{"ballast-bytes", "size of the file that is given up when the disk is full, so that deletes still work; 0 is none", octets(&c.BallastBytes)},
		{"clock-grace", "how long the machine's clock must be ahead before it is believed, and how long messages that expired during a stop are kept", duration(&c.ClockGrace)},
		{"window-bytes", "memory for the heads of all queues", octets(&c.WindowBytes)},
		{"body-cache-bytes", "memory for the contents of messages just published", octets(&c.BodyCacheBytes)},
		{"memtable-bytes", "size of one memtable of the store; up to three are in memory", octets(&c.MemtableBytes)},
		{"block-cache-bytes", "memory for blocks read from the store", octets(&c.BlockCacheBytes)},
	}
	for _, f := range c.Limits.Fields() {
		v := count(f.Value)
		if f.Octets {
			v = octets(f.Value)
		}
		all = append(all, setting{"limits." + f.Key, f.Meaning, v})
	}
	return append(all,
		setting{"stomp.strict", "refuse what OCI refuses, where we would serve more", boolean(&c.Stomp.Strict)},
		setting{"stomp.auto-create", "make a queue at the first SEND or SUBSCRIBE that names it", boolean(&c.Stomp.AutoCreate)},
		setting{"stomp.websocket-origins", "an origin, scheme://host:port, whose pages may open a WebSocket at /stomp, beside the server's own and that of public-url; more than once for more (in the environment one text, with ; between them)", list(&c.Stomp.WebSocketOrigins, "origin")},
		setting{"stomp.transaction-bytes", "octets that one connection may have in transactions which it has begun and not ended", octets(&c.Stomp.TransactionBytes)},
	)
}

var (
	logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	ocidPart  = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
)

// Validate reports all that is wrong with c, an error for each, naming its
// key. It looks at no file and no network.
func (c *Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(key, value string, legal ...string) {
		if !slices.Contains(legal, value) {
			wrong("%s is %q; it must be %s", key, value, either(legal))
		}
	}
	within := func(key string, value, lo, hi int64) {
		if value < lo || value > hi {
			wrong("%s is %d; it must be %d to %d", key, value, lo, hi)
		}
	}

	if c.DataDir == "" {
		wrong("data-dir is empty; it must name a folder")
	}
	var open []string            // addresses that others can reach
	taken := map[string]string{} // the key of each address with a port of its own
	for _, a := range []struct{ key, addr string }{
		{"rest-addr", c.RESTAddr}, {"grpc-addr", c.GRPCAddr}, {"stomp-addr", c.StompAddr}, {"admin-addr", c.AdminAddr},
	} {
		loopback, err := checkAddr(a.addr)
		if err != nil {
			wrong("%s is %q; %w", a.key, a.addr, err)
			continue
		}
		if !loopback {
			open = append(open, a.key+" "+a.addr)
		}
		if other := taken[a.addr]; other != "" && !strings.HasSuffix(a.addr, ":0") {
			wrong("%s and %s are both %s; each needs a port of its own", other, a.key, a.addr)
		}
		taken[a.addr] = a.key
	}
	if err := checkPublicURL(c.PublicURL); err != nil {
		wrong("public-url is %q; %w", c.PublicURL, err)
	}

	for _, origin := range c.Stomp.WebSocketOrigins {
		if err := checkPublicURL(origin); origin == "" || err != nil {
			wrong("stomp.websocket-origins has %q; each must be http://host:port or https://host:port without a path", origin)
		}
	}

	oneOf("auth", c.Auth, "none", "token", "iam")
	switch {
	case c.Auth == "token" || c.Auth == "iam":
		wrong("auth %s is not built yet; until then auth must be none", c.Auth)
	case c.Auth == "none" && len(open) > 0 && !c.Insecure:
		wrong("auth none would let in everybody who can reach %s; set loopback addresses, or insecure if that is meant",
			strings.Join(open, ", "))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		wrong("tls-cert and tls-key go together; only one is set")
	}

	oneOf("limits-profile", c.LimitsProfile, limits.Profiles...)
	if err := c.Limits.Validate(); err != nil {
		for _, e := range parts(err) {
			wrong("%s", queue.MessageOf(e))
		}
	}
	if _, err := c.Queues(); err != nil {
		errs = append(errs, err)
	}

	oneOf("log-format", c.LogFormat, "auto", "text", "json")
	oneOf("log-level", c.LogLevel, "debug", "info", "warn", "error")
	if c.ShutdownTimeout < 0 || c.ShutdownTimeout > time.Hour {
		wrong("shutdown-timeout is %v; it must be 0 to 1h", c.ShutdownTimeout)
	}
	if c.ClockGrace < 0 || c.ClockGrace > 24*time.Hour {
		wrong("clock-grace is %v; it must be 0 to 24h", c.ClockGrace)
	}
	within("metrics-queues", c.MetricsQueues, 0, 100_000)
	within("default-delivery-count", c.DefaultDeliveryCount, 0, queue.MaxDeliveryCount)
	if most := c.Limits.BatchMessages; c.DefaultGetLimit < 1 || c.DefaultGetLimit > most {
		wrong("default-get-limit is %d; it must be 1 to limits.batch-messages, which is %d", c.DefaultGetLimit, most)
	}
	for _, part := range []struct{ key, value string }{{"realm", c.Realm}, {"region", c.Region}} {
		if !ocidPart.MatchString(part.value) {
			wrong("%s is %q; it must have 1 to 32 characters, each a small letter, a digit or -", part.key, part.value)
		}
	}

	const most = 1 << 50
	within("disk-floor-publish-bytes", c.DiskFloorPublishBytes, 0, most)
	within("disk-floor-lease-bytes", c.DiskFloorLeaseBytes, 0, most)
	if c.DiskFloorLeaseBytes > c.DiskFloorPublishBytes {
		wrong("disk-floor-lease-bytes is %d; it must be at most disk-floor-publish-bytes, which is %d",
			c.DiskFloorLeaseBytes, c.DiskFloorPublishBytes)
	}
	within("ballast-bytes", c.BallastBytes, 0, most)
	within("window-bytes", c.WindowBytes, 1<<20, most)
	within("body-cache-bytes", c.BodyCacheBytes, 0, most)
	within("memtable-bytes", c.MemtableBytes, 1<<20, 1<<30)
	within("block-cache-bytes", c.BlockCacheBytes, 1<<20, most)
	within("stomp.transaction-bytes", c.Stomp.TransactionBytes, 1<<10, 1<<30)
	if most := c.Limits.PendingBytesTotal; c.Stomp.TransactionBytes > most {
		wrong("stomp.transaction-bytes is %d; it must be at most limits.pending-bytes-total, which is %d", c.Stomp.TransactionBytes, most)
	}
	return errors.Join(errs...)
}

// checkAddr checks the form of host:port and tells whether only this machine
// can reach it. A name other than localhost may mean anything.
func checkAddr(addr string) (loopback bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, errors.New("it must be host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, errors.New("its port must be 0 to 65535")
	}
	if strings.ContainsAny(host, " /@") {
		return false, errors.New("its host must be a name or an IP address")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost", nil
	}
	return ip.Unmap().IsLoopback(), nil
}

// checkPublicURL accepts what stands before the path of a URL, or nothing.
func checkPublicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.Scheme+"://"+u.Host != text {
		return errors.New("it must be http://host:port or https://host:port without a path")
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return errors.New("its port must be 1 to 65535")
		}
	}
	return nil
}

// either spells a choice: "a", "a or b", "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
