package faces

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/e2e/server"
)

// parcels are what every face must carry to every other: the bodies of field
// case FC-19 and more, and properties and channels that are hard to spell. Each
// is known by its property "is".
var parcels = func() []Message {
	octets := make([]byte, 256)
	for i := range octets {
		octets[i] = byte(i)
	}
	bodies := map[string]string{
		"every octet":      string(octets),
		"empty":            "",
		"NUL":              "\x00",
		"NUL at the end":   "ab\x00cd\x00ef\x00",
		"line ends":        "a\r\nb\r\n\r\n\n\r",
		"frames":           "\n\nSEND\ndestination:x\n\n\x00\n",
		"escapes":          `&quot; <tag> \c \n \\ \u0041 "quoted" \/`,
		"emoji":            "😀👩‍👩‍👧‍👦",
		"U+FFFE":           "\ufffe\uffff\ufeff",
		"right to left":    "\u202eשלום مرحبا\u202c",
		"replacement":      "\ufffd",
		"invalid UTF-8":    "abc\xff\xfe\x80def",
		"surrogate octets": "\xed\xa0\x80",
		"Latin-1":          "caf\xe9",
		"base64 text":      "/wAB",
		"blanks":           " \t ",
	}
	var all []Message
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		all = append(all, Message{Body: []byte(bodies[name]), Properties: map[string]string{"is": name}})
	}
	full := Message{Properties: map[string]string{"is": "full", "more": strings.Repeat("é", 100)}}
	full.Body = bytes.Repeat([]byte{0, 0xff, '\n', '"'}, 64<<10)
	full.Body = full.Body[:256<<10-len("isfull")-len("more")-200]
	return append(all, full,
		Message{Body: []byte("x"), Channel: "aZ09_.:@=+-", Properties: map[string]string{
			"is": "properties", "colons": ":a::b:", "backslashes": `\ \\ \c \n \r`, "line-ends": "\na\r\nb\r",
			"blanks": "  a  ", "empty": "", "quotes": `"'<&>`, "emoji": "😀\ufffe", "Case": "1", "case": "2", "a.b-c_9": "é",
			"controls": "\x01\x1b\x7f\t",
		}},
		Message{Body: []byte("y"), Channel: strings.Repeat("c", 64), Properties: map[string]string{"is": "channel"}},
	)
}()

// TestCrossing: what was published over any face comes out over any other,
// octet for octet.
func TestCrossing(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	all := append(slices.Clone(All), goSTOMP)
	for _, from := range all {
		for _, to := range all {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, to, settings{visibility: long})
				sender := from.Dial(s)
				defer sender.Drop()
				octets := 0
				for _, m := range parcels {
					if _, err := sender.Publish(x.queue, "", m); err != nil {
						t.Fatalf("%s: %v", m.Properties["is"], err)
					}
					octets += len(m.Body)
					for name, value := range m.Properties {
						octets += len(name) + len(value)
					}
				}
				if n := x.rest.Stats(t, x.queue).Queue.Bytes; n != int64(octets) {
					t.Errorf("%d octets are stored, want %d", n, octets)
				}
				got := map[string]Delivery{}
				for len(got) < len(parcels) {
					some, err := x.Receive(x.queue, Want{Limit: 20, For: patient})
					x.must(err)
					if len(some) == 0 {
						t.Fatalf("%d messages of %d came", len(got), len(parcels))
					}
					for _, d := range some {
						got[d.Properties["is"]] = d
						x.must(x.Delete(x.queue, d.Receipt))
					}
				}
				for _, m := range parcels {
					compare(t, m, got[m.Properties["is"]])
				}
				x.Drop()
				x.holds(0, 0, 0, 0)
			})
		}
	}
}

// compare wants d to be m.
func compare(t *testing.T, m Message, d Delivery) {
	t.Helper()
	is := m.Properties["is"]
	if !bytes.Equal(d.Body, m.Body) {
		t.Errorf("%s: the body is %.60q, want %.60q", is, d.Body, m.Body)
	}
	if diff := cmp.Diff(m.Properties, d.Properties); diff != "" {
		t.Errorf("%s: properties (-want +got):\n%s", is, diff)
	}
	if d.Channel != m.Channel || d.Count != 1 {
		t.Errorf("%s: channel %q in delivery %d, want %q in the first", is, d.Channel, d.Count, m.Channel)
	}
}

// TestReceiptsCross: the receipt that one face gave is good over any other.
func TestReceiptsCross(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	for _, from := range All {
		for _, to := range All {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, from, settings{visibility: 2})
				other := to.Dial(s)
				defer other.Drop()
				x.put(Text("a"))
				d := x.one("a", 1, Want{})
				if to.Lacks[Extend] == "" {
					x.must(other.Extend(x.queue, d.Receipt, long))
					lapse(d)
					x.holds(0, 1, 0, 0)
				}
				x.must(other.Return(x.queue, d.Receipt, 0))
				d = x.one("a", 2, Want{Visibility: long})
				x.must(other.Delete(x.queue, d.Receipt))
				x.must(x.Delete(x.queue, d.Receipt)) // it is gone
				x.holds(0, 0, 0, 0)
			})
		}
	}
}

// TestContentType: the content-type of a SEND comes back over STOMP, and is no
// property anywhere.
func TestContentType(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	for _, to := range append(slices.Clone(All), goSTOMP) {
		t.Run(to.Name, func(t *testing.T) {
			t.Parallel()
			x := newStage(t, s, to, settings{visibility: long})
			want := "text/x; charset=utf-8; a=\"b:c\\d\""
			for _, from := range []Face{STOMP, goSTOMP} {
				sender := from.Dial(s)
				m := Message{Body: []byte("x"), ContentType: want, Properties: properties(64)} // it is none of the 64
				if _, err := sender.Publish(x.queue, "", m); err != nil {
					t.Fatal(err)
				}
				sender.Drop()
				d := x.get(1, Want{})[0]
				if len(d.Properties) != 64 {
					t.Errorf("%d properties", len(d.Properties))
				}
				if is := to.Name == "STOMP" || to.Name == "go-stomp"; d.ContentType != want && is || d.ContentType != "" && !is {
					t.Errorf("content-type %q", d.ContentType)
				}
			}
		})
	}
}

// TestNamesOfHeaders: properties that bear the names of STOMP's own headers pass
// between the other faces, and a STOMP consumer is told that they are there
// rather than being misled by them.
func TestNamesOfHeaders(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	own := map[string]string{"kept": "v"}
	for name := range stompOwn {
		own[name] = "not " + name
	}
	for _, name := range []string{"receipt", "transaction", "host", "login", "passcode", "heart-beat"} {
		own[name] = "not " + name
	}
	for _, from := range []Face{REST, GRPC, Streams} {
		for _, to := range All {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, to, settings{visibility: long})
				sender := from.Dial(s)
				defer sender.Drop()
				if _, err := sender.Publish(x.queue, "", Message{Body: []byte("body"), Properties: own}); err != nil {
					t.Fatal(err)
				}
				d := x.one("body", 1, Want{})
				want := own
				if to.Name == "STOMP" {
					omitted := strings.Split(d.Properties["omitted-properties"], ",")
					slices.Sort(omitted)
					expect := slices.Sorted(maps.Keys(own))
					expect = slices.DeleteFunc(expect, func(name string) bool { return name == "kept" })
					if diff := cmp.Diff(expect, omitted); diff != "" {
						t.Errorf("omitted-properties (-want +got):\n%s", diff)
					}
					want = map[string]string{"kept": "v", "omitted-properties": d.Properties["omitted-properties"]}
				}
				if diff := cmp.Diff(want, d.Properties); diff != "" {
					t.Errorf("properties (-want +got):\n%s", diff)
				}
				x.must(x.Delete(x.queue, d.Receipt))
			})
		}
	}
}

// TestLargeProperties: a message may be properties almost alone. STOMP cannot
// publish so many (a frame has 32 KiB of headers at most) but delivers them.
func TestLargeProperties(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	m := Message{Body: []byte("x"), Channel: "c", Properties: map[string]string{"is": "large"}}
	for i := range 62 {
		m.Properties[fmt.Sprint("p", i)] = strings.Repeat(":", 4096)
	}
	for _, from := range All {
		for _, to := range append(slices.Clone(All), goSTOMP) {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, to, settings{visibility: long})
				sender := from.Dial(s)
				defer sender.Drop()
				_, err := sender.Publish(x.queue, "", m)
				if from.Name == "STOMP" {
					x.refused("PayloadTooLarge", err)
					x.holds(0, 0, 0, 0)
					return
				}
				x.must(err)
				compare(t, m, x.get(1, Want{})[0])
			})
		}
	}
}

// TestNotText: names and values that are no UTF-8 are refused by name, and
// nothing is stored. The other faces' clients cannot send them.
func TestNotText(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--limits-profile", "unthrottled")
	x := newStage(t, s, STOMP, settings{visibility: long})
	for what, m := range map[string]Message{
		"value": {Properties: map[string]string{"p": "caf\xe9"}}, "name": {Properties: map[string]string{"caf\xe9": ""}},
		"channel": {Channel: "caf\xe9"}, "content-type": {ContentType: "text/\xff"},
	} {
		if _, err := x.Publish(x.queue, "", m); Code(err) != "InvalidFrame" {
			t.Errorf("%s: %v", what, err)
		}
	}
	x.holds(0, 0, 0, 0)
}
