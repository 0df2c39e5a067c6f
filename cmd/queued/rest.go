package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/queued-mq/queued/gateway"
	"github.com/queued-mq/queued/grpcapi"
	"github.com/queued-mq/queued/service"
)

// rest is the face that speaks OCI's HTTP API.
func (s *server) rest(l *listener) (*face, error) {
	loopback, err := checkAddr(s.cfg.RESTAddr)
	if err != nil {
		return nil, err
	}
	h, err := gateway.New(s.service, grpcapi.NewAdmin(s.service), grpcapi.NewData(s.service, grpcapi.Options{}), gateway.Options{
		RequestBytes:      s.cfg.Limits.RequestBytes,
		LargeRequestBytes: s.cfg.Limits.LargeRequestBytes,
		PendingBytes:      s.cfg.Limits.PendingBytesTotal,
		Loopback:          loopback,
		PublicURL:         s.cfg.PublicURL,
		WebSocket:         s.sessions.WebSocket,
		SocketOrigins:     s.cfg.Stomp.WebSocketOrigins,
		Observe:           s.metrics.request,
		Ready:             s.ready.Load,
		Logger:            s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("serve REST: %w", err)
	}
	f := s.httpFace(service.FaceREST, l, h, s.tls)
	serve := f.serve
	f.serve = func(l net.Listener) error { return serve(gateway.Listener(l)) }
	return f, nil
}

// httpFace serves a handler over HTTP/1.1 and HTTP/2, with TLS or without.
func (s *server) httpFace(name string, l *listener, h http.Handler, secure *tls.Config) *face {
	running := newRunning(h)
	srv := gateway.Server(running, gateway.ServerOptions{
		HeaderBytes:          int(s.cfg.Limits.HeaderBytes),
		StreamsPerConnection: int(s.cfg.Limits.StreamsPerConnection),
		Logger:               s.log,
	})
	f := &face{name: name, scheme: "http", listener: l, serve: srv.Serve, shutdown: srv.Shutdown}
	if secure != nil {
		f.scheme = "https"
		srv.TLSConfig = secure.Clone()
		f.serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	f.cut = func() {
		srv.Close()
		running.end() // Close does not wait for handlers
	}
	return f
}
