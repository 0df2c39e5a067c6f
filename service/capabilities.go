package service

import (
	"context"
	"slices"

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

// readCapabilities checks the form of what is asked for and gives each
// capability once, in the order in which it is named. Who names one twice has
// it the first time, as who names one that the queue has already.
//
// CONSUMER_GROUPS is not built yet, which is MethodNotImplemented: the value is
// right and asking again is no use, which is what 501 says to the SDKs (they
// neither retry it nor count it against their circuit breaker), while
// InvalidParameter would send people looking for a typing error.
func readCapabilities(wanted []CapabilityDetails) (all []queue.Capability, err error) {
	for i := range wanted {
		f := field{list: "capabilities", at: i, name: "type"}
		if wanted[i].Type == "" {
			return nil, f.missing()
		}
		c, err := enum(f.String(), &wanted[i].Type, "", queue.ConsumerGroups, queue.LargeMessages)
		if err != nil {
			return nil, err
		}
		if c == queue.ConsumerGroups {
			return nil, queue.Errorf(queue.MethodNotImplemented, "the capability %s is not built yet", c)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all, nil
}

// addCapabilities gives q what it does not have yet. Nothing takes one away:
// what an update leaves out stays.
func addCapabilities(q *queue.Queue, wanted []queue.Capability) {
	for _, c := range wanted {
		if !q.Has(c) {
			q.Capabilities = append(slices.Clip(q.Capabilities), c)
		}
	}
}

// TakesLarge reports whether a live queue of that name or OCID has the
// capability LARGE_MESSAGES. A face asks it how much of a request to read at
// most; whether the caller may publish is not looked at.
func (s *Service) TakesLarge(ctx context.Context, ref string) bool {
	q, _, err := s.find(ctx, ref, mayProduce)
	return err == nil && q.Has(queue.LargeMessages)
}
