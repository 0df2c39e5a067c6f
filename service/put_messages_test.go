package service

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

var noText = []byte{0xff, 0x00, 0xfe, '\n'}

func text(octets []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(octets)) }

func TestNewMessages(t *testing.T) {
	q := orders()
	got, bytes, err := formOnly().newMessages(&PutMessagesRequest{
		RetryToken: p("token"),
		Messages: []PutMessage{
			{Content: []byte{}},
			{
				Content:             []byte("a"),
				ChannelID:           p("c1"),
				Properties:          []queue.Property{{Name: "z", Value: "1"}, {Name: "a", Value: ""}},
				RetentionInSeconds:  p(int32(10)),
				DelayInSeconds:      p(int32(9)),
				VisibilityInSeconds: p(int32(43200)),
			},
			{Content: text(noText), ContentEncoding: p("Base64")},
			{Content: []byte("b"), ChannelID: p(""), ContentEncoding: p(""), DelayInSeconds: p(int32(0)), RetentionInSeconds: p(int32(3600))},
		},
	}, &q)
	if err != nil {
		t.Fatal(err)
	}
	if bytes != 0+(1+1+1+1)+4+1 {
		t.Errorf("%d octets", bytes)
	}
	wanted := []queue.NewMessage{
		{Message: queue.Message{Body: []byte{}}},
		{
			Message: queue.Message{
				Body:       []byte("a"),
				Properties: []queue.Property{{Name: "a", Value: ""}, {Name: "z", Value: "1"}},
			},
			Channel: "c1", Retention: 10 * time.Second, Delay: 9 * time.Second, Visibility: 12 * time.Hour,
		},
		{Message: queue.Message{Body: noText}},
		{Message: queue.Message{Body: []byte("b")}, Retention: time.Hour},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewMessagesRefuses(t *testing.T) {
	one := func(m PutMessage) []PutMessage {
		if m.Content == nil {
			m.Content = []byte("x")
		}
		return []PutMessage{{Content: []byte("fine")}, m}
	}
	large := strings.Repeat("x", 256<<10)
	third := PutMessage{Content: []byte(large)}
	for name, c := range map[string]struct {
		messages []PutMessage
		token    *string
		code     queue.Code
		text     string
	}{
		"absent":            {nil, nil, queue.MissingParameter, "messages is missing"},
		"none":              {[]PutMessage{}, nil, queue.InvalidParameter, "messages has 0 entries; it must have 1 to 20 (limits.batch-messages)"},
		"too many":          {make([]PutMessage, 21), nil, queue.InvalidParameter, "messages has 21 entries; it must have 1 to 20 (limits.batch-messages)"},
		"no content":        {make([]PutMessage, 1), nil, queue.MissingParameter, "messages[0].content is missing"},
		"retry token":       {one(PutMessage{}), p(""), queue.InvalidParameter, "opc-retry-token has 0 characters; it must have 1 to 64"},
		"message too large": {one(PutMessage{Content: []byte(large + "x")}), nil, queue.PayloadTooLarge, ""},
		"size with properties": {one(PutMessage{Content: []byte(large), Properties: []queue.Property{{Name: "a"}}}), nil,
			queue.PayloadTooLarge, ""},
		"size as stored":      {one(PutMessage{Content: text([]byte(large)), ContentEncoding: p("base64")}), nil, "", ""},
		"request too large":   {[]PutMessage{third, third, {Content: []byte("x")}}, nil, queue.PayloadTooLarge, ""},
		"channel":             {one(PutMessage{ChannelID: p("a/b")}), nil, queue.InvalidParameter, "messages[1]: channelId must have 1 to 64 characters, each a letter, a digit or one of _ . : @ = + -"},
		"property name":       {one(PutMessage{Properties: []queue.Property{{Name: "a b"}}}), nil, queue.InvalidParameter, ""},
		"property twice":      {one(PutMessage{Properties: []queue.Property{{Name: "a"}, {Name: "b"}, {Name: "a"}}}), nil, queue.InvalidParameter, `messages[1]: customProperties has "a" more than once`},
		"retention low":       {one(PutMessage{RetentionInSeconds: p(int32(9))}), nil, queue.InvalidParameter, "messages[1].retentionInSeconds is 9; it must be 10 to the retentionInSeconds of the queue, which is 3600"},
		"retention high":      {one(PutMessage{RetentionInSeconds: p(int32(3601))}), nil, queue.InvalidParameter, "messages[1].retentionInSeconds is 3601; it must be 10 to the retentionInSeconds of the queue, which is 3600"},
		"delay negative":      {one(PutMessage{DelayInSeconds: p(int32(-1))}), nil, queue.InvalidParameter, "messages[1].delayInSeconds is -1; it must be 0 to 43200"},
		"delay as retention":  {one(PutMessage{DelayInSeconds: p(int32(3600))}), nil, queue.InvalidParameter, "messages[1].delayInSeconds is 3600; it must be below the retention of the message, which is 3600"},
		"delay as own":        {one(PutMessage{DelayInSeconds: p(int32(10)), RetentionInSeconds: p(int32(10))}), nil, queue.InvalidParameter, "messages[1].delayInSeconds is 10; it must be below the retention of the message, which is 10"},
		"visibility zero":     {one(PutMessage{VisibilityInSeconds: p(int32(0))}), nil, queue.InvalidParameter, "messages[1].visibilityInSeconds is 0; it must be 1 to 43200"},
		"visibility high":     {one(PutMessage{VisibilityInSeconds: p(int32(43201))}), nil, queue.InvalidParameter, "messages[1].visibilityInSeconds is 43201; it must be 1 to 43200"},
		"unknown encoding":    {one(PutMessage{ContentEncoding: p("gzip")}), nil, queue.InvalidParameter, "messages[1]: contentEncoding must be base64, or absent for text"},
		"not base64":          {one(PutMessage{Content: []byte("a"), ContentEncoding: p("base64")}), nil, queue.InvalidParameter, "messages[1]: content is not base64, as contentEncoding says"},
		"base64 with a break": {one(PutMessage{Content: []byte("YWJj\nZGVm"), ContentEncoding: p("base64")}), nil, queue.InvalidParameter, ""},
		"base64 loose ends":   {one(PutMessage{Content: []byte("YR=="), ContentEncoding: p("base64")}), nil, queue.InvalidParameter, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := orders()
			_, _, err := formOnly().newMessages(&PutMessagesRequest{Messages: c.messages, RetryToken: c.token}, &q)
			want(t, err, c.code, c.text)
		})
	}
}

// The reserved property is legal where the message comes back as it was sent,
// and nowhere else.
func TestReservedProperty(t *testing.T) {
	mark := func(value string) []queue.Property {
		return []queue.Property{{Name: "zone", Value: "9"}, {Name: "content-encoding", Value: value}}
	}
	declared := p("base64")
	for name, c := range map[string]struct {
		content  []byte
		encoding *string
		value    string
		textOnly bool
		body     []byte // nil: refused
	}{
		"redrive over REST":             {text(noText), nil, "base64", true, noText},
		"the same, declared":            {text(noText), declared, "base64", true, noText},
		"declared text":                 {text([]byte("abc")), declared, "base64", true, []byte("abc")},
		"declared, raw face":            {text(noText), declared, "base64", false, noText},
		"base64 of text":                {text([]byte("abc")), nil, "base64", true, nil},
		"base64 of nothing":             {[]byte{}, nil, "base64", true, nil},
		"no base64":                     {[]byte("abc!"), nil, "base64", true, nil},
		"raw face":                      {text(noText), nil, "base64", false, nil},
		"another value":                 {text(noText), nil, "gzip", true, nil},
		"another value, declared":       {text(noText), declared, "gzip", true, nil},
		"another spelling of the value": {text(noText), nil, "BASE64", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := PutMessage{Content: c.content, ContentEncoding: c.encoding, Properties: mark(c.value)}
			body, properties, err := m.decode(c.textOnly)
			if c.body == nil {
				want(t, err, queue.InvalidParameter, "")
				return
			}
			want(t, err, "", "")
			if diff := cmp.Diff(c.body, body); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]queue.Property{{Name: "zone", Value: "9"}}, properties); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReservedPropertyIsOutsideTheLimit(t *testing.T) {
	m := PutMessage{Content: text(noText), ContentEncoding: p("base64"), Properties: []queue.Property{{Name: "content-encoding", Value: "base64"}}}
	for i := range 64 {
		m.Properties = append(m.Properties, queue.Property{Name: fmt.Sprint("p", i)})
	}
	q := orders()
	_, _, err := formOnly().newMessages(&PutMessagesRequest{Messages: []PutMessage{m}}, &q)
	want(t, err, "", "")
}

func BenchmarkNewMessages(b *testing.B) {
	s, q := formOnly(), orders()
	r := PutMessagesRequest{Messages: make([]PutMessage, 10)}
	for i := range r.Messages {
		r.Messages[i] = PutMessage{Content: []byte("content"), ChannelID: p("c1"),
			Properties: []queue.Property{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}, DelayInSeconds: p(int32(5))}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.newMessages(&r, &q); err != nil {
			b.Fatal(err)
		}
	}
}

// Messages that came together are requests of their own: each takes from the
// rate, which holds up those it must and no others, and each is counted; what
// stands behind a wrong one is not stored.
func TestStartPutEach(t *testing.T) {
	oci := limits.OCI()
	oci.RequestsPerSecond = 4
	counted := map[queue.Code]int{}
	o := Options{Limits: &oci, Observe: func(_, operation string, code queue.Code, _ float64) {
		if operation == "PutMessages" {
			counted[code]++
		}
	}}
	inHouse(t, o, func(h *house) {
		h.create("orders", nil)
		put := func(ref string, bodies ...string) (stored []int, failure error) {
			messages := make([]PutMessage, len(bodies))
			for i, body := range bodies {
				if messages[i].Content = []byte(body); body == "wrong" {
					messages[i].DelayInSeconds = p(int32(-1))
				}
			}
			told := make([]bool, len(bodies))
			all := make(chan struct{})
			left := len(bodies)
			h.s.StartPutEach(h.ctx, ref, messages, func(from, done, to int, err error) {
				for i := from; i < to; i++ {
					if told[i] {
						t.Errorf("message %d has two outcomes", i)
					}
					if told[i] = true; i < done {
						stored = append(stored, i)
					} else {
						failure = err
					}
				}
				if left -= to - from; left == 0 {
					close(all)
				}
			})
			clear(messages)
			<-all
			return stored, failure
		}
		began := time.Now()
		stored, err := put("orders", "0", "1", "2", "3", "4", "5", "6", "7")
		if err != nil || !slices.Equal(stored, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Error(stored, err)
		}
		if took := time.Since(began); took < 900*time.Millisecond || took > 2*time.Second {
			t.Errorf("8 requests at 4 a second took %v", took)
		}
		for i, m := range h.get("orders", 60) {
			if string(m.Body) != strconv.Itoa(i) {
				t.Errorf("message %d is %q", i, m.Body)
			}
		}
		time.Sleep(time.Second)
		stored, err = put("orders", "8", "wrong", "9")
		want(t, err, queue.InvalidParameter, "messages[0].delayInSeconds is -1; it must be 0 to 43200")
		if !slices.Equal(stored, []int{0}) {
			t.Error(stored)
		}
		stored, err = put("none", "a", "b")
		want(t, err, queue.NotAuthorizedOrNotFound, "")
		if stored != nil {
			t.Error(stored)
		}
		if !maps.Equal(counted, map[queue.Code]int{"": 9, queue.InvalidParameter: 2, queue.NotAuthorizedOrNotFound: 2}) {
			t.Error(counted)
		}
	})
}
