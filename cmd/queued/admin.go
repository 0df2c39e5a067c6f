package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminConnections is how many connections the admin listener has at most.
const adminConnections = 256

// admin is the face for those who run the server.
func (s *server) admin(l *listener) (*face, error) {
	mux := http.NewServeMux()
	s.probes(mux)
	mux.HandleFunc("POST /backup", s.checkpoint)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError,
		Registry:            s.metrics.registry,
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	}))
	if s.cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return s.httpFace(faceAdmin, l, mux, nil), nil
}

// probes adds what load balancers and supervisors ask: /healthz, the process
// is alive, and /readyz, it takes requests. They answer as on the REST face.
func (s *server) probes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"status":"alive"}`)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.ready.Load() {
			answer(w, http.StatusOK, `{"status":"ready"}`)
		} else {
			answer(w, http.StatusServiceUnavailable, `{"code":"ServiceUnavailable","message":"the server is not ready"}`)
		}
	})
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
