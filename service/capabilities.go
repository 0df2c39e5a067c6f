package service

import (
	"context"
	"slices"
	"strings"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/queue"
)

// CapabilityDetails asks for a capability. The other fields belong to
// CONSUMER_GROUPS.
type CapabilityDetails struct {
	Type                                             string
	IsPrimaryConsumerGroupEnabled                    *bool
	PrimaryConsumerGroupDisplayName                  *string
	PrimaryConsumerGroupFilter                       *string
	PrimaryConsumerGroupDeadLetterQueueDeliveryCount *int32
}

// capabilities is what a request asks for: each once, in the order in which
// they are named.
type capabilities struct {
	all     []queue.Capability
	primary queue.ConsumerGroup // of CONSUMER_GROUPS, but for its queue and its times
	wrong   error               // of its settings, which count only where it is made
}

// defaultPrimary is the display name of a primary group that is given none.
const defaultPrimary = "Primary Consumer Group"

// readCapabilities checks the form of what is asked for. Who names a capability
// twice has it as the first time says, as who names one that the queue has.
func (s *Service) readCapabilities(asked []CapabilityDetails) (c capabilities, err error) {
	for i := range asked {
		at := func(name string) field { return field{list: "capabilities", at: i, name: name} }
		if asked[i].Type == "" {
			return c, at("type").missing()
		}
		one, err := enum(at("type").String(), &asked[i].Type, "", queue.ConsumerGroups, queue.LargeMessages)
		if err != nil {
			return c, err
		}
		if slices.Contains(c.all, one) {
			continue
		}
		c.all = append(c.all, one)
		if one == queue.ConsumerGroups {
			if c.primary, err = s.newPrimary(&asked[i]); err != nil {
				return c, err
			}
			c.wrong = checkGroup(&c.primary, func(name string) string {
				return at("primaryConsumerGroup" + strings.ToUpper(name[:1]) + name[1:]).String()
			})
		}
	}
	return c, nil
}

// newPrimary is the primary group that d describes.
func (s *Service) newPrimary(d *CapabilityDetails) (g queue.ConsumerGroup, err error) {
	if g.ID, err = s.ocids.group(); err != nil {
		return g, err
	}
	g.State = groupState(d.IsPrimaryConsumerGroupEnabled)
	g.DisplayName = defaultPrimary
	if d.PrimaryConsumerGroupDisplayName != nil {
		g.DisplayName = *d.PrimaryConsumerGroupDisplayName
	}
	if d.PrimaryConsumerGroupFilter != nil {
		g.Filter = *d.PrimaryConsumerGroupFilter
	}
	if n := d.PrimaryConsumerGroupDeadLetterQueueDeliveryCount; n != nil {
		g.DeadLetterDeliveryCount = new(int(*n))
	}
	return g, nil
}

// add gives q what it does not have yet, and is the primary group that must be
// made with it, nil if none. Nothing takes a capability away: what a request
// leaves out stays. An error is of the settings of the primary group.
func (c *capabilities) add(q *queue.Queue) (primary *queue.ConsumerGroup, err error) {
	for _, one := range c.all {
		if q.Has(one) {
			continue
		}
		q.Capabilities = append(slices.Clip(q.Capabilities), one)
		if one == queue.ConsumerGroups {
			primary, err = &c.primary, c.wrong
		}
	}
	return primary, err
}

// putPrimary makes the primary group of q, if there is one to be made, and is
// what was made. It has the messages that are there.
func putPrimary(tx *broker.Tx, q *queue.Queue, primary *queue.ConsumerGroup) []queue.ConsumerGroup {
	if primary == nil {
		return nil
	}
	g := *primary
	g.QueueID, g.CreatedAt, g.UpdatedAt = q.ID, tx.Now(), tx.Now()
	tx.PutGroup(g)
	return []queue.ConsumerGroup{g}
}

// TakesLarge reports whether a live queue of that name or OCID has the
// capability LARGE_MESSAGES. A face asks it how much of a request to read at
// most; whether the caller may publish is not looked at.
func (s *Service) TakesLarge(ctx context.Context, ref string) bool {
	q, _, err := s.find(ctx, ref, mayProduce)
	return err == nil && q.Has(queue.LargeMessages)
}
