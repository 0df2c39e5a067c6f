package stomp

import (
	"strconv"
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// omittedHeader names the properties that the version of the connection cannot
// say as headers: 1.0 has no way to write a line end, 1.1 none for a CR.
const omittedHeader = "omitted-properties"

// appendMessage appends the MESSAGE frame of m. What is the same for all
// messages of the subscription stands in u.prefix and u.destination.
func (u *subscription) appendMessage(dst []byte, m *queue.Delivery) []byte {
	v := u.conn.version
	number := func(name string, n int64) {
		dst = append(dst, name...)
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, '\n')
	}
	plain := func(name, value string) { // nothing in it needs an escape
		dst = append(append(append(append(dst, name...), ':'), value...), '\n')
	}
	text := func(name, value string) bool {
		var ok bool
		dst, ok = frame.AppendHeader(dst, v, name, value)
		return ok
	}
	dst = append(dst, u.prefix...)
	if m.Channel != "" && u.everyChannel {
		text("destination", u.at+"/"+m.Channel)
	} else {
		dst = append(dst, u.destination...)
	}
	if v == frame.V12 {
		number("message-id", int64(m.ID))
		if u.mode != auto {
			plain("ack", string(m.Receipt))
		}
	} else {
		plain("message-id", string(m.Receipt))
	}
	dst = frame.AppendContentLength(dst, len(m.Body))
	omitted := ""
	if m.ContentType != "" && !text("content-type", m.ContentType) {
		omitted = "content-type"
	}
	number("expire-after", int64(m.ExpireAfter))
	number("visible-after", int64(m.VisibleAfter))
	number("delivery-count", int64(m.DeliveryCount))
	number("oci-message-id", int64(m.ID))
	number("timestamp", int64(m.CreatedAt))
	plain("redelivered", strconv.FormatBool(m.DeliveryCount > 1))
	if dead := m.DeadLetter; dead != nil {
		text("dead-letter-reason", dead.Reason)
		number("dead-letter-delivery-count", int64(dead.DeliveryCount))
		number("dead-letter-at", int64(dead.At))
	}
	for _, p := range m.Properties {
		switch kindOf(p.Name) {
		case customHeader, addition:
			if text(p.Name, p.Value) {
				continue
			}
		}
		omitted = strings.TrimPrefix(omitted+","+p.Name, ",")
	}
	if omitted != "" {
		text(omittedHeader, omitted)
	}
	return frame.AppendBody(dst, m.Body)
}
