package bench

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// BenchmarkSingle is one caller that publishes messages one by one, over each
// face, beside Pebble alone committing the same octets on the same disk. They
// take turns, a hundred messages each, so that they meet the same disk; what is
// told is messages a second and their ratio to Pebble's commits.
func BenchmarkSingle(b *testing.B) {
	t := start(b)
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatValueSeparation})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	body := []byte(content())
	key := 0
	commit := func() error {
		key++
		return db.Set(fmt.Appendf(nil, "m%016x", key), body, pebble.Sync)
	}

	rest := putBody(1)
	client := t.rpc()
	put := &queuev1.PutMessagesRequest{QueueId: "bench", PutMessagesDetails: &queuev1.PutMessagesDetails{Messages: entries(1)}}
	stream, err := client.PublishMessages(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	batch := &queuev1.PublishMessagesRequest{QueueId: "bench", Messages: entries(1)}
	session, err := t.session(0)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	send := []byte("SEND\ndestination:bench\nreceipt:r\ncontent-length:" + strconv.Itoa(bodyBytes) + "\n\n" + string(body) + "\x00\n")

	callers := []struct {
		name    string
		publish func() error
	}{
		{"Pebble", commit},
		{"REST", func() error { return t.put(rest) }},
		{"gRPC", func() error { _, err := client.PutMessages(b.Context(), put); return err }},
		{"stream", func() error {
			batch.Number++
			if err := stream.Send(batch); err != nil {
				return err
			}
			r, err := stream.Recv()
			if err == nil && r.Error != nil {
				err = fmt.Errorf("%s: %s", r.Error.Code, r.Error.Message)
			}
			return err
		}},
		{"STOMP", func() error {
			if _, err := session.Write(send); err != nil {
				return err
			}
			_, _, err := session.frame()
			return err
		}},
	}
	took := make([]time.Duration, len(callers))
	const turn = 100
	turns := 0
	for b.Loop() {
		turns++
		for i, c := range callers {
			began := time.Now()
			for range turn {
				if err := c.publish(); err != nil {
					b.Fatal(c.name, err)
				}
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range callers {
		b.ReportMetric(float64(turns*turn)/took[i].Seconds(), c.name+"/s")
		if i > 0 {
			b.ReportMetric(took[0].Seconds()/took[i].Seconds(), c.name+"/Pebble")
		}
	}
}
