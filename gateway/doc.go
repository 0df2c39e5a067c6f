// Package gateway is the REST face: the OCI Queue API as it stands, under
// /20210201, over the use cases of package service. It translates and never
// decides.
//
// The way of a request:
//
//	ServeHTTP     request id, panics              gateway.go
//	  guard       Host and cross-site checks      guard.go
//	  match       404 and 405 of our own          routes.go
//	  query       documented parameters alone     query.go
//	  body        bounded in size and time        body.go
//	  ServeMux    the generated handlers with our mux.go, marshal.go, unmarshal.go
//	              marshaler and error handler,
//	              or a hot handler                hot.go, hot_*.go
//	  send        status, headers, one write      exchange.go
//
// Everything is routed by the mux of grpc-gateway, in process. The six
// operations that consumers and producers live on (put, get, update and delete,
// single and batch) are hand-written handlers on that same mux: they read and
// write JSON without reflection and call the service without protobuf. A test
// holds both ways side by side and wants the same octets from them.
//
// The idea to hold: handlers never see the socket. They write into an
// exchange, and only when they are done is it sent, so that a panic or an
// error late in a handler still becomes a proper answer, and a delivery whose
// client has gone can be taken back because nothing has left yet.
package gateway
