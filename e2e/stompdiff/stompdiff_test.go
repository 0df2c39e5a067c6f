package stompdiff

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/internal/exchange"
)

// TestPage compares docs/stomp-differences.md with the differences that have a
// reason.
func TestPage(t *testing.T) {
	t.Parallel()
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	known, played, err := ReadKnown(knownFile)
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string][]string{}
	for _, x := range table {
		titles[x.Title()] = x.Versions
	}
	for _, k := range known {
		if k.Reason == unknown {
			t.Errorf("%s: differences without a reason", knownFile)
		}
		for _, w := range k.Differences {
			for _, v := range w.Versions {
				if !slices.Contains(titles[w.Exchange], v) {
					t.Errorf("%s: %s in %s is not in the table; make stomp-differential writes the file", knownFile, w.Exchange, v)
				}
			}
		}
	}
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(played, known), string(text)); diff != "" {
		t.Errorf("%s is not what %s says; WRITE=1 go test ./stompdiff -run TestPage writes it. -want +have\n%s", pageFile, knownFile, diff)
		if os.Getenv("WRITE") == "1" {
			if err := os.WriteFile(pageFile, []byte(Page(played, known)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	where := func(x, versions string) Where { return Where{x, strings.Fields(versions), "ERROR", "RECEIPT"} }
	known := []*Known{
		{Reason: "so", Differences: []Where{where("a", "1.1 1.2"), where("gone", "1.2")}},
		{Reason: "perhaps", Sometimes: true, Differences: []Where{where("race", "1.0")}},
	}
	all, wrong := Merge(known, []Difference{
		{"a", "1.0", "ERROR", "RECEIPT"}, {"a", "1.1", "ERROR", "RECEIPT"}, {"a", "1.2", "ERROR", "RECEIPT"},
	})
	want := []*Known{
		{Reason: "so", Differences: []Where{where("a", "1.1 1.2")}},
		{Reason: "perhaps", Sometimes: true, Differences: []Where{where("race", "1.0")}},
		{Reason: unknown, Differences: []Where{where("a", "1.0")}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if len(wrong) != 2 || !strings.Contains(wrong[0], "a in 1.0: a difference without a reason") || !strings.Contains(wrong[1], "gone in 1.2: a reason without a difference") {
		t.Errorf("%q", wrong)
	}

	// What is written is what is read.
	path := filepath.Join(t.TempDir(), "known")
	if err := WriteKnown(path, "# head\n", "much", all); err != nil {
		t.Fatal(err)
	}
	if read, played, err := ReadKnown(path); err != nil || played != "much" || !cmp.Equal(read, all) {
		t.Error(cmp.Diff(all, read), err)
	}
}

// TestDifferences plays exchanges to a broker that answers every frame with a
// RECEIPT of 1 and a body, and never closes.
func TestDifferences(t *testing.T) {
	t.Parallel()
	addr := stub(t)
	all, err := exchange.Parse("f.txt", `
name: as wanted
why: it is so
> SEND
> receipt:1
>
> ^@
< RECEIPT
< receipt-id:1
silent

name: other headers
why: it is so
> SEND
>
> ^@
< RECEIPT as m
< receipt-id:2
< missing:*
< code:x
<
< text^@
silent

name: another frame
why: it is so
> SEND
>
> ^@
< ERROR
closed

name: nothing
why: it is so
< ERROR

name: not closed
why: it is so
> ^J^.
closed

name: not silent
why: it is so
> SEND
>
> ^@
silent

name: twice
why: it is so
> SEND
>
> ^@
< RECEIPT
> SEND
>
> ^@
< RECEIPT

name: no beat
why: it is so
> ^J^.
beat 10ms
`)
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{Addr: addr, Host: "h", Wait: 5 * time.Second, Silence: 5 * time.Second, Foreign: true}
	found, err := b.Play(all)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{"f/other headers", "1.2", "RECEIPT with receipt-id:2", "RECEIPT with receipt-id:1"},
		{"f/other headers", "1.2", "RECEIPT with missing", "RECEIPT with no missing"},
		{"f/other headers", "1.2", `RECEIPT with the body "text"`, `RECEIPT with the body "body"`},
		{"f/another frame", "1.2", "ERROR", "RECEIPT of 1"},
		{"f/nothing", "1.2", "ERROR", "says nothing"},
		{"f/not closed", "1.2", "closes", "stays open"},
		{"f/not silent", "1.2", "says nothing", "RECEIPT of 1"},
		{"f/twice", "1.2", "one answer for each receipt", "two for one"},
		{"f/no beat", "1.2", "a heart-beat", "says nothing"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	b.Foreign = false // then our headers are asked for
	found, err = b.PlayOne(all[1], "1.2")
	if err != nil || len(found) != 4 || found[2].Want != "RECEIPT with code:x" {
		t.Error(found, err)
	}
}

func stub(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					frame, err := r.ReadString(0)
					if err != nil {
						return
					}
					answer := "RECEIPT\nreceipt-id:1\n\nbody\x00\n"
					if strings.HasPrefix(frame, "CONNECT") {
						answer = "CONNECTED\nversion:1.2\n\n\x00"
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
