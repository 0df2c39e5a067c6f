package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// faceAdmin is the listener for those who run the server; the other names are
// those of service.Caller.
const faceAdmin = "admin"

// face is one listener and what serves it.
type face struct {
	name     string
	scheme   string // before its address in the start line; "" is none
	listener *listener
	serve    func(net.Listener) error       // until shutdown or cut
	shutdown func(context.Context) error    // accepts nothing more and waits for what is under way
	cut      func(patience context.Context) // ends at once what is under way, and waits for it

	wg sync.WaitGroup
}

// start serves; a face that ends by itself tells failed.
func (f *face) start(failed chan<- error) {
	f.wg.Go(func() {
		err := f.serve(f.listener)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			select {
			case failed <- fmt.Errorf("serve %s: %w", f.name, err):
			default:
			}
		}
	})
}

// stop ends the face; what is not done when ctx ends is cut, and then it
// reports false.
func (f *face) stop(ctx context.Context) bool {
	err := f.shutdown(ctx)
	if err != nil {
		patient, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		f.cut(patient)
	}
	f.listener.Close() // it may never have been served
	f.wg.Wait()
	return err == nil
}

// Bounds of time on connections that do nothing.
const (
	headerTimeout = 10 * time.Second // for the headers of a request, and for a handshake
	readTimeout   = 2 * time.Minute  // for a whole request; a long poll takes 30 s of it
	idleTimeout   = 2 * time.Minute  // between requests
	pingAfter     = 30 * time.Second // of silence on HTTP/2
	pingTimeout   = 15 * time.Second
)

// httpFace serves a handler over HTTP/1.1 and HTTP/2, with TLS or without.
func (s *server) httpFace(name string, l *listener, h http.Handler, secure *tls.Config) *face {
	limits := &s.cfg.Limits
	running := &running{next: h}
	srv := &http.Server{
		Handler:           running,
		TLSConfig:         secure,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    int(limits.HeaderBytes),
		ErrorLog:          slog.NewLogLogger(httpLog{s.log.Handler()}, slog.LevelDebug),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: int(limits.StreamsPerConnection),
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
			WriteByteTimeout:     pingAfter,
		},
	}
	srv.Protocols.SetHTTP1(true)
	f := &face{name: name, scheme: "http", listener: l, serve: srv.Serve, shutdown: srv.Shutdown}
	if secure != nil {
		f.scheme = "https"
		f.serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
		srv.Protocols.SetHTTP2(true)
	} else {
		srv.Protocols.SetUnencryptedHTTP2(true)
	}
	f.cut = func(patience context.Context) {
		srv.Close()
		running.wait(patience)
	}
	return f
}

// running counts the requests under way, so that nothing below is closed
// before they have ended: http.Server.Close does not wait for handlers.
type running struct {
	next http.Handler

	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count falls to 0; nil: nobody waits
}

func (r *running) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.count++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.count--; r.count == 0 && r.idle != nil {
			close(r.idle)
			r.idle = nil
		}
	}()
	r.next.ServeHTTP(w, req)
}

// wait returns when no request is under way, or when ctx ends.
func (r *running) wait(ctx context.Context) {
	r.mu.Lock()
	if r.count == 0 {
		r.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	r.idle = idle
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// httpLog takes what net/http has to say. Nearly all of it is about what
// clients do wrong; only a panic is ours.
type httpLog struct{ slog.Handler }

func (h httpLog) Handle(ctx context.Context, r slog.Record) error {
	first, rest, _ := strings.Cut(strings.TrimSpace(r.Message), "\n")
	r.Message = "http"
	if strings.Contains(first, "panic serving") {
		r.Level = slog.LevelError
		r.AddAttrs(slog.String("stack", rest))
	}
	r.AddAttrs(slog.String("text", first))
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// Enabled is true for all levels: Handle finds out.
func (httpLog) Enabled(context.Context, slog.Level) bool { return true }

// loadTLS reads certificate and key; without file names there is no TLS.
func loadTLS(cert, key string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls-cert %s, tls-key %s: %w", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
