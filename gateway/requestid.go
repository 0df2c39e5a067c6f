package gateway

import (
	"math/rand/v2"
	"net/http"
	"strings"
)

// requestIDs makes the opc-request-id of answers: <client>/<server>/<random>,
// where the first part is the client's own id if it sent one.
type requestIDs struct{ server string }

func newRequestIDs() requestIDs {
	return requestIDs{server: string(appendHex(nil, rand.Uint64()))}
}

const (
	requestIDHeader = "Opc-Request-Id"
	mostRequestID   = 128 // characters kept of a client's id; the SDKs' have 32 to 98
)

// of is the id of the answer to a request with these headers. A client's id is
// cut at mostRequestID, and what is not printable ASCII becomes "_", so that it
// can stand in a header and in a log.
func (ids requestIDs) of(h http.Header) string {
	var client string
	if v := h[requestIDHeader]; len(v) > 0 {
		client = v[0]
	}
	b := make([]byte, 0, mostRequestID+2*17) // stays on the stack
	if client == "" {
		b = appendHex(b, rand.Uint64())
	} else {
		b = append(b, client[:min(len(client), mostRequestID)]...)
		for i, c := range b {
			if c <= ' ' || c > '~' || strings.IndexByte(`"\<>`, c) >= 0 {
				b[i] = '_'
			}
		}
	}
	b = append(b, '/')
	b = append(b, ids.server...)
	b = append(b, '/')
	return string(appendHex(b, rand.Uint64()))
}

func appendHex(b []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789ABCDEF"[n>>shift&15])
	}
	return b
}
