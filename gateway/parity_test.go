package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// step is one request of a story. In its target and body {r0}, {r1}, ... are
// the receipts given so far.
type step struct {
	method, target, body string
	headers              []string
	wait                 time.Duration // before it
}

var receipts = regexp.MustCompile(`"receipt":"([^"]+)"`)

// tell tells the story to a handler and gives what it answered, in which
// receipts bear their numbers and request ids are left out.
func tell(t *testing.T, h http.Handler, story []step) (out []string) {
	t.Helper()
	var given []string
	for _, s := range story {
		time.Sleep(s.wait)
		fill := func(text string) string {
			for i, r := range given {
				text = strings.ReplaceAll(text, fmt.Sprintf("{r%d}", i), r)
			}
			return text
		}
		a := ask(t, h, s.method, fill(s.target), fill(s.body), s.headers...)
		for _, m := range receipts.FindAllStringSubmatch(a.body, -1) {
			given = append(given, m[1])
		}
		for i, r := range given {
			a.body = strings.ReplaceAll(a.body, r, fmt.Sprintf("{r%d}", i))
		}
		if a.header.Get("Opc-Request-Id") == "" {
			t.Errorf("%s %s: no opc-request-id", s.method, s.target)
		}
		a.header.Del("Opc-Request-Id")
		header, err := json.Marshal(a.header)
		if err != nil {
			t.Fatal(err)
		}
		if a.body != "" && !json.Valid([]byte(a.body)) {
			t.Errorf("%s %s: the answer is no JSON: %s", s.method, s.target, a.body)
		}
		out = append(out, fmt.Sprintf("%s %s %.80s\n%d %s\n%s", s.method, s.target, s.body, a.status, header, a.body))
	}
	return out
}

// inTwoHouses tells the story to a handler with the hot handlers and to one
// without, in fake time, and wants the same octets from both.
func inTwoHouses(t *testing.T, story []step) (out []string) {
	t.Helper()
	var generated []string
	synctest.Test(t, func(t *testing.T) { out = tell(t, newHouse(t, Options{}).handler, story) })
	synctest.Test(t, func(t *testing.T) { generated = tell(t, newHouse(t, Options{}).generated, story) })
	for i := range out {
		if out[i] != generated[i] {
			t.Errorf("step %d (-generated +hot)\n%s", i, cmp.Diff(generated[i], out[i]))
		}
	}
	return out
}

const orders = basePath + "/queues/orders"

var makeOrders = step{method: "POST", target: basePath + "/queues", body: `{"displayName":"orders","deadLetterQueueDeliveryCount":2}`}

func post(target, body string) step { return step{method: "POST", target: target, body: body} }
func get(target string) step        { return step{method: "GET", target: target} }

// The life of messages, from put to dead letter queue.
func TestParityStory(t *testing.T) {
	t.Parallel()
	story := []step{
		makeOrders,
		get(orders + "/messages?timeoutInSeconds=0"),
		post(orders+"/messages", `{"messages":[{"content":"\u0000 \" \\ \r\n é 😀 \u2028 </script>"},{"content":""},{"content":"AP8=","contentEncoding":"base64"}]}`),
		post(orders+"/messages", `{"messages":[{"content":"/w==","metadata":{"channelId":"c-1","customProperties":{"zz":"2","a":"1","content-encoding":"base64"}},"contentEncoding":"base64"}]}`),
		post(orders+"/messages", `{"messages":[{"content":"p","metadata":{"channelId":"c-2","customProperties":{"a":"\"quote\"\n"}}},{"content":"q","metadata":{"channelId":"c-2"}}]}`),
		get(orders + "/messages?timeoutInSeconds=0&channelFilter=c-1"),
		get(orders + "/messages?timeoutInSeconds=0&channelFilter=c-2&limit=1&visibilityInSeconds=5"),
		get(orders + "/messages?timeoutInSeconds=0&channelFilter=c-2&contentEncoding=BASE64"),
		get(orders + "/messages?timeoutInSeconds=0"),
		{method: "PUT", target: orders + "/messages/{r1}", body: `{"visibilityInSeconds":60}`},
		{method: "PUT", target: orders + "/messages/{r1}", body: `{"visibilityInSeconds":0}`},
		{method: "PUT", target: orders + "/messages/{r1}", body: `{"visibilityInSeconds":7}`},
		{method: "DELETE", target: orders + "/messages/{r1}"},
		{method: "DELETE", target: orders + "/messages/{r1}"},
		{method: "DELETE", target: orders + "/messages/garbage"},
		{method: "DELETE", target: orders + "/messages/%67arbage?consumerGroupId=g"},
		{method: "PUT", target: orders + "/messages/garbage", body: `{"visibilityInSeconds":7}`},
		post(orders+"/messages/actions/updateMessages", `{"entries":[{"receipt":"{r2}","visibilityInSeconds":1},{"receipt":"{r0}","visibilityInSeconds":99999},{"receipt":"x","visibilityInSeconds":1},{},null]}`),
		post(orders+"/messages/actions/deleteMessages", `{"entries":[{"receipt":"{r0}"},{"receipt":"{r0}"},{"receipt":"nonsense"},{"receipt":null},{}]}`),
		get(orders + "/stats"),
		{method: "GET", target: orders + "/messages?timeoutInSeconds=0", wait: 3 * time.Minute},
		{method: "GET", target: orders + "/messages?timeoutInSeconds=0", wait: 3 * time.Minute},
		post(orders+"/messages/actions/deleteMessages", `{"entries":[{"receipt":"{r3}"}]}`),
		post(orders+"/messages/actions/updateMessages", `{"entries":[{"receipt":"{r3}","visibilityInSeconds":1}]}`),
		{method: "GET", target: orders + "_dlq/messages?timeoutInSeconds=0", wait: 3 * time.Minute},
		get(orders + "_dlq/messages?timeoutInSeconds=0"),
		post(orders+"_dlq/messages", `{"messages":[{"content":"a"}]}`),
		get(orders + "/stats"),
		// A retry token gives the first answer, and a poll with nobody there waits.
		{method: "POST", target: orders + "/messages", body: `{"messages":[{"content":"once"}]}`, headers: []string{"opc-retry-token: t1"}},
		{method: "POST", target: orders + "/messages", body: `{"messages":[{"content":"once"}]}`, headers: []string{"opc-retry-token: t1"}},
		{method: "POST", target: orders + "/messages", body: `{"messages":[{"content":"other"}]}`, headers: []string{"opc-retry-token: t1"}},
		{method: "POST", target: orders + "/messages", body: `{"messages":[{"content":"other"}]}`, headers: []string{"opc-retry-token: " + strings.Repeat("t", 65)}},
		{method: "POST", target: orders + "/messages", body: `{"messages":[{"content":"other"}]}`, headers: []string{"opc-retry-token: a", "opc-retry-token: b"}},
		post(orders+"/messages?retryToken=t1", `{"messages":[{"content":"a query sets no token"}]}`),
		get(orders + "/messages?timeoutInSeconds=0&visibilityInSeconds=0"),
		get(orders + "/messages?timeoutInSeconds=3&channelFilter=none"),
	}
	out := inTwoHouses(t, story)
	if testing.Verbose() {
		for _, s := range out {
			t.Log(s)
		}
	}
	for _, want := range []string{`"deadLetter":{"reason":"DELIVERY_COUNT_REACHED"`, `"content-encoding":"base64"`, `"contentEncoding":"base64"`, `"errorCode":404`, `"errorCode":400`, ` </script>`} {
		if !strings.Contains(strings.Join(out, "\n"), want) {
			t.Errorf("the story does not meet %s", want)
		}
	}
}

// Every body of the table, good or bad, to every operation that takes one.
func TestParityBodies(t *testing.T) {
	t.Parallel()
	story := []step{makeOrders, post(orders+"/messages", `{"messages":[{"content":"a"}]}`), get(orders + "/messages?timeoutInSeconds=0")}
	for _, body := range bodies {
		story = append(story,
			post(orders+"/messages", body),
			step{method: "PUT", target: orders + "/messages/{r0}", body: body},
			post(orders+"/messages/actions/updateMessages", body),
			post(orders+"/messages/actions/deleteMessages", body),
		)
	}
	story = append(story,
		post(basePath+"/queues/unknown/messages", `{"messages":[{"content":"a"}]}`),
		post(orders+"/messages", `{"messages":[{"content":"`+strings.Repeat("x", 256<<10)+`"}]}`),
		post(orders+"/messages", `{"messages":[{"content":"`+strings.Repeat("x", 256<<10+1)+`"}]}`),
		post(orders+"/messages", `{"messages":[`+strings.TrimSuffix(strings.Repeat(`{"content":"`+strings.Repeat("y", 200<<10)+`"},`, 3), ",")+`]}`),
		post(orders+"/messages", `{"messages":[{"content":"`+strings.Repeat(`\u0041`, 256<<10)+`"}]}`),
		post(orders+"/messages", `{"messages":[`+strings.Repeat(`{},`, 10_000)+`{}]}`),
	)
	inTwoHouses(t, story)
}

// Good and bad queries.
func TestParityQueries(t *testing.T) {
	t.Parallel()
	story := []step{makeOrders}
	for _, q := range []string{
		"limit=abc", "limit=", "limit=0", "limit=21", "limit=1.0", "limit=%2B5", "limit=99999999999", "limit=1&limit=1", "limit=1&LIMIT=2", "Limit=abc",
		"visibilityInSeconds=-1", "visibilityInSeconds=x", "timeoutInSeconds=31", "timeoutInSeconds=x&limit=x", "visibilityInSeconds=x&limit=y",
		"channelFilter=", "channelFilter=a/b", "channelFilter=%zz", "%zz=1", "unknown=%e", "channelFilter=%ff", "channelFilter=a&channelFilter=b",
		"contentEncoding=gzip", "contentEncoding=", "contentEncoding=base64", "consumerGroupId=", "consumerGroupId=g", "queueId=other", "queue_id=other", "queue%49d=x",
		"l%69mit=5", "a;b=c", "&&", "=", "limit=5;limit=6", "visibility_in_seconds=7", "retry_token=x", "content_encoding=gzip",
	} {
		story = append(story, get(orders+"/messages?timeoutInSeconds=0&"+q), step{method: "DELETE", target: orders + "/messages/AQEB?" + q},
			step{method: "PUT", target: orders + "/messages/AQEB?" + q, body: `{"visibilityInSeconds":1}`},
			post(orders+"/messages/actions/deleteMessages?"+q, `{"entries":[{"receipt":"AQEB"}]}`),
			post(orders+"/messages/actions/updateMessages?"+q, `{"entries":[{"receipt":"AQEB"}]}`),
			post(orders+"/messages?"+q, `{"messages":[{"content":"a"}]}`))
	}
	inTwoHouses(t, story)
}
