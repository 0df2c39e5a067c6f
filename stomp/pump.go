package stomp

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/queued-mq/queued/queue"
)

// poke wakes the pump.
func (u *subscription) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// pokeAll wakes all pumps; mu is held.
func (c *conn) pokeAll() {
	for _, u := range c.subs {
		u.poke()
	}
}

// pump takes messages while there is credit and room, until the subscription
// ends.
func (u *subscription) pump() {
	c := u.conn
	for {
		ctx, most := u.credit()
		if ctx == nil {
			return
		}
		messages, err := u.get.Next(ctx, most, takeBytes)
		paused := u.resume()
		switch {
		case err == nil:
			u.deliver(messages)
		case u.ctx.Err() != nil:
			return
		case paused && errors.Is(err, context.Canceled):
		default:
			c.interrupt(err)
			return
		}
	}
}

// credit waits until something may be taken, and says how much. The context is
// that of the take; nil: the subscription has ended.
func (u *subscription) credit() (ctx context.Context, most int) {
	c := u.conn
	for {
		c.mu.Lock()
		if u.ended || c.out.ended {
			c.mu.Unlock()
			return nil, 0
		}
		u.lapse()
		most = min(u.prefetch-u.owed, takeMost)
		if most > 0 && c.out.unsent < unsentBytes {
			ctx, u.pause = context.WithCancel(u.ctx)
			c.mu.Unlock()
			return ctx, most
		}
		look := time.Second // whether the queue is still there
		if most <= 0 && len(u.order) > 0 {
			look = max(min(look, u.lapses.Sub(c.server.service.Now())+time.Millisecond), time.Millisecond)
		}
		c.mu.Unlock()
		t := time.NewTimer(look)
		select {
		case <-u.wake:
		case <-t.C:
			if err := u.get.Alive(u.ctx); err != nil {
				c.interrupt(err)
				return nil, 0
			}
		case <-u.ctx.Done():
		}
		t.Stop()
	}
}

// resume ends a take, and reports whether it was paused.
func (u *subscription) resume() (paused bool) {
	u.conn.mu.Lock()
	defer u.conn.mu.Unlock()
	if u.pause == nil {
		return true
	}
	u.pause()
	u.pause = nil
	return false
}

// deliver puts messages into the output.
func (u *subscription) deliver(messages []queue.Delivery) {
	c := u.conn
	k := newChunk()
	k.sub = u
	for i := range messages {
		k.data = u.appendMessage(k.data, &messages[i])
		k.ends = append(k.ends, len(k.data))
	}
	k.messages = append(k.messages, messages...)

	var sent []delivery
	if u.mode != auto {
		sent = make([]delivery, len(messages))
		for i := range messages {
			m := &messages[i]
			sent[i] = delivery{sub: u, receipt: m.Receipt, id: m.ID, count: m.DeliveryCount, visibleAfter: m.VisibleAfter}
		}
	}
	c.mu.Lock()
	if u.ended || c.out.ended {
		c.mu.Unlock()
		c.server.service.Undeliver(messages)
		k.recycle()
		return
	}
	if u.mode == cumulative {
		u.supersede(messages)
	}
	u.owed += len(messages)
	if len(u.order) > 2*(u.owed+u.lapsed)+takeMost { // settled ones behind one that is not
		u.order = slices.DeleteFunc(u.order, func(d *delivery) bool { return d.over })
	}
	for i := range sent {
		c.sent[sent[i].receipt] = &sent[i]
		u.lapses = min(u.lapses, sent[i].visibleAfter)
		u.order = append(u.order, &sent[i])
	}
	c.out.add(k)
	if c.out.unsent >= unsentBytes { // the peer does not read: nobody takes more for it
		for _, other := range c.subs {
			if other.pause != nil {
				other.pause()
				other.pause = nil
			}
		}
	}
	c.mu.Unlock()
}

// consume notes the messages of mode auto of which all octets are among the
// first n: they are to be deleted.
func (u *subscription) consume(k *chunk, n int) {
	c := u.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, end := range k.ends {
		if end > n {
			break
		}
		u.written = append(u.written, k.messages[i].Receipt)
	}
	if len(u.written) == 0 || u.deleting {
		return
	}
	u.deleting = true
	c.pumps.Go(func() {
		defer c.server.survive(c)
		u.deleteWritten()
	})
}

// deleteWritten deletes what has been written as long as there is something. It
// may wait for a rate of the queue, which is why the writer does not do it. The
// end of the session does not keep it from coming to its own.
func (u *subscription) deleteWritten() {
	c := u.conn
	for {
		c.mu.Lock()
		receipts := u.written
		u.written = nil
		if u.deleting = len(receipts) > 0; !u.deleting {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for some := range slices.Chunk(receipts, settleMost) {
			c.server.service.StartDeleteMessages(c.rest, string(u.get.QueueID()), some, func([]error, error) {
				// A failure is counted by the service; the message comes again.
				c.mu.Lock()
				defer c.mu.Unlock()
				u.owed -= len(some)
				u.poke()
			})
		}
	}
}
