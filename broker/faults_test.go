package broker

import (
	"testing"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// Each test here is a fault that was found once, in its smallest form.

// A message that is put into the cache of bodies twice counted twice and was
// taken off once, until the cache believed itself full while it was empty.
func TestBodiesCountedOnce(t *testing.T) {
	c := bodies{limit: 100_000, byID: make(map[queue.MessageID]*store.Message)}
	m := &store.Message{Message: queue.Message{Body: make([]byte, 800)}}
	for range 10 {
		for id := range queue.MessageID(50) {
			c.add(id, m)
			c.add(id, m)
		}
		for id := range queue.MessageID(50) {
			c.remove(id)
		}
	}
	if c.size != 0 || len(c.byID) != 0 {
		t.Errorf("an empty cache counts %d octets in %d bodies", c.size, len(c.byID))
	}
}
