package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queued-mq/queued/queue"
)

// NewQueue is a queue to be made at the start, as create-queue describes it.
// What is nil was not said and is as for any queue.
type NewQueue struct {
	DisplayName                  string
	CompartmentID                *string
	RetentionInSeconds           *int32
	VisibilityInSeconds          *int32
	TimeoutInSeconds             *int32
	DeadLetterQueueDeliveryCount *int32
	ChannelConsumptionLimit      *int32
	CustomEncryptionKeyID        *string
	FreeformTags                 map[string]string
}

// Queues reads create-queue. The error holds all that is wrong.
func (c *Config) Queues() ([]NewQueue, error) {
	var queues []NewQueue
	var errs []error
	seen := map[string]bool{}
	for _, text := range c.CreateQueue {
		q, err := parseNewQueue(text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("create-queue %q: %w", text, err))
		case seen[q.DisplayName]:
			errs = append(errs, fmt.Errorf("create-queue %q: that name is there twice", text))
		}
		seen[q.DisplayName] = true
		queues = append(queues, q)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return queues, nil
}

// parseNewQueue reads a display name and, behind commas, settings of the form
// key=value. A display name with a comma cannot be had this way.
func parseNewQueue(text string) (NewQueue, error) {
	name, rest, more := strings.Cut(text, ",")
	q := NewQueue{DisplayName: strings.TrimSpace(name)}
	keys := map[string]func(string) error{
		"dlq":            number(&q.DeadLetterQueueDeliveryCount),
		"visibility":     seconds(&q.VisibilityInSeconds),
		"retention":      seconds(&q.RetentionInSeconds),
		"timeout":        seconds(&q.TimeoutInSeconds),
		"channel-limit":  number(&q.ChannelConsumptionLimit),
		"compartment":    words(&q.CompartmentID),
		"encryption-key": words(&q.CustomEncryptionKeyID),
	}
	legal := slices.Sorted(maps.Keys(keys))

	seen := map[string]bool{}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ",")
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			return q, fmt.Errorf("%q is not of the form key=value", part)
		}
		if seen[key] {
			return q, fmt.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if tag, ok := strings.CutPrefix(key, "tag."); ok && tag != "" {
			if q.FreeformTags == nil {
				q.FreeformTags = map[string]string{}
			}
			q.FreeformTags[tag] = value
			continue
		}
		set := keys[key]
		if set == nil {
			return q, fmt.Errorf("%q is no setting of a queue%s; there are %s and tag.NAME",
				key, meant("", legal, key), strings.Join(legal, ", "))
		}
		if err := set(value); err != nil {
			return q, fmt.Errorf("%s is %q; %w", key, value, err)
		}
	}
	return q, q.validate()
}

// validate checks the ranges as the API would, which names the fields in its
// own way.
func (q *NewQueue) validate() error {
	// The name stands first, so a text that begins with a setting has none.
	if q.DisplayName == "" {
		return errors.New("it must begin with the name of the queue")
	}
	full := queue.Queue{
		DisplayName:             q.DisplayName,
		CompartmentID:           or(q.CompartmentID, "root"),
		Retention:               time.Duration(or(q.RetentionInSeconds, int32(queue.DefaultRetention/time.Second))) * time.Second,
		Visibility:              time.Duration(or(q.VisibilityInSeconds, int32(queue.DefaultVisibility/time.Second))) * time.Second,
		PollingTimeout:          time.Duration(or(q.TimeoutInSeconds, int32(queue.DefaultPoll/time.Second))) * time.Second,
		DeadLetterDeliveryCount: int(or(q.DeadLetterQueueDeliveryCount, 0)),
		ChannelConsumptionLimit: int(or(q.ChannelConsumptionLimit, queue.DefaultConsumption)),
		CustomEncryptionKeyID:   or(q.CustomEncryptionKeyID, ""),
	}
	if err := full.Validate(); err != nil {
		return errors.New(queue.MessageOf(err))
	}
	return nil
}

// or is what p points at, or without one the other.
func or[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

func words(p **string) func(string) error {
	return func(s string) error {
		*p = &s
		return nil
	}
}

func number(p **int32) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return errors.New("it must be a whole number")
		}
		*p = new(int32(n))
		return nil
	}
}

func seconds(p **int32) func(string) error {
	return func(s string) error {
		d, err := parseDuration(s)
		if err != nil {
			return err
		}
		n := int64(d / time.Second)
		if d%time.Second != 0 || int64(int32(n)) != n {
			return errors.New("it must be whole seconds")
		}
		*p = new(int32(n))
		return nil
	}
}
