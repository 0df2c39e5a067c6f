package exchange

import (
	"slices"
	"strings"
	"testing"
)

const table = `# a table
name: one
why: it must be
versions: 1.0 1.2
> SEND
[1.2] > id:1
> receipt:$r
>
> x^@SEND
>
> {3*y#}^@
< RECEIPT as m
[1.0] < receipt-id:1

[1.2] < MESSAGE
[1.2] < ack~a
[1.2] <
[1.2] < x^J
[1.2] < ^@
2 closed
[1.0] silent

name: two
why: so
versions: none
put orders x
stats orders visible=1
`

func TestParse(t *testing.T) {
	t.Parallel()
	all, err := Parse("dir/some.txt", table)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	one, two := all[0], all[1]
	if one.Title() != "some/one" || one.Why != "it must be" || one.ByHand || !two.ByHand || !one.Plain() || two.Plain() {
		t.Errorf("%+v %+v", one, two)
	}
	verbs := func(x *Exchange, version string) (all []string) {
		for _, s := range x.Steps(version) {
			all = append(all, s.Peer+s.Verb)
		}
		return all
	}
	if got := strings.Join(verbs(one, "1.0"), " "); got != "1> 1< 2closed 1silent" {
		t.Error(got)
	}
	if got := strings.Join(verbs(one, "1.2"), " "); got != "1> 1< 1< 2closed" {
		t.Error(got)
	}

	w := Words{"r": "a\nb"}
	steps := one.Steps("1.2")
	said, err := w.Packets(&steps[0])
	if want := []string{"SEND\nid:1\nreceipt:a\nb\n\nx\x00SEND\n\ny1y2y3\x00"}; err != nil || !slices.Equal(said, want) {
		t.Errorf("%q %v", said, err)
	}
	want, err := w.Wants(&steps[2])
	if err != nil || want.Command != "MESSAGE" || !slices.Equal(want.Headers, []string{"ack~a"}) || want.Body != "x\n\n" {
		t.Errorf("%+v %v", want, err)
	}
	if want, err := w.Wants(&steps[1]); err != nil || want.Alias != "m" || want.HasBody {
		t.Errorf("%+v %v", want, err)
	}
	if _, err := (Words{}).Packets(&steps[0]); err == nil {
		t.Error("a word that is not known is taken")
	}

	for _, wrong := range []string{
		"> SEND\n",
		"name: x\n> SEND\n",
		"name: x\nwhy: y\nname: x\nwhy: y\n",
		"name: x\nwhy: y\n[1.0] silent\n",
		"name: x\nwhy: y\nopening: closed\n",
	} {
		if all, err := Parse("f", wrong); err == nil {
			t.Errorf("%q is read as %+v", wrong, all)
		}
	}
}

func TestPackets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a^|^M^J^xFF^.": {"a", "\r\n\xff"},
		"^*^|ab^@":      {"a", "b", "\x00"},
		"^I^_":          {"\t \n"},
	} {
		if got, err := (Words{}).Packets(&Step{Text: []string{text}}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q; %v", text, got, want, err)
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	const read = "\n\r\nMESSAGE\na:1\nb:x:y\na:2\ncontent-length:3\n\n\x00\x00c\x00rest"
	for i := range len(read) - len("rest") {
		if f, _, err := Next([]byte(read[:i])); f != nil || err != nil {
			t.Fatalf("%q is %v %v", read[:i], f, err)
		}
	}
	f, rest, err := Next([]byte(read))
	if err != nil || f.Body != "\x00\x00c" || string(rest) != "rest" {
		t.Fatal(f, rest, err)
	}
	for condition, want := range map[string]string{
		"b:x:y": "", "b:*": "", "b~:": "", "!c": "",
		"a:2": "a more than once", "b:x": "b:x:y", "b~z": "b:x:y", "c:*": "no c", "!b": "b:x:y", "c~x": "no c",
	} {
		if got := f.Differs(condition); got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
	if HeaderOf("!a") != "a" || HeaderOf("a~b") != "a" || HeaderOf("a:b~c") != "a" {
		t.Error("a condition is about another header")
	}
	for _, wrong := range []string{"A\ncontent-length:x\n\n", "A\ncontent-length:-1\n\n\x00", "A\ncontent-length:1\n\nabc\x00"} {
		if f, _, err := Next([]byte(wrong)); err == nil {
			t.Errorf("%q is %v", wrong, f)
		}
	}
	if f, rest, err := Next([]byte("A\n\nb\x00c")); err != nil || f.Body != "b" || string(rest) != "c" {
		t.Error(f, rest, err)
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	f := &Frame{Header: map[string]string{"message-id": "7", "ack": "8", "subscription": "s"}}
	for version, want := range map[string]string{"1.2": "id:8", "1.1": "subscription:s\nmessage-id:7", "1.0": "message-id:7"} {
		w := Words{}
		if w.Learn("m", version, f); w["m"] != want || w["mid"] != "7" || w["mreceipt"] != "8" {
			t.Error(version, w)
		}
	}
}
