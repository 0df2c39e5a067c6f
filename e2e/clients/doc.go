// Package clients drives the real server with clients that are not ours: those
// that OCI hands out for REST, and those of STOMP, each as it comes, with
// nothing but its address changed. A client is a program in a folder of its own;
// the frame here starts it beside a server of its own and reads what it checked:
//
//	ok<TAB>GetMessages<TAB>a long poll ends with the first message
//	none<TAB>ListChannels<TAB>the client has no such command
//
// A program that ends with an error, says something else or leaves a topic out
// fails the test. What all of one kind said is a table in docs/clients.md, which
// `make clients` writes; the lines that this page shows for a client are lines
// that its program runs.
//
// A new client is a folder, an entry in clients_test.go or stomp_test.go, and a
// section of the page.
package clients
