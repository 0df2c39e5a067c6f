package service

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// What a rate holds up behind a refused message is not stored later either,
// whoever refused: the form at once, or the core when its group was decided.
func TestStartPutEachEndsAtTheFirstRefusal(t *testing.T) {
	oci := limits.OCI()
	oci.RequestsPerSecond = 4
	oci.BytesPerQueue = 20
	inHouse(t, Options{Limits: &oci}, func(h *house) {
		for _, c := range []struct {
			queue string
			body  string // of the second of 9 messages
			delay int32
			code  queue.Code
		}{
			{"form", "x", -1, queue.InvalidParameter},
			{"room", "more than 20 octets, for which the queue has no room", 0, queue.LimitExceeded},
		} {
			h.create(c.queue, nil)
			messages := make([]PutMessage, 9)
			for i := range messages {
				messages[i].Content = []byte{'0' + byte(i)}
			}
			messages[1] = PutMessage{Content: []byte(c.body), DelayInSeconds: &c.delay}
			began := time.Now()
			outcome, all := make([]error, len(messages)), make(chan struct{})
			told := 0
			var mu sync.Mutex
			h.s.StartPutEach(h.ctx, c.queue, messages, func(from, stored, to int, err error) {
				mu.Lock()
				defer mu.Unlock()
				for i := stored; i < to; i++ {
					outcome[i] = err
				}
				if told += to - from; told == len(messages) {
					close(all)
				}
			})
			<-all
			for i, err := range outcome {
				if i == 0 && err != nil || i > 0 && queue.CodeOf(err) != c.code {
					t.Errorf("%s: message %d has the outcome %v", c.queue, i, err)
				}
			}
			if took := time.Since(began); took >= time.Second {
				t.Errorf("%s: the end came after %v", c.queue, took)
			}
			var bodies []string
			for _, m := range h.get(c.queue, 60) {
				bodies = append(bodies, string(m.Body))
			}
			if !slices.Equal(bodies, []string{"0"}) {
				t.Errorf("%s: stored %q", c.queue, bodies)
			}
		}
	})
}
