package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// TestHeaders walks every operation: which headers an answer has, and that a
// client finds its own request id in it.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders", "--create-queue", "parcels")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a", "b", "c", "d")
	m := c.Get(t, "orders", "limit=4&timeoutInSeconds=0")
	if len(m) != 4 {
		t.Fatalf("%d messages", len(m))
	}
	work := c.Must(t, 202, "PUT", "/queues/orders", `{"timeoutInSeconds":0}`).Header.Get("opc-work-request-id")

	for _, tt := range []struct {
		status             int
		method, path, body string
		has                string // headers, with a blank between
	}{
		{200, "GET", "/queues", "", ""},
		{200, "GET", "/queues?limit=1", "", "opc-next-page"},
		{202, "POST", "/queues", `{"displayName":"x","compartmentId":"c"}`, "opc-work-request-id"},
		{200, "GET", "/queues/orders", "", "etag"},
		{202, "PUT", "/queues/orders", `{}`, "opc-work-request-id"},
		{202, "POST", "/queues/x/actions/changeCompartment", `{"compartmentId":"d"}`, "opc-work-request-id"},
		{202, "POST", "/queues/x/actions/purge", `{"purgeType":"BOTH"}`, "opc-work-request-id"},
		{202, "DELETE", "/queues/x", "", "opc-work-request-id"},
		{200, "GET", "/consumerGroups", "", ""},
		{400, "POST", "/consumerGroups", `{"displayName":"g","queueId":"orders"}`, ""},
		{404, "GET", "/consumerGroups/g", "", ""},
		{404, "PUT", "/consumerGroups/g", `{}`, ""},
		{404, "DELETE", "/consumerGroups/g", "", ""},
		{200, "GET", "/workRequests", "", ""},
		{200, "GET", "/workRequests?limit=1", "", "opc-next-page"},
		{200, "GET", "/workRequests/" + work, "", ""},
		{200, "GET", "/workRequests/" + work + "/errors", "", ""},
		{200, "GET", "/workRequests/" + work + "/logs", "", ""},
		{200, "POST", "/queues/orders/messages", `{"messages":[{"content":"e"}]}`, ""},
		{200, "GET", "/queues/orders/messages?timeoutInSeconds=0", "", "cache-control"},
		{200, "PUT", "/queues/orders/messages/" + m[0].Receipt, `{"visibilityInSeconds":60}`, ""},
		{204, "DELETE", "/queues/orders/messages/" + m[0].Receipt, "", ""},
		{200, "POST", "/queues/orders/messages/actions/updateMessages", `{"entries":[{"receipt":"` + m[1].Receipt + `","visibilityInSeconds":60}]}`, ""},
		{200, "POST", "/queues/orders/messages/actions/deleteMessages", `{"entries":[{"receipt":"` + m[1].Receipt + `"}]}`, ""},
		{200, "GET", "/queues/orders/stats", "", ""},
		{200, "GET", "/queues/orders/channels", "", ""},
		{404, "GET", "/queues/nobody", "", ""},
		{404, "GET", "/nothing", "", ""},
		{405, "DELETE", "/queues", "", "allow"},
		{400, "POST", "/queues/orders/messages", `{`, ""},
	} {
		what := tt.method + " " + tt.path
		a := c.Must(t, tt.status, tt.method, tt.path, tt.body, "opc-request-id: my-own.id_1")
		proper(t, what, a)
		if id := a.Header.Get("opc-request-id"); !strings.HasPrefix(id, "my-own.id_1/") {
			t.Errorf("%s: opc-request-id is %q", what, id)
		}
		for _, name := range []string{"opc-work-request-id", "opc-next-page", "etag", "allow", "cache-control", "retry-after"} {
			if has := a.Header.Get(name) != ""; has != strings.Contains(tt.has, name) {
				t.Errorf("%s: %s is %q", what, name, a.Header.Get(name))
			}
		}
		if (tt.status == 204 || tt.status == 202 && tt.path != "/queues") != (len(a.Body) == 0) {
			t.Errorf("%s: %d with the body %s", what, tt.status, rest.Clip(a.Body))
		}
	}
	if cc := c.Must(t, 200, "GET", "/queues/orders/messages?timeoutInSeconds=0", "").Header.Get("cache-control"); cc != "no-store" {
		t.Errorf("cache-control is %q", cc)
	}

	// Who sends no id gets one of the server's own; what could not stand in a
	// header or a log is made harmless.
	one, two := c.Must(t, 200, "GET", "/queues", ""), c.Must(t, 200, "GET", "/queues", "")
	if a, b := one.Header.Get("opc-request-id"), two.Header.Get("opc-request-id"); a == b || strings.HasPrefix(a, "/") {
		t.Errorf("ids %q and %q", a, b)
	}
	for sent, want := range map[string]string{
		strings.Repeat("i", 98):   strings.Repeat("i", 98) + "/",
		strings.Repeat("i", 1000): strings.Repeat("i", 128) + "/",
		`a b<c>"d"`:               "a_b_c__d_/",
		"a/b/c":                   "a/b/c/",
		"ümlaut":                  "__mlaut/",
	} {
		a := c.Must(t, 200, "GET", "/queues", "", "opc-request-id: "+sent)
		if got := a.Header.Get("opc-request-id"); !strings.HasPrefix(got, want) {
			t.Errorf("request id %.20q came back as %q", sent, got)
		}
	}
}

var (
	instant = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	ocid    = `"ocid1\.[a-z]+\.oc1\.local\.[a-z2-7]{32}"`
)

// TestBodies compares whole bodies: names and their order, numbers as numbers,
// instants with three digits and Z, nothing that is absent.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	c := rest.Dial(t, s.REST)

	check := func(name string, a *rest.Answer, want string) {
		t.Helper()
		if !regexp.MustCompile("^" + want + "$").Match(a.Body) {
			t.Errorf("%s:\n got %s\nwant %s", name, a.Body, want)
		}
	}
	a := c.Must(t, 202, "POST", "/queues", `{"displayName":"orders","compartmentId":"ocid1.compartment.oc1..c"}`)
	check("CreateQueue", a, `\{"id":`+ocid+`,"displayName":"orders","lifecycleState":"ACTIVE"\}`)
	work := a.Header.Get("opc-work-request-id")
	var made struct{ ID string }
	a.JSON(t, &made)

	endpoint := regexp.QuoteMeta(s.REST)
	check("GetQueue", c.Must(t, 200, "GET", "/queues/orders", ""),
		`\{"id":"`+made.ID+`","compartmentId":"ocid1.compartment.oc1..c","timeCreated":`+instant+`,"timeUpdated":`+instant+
			`,"lifecycleState":"ACTIVE","messagesEndpoint":"`+endpoint+`","retentionInSeconds":86400,"visibilityInSeconds":30,"timeoutInSeconds":30`+
			`,"deadLetterQueueDeliveryCount":5,"displayName":"orders","channelConsumptionLimit":100\}`)
	check("ListQueues", c.Must(t, 200, "GET", "/queues", ""),
		`\{"items":\[\{"id":"`+made.ID+`","compartmentId":"ocid1.compartment.oc1..c","timeCreated":`+instant+`,"timeUpdated":`+instant+
			`,"lifecycleState":"ACTIVE","messagesEndpoint":"`+endpoint+`","displayName":"orders"\}\]\}`)
	check("ListQueues of none", c.Must(t, 200, "GET", "/queues?displayName=nobody", ""), `\{"items":\[\]\}`)
	check("ListConsumerGroups", c.Must(t, 200, "GET", "/consumerGroups", ""), `\{"items":\[\]\}`)
	request := `\{"operationType":"CREATE_QUEUE","status":"SUCCEEDED","id":"` + work + `","compartmentId":"ocid1.compartment.oc1..c"` +
		`,"resources":\[\{"entityType":"queue","actionType":"CREATED","identifier":"` + made.ID + `","entityUri":"/20210201/queues/` + made.ID + `"\}\]` +
		`,"percentComplete":100,"timeAccepted":` + instant + `,"timeStarted":` + instant + `,"timeFinished":` + instant + `\}`
	check("GetWorkRequest", c.Must(t, 200, "GET", "/workRequests/"+work, ""), request)
	check("ListWorkRequests", c.Must(t, 200, "GET", "/workRequests", ""), `\{"items":\[`+request+`\]\}`)
	check("ListWorkRequestErrors", c.Must(t, 200, "GET", "/workRequests/"+work+"/errors", ""), `\{"items":\[\]\}`)
	check("ListWorkRequestLogs", c.Must(t, 200, "GET", "/workRequests/"+work+"/logs", ""),
		`\{"items":\[\{"message":"[^"]+","timestamp":`+instant+`\}\]\}`)

	zero := `\{"visibleMessages":0,"inFlightMessages":0,"sizeInBytes":0,"delayedMessages":0\}`
	check("GetMessages of none", c.Must(t, 200, "GET", "/queues/orders/messages?timeoutInSeconds=0", ""), `\{"messages":\[\]\}`)
	check("GetStats of nothing", c.Must(t, 200, "GET", "/queues/orders/stats", ""), `\{"queue":`+zero+`,"dlq":`+zero+`\}`)
	check("ListChannels of none", c.Must(t, 200, "GET", "/queues/orders/channels", ""), `\{"items":\[\]\}`)

	check("PutMessages", c.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[{"content":"a"},
		{"content":"b","metadata":{"channelId":"north","customProperties":{"type":"order","a":"1"}}}]}`),
		`\{"messages":\[\{"id":\d+,"expireAfter":`+instant+`\},\{"id":\d+,"expireAfter":`+instant+`\}\]\}`)
	message := func(more string) string {
		return `\{"messages":\[\{"id":\d+,"content":"[ab]","receipt":"[A-Za-z0-9_-]+","deliveryCount":1,"visibleAfter":` + instant +
			`,"expireAfter":` + instant + `,"createdAt":` + instant + more + `\}\]\}`
	}
	properties := `,"metadata":\{"channelId":"north","customProperties":\{"a":"1","type":"order"\}\}`
	b := c.Must(t, 200, "GET", "/queues/orders/messages?channelFilter=north", "")
	check("GetMessages of a channel", b, message(properties))
	a = c.Must(t, 200, "GET", "/queues/orders/messages", "")
	check("GetMessages", a, message(""))
	check("GetStats of a channel", c.Must(t, 200, "GET", "/queues/orders/stats?channelId=north", ""),
		`\{"queue":\{"visibleMessages":0,"inFlightMessages":1,"sizeInBytes":12,"delayedMessages":0\},"dlq":`+zero+`,"channelId":"north"\}`)
	check("ListChannels", c.Must(t, 200, "GET", "/queues/orders/channels", ""), `\{"items":\["north"\]\}`)

	receipt := rest.Messages(t, a)[0].Receipt
	check("UpdateMessage", c.Update(t, 200, "orders", receipt, 9), `\{"id":\d+,"visibleAfter":`+instant+`\}`)
	check("UpdateMessages", c.Must(t, 200, "POST", "/queues/orders/messages/actions/updateMessages",
		`{"entries":[{"receipt":"`+receipt+`","visibilityInSeconds":9},{"receipt":"AAAA","visibilityInSeconds":9}]}`),
		`\{"serverFailures":0,"clientFailures":1,"entries":\[\{"id":\d+,"visibleAfter":`+instant+`\},\{"errorCode":400,"errorMessage":"[^"]+"\}\]\}`)
	check("DeleteMessages", c.Must(t, 200, "POST", "/queues/orders/messages/actions/deleteMessages",
		`{"entries":[{"receipt":"`+receipt+`"},{"receipt":"AAAA"}]}`),
		`\{"serverFailures":0,"clientFailures":1,"entries":\[\{\},\{"errorCode":400,"errorMessage":"[^"]+"\}\]\}`)

	// What is set is there, and tags keep their types.
	tags := `"freeformTags":{"team":"post"},"definedTags":{"ops":{"cost":42,"flag":true,"list":[1,"a",null],"text":"x"}}`
	c.Must(t, 202, "PUT", "/queues/orders", `{"customEncryptionKeyId":"ocid1.key.oc1..k",`+tags+`}`)
	got := c.Must(t, 200, "GET", "/queues/orders", "").Body
	for _, want := range []string{`"customEncryptionKeyId":"ocid1.key.oc1..k"`, tags} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestNumbers: whole numbers are spelled as such, so that a client that keeps
// them as text sees no fraction and no exponent.
func TestNumbers(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", strings.Repeat("x", 200_000))
	c.Put(t, "orders", strings.Repeat("x", 200_000), strings.Repeat("x", 200_000))
	body := c.Must(t, 200, "GET", "/queues/orders/stats", "").Body
	if size := string(field(t, field(t, body, "queue"), "sizeInBytes")); size != "600000" {
		t.Errorf("sizeInBytes is %s", size)
	}
}

// TestRequests: how requests may be spelled.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders,visibility=7,timeout=0")
	c := rest.Dial(t, s.REST)

	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		code               string // "" is success
		say                string // what the message must hold
	}{
		"null is absent in a message": {"POST", "/queues/orders/messages",
			`{"messages":[{"content":"a","contentEncoding":null,"delayInSeconds":null,"metadata":{"channelId":null,"customProperties":null}}]}`, 200, "", ""},
		"metadata may be null":     {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","metadata":null}]}`, 200, "", ""},
		"a null property is none":  {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","metadata":{"customProperties":{"p":null}}}]}`, 200, "", ""},
		"empty channel is none":    {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","metadata":{"channelId":""}}]}`, 200, "", ""},
		"null content is missing":  {"POST", "/queues/orders/messages", `{"messages":[{"content":null}]}`, 400, "MissingParameter", "messages[0].content"},
		"null messages is missing": {"POST", "/queues/orders/messages", `{"messages":null}`, 400, "MissingParameter", "messages"},
		"no messages":              {"POST", "/queues/orders/messages", `{"messages":[]}`, 400, "", "messages"},
		"a null message":           {"POST", "/queues/orders/messages", `{"messages":[null]}`, 400, "MissingParameter", "messages[0].content"},
		"unknown fields are passed over": {"POST", "/queues/orders/messages",
			`{"x":{"y":[1,{"z":null}]},"messages":[{"content":"a","priority":9,"metadata":{"channelId":"c","more":true}}],"y":1e9}`, 200, "", ""},
		"names are spelled exactly": {"POST", "/queues/orders/messages", `{"Messages":[{"content":"a"}]}`, 400, "MissingParameter", "messages"},
		"blanks anywhere":           {"POST", "/queues/orders/messages", " \r\n\t{ \"messages\" : [ { \"content\" : \"a\" } ] } \n", 200, "", ""},
		"a number as text":          {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","delayInSeconds":"1"}]}`, 400, "InvalidParameter", "messages[0].delayInSeconds"},
		"text as a number":          {"POST", "/queues/orders/messages", `{"messages":[{"content":1}]}`, 400, "InvalidParameter", "messages[0].content"},
		"a fraction":                {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","delayInSeconds":1.5}]}`, 400, "InvalidParameter", "messages[0].delayInSeconds"},
		"over 32 bits":              {"POST", "/queues/orders/messages", `{"messages":[{"content":"a","delayInSeconds":4294967297}]}`, 400, "InvalidParameter", "messages[0].delayInSeconds"},
		"an object as a list":       {"POST", "/queues/orders/messages", `{"messages":{"content":"a"}}`, 400, "InvalidParameter", "messages"},

		"sort order in small letters": {"GET", "/queues?sortOrder=asc&sortBy=displayname", "", 200, "", ""},
		"state in small letters":      {"GET", "/queues?lifecycleState=active", "", 200, "", ""},
		"purge type in small letters": {"POST", "/queues/orders/actions/purge", `{"purgeType":"dlq"}`, 202, "", ""},
		"unknown query parameters":    {"GET", "/queues?x=1&y", "", 200, "", ""},
		"names of query parameters":   {"GET", "/queues?Limit=0", "", 200, "", ""},
		"a state that is none":        {"GET", "/queues?lifecycleState=ASLEEP", "", 400, "InvalidParameter", "lifecycleState"},
		"a body that is not asked":    {"GET", "/queues", `{"x":1}`, 200, "", ""},
		"absent body":                 {"PUT", "/queues/orders", ``, 400, "MissingParameter", "body"},
		"null body":                   {"PUT", "/queues/orders", `null`, 400, "MissingParameter", "body"},
		"empty update":                {"PUT", "/queues/orders", `{}`, 202, "", ""},
		"fields that cannot change":   {"PUT", "/queues/orders", `{"retentionInSeconds":10,"id":"x"}`, 202, "", ""},
		"no display name":             {"POST", "/queues", `{"compartmentId":"c"}`, 400, "MissingParameter", "displayName"},
		"no purge type":               {"POST", "/queues/orders/actions/purge", `{}`, 400, "MissingParameter", "purgeType"},
		"no compartment to move to":   {"POST", "/queues/orders/actions/changeCompartment", `{"compartmentId":null}`, 400, "MissingParameter", "compartmentId"},
		"no visibility":               {"PUT", "/queues/orders/messages/AAAA", `{}`, 400, "MissingParameter", "visibilityInSeconds"},
		"no entries":                  {"POST", "/queues/orders/messages/actions/deleteMessages", `{}`, 400, "MissingParameter", "entries"},
	} {
		what := fmt.Sprintf("%s (%s %s %s)", name, tt.method, tt.path, tt.body)
		a := c.Must(t, 0, tt.method, tt.path, tt.body)
		proper(t, what, a)
		if a.Status != tt.status {
			t.Errorf("%s: %d %s", what, a.Status, rest.Clip(a.Body))
			continue
		}
		if tt.status >= 400 {
			code, message, err := a.Error()
			if err != nil || tt.code != "" && code != tt.code || !strings.Contains(message, tt.say) {
				t.Errorf("%s: %s (%s), %v", what, code, message, err)
			}
		}
	}
	if r := string(field(t, c.Must(t, 200, "GET", "/queues/orders", "").Body, "retentionInSeconds")); r != "86400" {
		t.Errorf("retention is %s after an update", r)
	}
}

// TestEndpoint: messagesEndpoint is an origin and nothing more, or the Go SDK
// would refuse to send anything to it.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	own := server.Start(t, "--create-queue", "orders")
	public := server.Start(t, "--create-queue", "orders", "--public-url", "https://mq.example:8443")
	endpoint := func(s *server.Server, host string) string {
		a := rest.Dial(t, s.REST).Must(t, 200, "GET", "/queues/orders", "", "Host: "+host)
		var q struct{ MessagesEndpoint string }
		if err := json.Unmarshal(a.Body, &q); err != nil {
			t.Fatal(err)
		}
		return q.MessagesEndpoint
	}
	for _, tt := range []struct {
		s          *server.Server
		host, want string
	}{
		{own, strings.TrimPrefix(own.REST, "http://"), own.REST},
		{own, "localhost:1234", "http://localhost:1234"},
		{own, "localhost", "http://localhost"},
		{own, "[::1]:99", "http://[::1]:99"},
		{public, "localhost:1234", "https://mq.example:8443"},
		{public, "mq.example:8443", "https://mq.example:8443"},
		{public, "MQ.example", "https://mq.example:8443"},
	} {
		if got := endpoint(tt.s, tt.host); got != tt.want {
			t.Errorf("asked at %s the endpoint is %s, want %s", tt.host, got, tt.want)
		}
	}
}
