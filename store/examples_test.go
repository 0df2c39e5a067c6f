package store

import (
	"encoding/json"
	"time"

	"github.com/queued-mq/queued/queue"
)

const exampleAt queue.Instant = 1_767_225_600_000 // 2026-01-01T00:00:00Z

// queueExample is a queue with every field set.
func queueExample() Queue {
	return Queue{Number: 3, DeadThrough: 2, Queue: queue.Queue{
		ID: "ocid1.queue.oc1.local.a", CompartmentID: "ocid1.tenancy.oc1..local", DisplayName: "orders <1>",
		State: queue.Active, LifecycleDetails: "fine", CreatedAt: exampleAt, UpdatedAt: exampleAt + 1,
		Retention: 24 * time.Hour, Visibility: 30 * time.Second, PollingTimeout: 20 * time.Second,
		DeadLetterDeliveryCount: 5, ChannelConsumptionLimit: 80, CustomEncryptionKeyID: "ocid1.key.oc1..a",
		FreeformTags: map[string]string{"b": "2", "a": "1"},
		DefinedTags:  map[string]map[string]json.RawMessage{"ns": {"key": json.RawMessage(`"value"`), "n": json.RawMessage(`1.50`)}},
		SystemTags:   map[string]map[string]json.RawMessage{},
		Version:      4,
	}}
}

// workExample is a work request with every field set.
func workExample() queue.WorkRequest {
	return queue.WorkRequest{
		ID: "wr.1", Operation: queue.PurgeQueue, Status: queue.WorkFailed, CompartmentID: "ocid1.tenancy.oc1..local",
		Resources: []queue.WorkResource{{EntityType: "queue", Action: queue.ActionInProgress, Identifier: "ocid1.queue.oc1.local.a", EntityURI: "/20210201/queues/a"}},
		Percent:   99.5, AcceptedAt: exampleAt, StartedAt: exampleAt + 1, FinishedAt: exampleAt + 2,
		Logs:   []queue.WorkLog{{Message: "begun", At: exampleAt + 1}},
		Errors: []queue.WorkError{{Code: queue.InternalServerError, Message: "no", At: exampleAt + 2}},
	}
}
