package faces

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// long is a visibility that does not end while a scenario runs.
const long = 600

var scenarios = []scenario{
	{"publish, receive, delete", settings{visibility: long}, nil, func(x *stage) {
		began := time.Now().Add(-time.Second)
		x.put(Text("hello"))
		d := x.one("hello", 1, Want{})
		if d.ID == 0 || d.Receipt == "" || d.Channel != "" || len(d.Properties) != 0 || d.Dead != nil {
			x.Errorf("got %+v", d)
		}
		if d.CreatedAt.Before(began) || d.CreatedAt.After(time.Now().Add(time.Second)) {
			x.Errorf("created at %v", d.CreatedAt)
		}
		if left := time.Until(d.VisibleAfter); left < (long-30)*time.Second || left > (long+1)*time.Second {
			x.Errorf("hidden for %v, want %d s", left, long)
		}
		if left := time.Until(d.ExpireAfter); left < 23*time.Hour || left > 25*time.Hour {
			x.Errorf("it expires in %v", left)
		}
		x.holds(0, 1, 0, 0)
		x.get(0, Want{Limit: 1})
		x.must(x.Delete(x.queue, d.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"many", settings{visibility: long}, nil, func(x *stage) {
		var want []string
		for i := range 15 {
			want = append(want, fmt.Sprint("m", i))
			x.put(Text(want[i]))
		}
		var got []string
		for _, d := range x.get(15, Want{}) {
			got = append(got, string(d.Body))
			x.must(x.Delete(x.queue, d.Receipt))
		}
		if !slices.Equal(got, want) {
			x.Errorf("got %q", got)
		}
		x.holds(0, 0, 0, 0)
	}},
	{"batch", settings{visibility: long}, []Ability{Batch}, func(x *stage) {
		x.put(slices.Repeat([]Message{Text("a")}, 20)...)
		x.get(20, Want{})
		x.holds(0, 20, 0, 0)
		// All or none, whatever stands at its end; and 21 are too many.
		_, err := x.Publish(x.queue, "", Text("good"), Message{Body: []byte("bad"), Channel: "a b"})
		x.refused("InvalidParameter", err)
		_, err = x.Publish(x.queue, "", slices.Repeat([]Message{Text("a")}, 21)...)
		x.refused("InvalidParameter", err)
		x.put(Text("the next"))
		x.one("the next", 1, Want{})
		x.holds(0, 21, 0, 0)
	}},
	{"retry token", settings{visibility: long}, []Ability{Token}, func(x *stage) {
		first, err := x.Publish(x.queue, "5c1f", Text("once"), Text("once too"))
		x.must(err)
		again, err := x.Publish(x.queue, "5c1f", Text("once"), Text("once too"))
		x.must(err)
		if !slices.Equal(first, again) || len(first) != 2 {
			x.Errorf("ids %v and %v", first, again)
		}
		x.holds(2, 0, 0, 0)
		_, err = x.Publish(x.queue, "5c1f", Text("something else"))
		x.refused("InvalidParameter", err)
		x.holds(2, 0, 0, 0)
	}},
	{"extend", settings{visibility: 2}, []Ability{Extend}, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		x.must(x.Extend(x.queue, d.Receipt, long))
		lapse(d)
		x.holds(0, 1, 0, 0)
		x.must(x.Extend(x.queue, d.Receipt, 1)) // less is allowed too
		again := x.one("a", 2, Want{Visibility: long})
		x.refused("NotAuthorizedOrNotFound", x.Extend(x.queue, d.Receipt, 60))
		x.must(x.Delete(x.queue, again.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"lapse", settings{visibility: 1}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		again := x.one("a", 2, Want{Visibility: long})
		if time.Now().Before(d.VisibleAfter) {
			x.Error("it came before its visibility had ended")
		}
		if again.Receipt == d.Receipt || again.ID != d.ID || !again.CreatedAt.Equal(d.CreatedAt) {
			x.Errorf("first %+v, then %+v", d, again)
		}
		x.must(x.Delete(x.queue, again.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"visibility of the consumer", settings{visibility: long}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{Visibility: 1})
		if left := time.Until(d.VisibleAfter); left > 1500*time.Millisecond {
			x.Errorf("hidden for %v", left)
		}
		x.one("a", 2, Want{})
	}},
	{"own visibility", settings{visibility: long}, []Ability{OwnVisibility}, func(x *stage) {
		x.put(Message{Body: []byte("a"), Visibility: 1})
		x.one("a", 1, Want{})
		d := x.one("a", 2, Want{Visibility: long}) // the consumer's goes before it
		if left := time.Until(d.VisibleAfter); left < time.Minute {
			x.Errorf("hidden for %v", left)
		}
	}},
	{"return at once", settings{visibility: long}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		x.must(x.Return(x.queue, d.Receipt, 0))
		x.holds(1, 0, 0, 0)
		again := x.one("a", 2, Want{})
		x.must(x.Delete(x.queue, again.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"return with a delay", settings{visibility: long}, []Ability{ReturnLater}, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		before := time.Now()
		x.must(x.Return(x.queue, d.Receipt, 1))
		x.get(0, Want{Limit: 1})
		x.one("a", 2, Want{})
		if took := time.Since(before); took < 950*time.Millisecond {
			x.Errorf("it came back after %v", took)
		}
	}},
	{"late extension", settings{visibility: 1}, []Ability{Extend}, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		lapse(d)
		x.refused("NotAuthorizedOrNotFound", x.Extend(x.queue, d.Receipt, 60))
		x.holds(1, 0, 0, 0)
		again := x.one("a", 2, Want{Visibility: long})
		x.refused("NotAuthorizedOrNotFound", x.Extend(x.queue, d.Receipt, 60))
		x.must(x.Extend(x.queue, again.Receipt, 45))
		x.must(x.Delete(x.queue, again.Receipt))
	}},
	{"return of what has lapsed", settings{visibility: 1}, []Ability{LateReturn}, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		lapse(d)
		x.refused("NotAuthorizedOrNotFound", x.Return(x.queue, d.Receipt, 0))
		x.one("a", 2, Want{})
	}},
	{"late return changes nothing", settings{visibility: 1}, nil, func(x *stage) {
		x.put(Text("a"), Text("b"))
		held := x.get(2, Want{})
		lapse(held[1])
		err := x.Return(x.queue, held[0].Receipt, 0)
		if code := Code(err); err != nil && code != "NotAuthorizedOrNotFound" {
			x.Error(err)
		}
		x.holds(2, 0, 0, 0)
		x.get(2, Want{Visibility: long})
		// Somebody else has it now. The others of the client are as they were.
		if err = x.Return(x.queue, held[1].Receipt, 0); err != nil {
			x.refused("NotAuthorizedOrNotFound", err)
		}
		x.holds(0, 2, 0, 0)
	}},
	{"delete after the lapse", settings{visibility: 1}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		lapse(d)
		x.holds(1, 0, 0, 0)
		x.must(x.Delete(x.queue, d.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"superseded delete", settings{visibility: 1}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		again := x.one("a", 2, Want{Visibility: long})
		x.refused("NotAuthorizedOrNotFound", x.Delete(x.queue, d.Receipt))
		x.holds(0, 1, 0, 0)
		x.must(x.Delete(x.queue, again.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"delete of a gone one", settings{visibility: long}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		x.must(x.Delete(x.queue, d.Receipt))
		x.must(x.Delete(x.queue, d.Receipt))
		x.Drop() // and on another connection
		x.must(x.Delete(x.queue, d.Receipt))
		x.holds(0, 0, 0, 0)
	}},
	{"lost connection", settings{visibility: 2}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		x.Drop()
		x.get(0, Want{Limit: 1}) // its consumer may be at work on it
		again := x.one("a", 2, Want{Visibility: long})
		if time.Now().Before(d.VisibleAfter) {
			x.Error("it came before its visibility had ended")
		}
		x.Drop()
		x.must(x.Delete(x.queue, again.Receipt)) // and may still say so
		x.holds(0, 0, 0, 0)
	}},
	{"dead letters", settings{visibility: 1, dead: 1}, nil, func(x *stage) {
		x.put(Message{Body: []byte("poison"), Channel: "ward-3", Properties: map[string]string{"k": "v"}}, Text("poison too"))
		held := x.get(1, Want{Channel: "ward-3"})
		x.get(1, Want{})
		x.holds(0, 0, 0, 2) // by itself
		dead := x.from(x.queue+"_dlq", 1, Want{Channel: "ward-3", Visibility: long})[0]
		if string(dead.Body) != "poison" || dead.Count != 2 || dead.ID != held[0].ID || dead.Channel != "ward-3" || dead.Properties["k"] != "v" {
			x.Errorf("dead letter %+v", dead)
		}
		if why := dead.Dead; why == nil || why.Reason != "DELIVERY_COUNT_REACHED" || why.Count != 1 || time.Since(why.At) > time.Minute {
			x.Errorf("it is dead because %+v", why)
		}
		x.refused("NotAuthorizedOrNotFound", x.Delete(x.queue, held[0].Receipt)) // it has moved
		x.must(x.Delete(x.queue+"_dlq", dead.Receipt))
		other := x.from(x.queue+"_dlq", 1, Want{Visibility: long})[0]
		x.must(x.Return(x.queue+"_dlq", other.Receipt, 0))
		other = x.from(x.queue+"_dlq", 1, Want{Visibility: long})[0]
		x.must(x.Delete(x.queue, other.Receipt)) // by either name
		x.holds(0, 0, 0, 0)
	}},
	{"channels", settings{visibility: long}, nil, func(x *stage) {
		for _, channel := range []string{"", "north", "north-2", "south", "aZ09_.:@=+-"} {
			x.put(Message{Body: []byte("in " + channel), Channel: channel})
		}
		for _, tt := range []struct{ want, channel string }{
			{"south", "south"}, {"north-2", "north-*"}, {"north", "n*h"}, {"aZ09_.:@=+-", "*:*"},
		} {
			d := x.one("in "+tt.want, 1, Want{Channel: tt.channel})
			if d.Channel != tt.want {
				x.Errorf("channel filter %q: channel %q, want %q", tt.channel, d.Channel, tt.want)
			}
			x.must(x.Delete(x.queue, d.Receipt))
		}
		x.get(0, Want{Limit: 1, Channel: "*"}) // which is no name
		d := x.one("in ", 1, Want{})
		if d.Channel != "" {
			x.Errorf("channel %q of none", d.Channel)
		}
		x.must(x.Delete(x.queue, d.Receipt))
		x.put(Message{Body: []byte("x"), Channel: "last"})
		if d := x.one("x", 1, Want{}); d.Channel != "last" {
			x.Errorf("without a filter: channel %q", d.Channel)
		}
	}},
	{"delay", settings{visibility: long}, nil, func(x *stage) {
		before := time.Now()
		x.put(Message{Body: []byte("later"), Delay: 2})
		x.holds(0, 0, 1, 0)
		x.put(Text("now"))
		x.one("now", 1, Want{})
		x.one("later", 1, Want{})
		if took := time.Since(before); took < 1900*time.Millisecond {
			x.Errorf("it came after %v", took)
		}
	}},
	{"own retention", settings{visibility: long, retention: 3600}, nil, func(x *stage) {
		x.put(Message{Body: []byte("short"), Retention: 10})
		published := time.Now()
		x.put(Text("long"))
		x.eventually(12*time.Second, func() error {
			if n := x.rest.Stats(x.T, x.queue).Queue.Visible; n != 1 {
				return fmt.Errorf("%d messages are visible", n)
			}
			return nil
		})
		if took := time.Since(published); took < 9*time.Second {
			x.Errorf("it expired after %v", took)
		}
		d := x.one("long", 1, Want{})
		if left := time.Until(d.ExpireAfter); left > time.Hour {
			x.Errorf("the queue's retention gives %v", left)
		}
	}},
	{"limits", settings{visibility: long, retention: 3600}, nil, func(x *stage) {
		const most = 256 << 10
		x.put(Message{Body: make([]byte, most-6), Channel: "large", Properties: map[string]string{"name": "xy"}})
		x.put(Message{Body: []byte("x"), Properties: properties(64)})
		x.put(Message{Body: []byte("x"), Properties: map[string]string{strings.Repeat("n", 64): strings.Repeat("v", 4096)}})
		x.put(Message{Body: []byte("x"), Properties: map[string]string{strings.Repeat("n", 64): strings.Repeat("\\", 4096)}}) // spelled longer
		x.put(Message{Body: []byte("x"), Channel: strings.Repeat("c", 64)})
		for _, tt := range []struct {
			what, code string
			m          Message
		}{
			{"a body too large", "PayloadTooLarge", Message{Body: make([]byte, most+1)}},
			{"a body far too large", "PayloadTooLarge", Message{Body: make([]byte, 600<<10)}},
			{"body and properties too large", "PayloadTooLarge", Message{Body: make([]byte, most-5), Properties: map[string]string{"name": "xy"}}},
			{"too many properties", "InvalidParameter", Message{Properties: properties(65)}},
			{"a name with a blank", "InvalidParameter", Message{Properties: map[string]string{"a b": ""}}},
			{"a name with a colon", "InvalidParameter", Message{Properties: map[string]string{"a:b": ""}}},
			{"a name with a line end", "InvalidParameter", Message{Properties: map[string]string{"a\nb": ""}}},
			{"a long name", "InvalidParameter", Message{Properties: map[string]string{strings.Repeat("n", 65): ""}}},
			{"a long value", "InvalidParameter", Message{Properties: map[string]string{"n": strings.Repeat("v", 4097)}}},
			{"a reserved name", "InvalidParameter", Message{Properties: map[string]string{"content-encoding": "gzip"}}},
			{"a channel with a blank", "InvalidParameter", Message{Channel: "a b"}},
			{"a channel with a slash", "InvalidParameter", Message{Channel: "a/b"}},
			{"a pattern for a channel", "InvalidParameter", Message{Channel: "a*"}},
			{"a channel not in ASCII", "InvalidParameter", Message{Channel: "é"}},
			{"a long channel", "InvalidParameter", Message{Channel: strings.Repeat("c", 65)}},
			{"a retention too short", "InvalidParameter", Message{Retention: 9}},
			{"a retention above the queue's", "InvalidParameter", Message{Retention: 3601}},
			{"a delay beyond the retention", "InvalidParameter", Message{Delay: 3600}},
			{"a delay too long", "InvalidParameter", Message{Delay: 43201}},
		} {
			if _, err := x.Publish(x.queue, "", tt.m); Code(err) != tt.code {
				x.Errorf("%s: %v, want %s", tt.what, err, tt.code)
			}
		}
		for what, w := range map[string]Want{
			"a visibility too long": {Visibility: 43201}, "a filter with a blank": {Channel: "a b"}, "a long filter": {Channel: strings.Repeat("c", 65)},
		} {
			if _, err := x.Receive(x.queue, w); Code(err) != "InvalidParameter" {
				x.Errorf("%s: %v, want InvalidParameter", what, err)
			}
		}
		x.holds(5, 0, 0, 0) // nothing of it is there
		// And it is of use still.
		d := x.get(1, Want{Channel: "large"})[0]
		if !bytes.Equal(d.Body, make([]byte, most-6)) {
			x.Errorf("the largest message has %d octets", len(d.Body))
		}
	}},
	{"unknown queue", settings{visibility: long}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		for _, name := range []string{"nowhere", "nowhere_dlq", "ocid1.queue.oc1.local.nowhere", strings.ToUpper(x.queue)} {
			_, err := x.Publish(name, "", Text("a"))
			x.refused("NotAuthorizedOrNotFound", err)
			_, err = x.Receive(name, Want{})
			x.refused("NotAuthorizedOrNotFound", err)
			if x.face.Name != "STOMP" { // where a receipt says of which queue it is
				x.refused("NotAuthorizedOrNotFound", x.Delete(name, d.Receipt))
			}
		}
		x.holds(0, 1, 0, 0)
	}},
	{"made-up receipt", settings{visibility: long}, nil, func(x *stage) {
		x.put(Text("a"))
		d := x.one("a", 1, Want{})
		code := "InvalidParameter"
		if x.face.Name == "STOMP" { // an ACK of what the session was never sent
			code = "InvalidFrame"
		}
		for _, receipt := range []string{"made-up", d.Receipt[:len(d.Receipt)-1], d.Receipt + "A", strings.Repeat("A", len(d.Receipt))} {
			x.refused(code, x.Delete(x.queue, receipt))
			x.refused(code, x.Return(x.queue, receipt, 0))
		}
		x.holds(0, 1, 0, 0)
	}},
	{"publish to a dead letter queue", settings{visibility: long}, nil, func(x *stage) {
		_, err := x.Publish(x.queue+"_dlq", "", Text("a"))
		if Code(err) == "" {
			x.Errorf("got %v", err)
		}
		x.holds(0, 0, 0, 0)
	}},
	{"queue deleted while waiting", settings{visibility: long}, nil, func(x *stage) {
		w, err := x.Wait(x.queue, Want{For: patient})
		x.must(err)
		dead, err := x.Wait(x.queue+"_dlq", Want{For: patient, Channel: "c*"})
		x.must(err)
		time.Sleep(300 * time.Millisecond) // it waits, most likely
		x.rest.Must(x.T, 202, "DELETE", "/queues/"+x.queue, "")
		began := time.Now()
		for _, w := range []*Waiting{w, dead} {
			got, err := w.Result()
			if len(got) != 0 {
				x.Errorf("got %+v", got)
			}
			x.refused("NotAuthorizedOrNotFound", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			x.Errorf("it ended after %v", took)
		}
	}},
	{"a wait ends with a message", settings{visibility: long}, nil, func(x *stage) {
		w, err := x.Wait(x.queue, Want{For: patient})
		x.must(err)
		time.Sleep(200 * time.Millisecond) // it waits, most likely
		x.put(Text("a"))
		got, err := w.Result()
		x.must(err)
		if len(got) != 1 || string(got[0].Body) != "a" || got[0].Count != 1 {
			x.Errorf("got %+v", got)
		}
	}},
}

// properties are n of them.
func properties(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint("p", i)] = "v"
	}
	return m
}
