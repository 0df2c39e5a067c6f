package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/queued-mq/queued/queue"
)

// socketPath is where a WebSocket is served.
const socketPath = "/stomp"

// serveSocket serves a request at socketPath. If the connection has been taken
// over, x says so, and there is nothing to answer.
func (g *gateway) serveSocket(x *exchange, w http.ResponseWriter, r *http.Request) {
	if err := g.guard.checkSocket(r); err != nil {
		x.refuse(err)
		return
	}
	if r.Method != http.MethodGet {
		x.header["Allow"] = []string{"GET"}
		x.refuse(queue.Errorf(queue.MethodNotAllowed, "the method %s is not allowed here, only GET", clip(r.Method)))
		return
	}
	c, wrapped := r.Context().Value(connKey{}).(*conn)
	if wrapped {
		c.taken.Store(true)
	}
	if err := g.socket(w, r); err != nil {
		if wrapped {
			c.taken.Store(false)
		}
		x.refuse(err)
		return
	}
	x.taken = true
}

// checkSocket is check for a WebSocket, which pages of some other origins may
// open. A browser asks nobody before it does, and sends what it has to say
// later unseen, so this is the one place to refuse.
func (g *guard) checkSocket(r *http.Request) error {
	if origin := r.Header["Origin"]; len(origin) == 1 && slices.Contains(g.socketOrigins, canonicalOrigin(origin[0])) {
		return g.checkHost(r)
	}
	return g.check(r)
}

// canonicalOrigin is an origin as it is compared: in lower case, and with the
// port that its scheme implies; "" if it is none.
func canonicalOrigin(origin string) string {
	scheme, host, ok := strings.Cut(strings.ToLower(origin), "://")
	port := map[string]string{"http": "80", "https": "443"}[scheme]
	if !ok || port == "" || host == "" {
		return ""
	}
	return scheme + "://" + withPort(host, port)
}
