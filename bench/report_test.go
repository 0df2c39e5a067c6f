package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	full := Report{
		Face: "stomp", Shape: "steady", Producers: 64, Consumers: 64, Ahead: 1, Batch: 10, Size: 1024, Queues: 1, Rate: 20_000, Seconds: 10,
		Published: Flow{199_990, 19_999, 19_999}, Consumed: Flow{198_000, 21_000, 19_800}, Missed: 10,
		Publish: &Latency{19_999, 2.25, 4.5, 9.125, 20, 31.456}, Settle: &Latency{21_000, 2, 4, 9, 20, 30},
		ReceiveSettle: &Latency{21_000, 3, 5, 10, 21, 31}, EndToEnd: &Latency{199_990, 4, 8, 16, 32, 1064.25},
		Errors:   map[string]uint64{"TooManyRequests": 3, "ConnectionLost": 1},
		Verified: Verified{Published: 240_000, Consumed: 239_998, Left: 2, Lost: new(uint64(1)), Duplicates: 4},
		Server:   &Cost{10.5, 52.5, 24.9, 8480, 23.4, 245 << 20}, Client: ClientCost{4, 20.1},
	}
	full.notes(map[string]string{"TooManyRequests": "TooManyRequests: more than 1000 requests a second", "ConnectionLost": "EOF"})
	empty := Report{Face: "rest", Shape: "publish", Producers: 1, Batch: 1, Size: 64, Queues: 2, Channels: 3, Ahead: 2,
		Verified: Verified{Left: 3}, Interrupted: true}
	empty.notes(nil)
	for name, p := range map[string]*Report{"full": &full, "empty": &empty} {
		var text, object bytes.Buffer
		if err := p.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteJSON(&object); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", text.String())
		golden(t, name+".json", object.String())
		var back Report
		if err := json.Unmarshal(object.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*p, back); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	fine := Defaults()
	if err := fine.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		`face is "soap"`:                        func(o *Options) { o.Face = "soap" },
		`shape is ""`:                           func(o *Options) { o.Shape = "" },
		"producers is 0; it must be 1 to":       func(o *Options) { o.Producers = 0 },
		"consumers is 10001":                    func(o *Options) { o.Consumers = 10_001 },
		"ahead is 0":                            func(o *Options) { o.Ahead = 0 },
		"batch is 21; it must be 1 to 20":       func(o *Options) { o.Batch = 21 },
		"size is 31; it must be 32 to 262144":   func(o *Options) { o.Size = 31 },
		"batch x size are 655360 octets":        func(o *Options) { o.Size = 64 << 10 },
		"queues is 17; it must be 1 to 16":      func(o *Options) { o.Queues = 17 },
		"channels is 257":                       func(o *Options) { o.Channels = 257 },
		"window is -1":                          func(o *Options) { o.Window = -1 },
		"rate is -1":                            func(o *Options) { o.Rate = -1 },
		"the shape latency needs a rate":        func(o *Options) { o.Shape = "latency" },
		"the shape drain has no rate":           func(o *Options) { o.Shape, o.Rate = "drain", 1 },
		"messages is for the shape drain":       func(o *Options) { o.Messages = 1 },
		"duration is 1ns":                       func(o *Options) { o.Duration = 1 },
		"warmup is -1ns":                        func(o *Options) { o.Warmup = -1 },
		"rest or grpc must name an address":     func(o *Options) { o.REST, o.GRPC = "", "" },
		"face stomp has no address":             func(o *Options) { o.Face, o.STOMP = "stomp", "" },
		"batch is 0; it must be 1 to 20\nsize ": func(o *Options) { o.Batch, o.Size = 0, 0 },
	} {
		o := Defaults()
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
