package gateway

import (
	"net/http"
	"testing"
)

// Names that a loopback listener answers to, and those it must not: a page of
// evil.example that has pointed its own name at 127.0.0.1 sends its own name.
func TestHostOnLoopback(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{Loopback: true, PublicURL: "https://MQ.example:8443"})
	for _, host := range []string{
		"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "127.255.3.4:9", "[::1]", "[::1]:8080", "::1", "[::ffff:127.0.0.1]:8080",
		"mq.example", "mq.example:8443", "MQ.EXAMPLE:80",
	} {
		for _, target := range []string{"/healthz", "/openapi.json", basePath + "/queues"} {
			if a := ask(t, h.handler, "GET", target, "", "host: "+host); a.status != http.StatusOK {
				t.Errorf("host %q, %s: %d %s", host, target, a.status, a.body)
			}
		}
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:8080", "localhost.evil.example", "evil.example:localhost", "127.0.0.1.evil.example", "notlocalhost", "foo.localhost",
		"0.0.0.0:8080", "10.0.0.1", "192.168.1.2:8080", "[2001:db8::1]:8080", "mq.example.evil.example", "xmq.example", "2130706433", "127.1", "localhost:8080:8080",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"} {
			wantError(t, method+" host "+host, ask(t, h.handler, method, basePath+"/queues/orders/messages", "", "host: "+host), http.StatusForbidden, "NotAuthorized", "is not served here")
		}
		wantError(t, "health, host "+host, ask(t, h.handler, "GET", "/healthz", "", "host: "+host), http.StatusForbidden, "NotAuthorized", "")
	}
}

// A listener for others answers to any name: only its operator knows them all.
func TestHostElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, host := range []string{"", "mq.example", "10.0.0.1:8080"} {
		if a := ask(t, h.handler, "GET", "/healthz", "", "host: "+host); a.status != http.StatusOK {
			t.Errorf("host %q: %d", host, a.status)
		}
	}
}

// What a browser sends for a page of another site is refused on every method,
// GET too, since getting messages is a GET.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	for _, loopback := range []bool{true, false} {
		h := newHouse(t, Options{Loopback: loopback, PublicURL: "https://mq.example"})
		h.queue("orders")
		target := basePath + "/queues/orders/messages?timeoutInSeconds=0"
		for _, headers := range [][]string{
			{"sec-fetch-site: cross-site"}, {"sec-fetch-site: same-site"}, {"sec-fetch-site: new-word"}, {"sec-fetch-site: none", "sec-fetch-site: cross-site"},
			{"origin: https://evil.example"}, {"origin: null"}, {"origin: http://localhost:3000"}, {"origin: http://localhost"}, {"origin: http://127.0.0.1:8080"},
			{"origin: "}, {"origin: file://"}, {"origin: ftp://localhost:8080"}, {"origin: https://mq.example:444"}, {"origin: http://mq.example:8443"},
			{"origin: http://localhost:8080", "origin: https://evil.example"}, {"origin: http://localhost:8080.evil.example"},
			{"sec-fetch-site: same-origin", "origin: https://evil.example"}, {"sec-fetch-site: cross-site", "origin: http://localhost:8080"},
		} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"} {
				wantError(t, method, ask(t, h.handler, method, target, `{}`, headers...), http.StatusForbidden, "NotAuthorized", "pages of other sites")
			}
		}
		for _, headers := range [][]string{
			{}, {"sec-fetch-site: none"}, {"sec-fetch-site: same-origin"}, {"origin: http://localhost:8080"}, {"origin: http://LOCALHOST:8080"},
			{"origin: https://mq.example"}, {"origin: https://mq.example:443"}, {"sec-fetch-site: same-origin", "origin: http://localhost:8080"},
		} {
			if a := ask(t, h.handler, "GET", target, "", headers...); a.status != http.StatusOK {
				t.Errorf("%v: %d %s", headers, a.status, a.body)
			}
		}
	}
}
