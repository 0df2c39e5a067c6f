package store

import (
	"encoding/json"

	"github.com/queued-mq/queued/queue"
)

// Entry is what the engine must know of a message to hand it out or to end it,
// without its body. It stands in windows and in l and v rows.
type Entry struct {
	ID          queue.MessageID
	ExpireAfter queue.Instant
	Lease       uint64 // number of the last lease; 0: none, or taken back
	Size        uint32 // octets that count against limits
	Deliveries  uint32 // deliveries so far
	Visibility  uint16 // the message's own default visibility in seconds; 0: the queue's
	Indexed     bool   // it has an x row
	Shared      bool   // its body is in a b row, for several groups
}

func (e *Entry) code(c *coder) {
	number(c, &e.ExpireAfter)
	number(c, &e.Lease)
	number(c, &e.Size)
	number(c, &e.Deliveries)
	number(c, &e.Visibility)
	var flags byte
	if e.Indexed {
		flags |= 1
	}
	if e.Shared {
		flags |= 2
	}
	c.byte(&flags)
	if c.reading {
		if e.Indexed, e.Shared = flags&1 != 0, flags&2 != 0; flags > 3 {
			c.fail()
		}
	}
}

// Lease is an l row: a message in flight.
type Lease struct {
	Entry
	VisibleAfter queue.Instant // when the visibility timeout ends
}

const rowVersion = 1

func (l *Lease) code(c *coder) {
	c.version(rowVersion)
	l.Entry.code(c)
	number(c, &l.VisibleAfter)
}

// Message is an m row.
type Message struct {
	queue.Message
	CreatedAt   queue.Instant
	ExpireAfter queue.Instant
	DueAt       queue.Instant // it was published delayed until then; 0: it was not
	Visibility  uint16        // its own default visibility in seconds; 0: the queue's
	Indexed     bool          // it has an x row
	Shared      bool          // what its sender wrote is in a b row; the m row has the rest
	Dead        *Dead         // set in a dead letter queue
}

// Dead is why and when a message came into the dead letter queue. The channel
// is the lane's.
type Dead struct {
	Reason     string
	Deliveries uint32
	At         queue.Instant
}

// Flags of an m row. The bits left are for what comes later: a sealed body, an
// order key, a batch that is held back.
const (
	flagDue = 1 << iota
	flagVisibility
	flagIndexed
	flagDead
	flagContentType
	flagProperties
	flagShared
)

const knownFlags = flagDue | flagVisibility | flagIndexed | flagDead | flagContentType | flagProperties | flagShared

// codeHead codes all of the row but the body, which is the rest. Size comes
// first so that a scan need not read further than the head.
func (m *Message) codeHead(c *coder, size *uint32) {
	c.version(rowVersion)
	var flags uint64
	set := func(on bool, f uint64) {
		if on {
			flags |= f
		}
	}
	if !c.reading {
		set(m.DueAt != 0, flagDue)
		set(m.Visibility != 0, flagVisibility)
		set(m.Indexed, flagIndexed)
		set(m.Dead != nil, flagDead)
		set(m.Shared, flagShared)
		set(m.ContentType != "" && !m.Shared, flagContentType)
		set(len(m.Properties) > 0 && !m.Shared, flagProperties)
	}
	number(c, &flags)
	if flags&^knownFlags != 0 {
		c.fail()
		return
	}
	number(c, size)
	number(c, &m.CreatedAt)
	number(c, &m.ExpireAfter)
	if flags&flagDue != 0 {
		number(c, &m.DueAt)
	}
	if flags&flagVisibility != 0 {
		number(c, &m.Visibility)
	}
	m.Indexed = flags&flagIndexed != 0
	m.Shared = flags&flagShared != 0
	if flags&flagDead != 0 {
		if c.reading {
			m.Dead = &Dead{}
		}
		text(c, &m.Dead.Reason)
		number(c, &m.Dead.Deliveries)
		number(c, &m.Dead.At)
	}
	if flags&flagContentType != 0 {
		text(c, &m.ContentType)
	}
	if flags&flagProperties != 0 {
		list(c, &m.Properties, codeProperty)
	}
}

func codeProperty(c *coder, p *queue.Property) {
	text(c, &p.Name)
	text(c, &p.Value)
}

// decodeMessage reads an m row whole; the message owns its octets.
func decodeMessage(b []byte) (m Message, size uint32, err error) {
	c := coder{b: b, reading: true}
	m.codeHead(&c, &size)
	if c.bad {
		return Message{}, 0, errCorrupt
	}
	m.Body = append([]byte(nil), c.b...)
	return m, size, nil
}

// entry is the Entry of a message that was never delivered.
func (m *Message) entry(id queue.MessageID, size uint32) Entry {
	return Entry{ID: id, ExpireAfter: m.ExpireAfter, Size: size, Visibility: m.Visibility, Indexed: m.Indexed, Shared: m.Shared}
}

// Body is a b row: what the sender of a message wrote that several groups
// have, and where it was sent to.
type Body struct {
	ID      queue.MessageID
	Queue   QueueNumber
	Channel string
	queue.Message
}

// codeHead codes all of the row but the body, which is the rest.
func (b *Body) codeHead(c *coder) {
	c.version(rowVersion)
	number(c, &b.Queue)
	text(c, &b.Channel)
	text(c, &b.ContentType)
	list(c, &b.Properties, codeProperty)
}

// decodeBody reads a b row whole; the message owns its octets.
func decodeBody(id queue.MessageID, row []byte) (*Body, error) {
	b := &Body{ID: id}
	c := coder{b: row, reading: true}
	if b.codeHead(&c); c.bad {
		return nil, errCorrupt
	}
	b.Body = append([]byte(nil), c.b...)
	return b, nil
}

// Holders is an h row: how many lanes have a message whose body is in a b row.
type Holders struct {
	ID    queue.MessageID
	Lanes uint32 // 0: none any more, and both rows go
}

// Shared is a u row: octets of the bodies in b rows that were sent to one
// channel of a queue.
type Shared struct {
	Queue   QueueNumber
	Channel string
	Bytes   int64 // 0: the row goes
}

// Lane is a c row: one lane as it stands after a commit.
type Lane struct {
	ID  LaneID
	Key LaneKey // in the key of the row

	Cursor    queue.MessageID // fresh ones are above it
	Oldest    queue.MessageID // no message that expires in id order is below it
	Returning queue.MessageID // no v row of the lane is below it
	LastAfter queue.Instant   // the largest expiry in id order so far

	Fresh    int64 // visible, never delivered, never delayed
	Returned int64 // visible, with a v row
	InFlight int64
	Delayed  int64
	Indexed  int64 // of all these: how many have an x row
	Bytes    int64
	Shared   int64 // of these octets: those that are in b rows
}

// Empty reports whether the lane holds no message.
func (l *Lane) Empty() bool { return l.messages() == 0 }

func (l *Lane) messages() int64 { return l.Fresh + l.Returned + l.InFlight + l.Delayed }

// Stats is what the lane counts.
func (l *Lane) Stats() queue.Stats {
	return queue.Stats{Visible: l.Fresh + l.Returned, InFlight: l.InFlight, Delayed: l.Delayed, Bytes: l.Bytes}
}

func (l *Lane) code(c *coder) {
	version := byte(rowVersion)
	if l.Shared > 0 {
		version = sharingLane
	}
	c.byte(&version)
	if version != rowVersion && version != sharingLane {
		c.fail()
	}
	number(c, &l.ID)
	number(c, &l.Cursor)
	number(c, &l.Oldest)
	number(c, &l.Returning)
	number(c, &l.LastAfter)
	number(c, &l.Fresh)
	number(c, &l.Returned)
	number(c, &l.InFlight)
	number(c, &l.Delayed)
	number(c, &l.Indexed)
	number(c, &l.Bytes)
	if version == sharingLane {
		number(c, &l.Shared)
	}
}

// sharingLane is the version of the row of a lane that shares bodies with
// others; a row of rowVersion does not.
const sharingLane = 2

// State is what the store knows of itself; it is written with every commit.
type State struct {
	Position   uint64          // ChangeSets applied so far
	Now        queue.Instant   // of the last ChangeSet; never falls
	Message    queue.MessageID // highest message id given out
	Lease      uint64          // highest lease number given out
	Lane       LaneID          // highest lane number given out
	Queue      QueueNumber     // highest queue number given out
	DueFrom    queue.Instant   // no t row is before it
	ExpiryFrom queue.Instant   // no x row is before it
}

func (s *State) code(c *coder) {
	c.version(rowVersion)
	number(c, &s.Position)
	number(c, &s.Now)
	number(c, &s.Message)
	number(c, &s.Lease)
	number(c, &s.Lane)
	number(c, &s.Queue)
	number(c, &s.DueFrom)
	number(c, &s.ExpiryFrom)
}

// Queue is a q row: a queue and its number. Rows of queues and of work
// requests are few and change in shape, so they are JSON behind the version.
type Queue struct {
	Number      QueueNumber
	DeadThrough LaneID // dead lanes up to this number were purged; their rows are yet to go
	queue.Queue
	Groups    []Group `json:",omitempty"` // none: the queue has no consumer groups
	LastGroup uint32  `json:",omitempty"` // highest number of a group given out

	// Bodies up to this id that several groups had are counted no more: all who
	// had them were purged, and their rows are yet to go.
	SharedThrough queue.MessageID `json:",omitempty"`
}

// Group is a consumer group in the row of its queue, deleted ones included
// while they are kept.
type Group struct {
	DeadThrough LaneID `json:",omitempty"` // as that of the queue, which is the primary group's
	queue.ConsumerGroup
}

func appendJSON(b []byte, v any) ([]byte, error) {
	j, err := json.Marshal(v)
	return append(append(b, rowVersion), j...), err
}

func parseJSON(b []byte, v any) error {
	if len(b) == 0 || b[0] != rowVersion {
		return errCorrupt
	}
	return json.Unmarshal(b[1:], v)
}

// RetryToken is an r row: what was answered under a token.
type RetryToken struct {
	Scope string        // without NUL; whose token it is
	Token string        // without NUL
	At    queue.Instant // when it was used
	Value []byte
}

// hour is the bucket the token is swept with.
func (t *RetryToken) hour() uint64 { return hourOf(t.At) }

func hourOf(at queue.Instant) uint64 { return uint64(at / 3_600_000) }

func (t *RetryToken) code(c *coder) {
	c.version(rowVersion)
	number(c, &t.At)
	text(c, &t.Value)
}
