//go:build differential

package stompdiff

import (
	"os"
	"testing"
	"time"
)

// knownHead stands on top of the file of reasons.
const knownHead = `# Where RabbitMQ 3.10.8 (Debian 12) answers otherwise than the table of
# exchanges says, and why: exchange | versions | ours | RabbitMQ. Written by
# WRITE=1 make stomp-differential, all but the reasons, which are put in by hand.
`

// TestRabbitMQ plays the table to RabbitMQ and prints where it differs from
// ours, and why. It fails at a difference without a reason and at a reason
// without a difference. With WRITE=1 it writes both files; reasons are written
// by hand.
func TestRabbitMQ(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	table = OfProtocol(table)
	b := &Broker{Addr: startRabbitMQ(t), Host: "/", Wait: 3 * time.Second, Silence: 300 * time.Millisecond, Foreign: true}
	found, err := b.Play(table)
	if err != nil {
		t.Fatal(err)
	}
	known, _, err := ReadKnown(knownFile)
	if err != nil {
		t.Fatal(err)
	}
	all, wrong := Merge(known, found)
	page := Page(Played(table), all)
	t.Logf("\n%s", page)
	if os.Getenv("WRITE") == "1" {
		if err := WriteKnown(knownFile, knownHead, Played(table), all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pageFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range wrong {
		t.Error(text)
	}
}
