package service

import (
	"testing"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

func TestReceiveDefaultsAndRanges(t *testing.T) {
	q := orders()
	filter, err := channels.ParseFilter("a*")
	if err != nil {
		t.Fatal(err)
	}
	base := broker.ReceiveRequest{Queue: q.ID, MaxBytes: 2 << 20, Visibility: -1, Wait: 7 * time.Second, Limit: 20}
	for name, c := range map[string]struct {
		in  GetMessagesRequest
		out func(*broker.ReceiveRequest)
	}{
		"nothing":  {GetMessagesRequest{}, func(*broker.ReceiveRequest) {}},
		"empty":    {GetMessagesRequest{ChannelFilter: p(""), ConsumerGroupID: p("")}, func(*broker.ReceiveRequest) {}},
		"zeros":    {GetMessagesRequest{VisibilityInSeconds: p(int32(0)), TimeoutInSeconds: p(int32(0))}, func(r *broker.ReceiveRequest) { r.Visibility, r.Wait = 0, 0 }},
		"greatest": {GetMessagesRequest{VisibilityInSeconds: p(int32(43200)), TimeoutInSeconds: p(int32(30)), Limit: p(int32(20))}, func(r *broker.ReceiveRequest) { r.Visibility, r.Wait, r.Limit = 12*time.Hour, 30*time.Second, 20 }},
		"one":      {GetMessagesRequest{Limit: p(int32(1)), ChannelFilter: p("a*")}, func(r *broker.ReceiveRequest) { r.Limit, r.Filter = 1, filter }},
	} {
		wanted := base
		c.out(&wanted)
		got, err := formOnly().receive(&c.in, &source{queue: q})
		if err != nil || got != wanted {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, wanted)
		}
	}
}

func TestReceiveRefuses(t *testing.T) {
	q := orders()
	for text, in := range map[string]GetMessagesRequest{
		"visibilityInSeconds is -1; it must be 0 to 43200":                                             {VisibilityInSeconds: p(int32(-1))},
		"visibilityInSeconds is 43201; it must be 0 to 43200":                                          {VisibilityInSeconds: p(int32(43201))},
		"timeoutInSeconds is 31; it must be 0 to 30":                                                   {TimeoutInSeconds: p(int32(31))},
		"timeoutInSeconds is -1; it must be 0 to 30":                                                   {TimeoutInSeconds: p(int32(-1))},
		"limit is 0; it must be 1 to 20 (limits.batch-messages)":                                       {Limit: p(int32(0))},
		"limit is 21; it must be 1 to 20 (limits.batch-messages)":                                      {Limit: p(int32(21))},
		"channelFilter must have 1 to 64 characters, each a letter, a digit or one of _ . : @ = + - *": {ChannelFilter: p("a/b")},
	} {
		_, err := formOnly().receive(&in, &source{queue: q})
		want(t, err, queue.InvalidParameter, text)
	}
}

// The default limit is a setting, and never more than what a call may have.
func TestReceiveDefaultLimit(t *testing.T) {
	q := orders()
	small := limits.OCI()
	small.BatchMessages = 5
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{DefaultGetLimit: 3}, 3},
		{Options{Limits: &small}, 5},
		{Options{Limits: &small, DefaultGetLimit: 2}, 2},
	} {
		if got, err := New(nil, c.o).receive(&GetMessagesRequest{}, &source{queue: q}); err != nil || got.Limit != c.want {
			t.Errorf("%d, %v, want %d", got.Limit, err, c.want)
		}
	}
}
