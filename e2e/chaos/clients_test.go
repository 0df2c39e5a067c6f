package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/faces"
	"github.com/queued-mq/queued/e2e/server"
	"github.com/queued-mq/queued/internal/history"
)

const (
	queue     = "work"
	threshold = 4 // deadLetterQueueDeliveryCount
	longest   = 3 // seconds that a message is hidden or delayed at most
)

// world is what all clients share.
type world struct {
	t       *testing.T
	addr    atomic.Pointer[server.Server] // addresses of the server now, or of the one that was killed last
	rec     history.Recorder
	odd     sync.Map // answers that no client should ever get
	serving context.Context

	mu   sync.Mutex
	done map[string]int // what worked, by face and operation
}

// client is one goroutine that speaks over one face.
type client struct {
	*world
	name string
	rand *rand.Rand
	face faces.Face
	with faces.Client
	at   *server.Server // with speaks to it
}

func (w *world) client(face faces.Face, name string, seed uint64) *client {
	return &client{world: w, face: face, name: name, rand: rand.New(rand.NewPCG(seed, uint64(len(name))<<32|uint64(name[len(name)-1])))}
}

// to is the client of the face, for the server as it is now.
func (c *client) to() faces.Client {
	if now := c.addr.Load(); c.at != now {
		c.drop()
		c.with, c.at = c.face.Dial(now), now
	}
	return c.with
}

func (c *client) drop() {
	if c.with != nil {
		c.with.Drop()
		c.with, c.at = nil, nil
	}
}

// notSent is true for a request of which no octet has left: the server is being
// started again.
func notSent(err error) bool {
	if !errors.Is(err, faces.ErrNotSent) {
		return false
	}
	time.Sleep(10 * time.Millisecond)
	return true
}

// outcome reads what became of a request.
func (c *client) outcome(what string, err error) history.Outcome {
	pushes := c.face.Name == faces.Streams.Name || c.face.Name == faces.STOMP.Name
	switch code := faces.Code(err); {
	case err == nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done[c.face.Name+" "+what]++
		return history.Done
	case code == "" || code == "ServiceUnavailable" && pushes: // it ends a session, whatever was under way
		return history.Doubt
	case code == "NotAuthorizedOrNotFound":
		return history.Stale
	case code != "ServiceUnavailable": // while it stops
		c.odd.Store(fmt.Sprintf("%s: %s: %v", c.face.Name, what, err), true)
	}
	return history.Refused
}

// maybe is true once in n times.
func (c *client) maybe(n int) bool { return c.rand.IntN(n) == 0 }

// produce publishes until the time is over, and then finishes what it has
// begun under a retry token.
func (c *client) produce() {
	defer c.drop()
	var earlier []*publish // answered, under a token
	for n := 0; c.serving.Err() == nil; n++ {
		p := c.publish(n)
		o := c.send(p)
		for tries := 1; p.token != "" && o != history.Done; tries++ {
			if tries == 10_000 {
				c.odd.Store("a publish under a token is never answered", true)
				return
			}
			o = c.send(p)
		}
		if p.token != "" {
			earlier = append(earlier, p)
		}
		// Once more, now or when the server is another process, as if the
		// answer had not come.
		if len(earlier) > 0 && c.maybe(5) {
			c.send(earlier[c.rand.IntN(len(earlier))])
		}
		time.Sleep(time.Duration(c.rand.IntN(30)) * time.Millisecond)
	}
}

// publish is one request of one or more attempts.
type publish struct {
	messages []faces.Message
	token    string // "": none, and one attempt only
}

// publish makes the nth request of a client.
func (c *client) publish(n int) *publish {
	p := &publish{messages: make([]faces.Message, 1+c.rand.IntN(6))}
	if c.face.Lacks[faces.Batch] != "" {
		p.messages = p.messages[:1]
	}
	for i := range p.messages {
		size := c.rand.IntN(300)
		if c.maybe(50) {
			size = 20_000
		}
		m := &p.messages[i]
		m.Body = fmt.Appendf(nil, "%s-%d-%d %s", c.name, n, i, strings.Repeat("·", size))
		if c.maybe(10) {
			m.Delay = 1 + c.rand.IntN(longest)
		}
		if c.maybe(2) {
			m.Channel = fmt.Sprint("c", c.rand.IntN(6))
		}
	}
	if c.maybe(2) && c.face.Lacks[faces.Token] == "" {
		p.token = fmt.Sprintf("%s-%d", c.name, n)
	}
	return p
}

// send makes one attempt and records it.
func (c *client) send(p *publish) history.Outcome {
	start := time.Now()
	ids, err := c.to().Publish(queue, p.token, p.messages...)
	if notSent(err) {
		return history.Refused
	}
	outcome := c.outcome("publish", err)
	if outcome == history.Done && len(ids) != len(p.messages) && c.face.Lacks[faces.IDs] == "" {
		c.odd.Store(fmt.Sprintf("%s: ids %v for %d messages", c.face.Name, ids, len(p.messages)), true)
		return history.Doubt
	}
	end := time.Now()
	var events history.History
	for i, m := range p.messages {
		h := history.Publish{
			Content: string(m.Body), Channel: m.Channel, Token: p.token, Delay: time.Duration(m.Delay) * time.Second,
			Start: start, End: end, Outcome: outcome,
		}
		if outcome == history.Done && ids != nil {
			h.ID = ids[i]
		}
		events.Publishes = append(events.Publishes, h)
	}
	c.rec.Add(events)
	return outcome
}

// receipt is a delivery that is kept for later.
type receipt struct {
	text  string
	tryAt time.Time
}

// consume receives until the time is over.
func (c *client) consume() {
	defer c.drop()
	var late []receipt
	for c.serving.Err() == nil {
		w := faces.Want{Limit: 1 + c.rand.IntN(8), For: time.Duration(c.rand.IntN(2)) * time.Second, Visibility: 1 + c.rand.IntN(longest)}
		if c.maybe(4) {
			w.Channel = "c*"
		}
		for _, m := range c.receive(queue, w) {
			switch n := c.rand.IntN(20); {
			case n < 8:
				c.delete(m.Receipt)
			case n < 11:
				c.update(m.Receipt, 1+c.rand.IntN(longest))
				if c.maybe(2) {
					c.delete(m.Receipt)
				}
			case n < 13:
				c.update(m.Receipt, 0)
				if c.maybe(3) {
					c.update(m.Receipt, 1) // too late
				}
			case n < 15: // when it is over, or just before
				at := m.VisibleAfter.Add(time.Duration(c.rand.IntN(600)-200) * time.Millisecond)
				late = append(late, receipt{m.Receipt, at})
			default: // abandon it
			}
		}
		for len(late) > 0 && time.Now().After(late[0].tryAt) {
			if c.maybe(2) {
				c.update(late[0].text, 1)
			} else {
				c.delete(late[0].text)
			}
			late = late[1:]
		}
		if c.maybe(20) {
			c.walkAway()
		}
	}
}

// receive asks for messages. Some may have come before an error.
func (c *client) receive(from string, w faces.Want) []faces.Delivery {
	start := time.Now()
	messages, err := c.to().Receive(from, w)
	if notSent(err) {
		return nil
	}
	now := time.Now()
	var events history.History
	switch o := c.outcome("receive", err); {
	case o == history.Doubt:
		events.Lost = []history.Lost{{Start: start, End: now}}
	case o == history.Done && len(messages) < w.Limit:
		events.Lost = []history.Lost{{Start: start, End: now, Why: history.Short}}
	}
	for _, m := range messages {
		d := history.Delivery{
			Start: start, End: now, Visibility: time.Duration(w.Visibility) * time.Second,
			Dead: m.Dead != nil, ID: m.ID, Content: string(m.Body), Receipt: m.Receipt, Count: m.Count,
			Channel: m.Channel, CreatedAt: m.CreatedAt, VisibleAfter: m.VisibleAfter, Expire: m.ExpireAfter,
		}
		if m.Dead != nil {
			d.DeadCount, d.DeadAt = m.Dead.Count, m.Dead.At
		}
		events.Deliveries = append(events.Deliveries, d)
	}
	c.rec.Add(events)
	return messages
}

// walkAway asks for messages and goes away without waiting for them, or while
// they come.
func (c *client) walkAway() {
	start := time.Now()
	w, err := c.to().Wait(queue, faces.Want{Limit: 2, For: time.Second, Visibility: 1})
	if err != nil {
		return // nothing was asked for
	}
	time.Sleep(time.Duration(c.rand.IntN(3000)) * time.Microsecond)
	w.Leave()
	_, _ = w.Result() // nobody looks at it
	c.rec.Add(history.History{Lost: []history.Lost{{Start: start, End: time.Now()}}})
}

// update extends a lease, or ends it. What a face cannot say is left.
func (c *client) update(receipt string, seconds int) {
	if seconds > 0 && c.face.Lacks[faces.Extend] != "" {
		return
	}
	start := time.Now()
	with, change := c.to(), c.to().Extend
	if seconds == 0 {
		change = with.Return
	}
	err := change(queue, receipt, seconds)
	if notSent(err) {
		return
	}
	u := history.Update{
		Receipt: receipt, Visibility: time.Duration(seconds) * time.Second,
		Start: start, End: time.Now(), Outcome: c.outcome("update", err),
	}
	if u.Outcome == history.Done {
		if u.VisibleAfter = with.Until(); u.VisibleAfter.IsZero() { // it may have been too late
			u.Outcome = history.Doubt
		}
	}
	c.rec.Add(history.History{Updates: []history.Update{u}})
}

func (c *client) delete(receipt string) {
	start := time.Now()
	err := c.to().Delete(queue, receipt)
	if notSent(err) {
		return
	}
	o := c.outcome("delete", err)
	c.rec.Add(history.History{Deletes: []history.Delete{{Receipt: receipt, Start: start, End: time.Now(), Outcome: o}}})
}
