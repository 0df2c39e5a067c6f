package main

import (
	"net/http"

	"github.com/queued-mq/queued/service"
)

// rest is the face that speaks OCI's HTTP API.
func (s *server) rest(l *listener) *face {
	mux := http.NewServeMux()
	s.probes(mux)
	return s.httpFace(service.FaceREST, l, mux, s.tls)
}
