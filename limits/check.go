package limits

import (
	"unicode/utf8"

	"github.com/queued-mq/queued/queue"
)

// CheckMessage checks the size of a message (PayloadTooLarge) and the number
// and form of its properties (InvalidParameter). Its channel and its times are
// not looked at. Large says that its queue has the capability LARGE_MESSAGES.
func (s *Settings) CheckMessage(m *queue.NewMessage, large bool) error {
	most, key := s.MessageBytes, "limits.message-bytes"
	if large {
		most, key = s.LargeMessageBytes, "limits.large-message-bytes"
	}
	if n := m.Size(); n > most {
		return queue.Errorf(queue.PayloadTooLarge,
			"a message has %d octets of content and properties; it may have %d (%s)", n, most, key)
	}
	if n := int64(len(m.Properties)); n > s.PropertiesPerMessage {
		return queue.Errorf(queue.InvalidParameter,
			"a message has %d properties; it may have %d (limits.properties-per-message)", n, s.PropertiesPerMessage)
	}
	for _, p := range m.Properties {
		if err := s.checkProperty(p); err != nil {
			return err
		}
	}
	if n := int64(len(m.ContentType)); n > s.PropertyBytes {
		return queue.Errorf(queue.InvalidParameter,
			"content-type has %d octets; it may have %d (limits.property-bytes)", n, s.PropertyBytes)
	}
	if !utf8.ValidString(m.ContentType) {
		return queue.Errorf(queue.InvalidParameter, "content-type is not UTF-8")
	}
	return nil
}

func (s *Settings) checkProperty(p queue.Property) error {
	n := int64(len(p.Name))
	if n > s.PropertyNameBytes {
		return queue.Errorf(queue.InvalidParameter,
			"the name of a property has %d octets; it may have %d (limits.property-name-bytes)", n, s.PropertyNameBytes)
	}
	if n == 0 || !propertyName(p.Name) {
		return queue.Errorf(queue.InvalidParameter,
			"%q is no name for a property: it must have 1 to %d characters, each a letter, a digit or one of _ . - (limits.property-name-bytes)",
			p.Name, s.PropertyNameBytes)
	}
	if n := int64(len(p.Value)); n > s.PropertyBytes {
		return queue.Errorf(queue.InvalidParameter,
			"the value of property %q has %d octets; it may have %d (limits.property-bytes)", p.Name, n, s.PropertyBytes)
	}
	if !utf8.ValidString(p.Value) {
		return queue.Errorf(queue.InvalidParameter, "the value of property %q is not UTF-8", p.Name)
	}
	return nil
}

// propertyName reports whether every character is legal in a property's name.
func propertyName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckBatch checks the number of messages or entries of one request: 1 to
// batch-messages, else InvalidParameter.
func (s *Settings) CheckBatch(n int) error {
	if n < 1 || int64(n) > s.BatchMessages {
		return queue.Errorf(queue.InvalidParameter,
			"a request has %d entries; it must have 1 to %d (limits.batch-messages)", n, s.BatchMessages)
	}
	return nil
}

// CheckRequestBytes checks the size of all messages of a publish together,
// else PayloadTooLarge. Large is as of CheckMessage.
func (s *Settings) CheckRequestBytes(n int64, large bool) error {
	most, key := s.RequestBytes, "limits.request-bytes"
	if large {
		most, key = s.LargeRequestBytes, "limits.large-request-bytes"
	}
	if n > most {
		return queue.Errorf(queue.PayloadTooLarge,
			"a request has %d octets of content and properties; it may have %d (%s)", n, most, key)
	}
	return nil
}

// CheckPage checks the size of a page of a list: 1 to list-page, else
// InvalidParameter.
func (s *Settings) CheckPage(limit int) error {
	if limit < 1 || int64(limit) > s.ListPage {
		return queue.Errorf(queue.InvalidParameter,
			"limit is %d; it must be 1 to %d (limits.list-page)", limit, s.ListPage)
	}
	return nil
}

// CheckQueues says whether a tenancy that has so many queues may have one
// more, else LimitExceeded.
func (s *Settings) CheckQueues(have int) error {
	if s.QueuesPerTenancy > 0 && int64(have) >= s.QueuesPerTenancy {
		return queue.Errorf(queue.LimitExceeded,
			"the tenancy has %d queues; it may have %d (limits.queues-per-tenancy)", have, s.QueuesPerTenancy)
	}
	return nil
}

// CheckChannels says whether a queue whose messages lie in so many channels
// may use one more, else LimitExceeded.
func (s *Settings) CheckChannels(have int) error {
	if int64(have) >= s.ChannelsPerQueue {
		return queue.Errorf(queue.LimitExceeded,
			"the queue has %d channels; it may have %d (limits.channels-per-queue)", have, s.ChannelsPerQueue)
	}
	return nil
}

// CheckGroups says whether a queue that has so many consumer groups may have
// one more, else LimitExceeded.
func (s *Settings) CheckGroups(have int) error {
	if int64(have) >= s.GroupsPerQueue {
		return queue.Errorf(queue.LimitExceeded,
			"the queue has %d consumer groups; it may have %d (limits.groups-per-queue)", have, s.GroupsPerQueue)
	}
	return nil
}

// CheckQueueBytes says whether a queue that stores have octets may store add
// more, else LimitExceeded. Both are 0 or more.
func (s *Settings) CheckQueueBytes(have, add int64) error {
	if s.BytesPerQueue > 0 && over(have, add, s.BytesPerQueue) {
		return queue.Errorf(queue.LimitExceeded,
			"the queue stores %d octets, %d more are too many; it may store %d (limits.bytes-per-queue)", have, add, s.BytesPerQueue)
	}
	return nil
}

// CheckTenancyBytes is CheckQueueBytes for all queues of a tenancy together.
func (s *Settings) CheckTenancyBytes(have, add int64) error {
	if s.BytesPerTenancy > 0 && over(have, add, s.BytesPerTenancy) {
		return queue.Errorf(queue.LimitExceeded,
			"the tenancy stores %d octets, %d more are too many; it may store %d (limits.bytes-per-tenancy)", have, add, s.BytesPerTenancy)
	}
	return nil
}

// CheckChannelBytes is CheckQueueBytes for one channel, which may take this
// many percent of its queue's storage. When the queue's has no limit, neither
// has the channel's, nor at 100 percent.
func (s *Settings) CheckChannelBytes(have, add int64, percent int) error {
	if s.BytesPerQueue == 0 || percent >= 100 {
		return nil
	}
	share := s.BytesPerQueue/100*int64(percent) + s.BytesPerQueue%100*int64(percent)/100
	if over(have, add, share) {
		return queue.Errorf(queue.LimitExceeded,
			"the channel stores %d octets, %d more are too many; it may store %d, which is the queue's channelConsumptionLimit of %d percent of %d (limits.bytes-per-queue)",
			have, add, share, percent, s.BytesPerQueue)
	}
	return nil
}

// over reports whether add on top of have is more than limit.
func over(have, add, limit int64) bool { return add > limit-have }

// CheckPolls says whether one more get may wait for a message while so many
// wait for messages of its queue and of all queues, else ServiceUnavailable.
func (s *Settings) CheckPolls(ofQueue, total int) error {
	if int64(ofQueue) >= s.OpenPollsPerQueue {
		return queue.Errorf(queue.ServiceUnavailable,
			"%d gets wait for messages of this queue already (limits.open-polls-per-queue)", ofQueue)
	}
	if int64(total) >= s.OpenPollsTotal {
		return queue.Errorf(queue.ServiceUnavailable,
			"%d gets wait for messages already (limits.open-polls-total)", total)
	}
	return nil
}

// CheckPending says whether a request of add octets may wait for its turn
// while so many requests with so many octets of its queue wait already, else
// ServiceUnavailable. A request that is alone may be of any size.
func (s *Settings) CheckPending(requests int, have, add int64) error {
	if int64(requests) >= s.PendingRequestsPerQueue {
		return queue.Errorf(queue.ServiceUnavailable,
			"%d requests for this queue wait already (limits.pending-requests-per-queue)", requests)
	}
	if requests > 0 && over(have, add, s.PendingBytesPerQueue) {
		return queue.Errorf(queue.ServiceUnavailable,
			"requests of %d octets for this queue wait already (limits.pending-bytes-per-queue)", have)
	}
	return nil
}
