// Package stomp is the STOMP face: sessions of STOMP 1.0, 1.1 and 1.2 over
// TCP and over WebSocket. It turns frames into requests of package service and its answers into
// frames; package stomp/frame knows how frames are spelled.
//
// The idea to hold: one goroutine reads and one writes, and neither waits for
// the store.
//
//	socket ─► reader: frame ─► service.Start… ─────────► the core
//	             │ a place in the line of answers           │ durable
//	             ▼                                          ▼
//	          answers, in the order of the frames ◄───── done or failed
//	             │ RECEIPT, or ERROR and the end
//	             ▼
//	          output ─► writer ─► socket      heart-beats when it is quiet
//	             ▲
//	             └─ MESSAGE ◄─ one goroutine for each subscription, which takes
//	                           messages while there is credit and room
//
// A frame takes a place in the line of answers when it is read. Whatever
// completes first, answers leave in that order, and the first failure ends the
// session: what stands behind it is not answered any more. The reader stops
// while too much is unanswered, and subscriptions take nothing while too much
// is unsent; so a peer that does not read, or does not wait, costs a bounded
// amount of memory and slows down nobody but itself.
package stomp
