package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// CreateQueueRequest describes a queue to be made.
type CreateQueueRequest struct {
	DisplayName                  *string // mandatory, 1 to 255 characters
	CompartmentID                *string // absent: the root compartment
	RetentionInSeconds           *int32  // 10 to 604800; absent: 86400
	VisibilityInSeconds          *int32  // 1 to 43200; absent: 30
	TimeoutInSeconds             *int32  // 0 to 30; absent: 30
	ChannelConsumptionLimit      *int32  // 1 to 100; absent: 100
	DeadLetterQueueDeliveryCount *int32  // 0 (never) to 20; absent: the server's default
	CustomEncryptionKeyID        *string
	Capabilities                 []CapabilityDetails
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
	RetryToken                   *string // 1 to 64 characters
}

// CreateQueueResponse tells the new queue, which serves already, and the work
// request, which is finished already.
type CreateQueueResponse struct {
	ID             queue.ID
	DisplayName    string
	LifecycleState queue.LifecycleState
	WorkRequestID  string
}

// CreateQueue makes a queue. The same retry token with the same body within
// 24 h gives the first answer.
//
// Errors: MissingParameter, InvalidParameter, LimitExceeded,
// InvalidatedRetryToken (the queue that the token made has been deleted since).
func (s *Service) CreateQueue(ctx context.Context, r CreateQueueRequest) (resp CreateQueueResponse, err error) {
	defer s.done(ctx, "CreateQueue", time.Now(), &err)

	c, err := s.creation(ctx, &r)
	if err != nil {
		return resp, err
	}
	err = s.broker.Admin(ctx, func(tx *broker.Tx) error {
		resp, err = c.run(tx)
		return err
	})
	if err != nil {
		return CreateQueueResponse{}, err
	}
	return resp, nil
}

// EnsureQueue makes the queue unless a live one bears its display name, and
// tells which one it is and whether it was made now.
func (s *Service) EnsureQueue(ctx context.Context, r CreateQueueRequest) (id queue.ID, made bool, err error) {
	defer s.done(ctx, "CreateQueue", time.Now(), &err)

	c, err := s.creation(ctx, &r)
	if err != nil {
		return "", false, err
	}
	err = s.broker.Admin(ctx, func(tx *broker.Tx) error {
		for q := range tx.Queues() {
			if q.Live() && q.DisplayName == c.queue.DisplayName {
				id = q.ID
				return nil
			}
		}
		resp, err := c.run(tx)
		id, made = resp.ID, err == nil
		return err
	})
	if err != nil {
		return "", false, err
	}
	return id, made, nil
}

// creation is a queue about to be made: its form is good, what is left needs
// the state of the service.
type creation struct {
	service  *Service
	queue    queue.Queue
	primary  *queue.ConsumerGroup // to be made with it; nil: none
	work     string               // id of the work request
	token    string               // retry token; "" is none
	bodyHash string
}

// creation checks the form of r and who asks.
func (s *Service) creation(ctx context.Context, r *CreateQueueRequest) (*creation, error) {
	if !s.may(ctx, mayCreate, nil) {
		return nil, queue.Errorf(queue.NotAuthorizedOrNotFound, "you may not create queues")
	}
	if err := checkRetryToken(r.RetryToken); err != nil {
		return nil, err
	}
	q, err := s.newQueue(r)
	if err != nil {
		return nil, err
	}
	wanted, err := s.readCapabilities(r.Capabilities)
	if err != nil {
		return nil, err
	}
	primary, err := wanted.add(&q)
	if err != nil {
		return nil, err
	}
	c := &creation{service: s, queue: q, primary: primary, token: given(r.RetryToken)}
	if c.queue.ID, err = s.ocids.queue(); err != nil {
		return nil, err
	}
	if c.work, err = s.ocids.workRequest(); err != nil {
		return nil, err
	}
	if c.token != "" {
		c.bodyHash, err = r.hash()
	}
	return c, err
}

// newQueue is the queue that r describes, without what only its birth gives.
func (s *Service) newQueue(r *CreateQueueRequest) (queue.Queue, error) {
	if r.DisplayName == nil {
		return queue.Queue{}, field{name: "displayName"}.missing()
	}
	if err := checkTags(r.FreeformTags, r.DefinedTags); err != nil {
		return queue.Queue{}, err
	}
	q := queue.Queue{
		DisplayName:             *r.DisplayName,
		CompartmentID:           s.ocids.rootCompartment(),
		State:                   queue.Active,
		Retention:               secondsOr(r.RetentionInSeconds, queue.DefaultRetention),
		Visibility:              secondsOr(r.VisibilityInSeconds, queue.DefaultVisibility),
		PollingTimeout:          secondsOr(r.TimeoutInSeconds, queue.DefaultPoll),
		DeadLetterDeliveryCount: numberOr(r.DeadLetterQueueDeliveryCount, s.deliveryCount),
		ChannelConsumptionLimit: numberOr(r.ChannelConsumptionLimit, queue.DefaultConsumption),
		CustomEncryptionKeyID:   given(r.CustomEncryptionKeyID),
		FreeformTags:            r.FreeformTags,
		DefinedTags:             r.DefinedTags,
	}
	if r.CompartmentID != nil {
		q.CompartmentID = *r.CompartmentID
	}
	return q, q.Validate()
}

// hash is the same for the same body only.
func (r *CreateQueueRequest) hash() (string, error) {
	body := *r
	body.RetryToken = nil
	return hashOf(&body)
}

// hashOf is the same for the same body only. Maps are hashed in the order of
// their keys.
func hashOf(body any) (string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("hash the body of a request: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// run makes the queue, or finds the one that the retry token has made.
func (c *creation) run(tx *broker.Tx) (resp CreateQueueResponse, err error) {
	if c.token != "" {
		if value, ok := tx.RetryToken(createScope, c.token); ok {
			return c.replay(tx, value)
		}
	}
	if most := c.service.limits.QueuesPerTenancy; most > 0 {
		live := 0
		for q := range tx.Queues() {
			if q.State != queue.Deleted {
				live++
			}
		}
		if err := c.service.limits.CheckQueues(live); err != nil {
			return resp, err
		}
	}
	made := madeQueue{Queue: c.queue.ID, WorkRequest: c.work, Body: c.bodyHash}
	value, err := json.Marshal(made)
	if err != nil {
		return resp, fmt.Errorf("keep a retry token: %w", err)
	}

	q := c.queue
	q.CreatedAt, q.UpdatedAt = tx.Now(), tx.Now()
	tx.PutQueue(q)
	done := changed{queue: q, made: putPrimary(tx, &q, c.primary), did: "queue created"}
	tx.PutWorkRequest(finished(c.work, queue.CreateQueue, queue.ActionCreated, &done, tx.Now()))
	if c.token != "" {
		tx.PutRetryToken(createScope, c.token, value)
	}
	return created(&q, c.work), nil
}

// createScope keeps the retry tokens of CreateQueue apart from others. Once
// callers are known, theirs will be apart too.
const createScope = "CreateQueue"

// madeQueue is what a retry token of CreateQueue stands for. It is stored: new
// fields may come, none may change its meaning.
type madeQueue struct {
	Queue       queue.ID `json:"queue"`
	WorkRequest string   `json:"workRequest"`
	Body        string   `json:"body"`
}

// replay answers a retry token that was seen before.
func (c *creation) replay(tx *broker.Tx, value []byte) (resp CreateQueueResponse, err error) {
	var made madeQueue
	if err := json.Unmarshal(value, &made); err != nil {
		return resp, fmt.Errorf("read a retry token: %w", err)
	}
	if made.Body != c.bodyHash {
		return resp, field{name: "opc-retry-token"}.invalid("was used for another queue; use a new one for a new request")
	}
	q, ok := tx.Queue(made.Queue)
	if !ok || q.State == queue.Deleted {
		return resp, queue.Errorf(queue.InvalidatedRetryToken, "the queue made with this opc-retry-token has been deleted; use a new token")
	}
	return created(&q, made.WorkRequest), nil
}

func created(q *queue.Queue, work string) CreateQueueResponse {
	return CreateQueueResponse{ID: q.ID, DisplayName: q.DisplayName, LifecycleState: q.State, WorkRequestID: work}
}

// secondsOr is v as a length, its range not looked at, or absent.
func secondsOr(v *int32, absent time.Duration) time.Duration {
	if v == nil {
		return absent
	}
	return time.Duration(*v) * time.Second
}

func numberOr(v *int32, absent int) int {
	if v == nil {
		return absent
	}
	return int(*v)
}
