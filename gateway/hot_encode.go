package gateway

import (
	"strconv"

	"github.com/queued-mq/queued/gateway/wire"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// These write what appendMessage would write of the same answer; the parity
// test compares the octets.

// appendPublished is the answer to PutMessages.
func appendPublished(dst []byte, messages []queue.Published) []byte {
	dst = append(dst, `{"messages":[`...)
	for i := range messages {
		m := &messages[i]
		dst = append(dst, `{"id":`...)
		dst = strconv.AppendUint(dst, uint64(m.ID), 10)
		dst = appendInstant(dst, `,"expireAfter":`, m.ExpireAfter)
		dst = append(dst, '}', ',')
	}
	return endList(dst)
}

// endList closes a list whose entries each end with a comma, and the object
// around it.
func endList(dst []byte) []byte {
	if last := len(dst) - 1; dst[last] == ',' {
		dst = dst[:last]
	}
	return append(dst, ']', '}')
}

func appendInstant(dst []byte, name string, i queue.Instant) []byte {
	if i == 0 {
		return dst
	}
	return wire.AppendInstant(append(dst, name...), i)
}

// appendDeliveries is the answer to GetMessages. Content that is no text is
// spelled in base64 and marked so, and all content if base64 is set.
func appendDeliveries(dst []byte, messages []queue.Delivery, base64 bool) []byte {
	dst = append(dst, `{"messages":[`...)
	for i := range messages {
		dst = append(appendDelivery(dst, &messages[i], base64), ',')
	}
	return endList(dst)
}

func appendDelivery(dst []byte, m *queue.Delivery, base64 bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = strconv.AppendUint(dst, uint64(m.ID), 10)
	dst = append(dst, `,"content":`...)
	if base64 = base64 || !wire.IsText(m.Body); base64 {
		dst = wire.AppendBase64(dst, m.Body)
	} else {
		dst = wire.AppendString(dst, m.Body)
	}
	dst = append(dst, `,"receipt":`...)
	dst = wire.AppendString(dst, string(m.Receipt))
	dst = append(dst, `,"deliveryCount":`...)
	dst = strconv.AppendInt(dst, int64(m.DeliveryCount), 10)
	dst = appendInstant(dst, `,"visibleAfter":`, m.VisibleAfter)
	dst = appendInstant(dst, `,"expireAfter":`, m.ExpireAfter)
	dst = appendInstant(dst, `,"createdAt":`, m.CreatedAt)
	dst = appendMetadata(dst, m, base64)
	if base64 {
		dst = append(dst, `,"contentEncoding":"base64"`...)
	}
	if d := m.DeadLetter; d != nil {
		dst = append(dst, `,"deadLetter":{"reason":`...)
		dst = wire.AppendString(dst, d.Reason)
		dst = append(dst, `,"deliveryCount":`...)
		dst = strconv.AppendInt(dst, int64(d.DeliveryCount), 10)
		if d.Channel != "" {
			dst = append(dst, `,"channelId":`...)
			dst = wire.AppendString(dst, d.Channel)
		}
		dst = appendInstant(dst, `,"at":`, d.At)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendMetadata(dst []byte, m *queue.Delivery, base64 bool) []byte {
	if m.Channel == "" && len(m.Properties) == 0 && !base64 {
		return dst
	}
	dst = append(dst, `,"metadata":{`...)
	if m.Channel != "" {
		dst = append(dst, `"channelId":`...)
		dst = wire.AppendString(dst, m.Channel)
	}
	if len(m.Properties) > 0 || base64 {
		if m.Channel != "" {
			dst = append(dst, ',')
		}
		dst = append(dst, `"customProperties":{`...)
		for i := range m.Properties {
			p := &m.Properties[i]
			if base64 && p.Name > reservedProperty {
				dst, base64 = append(dst, `"content-encoding":"base64",`...), false
			}
			dst = append(wire.AppendString(dst, p.Name), ':')
			dst = append(wire.AppendString(dst, p.Value), ',')
		}
		if base64 {
			dst = append(dst, `"content-encoding":"base64",`...)
		}
		dst[len(dst)-1] = '}'
	}
	return append(dst, '}')
}

// appendUpdated is the answer to UpdateMessage, and an entry of the answer to
// UpdateMessages.
func appendUpdated(dst []byte, id queue.MessageID, visibleAfter queue.Instant) []byte {
	dst = append(dst, `{"id":`...)
	dst = strconv.AppendUint(dst, uint64(id), 10)
	dst = appendInstant(dst, `,"visibleAfter":`, visibleAfter)
	return append(dst, '}')
}

// appendFailures begins the answer to a batch, up to its entries.
func appendFailures(dst []byte, server, client int) []byte {
	dst = append(dst, `{"serverFailures":`...)
	dst = strconv.AppendInt(dst, int64(server), 10)
	dst = append(dst, `,"clientFailures":`...)
	dst = strconv.AppendInt(dst, int64(client), 10)
	return append(dst, `,"entries":[`...)
}

// appendFailure is an entry of the answer to a batch; success is {}.
func appendFailure(dst []byte, f service.Failure) []byte {
	if !f.Failed() {
		return append(dst, '{', '}')
	}
	dst = append(dst, `{"errorCode":`...)
	dst = strconv.AppendInt(dst, int64(f.ErrorCode), 10)
	dst = append(dst, `,"errorMessage":`...)
	dst = wire.AppendString(dst, f.ErrorMessage)
	return append(dst, '}')
}
