package broker

import (
	"sync/atomic"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/visibility"
)

// lane is the messages that one consumer group of a queue has in one channel,
// or in the dead letter queue of that: the counters and bounds that its c row holds, and what is in memory
// of its order. It belongs to the core.
//
// A dead lane has no fresh messages: what is moved into it keeps its id and
// comes in as returned.
type lane struct {
	row store.Lane
	of  *consumers

	fresh    window // never delivered, never delayed
	returned window // with a v row
	refill   *refill

	// Returned messages that are not given out: held for the grace of the clock
	// since they expired while the server was down, or on their way to the dead
	// letter queue.
	parked map[queue.MessageID]store.Entry
	dying  map[queue.MessageID]store.Entry

	leases  map[queue.MessageID]*lease
	look    queue.MessageID         // no message that expires in id order and is not held is below it
	expiry  visibility.Timer[*lane] // when to look for expired ones
	slot    int                     // place in the queue's ready lanes, -1: not there
	gone    bool                    // holds nothing, or was purged: in no map any more
	dirty   bool                    // changed by this group
	charged int                     // entries counted against the bound of all windows
	used    uint64                  // the group that last touched the windows
	oldest  atomic.Uint64           // where OldestAge found the first message
	shown   queue.Stats             // what Stats tells; guarded by Broker.shown
}

// lease is one message in flight.
type lease struct {
	store.Lease
	lane    *lane
	timer   visibility.Timer[*lease]
	burying bool // it lapsed for the last time and is being moved
}

// refill is a read of the next entries of a window that is under way. What
// changes above the window meanwhile is noted here and merged when it comes.
type refill struct {
	of      *queueState
	window  *window
	from    queue.MessageID
	room    int             // most entries to read
	limit   queue.MessageID // above it changes were too many to note
	added   []store.Entry
	removed map[queue.MessageID]bool
}

func (l *lane) dead() bool { return l.row.Key.Dead }

// takeable is how many messages may be handed out, in memory or not.
func (l *lane) takeable() int64 {
	return l.row.Fresh + l.row.Returned - int64(len(l.parked)+len(l.dying))
}

// choked reports whether so many messages are on their way to the dead letter
// queue, because the limit was lowered, that the lane waits for them: memory
// must not grow with what had been delivered before.
func (l *lane) choked() bool { return len(l.dying) >= max(1, l.returned.cap/2) }

// aside finds a returned message that is not given out.
func (l *lane) aside(id queue.MessageID) (store.Entry, bool) {
	if e, ok := l.parked[id]; ok {
		return e, true
	}
	e, ok := l.dying[id]
	return e, ok
}

// loaded reports whether a message to take is in memory.
func (l *lane) loaded() bool {
	return (l.fresh.len() > 0 || l.returned.len() > 0) && !l.choked()
}

// settleBounds widens windows that hold all there is, whatever is on disk.
func (l *lane) settleBounds() {
	if l.row.Fresh == 0 && (l.refill == nil || l.refill.window != &l.fresh) {
		l.fresh.through = wholeLane
	}
	if l.row.Returned == 0 {
		l.row.Returning = wholeLane
		if l.refill == nil || l.refill.window != &l.returned {
			l.returned.through = wholeLane
		}
	}
}

// wants is the window that should be read on, nil if none: one is when it is
// nearly used up and the rest is on disk.
func (l *lane) wants() *window {
	switch {
	case l.refill != nil || l.gone:
		return nil
	case l.fresh.through != wholeLane && l.fresh.len() < l.fresh.cap/2 && l.row.Fresh > int64(l.fresh.len()):
		return &l.fresh
	case l.returned.through != wholeLane && l.returned.len() < l.returned.cap/2 && l.row.Returned > int64(l.returned.len()+len(l.parked)+len(l.dying)):
		return &l.returned
	}
	return nil
}

// event is something that happened to messages; metrics count them.
type event uint8

// The events in the words of the contract's metrics.
const (
	evPublished event = iota
	evDelivered
	evDeleted
	evExpired
	evDeadLettered
	evReturned
	evLapsed
	evPurged
	evUnrouted
	eventKinds
)

// EventNames are the events in the order of QueueSnapshot.Events.
var EventNames = [eventKinds]string{
	"published", "delivered", "deleted", "expired", "dead_lettered", "returned", "lapsed", "purged", "unrouted",
}
