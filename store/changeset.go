package store

import (
	"encoding/json"
	"errors"

	"github.com/queued-mq/queued/queue"
)

// Kind is what an effect does to one message. docs/states.md draws the states
// and which effect leads from one to another.
type Kind uint8

const (
	Put     Kind = iota + 1 // nothing → fresh, or delayed if the message has a DueAt
	Take                    // fresh, returned → leased; leased → leased with another deadline
	Return                  // leased, fresh, returned, delayed → returned
	Bury                    // leased, returned → returned in the dead lane
	Drop                    // any state → nothing
	Forget                  // a timer row whose message is gone goes
	Release                 // a message of a lane that was given up goes: its m row
)

// Row is the state of a message, that is, which rows it has beside m.
type Row uint8

const (
	Fresh    Row = iota + 1 // none: it is above the cursor of its lane and not delayed
	Returned                // v
	Leased                  // l
	Delayed                 // t
)

// Effect is one step of one message. Only the fields its kind needs are set.
type Effect struct {
	Kind    Kind
	From    Row           // the state it is in before; for Forget: Delayed (t) or Fresh (x)
	Lane    LaneID        // where it is
	Entry   Entry         // the message as it stands afterwards
	At      queue.Instant // Take: VisibleAfter. Return and Drop of a delayed one, Forget: the instant in the timer's key
	Message *Message      // Put, Bury: the new m row
	To      LaneID        // Bury: the dead lane
	ToEntry Entry         // Bury: the message as it stands there
}

// ChangeSet is what one group of requests changes: effects in their order, then
// rows in whole, with counters as absolute values. It holds no command and
// nothing that has to be looked up, so applying it twice gives the same rows,
// and a copy of it applied elsewhere gives the same store.
type ChangeSet struct {
	State      State
	Effects    []Effect
	Bodies     []Body        // of the messages put that several groups have
	Holders    []Holders     // of such messages, as they stand after the effects
	Shared     []Shared      // as they stand after the effects
	Unshared   []QueueNumber // queues whose u rows go all, before those in Shared are written
	Lanes      []Lane        // rows of lanes as they stand after the effects
	GoneLanes  []Lane        // lanes that hold nothing any more; only ID and Key matter
	Removals   []LaneID      // lanes given up with all that is in them
	Removed    []LaneID      // of those: the rows all go now
	Queues     []Queue
	GoneQueues []QueueNumber
	Work       []queue.WorkRequest
	GoneWork   []queue.WorkRequest // only ID and AcceptedAt matter
	Tokens     []RetryToken
	GoneTokens []RetryToken // only Scope, Token and At matter
}

// Empty reports whether there is nothing to write.
func (cs *ChangeSet) Empty() bool {
	return len(cs.Effects)+len(cs.Lanes)+len(cs.GoneLanes)+len(cs.Removals)+len(cs.Removed)+
		len(cs.Bodies)+len(cs.Holders)+len(cs.Shared)+len(cs.Unshared)+
		len(cs.Queues)+len(cs.GoneQueues)+len(cs.Work)+len(cs.GoneWork)+len(cs.Tokens)+len(cs.GoneTokens) == 0
}

// Reset empties cs and keeps its memory.
func (cs *ChangeSet) Reset() {
	clear(cs.Effects) // lets go of the messages
	clear(cs.Bodies)
	*cs = ChangeSet{
		Effects: cs.Effects[:0], Bodies: cs.Bodies[:0], Holders: cs.Holders[:0], Shared: cs.Shared[:0], Lanes: cs.Lanes[:0], GoneLanes: cs.GoneLanes[:0],
	}
}

const changeSetVersion = 2

// Encode is cs in the versioned form that a log or another machine would be
// given. The error is for tags of a queue that are not JSON.
func (cs *ChangeSet) Encode() ([]byte, error) {
	c := coder{}
	cs.code(&c)
	if c.bad {
		return nil, errors.New("encode ChangeSet: a row has no JSON form")
	}
	return c.b, nil
}

// DecodeChangeSet reads what Encode made. What is cut short, has something
// behind its end or holds a value that its field cannot hold is refused.
func DecodeChangeSet(b []byte) (*ChangeSet, error) {
	var cs ChangeSet
	c := coder{b: b, reading: true}
	cs.code(&c)
	if err := c.done(); err != nil {
		return nil, err
	}
	return &cs, nil
}

func (cs *ChangeSet) code(c *coder) {
	c.version(changeSetVersion)
	cs.State.code(c)
	list(c, &cs.Effects, func(c *coder, e *Effect) { e.code(c) })
	list(c, &cs.Bodies, func(c *coder, b *Body) {
		number(c, &b.ID)
		b.codeHead(c)
		text(c, &b.Body)
	})
	list(c, &cs.Holders, func(c *coder, h *Holders) { number(c, &h.ID); number(c, &h.Lanes) })
	list(c, &cs.Shared, func(c *coder, s *Shared) { number(c, &s.Queue); text(c, &s.Channel); number(c, &s.Bytes) })
	list(c, &cs.Unshared, number[QueueNumber])
	list(c, &cs.Lanes, func(c *coder, l *Lane) { l.Key.code(c); l.code(c) })
	list(c, &cs.GoneLanes, func(c *coder, l *Lane) { l.Key.code(c); number(c, &l.ID) })
	list(c, &cs.Removals, number[LaneID])
	list(c, &cs.Removed, number[LaneID])
	list(c, &cs.Queues, codeJSON[Queue])
	list(c, &cs.GoneQueues, number[QueueNumber])
	list(c, &cs.Work, codeJSON[queue.WorkRequest])
	list(c, &cs.GoneWork, codeJSON[queue.WorkRequest])
	list(c, &cs.Tokens, codeToken)
	list(c, &cs.GoneTokens, codeToken)
}

func codeToken(c *coder, t *RetryToken) {
	text(c, &t.Scope)
	text(c, &t.Token)
	t.code(c)
}

func codeJSON[T any](c *coder, v *T) {
	var b []byte
	if !c.reading {
		var err error
		if b, err = json.Marshal(v); err != nil {
			c.fail()
			return
		}
	}
	if text(c, &b); c.reading && !c.bad && json.Unmarshal(b, v) != nil {
		c.fail()
	}
}

func (k *LaneKey) code(c *coder) {
	number(c, &k.Queue)
	number(c, &k.Group)
	c.bool(&k.Dead)
	text(c, &k.Channel)
}

func (e *Effect) code(c *coder) {
	number(c, &e.Kind)
	number(c, &e.From)
	number(c, &e.Lane)
	number(c, &e.Entry.ID)
	e.Entry.code(c)
	number(c, &e.At)
	has := e.Message != nil
	if c.bool(&has); has {
		if c.reading {
			e.Message = &Message{}
		}
		var size uint32 // in the entry already
		e.Message.codeHead(c, &size)
		if !c.bad && !e.Message.Shared {
			text(c, &e.Message.Body)
		}
	}
	number(c, &e.To)
	number(c, &e.ToEntry.ID)
	e.ToEntry.code(c)
}
