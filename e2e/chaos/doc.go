// Package chaos kills the real server, again and again, while clients of all
// faces publish, receive, extend, give back, delete and abandon messages, and
// then asks package history whether every promise was kept.
//
//	make chaos ROUNDS=100
//
// A run prints its seed. The seed repeats what clients try and when the server
// is killed, though not how the machine schedules it.
package chaos
