package gateway

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// ServerOptions are the bounds of the HTTP server. The zero value is OCI's
// profile.
type ServerOptions struct {
	HeaderBytes          int          // limits.header-bytes: all headers of a request; 0: 64 KiB
	StreamsPerConnection int          // limits.streams-per-connection, on HTTP/2; 0: 1000
	Logger               *slog.Logger // what net/http has to say of broken connections, as debug; nil: nothing
}

// Server is an HTTP server for h, for HTTP/1.1 and, without TLS, HTTP/2 with
// prior knowledge (h2c); with TLS both by ALPN. It bounds what a client can
// hold: 10 s to send the headers, 2 minutes idle between requests, so many
// octets of headers, so many streams and 1 MiB of unread bodies on one
// connection. There is no bound on a request whole, since a long poll takes up
// to 30 s; the gateway itself bounds the time for a body and for an answer.
//
// The caller gives it a listener wrapped by Listener and shuts it down.
func Server(h http.Handler, o ServerOptions) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           h,
		ConnContext:       withConn,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    cmp.Or(o.HeaderBytes, 64<<10),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          cmp.Or(o.StreamsPerConnection, 1000),
			MaxReceiveBufferPerConnection: 1 << 20,
			MaxReceiveBufferPerStream:     256 << 10,
			SendPingTimeout:               30 * time.Second, // finds clients that have vanished
			PingTimeout:                   15 * time.Second,
			WriteByteTimeout:              60 * time.Second,
		},
		// "OPTIONS *" is ours to answer too, in our shape.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
