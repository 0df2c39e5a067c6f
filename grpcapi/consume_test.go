package grpcapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/queued-mq/queued/api/codec"
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/limits"
)

// consuming is the client's side of a stream.
type consuming struct {
	*streamHouse
	queuev1.QueueService_ConsumeMessagesClient
}

func (h *streamHouse) consume(ctx context.Context, r *queuev1.ConsumeSubscription) *consuming {
	h.Helper()
	s, err := h.data.ConsumeMessages(ctx, grpc.ForceCodecV2(codec.New()))
	if err != nil {
		h.Fatal(err)
	}
	c := &consuming{h, s}
	if r != nil {
		c.say(&queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: r}})
	}
	return c
}

func (c *consuming) say(r *queuev1.ConsumeMessagesRequest) {
	c.Helper()
	if err := c.Send(r); err != nil {
		c.Fatal(err)
	}
}

func (c *consuming) grant(n int32) { c.Helper(); c.say(grantOf(n)) }
func (c *consuming) drain()        { c.Helper(); c.say(drainOf()) }

func (c *consuming) settle(all ...*queuev1.Settlement) { c.Helper(); c.say(settleOf(all...)) }

func grantOf(n int32) *queuev1.ConsumeMessagesRequest {
	return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Credit{Credit: &queuev1.ConsumeCredit{Messages: n}}}
}

func drainOf() *queuev1.ConsumeMessagesRequest {
	return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Drain{Drain: &queuev1.ConsumeDrain{}}}
}

func settleOf(all ...*queuev1.Settlement) *queuev1.ConsumeMessagesRequest {
	return &queuev1.ConsumeMessagesRequest{Request: &queuev1.ConsumeMessagesRequest_Settle{Settle: &queuev1.ConsumeSettlements{Settlements: all}}}
}

func (c *consuming) next() *queuev1.ConsumeMessagesResponse {
	c.Helper()
	r, err := c.Recv()
	if err != nil {
		c.Fatal(err)
	}
	return r
}

// messages are the next n messages; whatever else comes is passed over.
func (c *consuming) messages(n int) (got []*queuev1.GetMessage) {
	c.Helper()
	for len(got) < n {
		got = append(got, c.next().Messages...)
	}
	return got
}

// results are the next n results, by their numbers.
func (c *consuming) results(n int) map[uint64]*queuev1.SettlementResult {
	c.Helper()
	got := map[uint64]*queuev1.SettlementResult{}
	for len(got) < n {
		for _, r := range c.next().Settled {
			got[r.Number] = r
		}
	}
	return got
}

func TestConsumeSubscribed(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.put(1, 1)
		for ref, want := range map[string]string{"q": h.id, h.id: h.id, "q_dlq": h.id + "_dlq"} {
			c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: ref, Credit: 0})
			if r := c.next(); r.Subscribed.GetQueueId() != want {
				h.Errorf("%s: %v", ref, r)
			}
			if err := c.CloseSend(); err != nil {
				h.Fatal(err)
			}
			_, err := c.Recv() // and without credit, no message
			wantOK(h.T, err)
		}
	})
}

// Everything that breaks the rules ends the stream by name.
func TestConsumeRules(t *testing.T) {
	type request = queuev1.ConsumeMessagesRequest
	subscribe := func(s *queuev1.ConsumeSubscription) *request {
		return &request{Request: &queuev1.ConsumeMessagesRequest_Subscribe{Subscribe: s}}
	}
	good := subscribe(&queuev1.ConsumeSubscription{QueueId: "q", Credit: 1})
	many := make([]*queuev1.Settlement, 101)
	for i := range many {
		many[i] = &queuev1.Settlement{}
	}
	for name, x := range map[string]struct {
		say  []*request
		code codes.Code
		want string // the reason and a word of the text
	}{
		"credit first":       {[]*request{grantOf(1)}, codes.InvalidArgument, "InvalidParameter first"},
		"nothing first":      {[]*request{{}}, codes.InvalidArgument, "InvalidParameter nothing"},
		"nothing":            {[]*request{good, {}}, codes.InvalidArgument, "InvalidParameter nothing"},
		"twice":              {[]*request{good, good}, codes.InvalidArgument, "InvalidParameter once"},
		"no queue":           {[]*request{subscribe(&queuev1.ConsumeSubscription{})}, codes.NotFound, "NotAuthorizedOrNotFound queue"},
		"unknown queue":      {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "x"})}, codes.NotFound, "NotAuthorizedOrNotFound known"},
		"visibility 0":       {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", VisibilityInSeconds: proto.Int32(0)})}, codes.InvalidArgument, "InvalidParameter visibilityInSeconds"},
		"visibility":         {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", VisibilityInSeconds: proto.Int32(43201)})}, codes.InvalidArgument, "InvalidParameter visibilityInSeconds"},
		"group":              {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: proto.String("g")})}, codes.InvalidArgument, "InvalidParameter consumerGroupId"},
		"filter":             {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", ChannelFilter: proto.String(strings.Repeat("x", 65))})}, codes.InvalidArgument, "InvalidParameter channelFilter"},
		"text of queue":      {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "\xff"})}, codes.InvalidArgument, "InvalidParameter queueId"},
		"text of filter":     {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", ChannelFilter: proto.String("\xff")})}, codes.InvalidArgument, "InvalidParameter channelFilter"},
		"text of group":      {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", ConsumerGroupId: proto.String("\xff")})}, codes.InvalidArgument, "InvalidParameter consumerGroupId"},
		"first credit":       {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", Credit: 10001})}, codes.InvalidArgument, "InvalidParameter credit"},
		"first credit below": {[]*request{subscribe(&queuev1.ConsumeSubscription{QueueId: "q", Credit: -1})}, codes.InvalidArgument, "InvalidParameter credit"},
		"credit 0":           {[]*request{good, grantOf(0)}, codes.InvalidArgument, "InvalidParameter credit"},
		"credit over":        {[]*request{good, grantOf(10000)}, codes.InvalidArgument, "InvalidParameter credit"},
		"credit far over":    {[]*request{good, grantOf(1<<31 - 1)}, codes.InvalidArgument, "InvalidParameter credit"},
		"no settlements":     {[]*request{good, settleOf()}, codes.InvalidArgument, "InvalidParameter settlements"},
		"101 settlements":    {[]*request{good, settleOf(many...)}, codes.InvalidArgument, "InvalidParameter settlements"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
				c := h.consume(h.Context(), nil)
				for _, r := range x.say {
					c.say(r)
				}
				var err error
				for err == nil {
					_, err = c.Recv()
				}
				reason, word, _ := strings.Cut(x.want, " ")
				wantEnd(h.T, err, x.code, reason)
				if !strings.Contains(err.Error(), word) {
					h.Errorf("%v, want %q in it", err, word)
				}
			})
		})
	}
}

// Credit is never exceeded and, while there are messages, always used; what a
// drain takes back does not come, and behind its answer nothing does.
func TestConsumeCredit(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
				random := rand.New(rand.NewPCG(seed, 1))
				ctx, cancel := context.WithCancel(h.Context())
				defer cancel()
				c := h.consume(ctx, &queuev1.ConsumeSubscription{QueueId: "q", Credit: 3})
				fed := make(chan struct{})
				go func() { // messages come all the while
					defer close(fed)
					for range 400 {
						h.put(1+rand.IntN(5), 10)
						time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
					}
				}()
				granted, received, drains, drained := 3, 0, 0, 0
				take := func(r *queuev1.ConsumeMessagesResponse) {
					received += len(r.Messages)
					if received > granted {
						h.Fatalf("%d messages on a credit of %d", received, granted)
					}
					if r.Drained {
						drained++
						granted = received // the rest is taken back
					}
				}
				for range 100 {
					n := 1 + random.IntN(30)
					c.grant(int32(n))
					granted += n
					if random.IntN(2) == 0 {
						for granted > received {
							take(c.next())
						}
						continue
					}
					if random.IntN(2) == 0 {
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
					}
					more := 1 + random.IntN(2)
					for range more {
						c.drain()
					}
					for drains += more; drained < drains; {
						take(c.next())
					}
				}
				<-fed
				synctest.Wait()
				if n := h.stats("q").InFlightMessages; int(n) > received {
					h.Errorf("%d are in flight, %d were received", n, received)
				}
			})
		})
	}
}

// Credit that is granted behind a drain outlives it.
func TestConsumeCreditBehindDrain(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: 10000})
		c.next()
		c.drain()
		c.grant(10000)
		c.drain()
		c.grant(2)
		for range 2 {
			if r := c.next(); !r.Drained || len(r.Messages) != 0 {
				h.Errorf("%v", r)
			}
		}
		h.put(3, 1)
		c.messages(2)
		synctest.Wait()
		if s := h.stats("q"); s.InFlightMessages != 2 || s.VisibleMessages != 1 {
			h.Errorf("%v", s)
		}
	})
}

// Each action, each of its errors.
func TestConsumeSettle(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.put(8, 1)
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: 8, VisibilityInSeconds: proto.Int32(100)})
		got := c.messages(8)
		const ack, extend, back = queuev1.Settlement_ACKNOWLEDGE, queuev1.Settlement_EXTEND, queuev1.Settlement_RETURN
		one := func(number uint64, receipt string, action queuev1.Settlement_Action, seconds int32) *queuev1.Settlement {
			return &queuev1.Settlement{Number: number, Receipt: receipt, Action: action, VisibilityInSeconds: seconds}
		}
		now := time.Now()
		c.settle(
			one(0, got[0].Receipt, ack, 0),
			one(1, got[1].Receipt, extend, 1000),
			one(2, got[2].Receipt, back, 0),
			one(3, got[3].Receipt, back, 50),
			one(4, got[4].Receipt, ack, 1),
			one(5, got[4].Receipt, extend, 0),
			one(6, got[4].Receipt, extend, 43201),
			one(7, got[4].Receipt, back, -1),
			one(8, got[4].Receipt, 0, 0),
			one(9, got[4].Receipt, 9, 0),
			one(10, "", ack, 0),
			one(11, "nonsense", ack, 0),
			one(12, "nonsense", extend, 1),
			one(13, "\xff", ack, 0),
			one(14, got[5].Receipt, ack, 0),
			one(15, got[5].Receipt, extend, 10), // before it
			one(16, "", back, 0),
		)
		results := c.results(17)
		wants := map[uint64]string{
			4: "InvalidParameter", 5: "InvalidParameter", 6: "InvalidParameter", 7: "InvalidParameter", 8: "MissingParameter", 9: "InvalidParameter",
			10: "MissingParameter", 11: "InvalidParameter", 12: "InvalidParameter", 13: "InvalidParameter", 16: "MissingParameter",
		}
		visible := map[uint64]time.Duration{1: 1000 * time.Second, 2: 0, 3: 50 * time.Second, 15: 10 * time.Second}
		for number, r := range results {
			if r.Error.GetCode() != wants[number] || r.Error != nil && r.Error.Message == "" {
				h.Errorf("%d: %v, want %q", number, r, wants[number])
			}
			after, ok := visible[number]
			if (r.VisibleAfter != nil) != ok {
				h.Errorf("%d: %v", number, r)
			} else if at := r.VisibleAfter.AsTime().Sub(now); ok && (at < after-time.Second || at > after+time.Second) {
				h.Errorf("%d: visible after %v, want %v", number, at, after)
			}
		}
		// Two are gone, one is back, the rest is hidden.
		if s := h.stats("q"); s.VisibleMessages != 1 || s.InFlightMessages != 5 {
			h.Errorf("%v", s)
		}
		// A message that is gone is a success, extended it is unknown.
		c.settle(one(0, got[0].Receipt, ack, 0), one(1, got[0].Receipt, back, 0))
		if r := c.results(2); r[0].Error != nil || r[1].Error.GetCode() != "NotAuthorizedOrNotFound" {
			h.Errorf("%v", r)
		}
		// The returned one again, on the dead letter queue at last.
		for count := int32(2); count <= 3; count++ {
			c.grant(1)
			m := c.messages(1)[0]
			if m.Id != got[2].Id || m.DeliveryCount != count {
				h.Fatalf("%v", m)
			}
			c.settle(one(uint64(count), m.Receipt, back, 0))
			if r := c.results(1)[uint64(count)]; r == nil || r.Error != nil {
				h.Errorf("%v", r)
			}
		}
		dead := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q_dlq", Credit: 1})
		m := dead.messages(1)[0]
		if m.DeadLetter == nil || m.Id != got[2].Id {
			h.Errorf("%v", m)
		}
		dead.settle(one(1, m.Receipt, ack, 0))
		if r := dead.results(1)[1]; r.Error != nil {
			h.Errorf("%v", r)
		}
		// On another stream, when the visibility is over: an acknowledgement still works.
		time.Sleep(101 * time.Second)
		dead.settle(one(1, got[6].Receipt, ack, 0), one(2, got[7].Receipt, extend, 5))
		if r := dead.results(2); r[1].Error != nil || r[2].Error.GetCode() != "NotAuthorizedOrNotFound" {
			h.Errorf("%v", r)
		}
	})
}

// When the client closes its side it gets every result and nothing else.
func TestConsumeHalfClose(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.put(300, 1)
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: 300})
		got := c.messages(300)
		h.put(20, 1)
		for some := range 10 {
			all := make([]*queuev1.Settlement, 30)
			for i := range all {
				all[i] = &queuev1.Settlement{Number: uint64(some*30 + i), Receipt: got[some*30+i].Receipt, Action: queuev1.Settlement_ACKNOWLEDGE}
			}
			c.settle(all...)
		}
		c.drain()
		if err := c.CloseSend(); err != nil {
			h.Fatal(err)
		}
		settled, drained := 0, false
		for {
			r, err := c.Recv()
			if err != nil {
				wantOK(h.T, err)
				break
			}
			if len(r.Messages) != 0 {
				h.Errorf("%v", r)
			}
			settled += len(r.Settled)
			drained = drained || r.Drained
		}
		if s := h.stats("q"); settled != 300 || !drained || s.VisibleMessages != 20 || s.InFlightMessages != 0 {
			h.Errorf("%d settled, drained is %v, %v", settled, drained, s)
		}
	})
}

// A client that does not read holds little and slows nobody. When it is gone,
// what was handed to the transport stays hidden, and what was not comes back
// uncounted.
func TestConsumeUnread(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		h.put(50, 100<<10)
		ctx, cancel := context.WithCancel(h.Context())
		h.consume(ctx, &queuev1.ConsumeSubscription{QueueId: "q", Credit: 50, VisibilityInSeconds: proto.Int32(1000)})
		synctest.Wait()
		// 64 KiB at each end and an answer beyond, one that waits, one to come.
		held := h.stats("q").InFlightMessages
		if held < 4 || held > 16 {
			h.Errorf("%d messages of 100 KiB are held", held)
		}
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: 5})
		for _, m := range c.messages(5) {
			c.settle(&queuev1.Settlement{Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
			c.results(1)
		}
		synctest.Wait()
		held = h.stats("q").InFlightMessages // gRPC may have let the window grow
		if held > 16 {
			h.Errorf("%d messages of 100 KiB are held", held)
		}
		cancel()
		synctest.Wait()
		s := h.stats("q")
		if s.InFlightMessages < 1 || s.InFlightMessages >= held || s.InFlightMessages+s.VisibleMessages != 45 {
			h.Errorf("%v are left, %d were held", s, held)
		}
		c.grant(int32(s.VisibleMessages))
		for _, m := range c.messages(int(s.VisibleMessages)) {
			if m.DeliveryCount != 1 {
				h.Errorf("message %d came back counted: %d", m.Id, m.DeliveryCount)
			}
		}
	})
}

// Settlements whose results nobody reads are bounded.
func TestConsumeResultsUnread(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		ctx, cancel := context.WithCancel(h.Context())
		c := h.consume(ctx, &queuev1.ConsumeSubscription{QueueId: "q"})
		all := make([]*queuev1.Settlement, 100)
		for i := range all {
			all[i] = &queuev1.Settlement{Receipt: "nonsense", Action: queuev1.Settlement_ACKNOWLEDGE}
		}
		sent := make(chan int)
		go func() {
			n := 0
			for n < 2000 && c.Send(settleOf(all...)) == nil {
				n++
			}
			sent <- n
		}()
		synctest.Wait()
		cancel()
		if n := <-sent; n > 200 {
			h.Errorf("%d requests were taken", n)
		}
	})
}

func TestConsumeDeletedQueue(t *testing.T) {
	for credit := range int32(2) {
		t.Run(fmt.Sprint(credit), func(t *testing.T) {
			inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
				c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: credit})
				c.next()
				if _, err := h.admin.DeleteQueue(h.Context(), &queuev1.DeleteQueueRequest{QueueId: "q"}); err != nil {
					h.Fatal(err)
				}
				began := time.Now()
				_, err := c.Recv()
				wantEnd(h.T, err, codes.NotFound, "NotAuthorizedOrNotFound")
				if took := time.Since(began); took > 2*time.Second {
					h.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A server that stops answers what it has begun, and gives back the rest.
func TestConsumeStopping(t *testing.T) {
	inBubble(t, limits.Unthrottled(), func(h *streamHouse) {
		silent := h.consume(h.Context(), nil)
		h.put(100, 1)
		c := h.consume(h.Context(), &queuev1.ConsumeSubscription{QueueId: "q", Credit: 1000})
		for i, m := range c.messages(100) {
			c.settle(&queuev1.Settlement{Number: uint64(i), Receipt: m.Receipt, Action: queuev1.Settlement_ACKNOWLEDGE})
		}
		synctest.Wait()
		h.stop()
		settled := 0
		for {
			r, err := c.Recv()
			if err != nil {
				wantEnd(h.T, err, codes.Unavailable, "ServiceUnavailable")
				break
			}
			settled += len(r.Settled)
		}
		if settled != 100 {
			h.Errorf("%d settled", settled)
		}
		_, err := silent.Recv()
		wantEnd(h.T, err, codes.Unavailable, "ServiceUnavailable")
	})
}
