package service

import (
	"context"
	"fmt"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// PurgeQueueRequest removes the messages a queue holds now.
type PurgeQueueRequest struct {
	QueueRef        string
	IfMatch         *string  // an etag, or "*"
	PurgeType       *string  // mandatory: NORMAL, DLQ or BOTH, in any case
	ChannelIDs      []string // these channels alone, to 256; nil or empty: the whole queue
	ConsumerGroupID *string  // absent or empty: the primary group; "all": every group
}

// PurgeQueue removes messages, those in flight included; they are neither
// delivered nor counted from the answer on.
// The queue itself does not change, nor does its etag.
func (s *Service) PurgeQueue(ctx context.Context, r PurgeQueueRequest) (resp WorkRequestResponse, err error) {
	defer s.done(ctx, "PurgeQueue", time.Now(), &err)

	what, err := r.check()
	if err != nil {
		return resp, err
	}
	return s.apply(ctx, change{
		operation: queue.PurgeQueue,
		need:      mayUpdate,
		ref:       r.QueueRef,
		ifMatch:   r.IfMatch,
		noDead:    "purge the queue with purgeType DLQ",
		action:    queue.ActionUpdated,
		run: func(tx *broker.Tx, q queue.Queue) (changed, error) {
			groups, err := purged(tx, &q, given(r.ConsumerGroupID))
			if err != nil {
				return changed{}, err
			}
			var which []string // nil: all
			if len(r.ChannelIDs) > 0 {
				which = r.ChannelIDs
			}
			n := int64(0)
			for _, group := range groups {
				n += tx.Purge(q.ID, group, what, which)
			}
			return changed{queue: q, did: fmt.Sprintf("%s purge removed %d messages", what, n)}, nil
		},
	})
}

// maxPurgeChannels is how many channels one purge may name.
const maxPurgeChannels = 256

// check checks the form of a purge.
func (r *PurgeQueueRequest) check() (queue.PurgeType, error) {
	if r.PurgeType == nil {
		return "", field{name: "purgeType"}.missing()
	}
	what, err := queue.ParsePurgeType(*r.PurgeType)
	if err != nil {
		return "", err
	}
	if n := len(r.ChannelIDs); n > maxPurgeChannels {
		return "", field{name: "channelIds"}.invalid("names %d channels; it may name %d", n, maxPurgeChannels)
	}
	for i, id := range r.ChannelIDs {
		// An empty text more likely is a variable that was not set than
		// the wish to purge what lies outside all channels.
		if id == "" {
			return "", queue.Errorf(queue.InvalidParameter, "channelIds[%d] is empty", i)
		}
		if err := channels.Validate(id); err != nil {
			return "", within("channelIds", i, err)
		}
	}
	return what, nil
}

// purged are the consumer groups of q that a purge of the group that text names
// is about.
//
// Errors: as of Service.group.
func purged(tx *broker.Tx, q *queue.Queue, text string) (ids []queue.ID, err error) {
	switch {
	case text == "", text == allGroups && !q.Has(queue.ConsumerGroups): // a queue without groups is the one group it has
		return []queue.ID{""}, nil
	case !q.Has(queue.ConsumerGroups):
		return nil, noGroups("consumerGroupId is given")
	}
	for _, g := range tx.Groups(q.ID) {
		if g.Live() && (text == allGroups || string(g.ID) == text || g.Named(text)) {
			ids = append(ids, g.ID)
		}
	}
	if text == allGroups {
		ids = append(ids, queue.UnroutedGroup) // what was for none of them
	}
	if len(ids) == 0 {
		return nil, unknownGroup(text)
	}
	return ids, nil
}

// allGroups in place of a consumer group means every one.
const allGroups = "all"
