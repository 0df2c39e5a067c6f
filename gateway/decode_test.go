package gateway

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// bodies are good and bad bodies for any operation with one; also the seeds of
// the fuzz target.
var bodies = []string{
	// Puts.
	`{"messages":[{"content":"a"}]}`,
	`{"messages":[{"content":""}]}`,
	`{"messages":[{"content":"a","metadata":{"channelId":"c1","customProperties":{"type":"order","b":"2","a":""}}}]}`,
	`{"messages":[{"content":"a","metadata":null},{"content":"b","metadata":{"channelId":null,"customProperties":null}}]}`,
	`{"messages":[{"metadata":{"customProperties":{"x":null,"y":"z"}},"content":"late"}]}`,
	`{"messages":[{"content":"AP8=","contentEncoding":"base64"},{"contentEncoding":"base64","content":"AP8="}]}`,
	`{"messages":[{"content":"a","contentEncoding":"gzip"}]}`,
	`{"messages":[{"content":"%%","contentEncoding":"base64"}]}`,
	`{"messages":[{"content":"a","retentionInSeconds":60,"delayInSeconds":5,"visibilityInSeconds":7}]}`,
	`{"messages":[{"content":"a","retentionInSeconds":9}]}`,
	`{"messages":[{"content":"a","delayInSeconds":99999999999}]}`,
	`{"messages":[{"content":"a","delayInSeconds":1.5}]}`,
	`{"messages":[{"content":"a","delayInSeconds":"5"}]}`,
	`{"messages":[{"content":null}]}`,
	`{"messages":[{}]}`, `{"messages":[null]}`, `{"messages":[]}`, `{"messages":null}`, `{}`, `null`, ``, `  `, `[]`, `"x"`, `7`, `true`,
	`{"messages":{}}`, `{"messages":[[]]}`, `{"messages":["a"]}`, `{"messages":[{"content":7}]}`, `{"messages":[{"content":{}}]}`,
	`{"messages":[{"content":"a","metadata":[]}]}`, `{"messages":[{"content":"a","metadata":{"channelId":7}}]}`,
	`{"messages":[{"content":"a","metadata":{"customProperties":{"n":7}}}]}`,
	`{"messages":[{"content":"a","metadata":{"customProperties":["n"]}}]}`,
	`{"messages":[{"content":"a","metadata":{"channelId":"no/slash"}}]}`,
	`{"messages":[{"content":"a","metadata":{"customProperties":{"bad name":"x"}}}]}`,
	`{"messages":[{"content":"a","metadata":{"customProperties":{"content-encoding":"base64"}}}]}`,
	`{"messages":[{"content":"/w==","metadata":{"customProperties":{"content-encoding":"base64"}}}]}`,
	`{"messages":[{"Content":"a","content":"b","future":{"x":[1,2,{"y":null}]}}],"other":1}`,
	`{"messages":[{"content":"a","content":"b"}]}`,
	`{"messages":[{"content":"a"}],"messages":[]}`,
	`{"messages":[{"content":"a","metadata":{"customProperties":{"k":"1","\u006b":"2"}}}]}`,
	`{"m\u0065ssages":[{"c\u006fntent":"esc\u0061ped \ud83d\ude00 \n\t\"\\\/"}]}`,
	`{"messages":[{"content":"\ud800"}]}`, `{"messages":[{"content":"\udc00\ud800"}]}`,
	"{\"messages\":[{\"content\":\"\xff\"}]}", "{\"messages\":[{\"content\":\"\xed\xa0\x80\"}]}",
	"{\"messages\":[{\"content\":\"a\nb\"}]}",
	`{"messages":[{"content":"a"}]} x`, `{"messages":[{"content":"a"}]}{}`, `{"messages":[{"content":"a"}`, `{"messages":[{"content":"a"},]}`,
	`{"messages":[{"content":"a",}]}`, `{"messages":[{"content":'a'}]}`, `{messages:[]}`, `{"messages":[{"content":"a"}]`, "\ufeff{}",
	`{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `,"messages":[{"content":"a"}]}`,
	`{"messages":[` + strings.Repeat(`{"content":"a"},`, 20) + `{"content":"a"}]}`,
	// Updates and deletes.
	`{"visibilityInSeconds":5}`, `{"visibilityInSeconds":null}`, `{"visibilityInSeconds":"5"}`, `{"visibilityInSeconds":-1}`,
	`{"visibilityInSeconds":43201}`, `{"visibilityInSeconds":0,"visibilityInSeconds":0}`, `{"visibilityInSeconds":0,"x":[{}]}`,
	`{"entries":[{"receipt":"AQEB","visibilityInSeconds":5}]}`,
	`{"entries":[{"receipt":"AQEB"},{"visibilityInSeconds":5},{},null,{"receipt":null},{"receipt":"","visibilityInSeconds":null}]}`,
	`{"entries":[{"receipt":7}]}`, `{"entries":[{"receipt":"r","visibilityInSeconds":"x"}]}`, `{"entries":{}}`, `{"entries":[]}`, `{"entries":null}`,
	`{"entries":[7]}`, `{"entries":[{"receipt":"a","x":{"y":1}}],"messages":7}`, `{"entries":[{"receipt":"a","receipt":"b"}]}`,
	`{"entries":[` + strings.Repeat(`{"receipt":"a","visibilityInSeconds":1},`, 20) + `{"receipt":"b","visibilityInSeconds":1}]}`,
}

// sameDecoding fails unless both decoders make the same of a body.
func sameDecoding(t *testing.T, body []byte) {
	t.Helper()
	var r wire.Reader
	var put putDecoder
	messages, err := put.decode(&r, body)
	for i := range messages {
		slices.SortFunc(messages[i].Properties, func(a, b queue.Property) int { return cmp.Compare(a.Name, b.Name) })
	}
	var details queuev1.PutMessagesDetails
	same(t, body, "put", messages, err, putMessagesOf(&details, unmarshal(body, &details)))

	visibility, err := decodeUpdate(&r, body)
	var update queuev1.UpdateMessageDetails
	uerr := unmarshal(body, &update)
	same(t, body, "update", visibility, err, decoded[*int32]{update.VisibilityInSeconds, uerr})

	var batch batchDecoder
	entries, err := batch.updates(&r, body)
	var updates queuev1.UpdateMessagesDetails
	uerr = unmarshal(body, &updates)
	var want []service.UpdateMessagesEntry
	for _, e := range updates.Entries {
		want = append(want, service.UpdateMessagesEntry{Receipt: queue.Receipt(e.GetReceipt()), VisibilityInSeconds: e.VisibilityInSeconds})
	}
	same(t, body, "updates", entries, err, decoded[[]service.UpdateMessagesEntry]{want, uerr})

	receipts, err := batch.deletes(&r, body)
	var deletes queuev1.DeleteMessagesDetails
	uerr = unmarshal(body, &deletes)
	var names []queue.Receipt
	for _, e := range deletes.Entries {
		names = append(names, queue.Receipt(e.GetReceipt()))
	}
	same(t, body, "deletes", receipts, err, decoded[[]queue.Receipt]{names, uerr})
}

type decoded[T any] struct {
	value T
	err   error
}

func same[T any](t *testing.T, body []byte, what string, got T, err error, want decoded[T]) {
	t.Helper()
	if (err == nil) != (want.err == nil) || err != nil && err.Error() != want.err.Error() {
		t.Fatalf("%s %q:\n hot:       %v\n generated: %v", what, body, err, want.err)
	}
	if err != nil {
		if c := queue.CodeOf(err); c != queue.CannotParseRequest && c != queue.InvalidParameter && c != queue.MissingParameter {
			t.Fatalf("%s %q: code %s", what, body, c)
		}
		return
	}
	if diff := gocmp.Diff(want.value, got); diff != "" {
		t.Fatalf("%s %q: (-generated +hot)\n%s", what, body, diff)
	}
}

// putMessagesOf does as grpcapi does; maps have no order, so properties are
// sorted, on the hot side too.
func putMessagesOf(d *queuev1.PutMessagesDetails, err error) decoded[[]service.PutMessage] {
	var out []service.PutMessage
	for _, e := range d.Messages {
		m := service.PutMessage{
			Content: e.Content, ContentEncoding: e.ContentEncoding,
			RetentionInSeconds: e.RetentionInSeconds, DelayInSeconds: e.DelayInSeconds, VisibilityInSeconds: e.VisibilityInSeconds,
		}
		if e.Metadata != nil {
			m.ChannelID = e.Metadata.ChannelId
			for name, value := range e.Metadata.CustomProperties {
				m.Properties = append(m.Properties, queue.Property{Name: name, Value: value})
			}
			slices.SortFunc(m.Properties, func(a, b queue.Property) int { return cmp.Compare(a.Name, b.Name) })
		}
		out = append(out, m)
	}
	return decoded[[]service.PutMessage]{out, err}
}

func TestDecodersAgree(t *testing.T) {
	t.Parallel()
	for _, body := range bodies {
		sameDecoding(t, []byte(body))
	}
}

// What comes out of the hot decoder shares nothing with the body, and appending
// to one message's memory does not run into the next.
func TestPutDecoderOwnsItsMemory(t *testing.T) {
	t.Parallel()
	body := []byte(`{"messages":[{"content":"one","metadata":{"channelId":"c","customProperties":{"k":"v"}}},{"content":"two","metadata":{"customProperties":{"l":"w"}}}]}`)
	var r wire.Reader
	var d putDecoder
	m, err := d.decode(&r, body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if _, err := d.decode(&r, []byte(`{"messages":[{"content":"xxxxxxxx"}]}`)); err != nil {
		t.Fatal(err)
	}
	_ = append(m[0].Content, "!!!"...)
	_ = append(m[0].Properties, queue.Property{Name: "!"})
	if string(m[0].Content) != "one" || string(m[1].Content) != "two" || *m[0].ChannelID != "c" ||
		m[0].Properties[0] != (queue.Property{Name: "k", Value: "v"}) || m[1].Properties[0] != (queue.Property{Name: "l", Value: "w"}) {
		t.Errorf("%+v", m)
	}
}

func FuzzDecoders(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameDecoding(t, body) })
}
