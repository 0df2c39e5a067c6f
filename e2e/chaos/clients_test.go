package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/history"
	"github.com/queued-mq/queued/e2e/rest"
)

const (
	queue     = "work"
	threshold = 4 // deadLetterQueueDeliveryCount
	longest   = 3 // seconds that a message is hidden or delayed at most
)

// world is what all clients share.
type world struct {
	t       *testing.T
	addr    atomic.Pointer[string] // of the server now, or of the one that was killed last
	rec     history.Recorder
	odd     sync.Map // answers that no client should ever get
	serving context.Context
}

// client is one goroutine with one connection at a time.
type client struct {
	*world
	name string
	rand *rand.Rand
	conn *rest.Conn
}

func (w *world) client(name string, seed uint64) *client {
	return &client{world: w, name: name, rand: rand.New(rand.NewPCG(seed, uint64(len(name))<<32|uint64(name[len(name)-1])))}
}

// errNotSent is a request of which no octet has left.
var errNotSent = errors.New("not sent")

// do sends a request. After errNotSent nothing was asked; after any other
// error it is in doubt what the server did.
func (c *client) do(method, path, body string, headers ...string) (*rest.Answer, error) {
	if c.conn == nil {
		conn, err := rest.Open(*c.addr.Load())
		if err != nil {
			time.Sleep(10 * time.Millisecond) // it is being started again
			return nil, errNotSent
		}
		c.conn = conn
	}
	a, err := c.conn.Do(method, path, body, headers...)
	if err != nil {
		c.drop()
		return nil, err
	}
	if a.Closes {
		c.drop()
	}
	return a, nil
}

func (c *client) drop() {
	if c.conn != nil {
		c.conn.Reset()
		c.conn = nil
	}
}

// unexpected keeps an answer that should not have come.
func (c *client) unexpected(what string, a *rest.Answer) {
	c.odd.Store(fmt.Sprintf("%s: %d %s", what, a.Status, rest.Clip(a.Body)), true)
}

// outcome reads the status of an answer to an update or delete.
func (c *client) outcome(what string, a *rest.Answer, err error) history.Outcome {
	switch {
	case err != nil:
		return history.Doubt
	case a.Status == http.StatusOK || a.Status == http.StatusNoContent:
		return history.Done
	case a.Status == http.StatusNotFound:
		return history.Stale
	case a.Status != http.StatusServiceUnavailable: // while it stops
		c.unexpected(what, a)
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
	entries []entry
	body    string
	token   string // "": none, and one attempt only
}

type entry struct {
	Content  string         `json:"content"`
	Delay    int            `json:"delayInSeconds,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// publish makes the nth request of a client.
func (c *client) publish(n int) *publish {
	p := &publish{entries: make([]entry, 1+c.rand.IntN(6))}
	for i := range p.entries {
		size := c.rand.IntN(300)
		if c.maybe(50) {
			size = 20_000
		}
		e := &p.entries[i]
		e.Content = fmt.Sprintf("%s-%d-%d %s", c.name, n, i, strings.Repeat("·", size))
		if c.maybe(10) {
			e.Delay = 1 + c.rand.IntN(longest)
		}
		if c.maybe(2) {
			e.Metadata = map[string]any{"channelId": fmt.Sprint("c", c.rand.IntN(6))}
		}
	}
	body, err := json.Marshal(map[string]any{"messages": p.entries})
	if err != nil {
		panic(err)
	}
	p.body = string(body)
	if c.maybe(2) {
		p.token = fmt.Sprintf("%s-%d", c.name, n)
	}
	return p
}

// send makes one attempt and records it.
func (c *client) send(p *publish) history.Outcome {
	var headers []string
	if p.token != "" {
		headers = append(headers, "opc-retry-token: "+p.token)
	}
	start := time.Now()
	a, err := c.do("POST", "/queues/"+queue+"/messages", p.body, headers...)
	if errors.Is(err, errNotSent) {
		return history.Refused
	}
	outcome := c.outcome("publish", a, err)
	var r struct {
		Messages []struct {
			ID          int64
			ExpireAfter time.Time
		}
	}
	if outcome == history.Done {
		if err := json.Unmarshal(a.Body, &r); err != nil || len(r.Messages) != len(p.entries) {
			c.unexpected("publish", a)
			return history.Doubt
		}
	}
	end := time.Now()
	for i, e := range p.entries {
		h := history.Publish{
			Content: e.Content, Token: p.token, Delay: time.Duration(e.Delay) * time.Second,
			Start: start, End: end, Outcome: outcome,
		}
		if outcome == history.Done {
			h.ID, h.Expire = r.Messages[i].ID, r.Messages[i].ExpireAfter
		}
		c.rec.Publish(h)
	}
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
		visibility := 1 + c.rand.IntN(longest)
		more := fmt.Sprintf("&limit=%d&timeoutInSeconds=%d", 1+c.rand.IntN(8), c.rand.IntN(2))
		if c.maybe(4) {
			more += "&channelFilter=c*"
		}
		for _, m := range c.receive(queue, visibility, more) {
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

// receive asks for messages; seconds is how long they are hidden, and more is
// the rest of the query.
func (c *client) receive(from string, seconds int, more string) []rest.Message {
	start := time.Now()
	a, err := c.do("GET", fmt.Sprintf("/queues/%s/messages?visibilityInSeconds=%d%s", from, seconds, more), "")
	if errors.Is(err, errNotSent) {
		return nil
	}
	if err != nil {
		c.rec.Lose(history.Lost{Start: start, End: time.Now()})
		return nil
	}
	if a.Status != http.StatusOK {
		c.outcome("receive", a, nil)
		return nil
	}
	var r struct{ Messages []rest.Message }
	if err := json.Unmarshal(a.Body, &r); err != nil {
		c.unexpected("receive", a)
		return nil
	}
	now := time.Now()
	for _, m := range r.Messages {
		d := history.Delivery{
			Start: start, End: now, Visibility: time.Duration(seconds) * time.Second,
			Dead: m.DeadLetter != nil, ID: m.ID, Content: m.Content, Receipt: m.Receipt, Count: m.DeliveryCount,
			CreatedAt: m.CreatedAt, VisibleAfter: m.VisibleAfter,
		}
		if m.DeadLetter != nil {
			d.DeadCount = m.DeadLetter.DeliveryCount
		}
		c.rec.Deliver(d)
	}
	return r.Messages
}

// walkAway asks for messages and closes the connection without waiting for
// them, or while they come.
func (c *client) walkAway() {
	conn, err := rest.Open(*c.addr.Load())
	if err != nil {
		return
	}
	start := time.Now()
	_ = conn.Send("GET", "/queues/"+queue+"/messages?visibilityInSeconds=1&timeoutInSeconds=1&limit=2", "")
	time.Sleep(time.Duration(c.rand.IntN(3000)) * time.Microsecond)
	conn.Reset()
	c.rec.Lose(history.Lost{Start: start, End: time.Now()})
}

func (c *client) update(receipt string, seconds int) {
	start := time.Now()
	a, err := c.do("PUT", "/queues/"+queue+"/messages/"+receipt, fmt.Sprintf(`{"visibilityInSeconds":%d}`, seconds))
	if errors.Is(err, errNotSent) {
		return
	}
	u := history.Update{
		Receipt: receipt, Visibility: time.Duration(seconds) * time.Second,
		Start: start, Outcome: c.outcome("update", a, err),
	}
	if u.Outcome == history.Done {
		var r struct{ VisibleAfter time.Time }
		if err := json.Unmarshal(a.Body, &r); err != nil {
			c.unexpected("update", a)
		}
		u.VisibleAfter = r.VisibleAfter
	}
	u.End = time.Now()
	c.rec.Update(u)
}

func (c *client) delete(receipt string) {
	start := time.Now()
	a, err := c.do("DELETE", "/queues/"+queue+"/messages/"+receipt, "")
	if errors.Is(err, errNotSent) {
		return
	}
	o := c.outcome("delete", a, err)
	c.rec.Delete(history.Delete{Receipt: receipt, Start: start, End: time.Now(), Outcome: o})
}
