package service

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// CreateConsumerGroupRequest describes a group to be made.
type CreateConsumerGroupRequest struct {
	DisplayName                  *string // mandatory, 1 to 255 characters, none other of the queue bears it whatever the case
	QueueID                      *string // mandatory, OCID or display name
	Filter                       *string // absent or empty: everything
	IsEnabled                    *bool   // absent: it is
	DeadLetterQueueDeliveryCount *int32  // 0 (never) to 20; absent: the queue's
	FreeformTags                 map[string]string
	DefinedTags                  map[string]map[string]json.RawMessage
	RetryToken                   *string // 1 to 64 characters
}

// CreateConsumerGroupResponse tells the new group, which gets what is published
// from now on, and the work request, which is finished already.
type CreateConsumerGroupResponse struct {
	ID             queue.ID
	DisplayName    string
	LifecycleState queue.LifecycleState
	WorkRequestID  string
}

// CreateConsumerGroup makes a group of a queue that has the capability
// CONSUMER_GROUPS. The same retry token with the same body within 24 h gives
// the first answer.
//
// Errors: MissingParameter, InvalidParameter (also for a queue without the
// capability, as wherever a group of such a queue is named: asking again is no
// use, and the SDKs do not), RelatedResourceNotAuthorizedOrNotFound for the
// queue, NotAuthorizedOrResourceAlreadyExists, LimitExceeded,
// InvalidatedRetryToken (the group that the token made has been deleted since).
func (s *Service) CreateConsumerGroup(ctx context.Context, r CreateConsumerGroupRequest) (resp CreateConsumerGroupResponse, err error) {
	defer s.done(ctx, "CreateConsumerGroup", time.Now(), &err)

	c, err := s.groupCreation(&r)
	if err != nil {
		return resp, err
	}
	// A retry is answered as before even if the queue is gone: see replay.
	c.found, c.missing = s.findRelated(ctx, *r.QueueID)
	err = s.broker.Admin(ctx, func(tx *broker.Tx) error {
		resp, err = c.run(tx)
		return err
	})
	if err != nil {
		return CreateConsumerGroupResponse{}, err
	}
	return resp, nil
}

// findRelated is the live queue that a body names.
func (s *Service) findRelated(ctx context.Context, text string) (queue.ID, error) {
	q, err := s.findMain(ctx, text, mayUpdate, "it has no consumer groups of its own")
	if queue.CodeOf(err) == queue.NotAuthorizedOrNotFound {
		return "", unrelated(text)
	}
	return q.ID, err
}

func unrelated(text string) error {
	return queue.Errorf(queue.RelatedResourceNotAuthorizedOrNotFound, "queue %q, which queueId names, is not known, or you may not use it so", text)
}

// groupCreation is a group about to be made: its form is good, what is left
// needs the state of the service.
type groupCreation struct {
	service  *Service
	group    queue.ConsumerGroup // without its queue
	ref      string              // of the queue
	found    queue.ID            // the queue
	missing  error               // why there is no such queue
	work     string              // id of the work request
	token    string              // retry token; "" is none
	bodyHash string
}

// groupCreation checks the form of r.
func (s *Service) groupCreation(r *CreateConsumerGroupRequest) (*groupCreation, error) {
	switch {
	case r.DisplayName == nil:
		return nil, field{name: "displayName"}.missing()
	case r.QueueID == nil:
		return nil, field{name: "queueId"}.missing()
	}
	if err := checkRetryToken(r.RetryToken); err != nil {
		return nil, err
	}
	if err := checkTags(r.FreeformTags, r.DefinedTags); err != nil {
		return nil, err
	}
	c := &groupCreation{service: s, ref: *r.QueueID, token: given(r.RetryToken), group: queue.ConsumerGroup{
		DisplayName:  *r.DisplayName,
		Filter:       given(r.Filter),
		State:        groupState(r.IsEnabled),
		FreeformTags: r.FreeformTags,
		DefinedTags:  r.DefinedTags,
	}}
	if n := r.DeadLetterQueueDeliveryCount; n != nil {
		c.group.DeadLetterDeliveryCount = new(int(*n))
	}
	if err := checkGroup(&c.group, nil); err != nil {
		return nil, err
	}
	var err error
	if c.group.ID, err = s.ocids.group(); err != nil {
		return nil, err
	}
	if c.work, err = s.ocids.workRequest(); err != nil {
		return nil, err
	}
	if c.token != "" {
		body := *r
		body.RetryToken = nil
		c.bodyHash, err = hashOf(&body)
	}
	return c, err
}

// run makes the group, or finds the one that the retry token has made.
func (c *groupCreation) run(tx *broker.Tx) (resp CreateConsumerGroupResponse, err error) {
	if c.token != "" {
		if value, ok := tx.RetryToken(createGroupScope, c.token); ok {
			return c.replay(tx, value)
		}
	}
	if c.missing != nil {
		return resp, c.missing
	}
	q, ok := tx.Queue(c.found) // as it is by now
	if !ok || !q.Live() {
		return resp, unrelated(c.ref)
	}
	if !q.Has(queue.ConsumerGroups) {
		return resp, noGroups("queueId names a queue")
	}
	g := c.group
	g.QueueID, g.CreatedAt, g.UpdatedAt = q.ID, tx.Now(), tx.Now()
	if err := checkName(tx, &g); err != nil {
		return resp, err
	}
	live := 0
	for _, other := range tx.Groups(q.ID) {
		if other.Live() {
			live++
		}
	}
	if err := c.service.limits.CheckGroups(live); err != nil {
		return resp, err
	}
	made := madeGroup{Group: g.ID, WorkRequest: c.work, Body: c.bodyHash}
	value, err := json.Marshal(made)
	if err != nil {
		return resp, fmt.Errorf("keep a retry token: %w", err)
	}

	tx.PutGroup(g)
	resources := []queue.WorkResource{groupResource(g.ID, queue.ActionCreated)}
	tx.PutWorkRequest(succeeded(c.work, queue.CreateConsumerGroup, q.CompartmentID, resources, "consumer group created", tx.Now()))
	if c.token != "" {
		tx.PutRetryToken(createGroupScope, c.token, value)
	}
	return createdGroup(&g, c.work), nil
}

// createGroupScope keeps the retry tokens of CreateConsumerGroup apart from
// others.
const createGroupScope = "CreateConsumerGroup"

// madeGroup is what a retry token of CreateConsumerGroup stands for. It is
// stored: new fields may come, none may change its meaning.
type madeGroup struct {
	Group       queue.ID `json:"group"`
	WorkRequest string   `json:"workRequest"`
	Body        string   `json:"body"`
}

// replay answers a retry token that was seen before.
func (c *groupCreation) replay(tx *broker.Tx, value []byte) (resp CreateConsumerGroupResponse, err error) {
	var made madeGroup
	if err := json.Unmarshal(value, &made); err != nil {
		return resp, fmt.Errorf("read a retry token: %w", err)
	}
	if made.Body != c.bodyHash {
		return resp, field{name: "opc-retry-token"}.invalid("was used for another consumer group; use a new one for a new request")
	}
	g, ok := tx.Group(made.Group)
	if !ok || !g.Live() {
		return resp, queue.Errorf(queue.InvalidatedRetryToken, "the consumer group made with this opc-retry-token has been deleted; use a new token")
	}
	return createdGroup(&g, made.WorkRequest), nil
}

func createdGroup(g *queue.ConsumerGroup, work string) CreateConsumerGroupResponse {
	return CreateConsumerGroupResponse{ID: g.ID, DisplayName: g.DisplayName, LifecycleState: g.State, WorkRequestID: work}
}
