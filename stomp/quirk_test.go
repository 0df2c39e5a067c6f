package stomp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// counted are the kinds that have been counted, with how often if that is more
// than once.
func (h *house) counted() (kinds []string) {
	h.server.Quirks(func(kind string, frames int64) {
		switch {
		case frames == 1:
			kinds = append(kinds, kind)
		case frames > 1:
			kinds = append(kinds, fmt.Sprintf("%s*%d", kind, frames))
		}
	})
	slices.Sort(kinds)
	return kinds
}

// Each thing that is served though it should not be is counted by its kind, and
// named once in the log of its session. In what is said $m is the message-id of
// a message, $a what an ACK should name.
func TestQuirks(t *testing.T) {
	t.Parallel()
	const connect = "CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,0\n\n\x00"
	at := func(version string) string { return strings.Replace(connect, "1.2", version, 1) }
	const take = "SUBSCRIBE\ndestination:orders\nid:1\nack:client-individual\nprefetch-count:1\n\n\x00"
	for _, tt := range []struct {
		name, open, say string
		want            string
	}{
		{"to the letter", connect, "\n\r\nSEND\r\ndestination:orders\r\nreceipt:1\r\nk:a\\cb\r\n\r\nx\x00\n" + take, ""},
		{"to the letter in 1.1", at("1.1"), take + "ACK\nsubscription:1\nmessage-id:$a\n\n\x00", ""},
		{"to the letter in 1.0", "CONNECT\naccept-version:1.0\n\n\x00", "SEND\ndestination:orders\nk:a:b\\\n\nx\x00" + take + "ACK\nmessage-id:$a\n\n\x00", ""},
		{"nothing about versions", "CONNECT\nlogin:a:b\n\n\x00", "", "no_accept_version"},
		{"no host, no heart-beat", "STOMP\naccept-version:1.1,1.2\n\n\x00", "", "no_heart_beat no_host"},
		{"a receipt on CONNECT", strings.Replace(connect, "\n\n", "\nreceipt:1\n\n", 1), "", "receipt_on_connect"},
		{"content-length on CONNECT", strings.Replace(connect, "\n\n", "\ncontent-length:0\n\n", 1), "", "content_length_ignored"},
		{"content-length everywhere", connect, take + "ACK\nid:$a\ncontent-length:0\n\n\x00UNSUBSCRIBE\nid:1\ncontent-length:7\n\n\x00", "content_length_ignored*2"},
		{"a body of SUBSCRIBE", connect, strings.ReplaceAll(take, "\n\n", "\n\nbody"), "body_ignored"},
		{"NULs between", connect, "\x00\x00\n\x00SEND\ndestination:orders\n\nx\x00\x00\nSEND\ndestination:orders\n\ny\x00", "stray_nul*2"},
		{"CR before 1.2", at("1.1"), "SEND\r\ndestination:orders\r\n\r\nx\x00", "trailing_cr"},
		{"CR in 1.0", "CONNECT\r\naccept-version:1.0\r\n\r\n\x00", "SEND\ndestination:orders\r\n\nx\x00", "trailing_cr"},
		{"colons", connect, "SEND\ndestination:orders\nk:a:b\nl:a:b\n\nx\x00", "raw_colon"},
		{"the same name twice", at("1.1"), "SEND\ndestination:orders\nk:1\nk:2\ndestination:others\n\nx\x00", "repeated_header"},
		{"names of ours", connect, "SEND\ndestination:orders\nmessage-id:1\nack:2\nsubscription:3\n\nx\x00SEND\ndestination:orders\nreceipt:1\nhost:h\n\nx\x00", "reserved_header"},
		{"ACK by message-id", connect, take + "ACK\nid:$m\nreceipt:1\n\n\x00", "ack_by_message_id"},
		{"ACK without subscription", at("1.1"), take + "ACK\nmessage-id:$a\n\n\x00", "ack_without_subscription"},
		{"ACK twice", connect, take + "ACK\nid:$a\n\n\x00ACK\nid:$a\nreceipt:1\n\n\x00NACK\nid:$a\n\n\x00", "ack_repeated*2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := open(t, Options{}, "orders")
			h.put("orders", "m")
			p := h.dial()
			p.send(tt.open)
			version := p.expect("CONNECTED").header["version"]
			before, after, taken := strings.Cut(tt.say, take)
			if before != "" || taken {
				p.send(before)
			}
			if taken {
				p.send(take)
				m := p.frame()
				for m.command != "MESSAGE" {
					m = p.frame()
				}
				ack := m.header["message-id"]
				if version == "1.2" {
					ack = m.header["ack"]
				}
				p.send(strings.NewReplacer("$a", ack, "$m", m.header["message-id"]).Replace(after))
			}
			p.send("DISCONNECT\nreceipt:end\n\n^@")
			for f := p.frame(); f.header["receipt-id"] != "end"; f = p.frame() {
				if f.command == "ERROR" {
					t.Fatal(f)
				}
			}
			p.closed()
			if got := strings.Join(h.counted(), " "); got != tt.want {
				t.Errorf("counted %q, want %q", got, tt.want)
			}
			for kind := range strings.FieldsSeq(tt.want) {
				kind, _, _ = strings.Cut(kind, "*")
				level := "INFO"
				if kind == "no_accept_version" || kind == "no_heart_beat" {
					level = "DEBUG"
				}
				named := 0
				for line := range strings.Lines(h.log.String()) {
					if strings.Contains(line, "kind="+kind+" version="+version) && strings.Contains(line, "level="+level) {
						named++
					}
				}
				if named != 1 {
					t.Errorf("%s is named %d times\n%s", kind, named, h.log.String())
				}
			}
			if strings.Contains(h.log.String(), "level=WARN") {
				t.Error(h.log.String())
			}
		})
	}
}

// An ACK that comes too late is counted each time it does.
func TestLateQuirk(t *testing.T) {
	t.Parallel()
	h := open(t, Options{}, "orders")
	h.put("orders", "m")
	p := h.connect("1.2", "heart-beat:0,0")
	p.send("SUBSCRIBE\ndestination:orders\nid:1\nack:client-individual\nrelease-on-close:true\n\n^@")
	m := p.expect("MESSAGE")
	p.send("UNSUBSCRIBE\nid:1\nreceipt:u\n\n^@")
	p.expect("RECEIPT")
	if got := h.get("orders"); len(got) != 1 {
		t.Fatal(got)
	}
	p.send("ACK\nid:" + m.header["ack"] + "\n\n^@DISCONNECT\nreceipt:d\n\n^@")
	p.expect("RECEIPT", "receipt-id:d")
	p.closed()
	if got := h.counted(); !slices.Equal(got, []string{"ack_late"}) {
		t.Error(got)
	}
}

// The names are one for each bit.
func TestQuirkNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range quirkNames {
		if name == "" || seen[name] {
			t.Errorf("the name %q", name)
		}
		seen[name] = true
	}
	if 1<<(quirkKinds-1) != ackLate || quirkNames[5] != "body_ignored" || bodyIgnored != 1<<5 {
		t.Error("names and bits have parted")
	}
}
