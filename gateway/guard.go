package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/queued-mq/queued/queue"
)

// guard refuses what a browser sends on behalf of a page that is not ours
// (contract, "A browser is not a client"). Without it any page a person opens
// could publish to, and read from, a server on that person's own machine.
type guard struct {
	loopback  bool   // the listener is reachable from this machine alone
	publicURL string // host[:port] of the public URL, in lower case; "" is none

	socketOrigins []string // other origins whose pages may open a WebSocket, canonical
}

// check is nil, or the 403 for this request, whatever its method.
//
// On a loopback listener the name in Host must be one that no foreign name
// server can hand out: else a page of evil.example that points its own name at
// 127.0.0.1 would be same-origin for the browser.
func (g *guard) check(r *http.Request) error {
	if err := g.checkHost(r); err != nil {
		return err
	}
	if site := r.Header["Sec-Fetch-Site"]; len(site) > 0 {
		if len(site) > 1 || site[0] != "same-origin" && site[0] != "none" {
			return queue.Errorf(queue.NotAuthorized, "requests from pages of other sites are refused (sec-fetch-site: %s)", clip(strings.Join(site, ", ")))
		}
	}
	if origin := r.Header["Origin"]; len(origin) > 0 {
		if len(origin) > 1 || !g.own(origin[0], r.Host) {
			return queue.Errorf(queue.NotAuthorized, "requests from pages of other sites are refused (origin: %s)", clip(strings.Join(origin, ", ")))
		}
	}
	return nil
}

func (g *guard) checkHost(r *http.Request) error {
	if g.loopback && !g.known(r.Host) {
		return queue.Errorf(queue.NotAuthorized, "the host %q is not served here: this listener answers to loopback names and to the host of public-url", clip(r.Host))
	}
	return nil
}

// known reports whether a loopback listener answers to the host.
func (g *guard) known(host string) bool {
	name := strings.ToLower(hostname(host))
	if name == "localhost" || g.publicURL != "" && name == hostname(g.publicURL) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// own reports whether origin is the server itself, as this request names it or
// as its public URL does.
func (g *guard) own(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false // "null" among them
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	at := withPort(u.Host, port)
	return at == withPort(host, port) || g.publicURL != "" && at == withPort(g.publicURL, port)
}

// hostname is a host without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func withPort(host, port string) string {
	if name, given, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(net.JoinHostPort(name, given))
	}
	return strings.ToLower(net.JoinHostPort(hostname(host), port))
}

// clip bounds what an error repeats of a client's own words.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
