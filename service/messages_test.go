package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

func TestPutGetUpdateDelete(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		id := string(h.create("orders", nil).ID)
		sent, err := h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: "orders", Messages: []PutMessage{{
			Content:    []byte("pallet 7731"),
			ChannelID:  p("north"),
			Properties: []queue.Property{{Name: "type", Value: "order"}, {Name: "amount", Value: "3"}},
		}}})
		h.want(err, "", "")
		got := h.get(id, 60)
		if len(got) != 1 {
			h.Fatalf("got %d messages", len(got))
		}
		m := got[0]
		now := h.s.broker.Now()
		wanted := queue.Delivery{
			Message: queue.Message{Body: []byte("pallet 7731"), Properties: []queue.Property{{Name: "amount", Value: "3"}, {Name: "type", Value: "order"}}},
			ID:      sent.Messages[0].ID, Channel: "north", Receipt: m.Receipt, DeliveryCount: 1,
			CreatedAt: now, VisibleAfter: now.Add(time.Minute), ExpireAfter: now.Add(24 * time.Hour),
		}
		if diff := cmp.Diff(wanted, m); diff != "" {
			h.Error(diff)
		}

		updated, err := h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: "orders", Receipt: m.Receipt, VisibilityInSeconds: p(int32(90))})
		h.want(err, "", "")
		if updated.ID != m.ID || updated.VisibleAfter != now.Add(90*time.Second) {
			h.Errorf("updated %+v", updated)
		}
		_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", Receipt: m.Receipt})
		h.want(err, "", "")
		_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", Receipt: m.Receipt})
		h.want(err, "", "") // gone already
		_, err = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: "orders", Receipt: m.Receipt, VisibilityInSeconds: p(int32(90))})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
	})
}

// Each entry has its own outcome, in the order of the request.
func TestBatches(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", nil)
		h.create("other", nil)
		h.put("orders", "", "a", "b")
		h.put("other", "", "c")
		got, foreign := h.get("orders", 60), h.get("other", 60)[0]

		update, err := h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: "orders", Entries: []UpdateMessagesEntry{
			{Receipt: got[0].Receipt, VisibilityInSeconds: p(int32(100))},
			{Receipt: "garbage", VisibilityInSeconds: p(int32(1))},
			{Receipt: got[1].Receipt, VisibilityInSeconds: p(int32(43201))},
			{Receipt: foreign.Receipt, VisibilityInSeconds: p(int32(1))},
			{VisibilityInSeconds: p(int32(1))},
			{Receipt: got[1].Receipt, VisibilityInSeconds: p(int32(0))},
		}})
		h.want(err, "", "")
		var codes []int
		for _, e := range update.Entries {
			codes = append(codes, e.ErrorCode)
			if e.Failed() == (e.ErrorMessage == "") || e.Failed() == (e.ID != 0) {
				h.Errorf("entry %+v", e)
			}
		}
		if diff := cmp.Diff([]int{0, 400, 400, 404, 400, 0}, codes); diff != "" || update.ClientFailures != 4 || update.ServerFailures != 0 {
			h.Errorf("%d client and %d server failures, %s", update.ClientFailures, update.ServerFailures, diff)
		}

		again := h.get("orders", 60)[0] // b, for the second time
		del, err := h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: "orders", Receipts: []queue.Receipt{
			got[1].Receipt, "", got[0].Receipt, got[0].Receipt, again.Receipt, foreign.Receipt, "garbage",
		}})
		h.want(err, "", "")
		codes = nil
		for _, e := range del.Entries {
			codes = append(codes, e.ErrorCode)
		}
		if diff := cmp.Diff([]int{404, 400, 0, 0, 0, 404, 400}, codes); diff != "" || del.ClientFailures != 4 || del.ServerFailures != 0 {
			h.Errorf("%d client and %d server failures, %s", del.ClientFailures, del.ServerFailures, diff)
		}

		for _, entries := range [][]UpdateMessagesEntry{{}, make([]UpdateMessagesEntry, 21)} {
			_, err = h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: "orders", Entries: entries})
			h.want(err, queue.InvalidParameter, "")
		}
		_, err = h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: "orders"})
		h.want(err, queue.MissingParameter, "entries is missing")
		_, err = h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: "orders"})
		h.want(err, queue.MissingParameter, "entries is missing")
		_, err = h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: "orders", Receipts: make([]queue.Receipt, 21)})
		h.want(err, queue.InvalidParameter, "")
		_, err = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: "orders", Receipt: "x"})
		h.want(err, queue.MissingParameter, "visibilityInSeconds is missing")
	})
}

// A dead letter queue is read, settled and counted through "_dlq", or its
// messages through the queue itself; it takes no other operation.
func TestDeadLetterQueue(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		id := string(h.create("orders", func(r *CreateQueueRequest) { r.DeadLetterQueueDeliveryCount = p(int32(1)) }).ID)
		h.put("orders", "north", "poison", "venom")
		alive := h.get("orders", 1)
		time.Sleep(2 * time.Second)

		main, dead := h.stats("orders")
		if main.Visible != 0 || dead.Visible != 2 {
			h.Errorf("stats %+v, %+v", main, dead)
		}
		itself, none := h.stats("orders_dlq")
		if itself != dead || none != (queue.Stats{}) {
			h.Errorf("stats of the dead letter queue %+v, %+v, want %+v and nothing", itself, none, dead)
		}
		channels, err := h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: id + "_dlq"})
		h.want(err, "", "")
		if diff := cmp.Diff([]string{"north"}, channels.Items); diff != "" {
			h.Error(diff)
		}
		_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", Receipt: alive[0].Receipt})
		h.want(err, queue.NotAuthorizedOrNotFound, "")

		got := h.get(id+"_dlq", 60)
		if len(got) != 2 || got[0].DeadLetter == nil || got[0].DeadLetter.Channel != "north" {
			h.Fatalf("got %+v", got)
		}
		_, err = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: "orders_dlq", Receipt: got[0].Receipt, VisibilityInSeconds: p(int32(5))})
		h.want(err, "", "")
		_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders_dlq", Receipt: got[0].Receipt})
		h.want(err, "", "")
		_, err = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: "orders", Receipt: got[1].Receipt})
		h.want(err, "", "")

		for name, do := range map[string]func(string) error{
			"put": func(ref string) error {
				_, err := h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: ref, Messages: []PutMessage{{Content: []byte("x")}}})
				return err
			},
			"get queue": func(ref string) error { _, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: ref}); return err },
			"update queue": func(ref string) error {
				_, err := h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: ref})
				return err
			},
			"delete queue": func(ref string) error {
				_, err := h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: ref})
				return err
			},
			"move": func(ref string) error {
				_, err := h.s.ChangeQueueCompartment(h.ctx, ChangeQueueCompartmentRequest{QueueRef: ref, CompartmentID: p("c")})
				return err
			},
			"purge": func(ref string) error {
				_, err := h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: ref, PurgeType: p("DLQ")})
				return err
			},
		} {
			for _, ref := range []string{"orders_dlq", id + "_dlq"} {
				if err := do(ref); queue.CodeOf(err) != queue.InvalidParameter {
					h.Errorf("%s of %s: %v", name, ref, err)
				}
			}
			if err := do("nothing_dlq"); queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
				h.Errorf("%s of no queue's: %v", name, err)
			}
		}
	})
}

// every calls each operation that names a queue, in good form.
func (h *house) every(ref string) map[string]error {
	errs := map[string]error{}
	_, errs["PutMessages"] = h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: ref, Messages: []PutMessage{{Content: []byte("x")}}})
	_, errs["GetMessages"] = h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: ref, TimeoutInSeconds: p(int32(0))})
	_, errs["UpdateMessage"] = h.s.UpdateMessage(h.ctx, UpdateMessageRequest{QueueRef: ref, Receipt: "x", VisibilityInSeconds: p(int32(1))})
	_, errs["UpdateMessages"] = h.s.UpdateMessages(h.ctx, UpdateMessagesRequest{QueueRef: ref, Entries: []UpdateMessagesEntry{{Receipt: "x", VisibilityInSeconds: p(int32(1))}}})
	_, errs["DeleteMessage"] = h.s.DeleteMessage(h.ctx, DeleteMessageRequest{QueueRef: ref, Receipt: "x"})
	_, errs["DeleteMessages"] = h.s.DeleteMessages(h.ctx, DeleteMessagesRequest{QueueRef: ref, Receipts: []queue.Receipt{"x"}})
	_, errs["GetStats"] = h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: ref})
	_, errs["ListChannels"] = h.s.ListChannels(h.ctx, ListChannelsRequest{QueueRef: ref})
	_, errs["UpdateQueue"] = h.s.UpdateQueue(h.ctx, UpdateQueueRequest{QueueRef: ref})
	_, errs["ChangeQueueCompartment"] = h.s.ChangeQueueCompartment(h.ctx, ChangeQueueCompartmentRequest{QueueRef: ref, CompartmentID: p("c")})
	_, errs["PurgeQueue"] = h.s.PurgeQueue(h.ctx, PurgeQueueRequest{QueueRef: ref, PurgeType: p("BOTH")})
	_, errs["DeleteQueue"] = h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: ref})
	return errs
}

func TestUnknownAndDeletedQueues(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		id := string(h.create("orders", nil).ID)
		h.delete("orders")
		for _, ref := range []string{"", "nothing", "orders", id, "ocid1.queue.oc1.local.nothing", "_dlq", "\xff"} {
			for name, err := range h.every(ref) {
				if queue.CodeOf(err) != queue.NotAuthorizedOrNotFound {
					h.Errorf("%s of %q: %v", name, ref, err)
				}
			}
		}
		resp, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: id})
		if err != nil || resp.Queue.State != queue.Deleted {
			h.Errorf("the record of the deleted queue: %+v, %v", resp, err)
		}
	})
}

// The same token gives the first answer and stores nothing.
func TestPutRetryToken(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", nil)
		send := func(body string) (PutMessagesResponse, error) {
			return h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: "orders", RetryToken: p("t"), Messages: []PutMessage{{Content: []byte(body)}}})
		}
		first, err := send("a")
		h.want(err, "", "")
		second, err := send("a")
		h.want(err, "", "")
		if diff := cmp.Diff(first, second); diff != "" {
			h.Error(diff)
		}
		_, err = send("b")
		h.want(err, queue.InvalidParameter, "")
		if main, _ := h.stats("orders"); main.Visible != 1 {
			h.Errorf("stats %+v", main)
		}
	})
}

func TestStatsOfAChannel(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", nil)
		h.put("orders", "north", "a", "bc")
		h.put("orders", "", "d")
		for channel, n := range map[string]int64{"north": 2, "south": 0, "": 3} {
			resp, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: "orders", ChannelID: &channel})
			if err != nil || resp.Queue.Visible != n {
				h.Errorf("%q: %+v, %v", channel, resp.Queue, err)
			}
			if given(resp.ChannelID) != channel {
				h.Errorf("%q came back as %v", channel, resp.ChannelID)
			}
		}
		_, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: "orders", ChannelID: p("a*")})
		h.want(err, queue.InvalidParameter, "")
	})
}

func TestListChannelsPages(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", nil)
		h.create("other", nil)
		for _, c := range []string{"b2", "a1", "", "b1", "b3", "c"} {
			h.put("orders", c, "x")
		}
		list := func(r ListChannelsRequest) (all []string, last string) {
			for {
				resp, err := h.s.ListChannels(h.ctx, r)
				if err != nil {
					h.Fatal(err)
				}
				all = append(all, resp.Items...)
				if resp.NextPage == "" {
					return all, last
				}
				last = resp.NextPage
				r.Page = &resp.NextPage
			}
		}
		all, page := list(ListChannelsRequest{QueueRef: "orders", Limit: p(int32(2))})
		if diff := cmp.Diff([]string{"a1", "b1", "b2", "b3", "c"}, all); diff != "" {
			h.Error(diff)
		}
		some, _ := list(ListChannelsRequest{QueueRef: "orders", Limit: p(int32(1)), ChannelFilter: p("b*")})
		if diff := cmp.Diff([]string{"b1", "b2", "b3"}, some); diff != "" {
			h.Error(diff)
		}
		for _, r := range []ListChannelsRequest{
			{QueueRef: "orders", Page: p("made up")},
			{QueueRef: "orders", Page: &page, ChannelFilter: p("b*")},
			{QueueRef: "other", Page: &page},
			{QueueRef: "orders_dlq", Page: &page},
			{QueueRef: "orders", Limit: p(int32(1001))},
			{QueueRef: "orders", ChannelFilter: p("/")},
		} {
			_, err := h.s.ListChannels(h.ctx, r)
			h.want(err, queue.InvalidParameter, "")
		}
	})
}

// Each operation has its own rate on each queue, and the octets too.
func TestRates(t *testing.T) {
	l := limits.OCI()
	l.RequestsPerSecond, l.GetsPerSecond = 3, 2
	l.EgressBytesPerSecond = 10
	l.ResponseBytes = 10
	inHouse(t, Options{Limits: &l}, func(h *house) {
		h.create("orders", nil)
		h.create("other", nil)
		get := func() error {
			_, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders", TimeoutInSeconds: p(int32(0))})
			return err
		}
		h.put("orders", "", "x")
		for range 2 {
			h.put("orders", "", "x")
		}
		_, err := h.s.PutMessages(h.ctx, PutMessagesRequest{QueueRef: "orders", Messages: []PutMessage{{Content: []byte("x")}}})
		h.want(err, queue.TooManyRequests, "")
		h.put("other", "", "x")
		h.stats("orders")

		h.want(get(), "", "")
		h.want(get(), "", "")
		h.want(get(), queue.TooManyRequests, "more than 2 gets a second for this queue (limits.gets-per-second)")
		time.Sleep(time.Second)
		h.want(get(), "", "")

		h.put("orders", "", "a text of thirty-one characters")
		h.want(get(), "", "")
		time.Sleep(time.Second)
		h.want(get(), queue.TooManyRequests, "more than 10 octets a second received from this queue (limits.egress-bytes-per-second)")
		time.Sleep(3 * time.Second)
		h.want(get(), "", "")
	})
}

// A get waits for a first message as long as it or its queue says, and no
// longer than its client.
func TestGetWaits(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", func(r *CreateQueueRequest) { r.TimeoutInSeconds = p(int32(7)) })
		began := time.Now()
		resp, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: "orders"})
		if err != nil || len(resp.Messages) != 0 || time.Since(began).Round(time.Second) != 7*time.Second {
			h.Errorf("%+v, %v after %v", resp, err, time.Since(began))
		}

		ctx, leave := context.WithCancel(h.ctx)
		var got error
		go func() { _, got = h.s.GetMessages(ctx, GetMessagesRequest{QueueRef: "orders"}) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if got != context.Canceled {
			h.Errorf("a get whose client left: %v", got)
		}
		h.put("orders", "", "x")
		if main, _ := h.stats("orders"); main.Visible != 1 {
			h.Errorf("stats %+v", main)
		}

		messages := h.get("orders", 60)
		h.s.Undeliver(messages)
		synctest.Wait()
		if again := h.get("orders", 60); len(again) != 1 || again[0].DeliveryCount != 1 {
			h.Errorf("after Undeliver: %+v", again)
		}
		h.s.Undeliver(nil)
	})
}
