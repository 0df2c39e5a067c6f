package gateway

import (
	"net/http"
	"strings"
)

// basePath is before every path of the API.
const basePath = "/20210201"

// route is one operation of the API as REST sees it.
type route struct {
	operation string // as OCI names it
	method    string
	path      string   // behind basePath, with {} for a parameter
	status    int      // of success
	query     []string // the documented parameters; all others are ignored
	body      bool     // a JSON object must be there
	ifMatch   bool     // the header if-match is read
	token     bool     // the header opc-retry-token is read
	noStore   bool     // the answer must not be kept by caches
}

// routes are all operations (OCI reference, section 2). The HTTP rules in
// gateway.yaml say the same of paths and bodies; a test compares the two.
var routes = []route{
	{operation: "ListQueues", method: http.MethodGet, path: "/queues", status: http.StatusOK,
		query: []string{"compartmentId", "lifecycleState", "displayName", "id", "limit", "page", "sortOrder", "sortBy"}},
	{operation: "CreateQueue", method: http.MethodPost, path: "/queues", status: http.StatusAccepted, body: true, token: true},
	{operation: "GetQueue", method: http.MethodGet, path: "/queues/{}", status: http.StatusOK},
	{operation: "UpdateQueue", method: http.MethodPut, path: "/queues/{}", status: http.StatusAccepted, body: true, ifMatch: true},
	{operation: "DeleteQueue", method: http.MethodDelete, path: "/queues/{}", status: http.StatusAccepted, ifMatch: true},
	{operation: "ChangeQueueCompartment", method: http.MethodPost, path: "/queues/{}/actions/changeCompartment", status: http.StatusAccepted, body: true, ifMatch: true},
	{operation: "PurgeQueue", method: http.MethodPost, path: "/queues/{}/actions/purge", status: http.StatusAccepted, body: true, ifMatch: true},

	{operation: "ListConsumerGroups", method: http.MethodGet, path: "/consumerGroups", status: http.StatusOK,
		query: []string{"lifecycleState", "displayName", "id", "queueId", "limit", "page", "sortOrder", "sortBy"}},
	{operation: "CreateConsumerGroup", method: http.MethodPost, path: "/consumerGroups", status: http.StatusAccepted, body: true, token: true},
	{operation: "GetConsumerGroup", method: http.MethodGet, path: "/consumerGroups/{}", status: http.StatusOK},
	{operation: "UpdateConsumerGroup", method: http.MethodPut, path: "/consumerGroups/{}", status: http.StatusAccepted, body: true, ifMatch: true},
	{operation: "DeleteConsumerGroup", method: http.MethodDelete, path: "/consumerGroups/{}", status: http.StatusAccepted, ifMatch: true},

	{operation: "ListWorkRequests", method: http.MethodGet, path: "/workRequests", status: http.StatusOK,
		query: []string{"compartmentId", "workRequestId", "limit", "page"}},
	{operation: "GetWorkRequest", method: http.MethodGet, path: "/workRequests/{}", status: http.StatusOK},
	{operation: "ListWorkRequestErrors", method: http.MethodGet, path: "/workRequests/{}/errors", status: http.StatusOK, query: []string{"limit", "page"}},
	{operation: "ListWorkRequestLogs", method: http.MethodGet, path: "/workRequests/{}/logs", status: http.StatusOK, query: []string{"limit", "page"}},

	{operation: "PutMessages", method: http.MethodPost, path: "/queues/{}/messages", status: http.StatusOK, body: true, token: true},
	{operation: "GetMessages", method: http.MethodGet, path: "/queues/{}/messages", status: http.StatusOK, noStore: true, query: getQuery[:]},
	{operation: "UpdateMessage", method: http.MethodPut, path: "/queues/{}/messages/{}", status: http.StatusOK, body: true, query: groupQuery},
	{operation: "DeleteMessage", method: http.MethodDelete, path: "/queues/{}/messages/{}", status: http.StatusNoContent, query: groupQuery},
	{operation: "UpdateMessages", method: http.MethodPost, path: "/queues/{}/messages/actions/updateMessages", status: http.StatusOK, body: true, query: groupQuery},
	{operation: "DeleteMessages", method: http.MethodPost, path: "/queues/{}/messages/actions/deleteMessages", status: http.StatusOK, body: true, query: groupQuery},
	{operation: "GetStats", method: http.MethodGet, path: "/queues/{}/stats", status: http.StatusOK, query: []string{"channelId", "consumerGroupId"}},
	{operation: "ListChannels", method: http.MethodGet, path: "/queues/{}/channels", status: http.StatusOK, query: []string{"consumerGroupId", "limit", "page", "channelFilter"}},
}

// Where the query parameters of the hot operations stand in exchange.query.
const (
	getVisibility = iota
	getTimeout
	getLimit
	getFilter
	getGroup
	getEncoding
)

var (
	getQuery   = [...]string{getVisibility: "visibilityInSeconds", getTimeout: "timeoutInSeconds", getLimit: "limit", getFilter: "channelFilter", getGroup: "consumerGroupId", getEncoding: "contentEncoding"}
	groupQuery = []string{"consumerGroupId"}
)

// place is a path and what may be done there.
type place struct {
	segments []string // "" stands for a parameter
	routes   []*route // one for each method
	allow    []string // the header Allow, for 405
}

// places are the paths of the API.
var places = makePlaces()

func makePlaces() []*place {
	var all []*place
	byPath := map[string]*place{}
	for i := range routes {
		r := &routes[i]
		p := byPath[r.path]
		if p == nil {
			p = &place{segments: strings.Split(strings.ReplaceAll(strings.TrimPrefix(r.path, "/"), "{}", ""), "/")}
			byPath[r.path] = p
			all = append(all, p)
		}
		p.routes = append(p.routes, r)
		if p.allow == nil {
			p.allow = []string{r.method}
		} else {
			p.allow[0] += ", " + r.method
		}
	}
	return all
}

// find is the place of a path, or nil. The path is decoded, each segment
// once; a segment that is empty, "." or ".." belongs to no path, and nothing
// is ever cleaned up or redirected.
func find(path string) *place {
	rest, ok := strings.CutPrefix(path, basePath+"/")
	if !ok {
		return nil
	}
	const most = 5 // segments of the longest path
	var segments [most]string
	n := 0
	for more := true; more; n++ {
		if n == most {
			return nil
		}
		segments[n], rest, more = strings.Cut(rest, "/")
		switch segments[n] {
		case "", ".", "..":
			return nil
		}
	}
places:
	for _, p := range places {
		if len(p.segments) != n {
			continue
		}
		for i, s := range p.segments {
			if s != "" && s != segments[i] {
				continue places
			}
		}
		return p
	}
	return nil
}

// hides reports whether the path as it was sent holds a "/" in its encoded
// form. A name with a "/" can be had by OCID only (contract), so it belongs to
// no path; and decoded it would look like two segments.
func hides(rawPath string) bool {
	for rest := rawPath; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 || i+2 >= len(rest) {
			return false
		}
		if rest[i+1] == '2' && rest[i+2]|0x20 == 'f' {
			return true
		}
		rest = rest[i+1:]
	}
}
