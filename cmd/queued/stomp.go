package main

import (
	"crypto/tls"
	"net"

	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp"
)

// newSessions is the server of STOMP sessions, which come from a listener of
// their own and, over WebSocket, from that of REST.
func (s *server) newSessions() *stomp.Server {
	return stomp.New(s.service, stomp.Options{
		MessageBytes:   s.cfg.Limits.LargeMessageBytes,
		BytesPerSecond: s.cfg.Limits.StompBytesPerSecond,
		Strict:         s.cfg.Stomp.Strict,
		AutoCreate:     s.cfg.Stomp.AutoCreate,

		TransactionBytes: s.cfg.Stomp.TransactionBytes,

		Version: programVersion(),
		Observe: s.metrics.request,
		Logger:  s.log,
	})
}

// stomp is the face that speaks STOMP. Its end is that of all sessions.
func (s *server) stomp(l *listener) (*face, error) {
	srv := s.sessions
	f := &face{name: service.FaceSTOMP, listener: l, serve: srv.Serve, shutdown: srv.Shutdown, cut: srv.Close}
	if s.tls != nil {
		f.serve = func(l net.Listener) error { return srv.Serve(tls.NewListener(l, s.tls)) }
	}
	return f, nil
}
