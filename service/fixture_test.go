package service

import (
	"testing"
	"time"

	"github.com/queued-mq/queued/queue"
)

// formOnly is a Service without a broker, for what is decided before it.
func formOnly() *Service { return New(nil, Options{}) }

// p is a pointer to a copy of v, as optional fields want it.
func p[T any](v T) *T { return &v }

// orders is a queue with settings that differ from every default.
func orders() queue.Queue {
	return queue.Queue{
		ID:                      "ocid1.queue.oc1.local.orders",
		DisplayName:             "orders",
		CompartmentID:           "ocid1.tenancy.oc1..local",
		State:                   queue.Active,
		Retention:               time.Hour,
		Visibility:              20 * time.Second,
		PollingTimeout:          7 * time.Second,
		DeadLetterDeliveryCount: 3,
		ChannelConsumptionLimit: 50,
		Version:                 42,
	}
}

// want checks the code of err and that its message is all of text, if any is
// given.
func want(t *testing.T, err error, code queue.Code, text string) {
	t.Helper()
	if got := queue.CodeOf(err); got != code {
		t.Errorf("code = %q (%v), want %q", got, err, code)
	} else if text != "" && queue.MessageOf(err) != text {
		t.Errorf("message = %q\n   want = %q", queue.MessageOf(err), text)
	}
}
