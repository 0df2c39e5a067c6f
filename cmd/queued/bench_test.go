package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/queued-mq/queued/bench"
)

func TestBenchFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--prodcers 3":          "queued: unknown flag: --prodcers; did you mean --producers?",
		"--face soap":           `queued: face is "soap"; it must be one of [rest grpc streams stomp]`,
		"--shape latency":       "queued: the shape latency needs a rate",
		"--batch 0 --size 1":    "queued: batch is 0; it must be 1 to 20\nqueued: size is 1; it must be 32 to 262144\n",
		"--duration ten":        "queued: invalid argument \"ten\" for \"--duration\"",
		"--data-dir not-there":  "queued: data-dir not-there: no server runs there",
		"127.0.0.1:8080":        "queued: unknown command",
		"--rest= --grpc=":       "queued: rest or grpc must name an address",
		"--limits-profile=oci ": "queued: unknown flag: --limits-profile",
	} {
		code, stdout, stderr := command(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("bench %s: exit code %d, %q, want 2, %q", args, code, stdout+stderr, want)
		}
	}
}

// TestBenchAddresses takes from the data directory what no flag says.
func TestBenchAddresses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "addresses.json")
	if err := os.WriteFile(file, []byte(`{"rest":"a:1","grpc":"a:2","stomp":"a:3","admin":"a:4","pid":5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := bench.Defaults()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for flag, to := range map[string]*string{"rest": &o.REST, "grpc": &o.GRPC, "stomp": &o.STOMP, "admin": &o.Admin} {
		set.StringVar(to, flag, *to, "")
	}
	if err := set.Parse([]string{"--grpc", "b:2"}); err != nil {
		t.Fatal(err)
	}
	if err := addressesOf(dir, set, &o); err != nil {
		t.Fatal(err)
	}
	if o.REST != "a:1" || o.GRPC != "b:2" || o.STOMP != "a:3" || o.Admin != "a:4" {
		t.Errorf("%+v", o)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := addressesOf(dir, set, &o); err == nil {
		t.Error("a file that is no JSON")
	}
}
