package service

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// What is past its time is not shown, whether it has been swept or not, and
// sweeping takes nothing else.
func TestSweep(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		made := h.create("orders", nil)
		h.create("bills", nil)
		h.put("orders", "north", "x")
		h.delete("orders")
		sweep := func() {
			h.Helper()
			if err := h.s.Sweep(h.ctx); err != nil {
				h.Fatal(err)
			}
		}
		get := func() error {
			_, err := h.s.GetQueue(h.ctx, GetQueueRequest{QueueRef: string(made.ID)})
			return err
		}
		time.Sleep(23 * time.Hour)
		sweep()
		h.want(get(), "", "")
		time.Sleep(time.Hour)
		h.want(get(), queue.NotAuthorizedOrNotFound, "")
		if got := h.names(ListQueuesRequest{LifecycleState: p("DELETED")}, nil); len(got) != 0 {
			h.Errorf("lists %v", got)
		}
		if n := len(h.s.broker.Queues()); n != 2 {
			h.Errorf("%d queues before the sweep", n)
		}
		sweep()
		if n := len(h.s.broker.Queues()); n != 1 {
			h.Errorf("%d queues after the sweep", n)
		}
		h.want(get(), queue.NotAuthorizedOrNotFound, "")

		time.Sleep(6*24*time.Hour - time.Millisecond)
		sweep()
		h.work(made.WorkRequestID)
		time.Sleep(time.Millisecond)
		h.create("later", nil)
		_, err := h.s.GetWorkRequest(h.ctx, GetWorkRequestRequest{WorkRequestID: made.WorkRequestID})
		h.want(err, queue.NotAuthorizedOrNotFound, "")
		list, err := h.s.ListWorkRequests(h.ctx, ListWorkRequestsRequest{})
		if err != nil || len(list.Items) != 1 {
			h.Errorf("%+v, %v", list, err)
		}
		kept := func() (n int) {
			for _, err := range h.s.broker.WorkRequests("") {
				if err != nil {
					h.Fatal(err)
				}
				n++
			}
			return n
		}
		if n := kept(); n != 4 {
			h.Errorf("%d work requests before the sweep", n)
		}
		time.Sleep(time.Hour)
		sweep()
		if n := kept(); n != 1 {
			h.Errorf("%d work requests after the sweep", n)
		}
	})
}

// Retry tokens of the control plane are forgotten when nobody may use them any
// more, without anybody asking.
func TestRetryTokensAreSwept(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		h.create("orders", func(r *CreateQueueRequest) { r.RetryToken = p("t") })
		kept := func() int {
			h.Helper()
			tokens, err := h.store.RetryTokens(queue.Instant(1<<50), 10)
			if err != nil {
				h.Fatal(err)
			}
			return len(tokens)
		}
		if n := kept(); n != 1 {
			h.Errorf("%d tokens", n)
		}
		time.Sleep(23 * time.Hour)
		if n := kept(); n != 1 {
			h.Errorf("%d tokens before the day is over", n)
		}
		time.Sleep(3 * time.Hour)
		if n := kept(); n != 0 {
			h.Errorf("%d tokens two hours after their day", n)
		}
	})
}

// A work request that has failed tells why, in pages. None of ours fails today;
// what a later version stores must be shown all the same.
func TestFailedWorkRequest(t *testing.T) {
	inHouse(t, Options{}, func(h *house) {
		now := h.s.Now()
		failed := queue.WorkRequest{
			ID: "ocid1.queueworkrequest.oc1.local.failed", Operation: queue.CreateQueue, Status: queue.WorkFailed, CompartmentID: "c",
			Resources:  []queue.WorkResource{{EntityType: "queue", Action: queue.ActionInProgress, Identifier: "q", EntityURI: "/20210201/queues/q"}},
			Percent:    50,
			AcceptedAt: now, StartedAt: now, FinishedAt: now,
			Errors: []queue.WorkError{{Code: queue.LimitExceeded, Message: "one", At: now}, {Code: queue.Conflict, Message: "two", At: now}},
		}
		err := h.s.broker.Admin(h.ctx, func(tx *broker.Tx) error { tx.PutWorkRequest(failed); return nil })
		h.want(err, "", "")
		if diff := cmp.Diff(failed, h.work(failed.ID)); diff != "" {
			h.Error(diff)
		}
		var got []queue.WorkError
		r := ListWorkRequestErrorsRequest{WorkRequestID: failed.ID, Limit: p(int32(1))}
		for {
			resp, err := h.s.ListWorkRequestErrors(h.ctx, r)
			h.want(err, "", "")
			got = append(got, resp.Items...)
			if resp.NextPage == "" {
				break
			}
			r.Page = &resp.NextPage
		}
		if diff := cmp.Diff(failed.Errors, got); diff != "" {
			h.Error(diff)
		}
	})
}
