package stomp

import (
	"slices"

	"github.com/queued-mq/queued/queue"
)

// lapse takes those out of the window whose visibility has ended: they are
// nobody's any more, and others may have them. Where an ACK is cumulative it is
// still about them, as long as they have not come again; mu is held.
func (u *subscription) lapse() {
	now := u.conn.server.service.Now()
	if now < u.lapses {
		return
	}
	u.lapses, u.lapsed = never, 0
	for _, d := range u.order {
		switch {
		case d.over:
		case d.visibleAfter > now:
			u.lapses = min(u.lapses, d.visibleAfter)
		case u.mode == cumulative:
			if !d.lapsed {
				d.lapsed = true
				u.owed--
			}
			u.lapsed++
		default:
			u.conn.close(d)
		}
	}
	for _, d := range u.order { // a client that settles nothing at all
		if u.lapsed <= recentMost {
			break
		}
		if d.lapsed && !d.over {
			u.conn.close(d)
			u.lapsed--
		}
	}
	u.order = slices.DeleteFunc(u.order, func(d *delivery) bool { return d.over })
}

// supersede takes earlier deliveries of messages that come again out of the
// books; mu is held.
func (u *subscription) supersede(messages []queue.Delivery) {
	u.lapse()
	if u.lapsed == 0 {
		return
	}
	again := make(map[queue.MessageID]bool, len(messages))
	for i := range messages {
		again[messages[i].ID] = true
	}
	for _, d := range u.order {
		if d.lapsed && !d.over && again[d.id] {
			u.conn.close(d)
		}
	}
}

// takeBack gives back messages of which no octet has been written.
func (c *conn) takeBack(u *subscription, messages []queue.Delivery) {
	c.mu.Lock()
	for i := range messages {
		if u.mode == auto {
			u.owed--
		} else if d := c.sent[messages[i].Receipt]; d != nil {
			c.close(d)
		}
	}
	c.mu.Unlock()
	c.server.service.Undeliver(messages)
}

// close ends the wait for a settlement; mu is held.
func (c *conn) close(d *delivery) {
	d.over = true
	delete(c.sent, d.receipt)
	if !d.lapsed {
		d.sub.owed--
	}
}
