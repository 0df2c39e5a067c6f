package main

import (
	"crypto/tls"
	"net"

	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp"
)

// stomp is the face that speaks STOMP.
func (s *server) stomp(l *listener) (*face, error) {
	srv := stomp.New(s.service, stomp.Options{
		MessageBytes:   s.cfg.Limits.LargeMessageBytes,
		BytesPerSecond: s.cfg.Limits.StompBytesPerSecond,
		Strict:         s.cfg.Stomp.Strict,
		AutoCreate:     s.cfg.Stomp.AutoCreate,
		Version:        programVersion(),
		Observe:        s.metrics.request,
		Logger:         s.log,
	})
	f := &face{name: service.FaceSTOMP, listener: l, serve: srv.Serve, shutdown: srv.Shutdown, cut: srv.Close}
	if s.tls != nil {
		f.serve = func(l net.Listener) error { return srv.Serve(tls.NewListener(l, s.tls)) }
	}
	return f, nil
}
