package service

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// house is a service over a broker over a store in memory.
type house struct {
	*testing.T
	s     *Service
	store *store.Store
	ctx   context.Context
}

// inHouse runs f with a house in fake time.
func inHouse(t *testing.T, o Options, f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Limits == nil {
			oci := limits.OCI()
			o.Limits = &oci
		}
		st, err := store.Open("data", store.Options{FS: testdisk.New(), QuietScheduler: true, MemtableBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		b, err := broker.Open(st, broker.Options{Limits: o.Limits, Checked: true, KeepUnrouted: o.KeepUnrouted})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(&house{T: t, s: New(b, o), store: st, ctx: t.Context()})
	})
}

// create makes a queue of that name, all else by default or as change says.
func (h *house) create(name string, change func(*CreateQueueRequest)) CreateQueueResponse {
	h.Helper()
	r := CreateQueueRequest{DisplayName: &name}
	if change != nil {
		change(&r)
	}
	resp, err := h.s.CreateQueue(h.ctx, r)
	if err != nil {
		h.Fatal(err)
	}
	return resp
}

func (h *house) delete(ref string) {
	h.Helper()
	if _, err := h.s.DeleteQueue(h.ctx, DeleteQueueRequest{QueueRef: ref}); err != nil {
		h.Fatal(err)
	}
}

// put publishes one message for each body, into the channel if it is not "".
func (h *house) put(ref, channel string, bodies ...string) []queue.Published {
	h.Helper()
	r := PutMessagesRequest{QueueRef: ref}
	for _, body := range bodies {
		r.Messages = append(r.Messages, PutMessage{Content: []byte(body), ChannelID: &channel})
	}
	resp, err := h.s.PutMessages(h.ctx, r)
	if err != nil {
		h.Fatal(err)
	}
	return resp.Messages
}

// get takes what is there now and hides it for so many seconds.
func (h *house) get(ref string, visibility int32) []queue.Delivery {
	h.Helper()
	resp, err := h.s.GetMessages(h.ctx, GetMessagesRequest{QueueRef: ref, VisibilityInSeconds: &visibility, TimeoutInSeconds: p(int32(0))})
	if err != nil {
		h.Fatal(err)
	}
	return resp.Messages
}

func (h *house) stats(ref string) (main, dead queue.Stats) {
	h.Helper()
	resp, err := h.s.GetStats(h.ctx, GetStatsRequest{QueueRef: ref})
	if err != nil {
		h.Fatal(err)
	}
	return resp.Queue, resp.DLQ
}

// work is a work request, which must be there.
func (h *house) work(id string) queue.WorkRequest {
	h.Helper()
	resp, err := h.s.GetWorkRequest(h.ctx, GetWorkRequestRequest{WorkRequestID: id})
	if err != nil {
		h.Fatal(err)
	}
	return resp.WorkRequest
}

func (h *house) want(err error, code queue.Code, text string) {
	h.Helper()
	want(h.T, err, code, text)
}
