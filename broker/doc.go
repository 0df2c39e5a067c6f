// Package broker is the core: it decides what becomes of every message, one
// group of requests at a time, and keeps the promises of docs/architecture.md.
//
//	          requests of clients, one short queue per queue ─┐
//	what time asks for (lapses, due delays, expiry) ──────────┤
//	                                                          ▼
//	   ┌──── decide each, in memory ──► effects ──► ChangeSet ────┐
//	   │  gets are lined up, and served last, in their order      │
//	   │                                                          ▼
//	   └──── answers ◄──── counters shown ◄──── store.Commit, one sync
//
// The one idea to hold: nothing is decided while a group is on its way to
// disk, so memory and disk agree whenever something is decided, and there is
// never anything to undo. A failed write ends the process.
//
// Where to look: intake.go (who is next, the group itself), group.go (every
// change of state), publish.go, receive.go with waiters.go, settle.go,
// admin.go (requests), timers.go (lapses, delays, expiry), bury.go (to the dead
// letter queue), refill.go with window.go and memory.go (what is in memory),
// remove.go (purged rows), disk.go (floors), clock.go (time).
package broker
