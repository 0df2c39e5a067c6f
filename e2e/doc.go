// Package e2e drives the real binary from outside. It is a module of its own,
// so that those who use the server never download what only its tests need.
//
// The folder scripts holds command lines and what they must do, each file a
// story (testscript). The other tests are in Go:
//
//	ocisdk    the official OCI Go SDK through everything
//	clients   OCI's clients for other languages and its command line, and clients of STOMP
//	wire      the octets of REST, and clients that vanish
//	faces     one table of scenarios over REST, gRPC, its streams and STOMP
//	abuse     clients that mean harm, beside clients that must not notice
//	backlog   a million messages waiting, kill -9, and a start that does not read them
//	bench     benchmarks of the whole server (make bench)
//	chaos     kill -9 under load (make chaos ROUNDS=100)
//	field     field cases that take minutes (make field), no tests
//	examples  the programs that the README shows
//	grpcurl   grpcurl and grpc-health-probe, which know what reflection tells them
//	stompdiff the table of STOMP exchanges over sockets, and to RabbitMQ (make stomp-differential)
//
// They stand on server, which starts, kills and restarts servers, on rest and
// stomp, clients that hide nothing, and on internal/history, which judges what
// clients saw, and internal/exchange, which reads the table of STOMP exchanges.
package e2e
