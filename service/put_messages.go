package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/channels"
	"github.com/queued-mq/queued/queue"
)

// PutMessagesRequest publishes 1 to 20 messages to one queue, all or nothing.
type PutMessagesRequest struct {
	QueueRef   string       // OCID or display name
	Messages   []PutMessage // mandatory; nil is absent
	RetryToken *string      // 1 to 64 characters: the same token on the same queue within 24 h gives the first answer

	// TextOnly is set by a face whose bodies are text (REST): it alone cannot
	// carry any octets, so there the reserved property stands for the field.
	// See PutMessage.Properties.
	TextOnly bool
}

// PutMessage is one message to publish. Content and Properties belong to the
// service from the call on and must not be changed any more.
type PutMessage struct {
	// Content is mandatory: nil is absent, an empty slice is an empty body.
	Content []byte

	// ContentEncoding says how Content spells the body: absent or "" as it is,
	// "base64" (in any case) as standard base64 with padding, decoded here
	// before anything is counted or stored.
	ContentEncoding *string

	// ContentType is what a STOMP SEND gave; "" is none.
	ContentType string

	// ChannelID is the channel; nil and "" both mean the queue itself.
	ChannelID *string

	// Properties are the custom properties in any order, each name once.
	//
	// The name "content-encoding" is reserved: it is how a body that is no
	// text is marked for readers who know only OCI's fields. Such a reader who
	// hands back what it was given (a redrive from a dead letter queue) must
	// not be refused and must not store the spelling for the body. So with the
	// value "base64" it is taken, and dropped, beside ContentEncoding "base64"
	// and, if TextOnly, on content that is base64 of octets that are no UTF-8:
	// exactly the messages that come back as they were sent. Everything else
	// under that name is InvalidParameter, since the reader could not tell it
	// from our own mark.
	Properties []queue.Property

	RetentionInSeconds  *int32 // 10 to the queue's; absent: the queue's
	DelayInSeconds      *int32 // 0 to 43200 and below the retention; absent: 0
	VisibilityInSeconds *int32 // 1 to 43200, used when the consumer names none; absent: the queue's
}

// PutMessagesResponse has one entry for each message, in the same order.
type PutMessagesResponse struct {
	Messages []queue.Published
}

// PutMessages publishes; when it returns without an error the messages are
// durable.
func (s *Service) PutMessages(ctx context.Context, r PutMessagesRequest) (resp PutMessagesResponse, err error) {
	defer s.done(ctx, "PutMessages", time.Now(), &err)

	q, err := s.findMain(ctx, r.QueueRef, mayProduce, "nothing can be published to it")
	if err != nil {
		return resp, err
	}
	now := time.Now()
	if err := s.rates.Request(s.number(q.ID), "PutMessages", now); err != nil {
		return resp, err
	}
	messages, bytes, err := s.newMessages(&r, &q)
	if err != nil {
		return resp, err
	}
	if err := s.rates.Ingress(s.number(q.ID), bytes, now); err != nil {
		return resp, err
	}
	resp.Messages, err = s.broker.Publish(ctx, broker.PublishRequest{
		Queue:      q.ID,
		Messages:   messages,
		RetryToken: given(r.RetryToken),
	})
	return resp, err
}

// StartPutMessages is PutMessages for a stream, which does not wait: then is
// called once, when the messages are durable or refused. It may be called by
// the core, so it must be quick and must not block; or at once, by the caller.
// What one goroutine starts for one queue is stored in that order. Where
// PutMessages is refused for a rate or for want of room, it waits instead.
func (s *Service) StartPutMessages(ctx context.Context, r PutMessagesRequest, then func(PutMessagesResponse, error)) {
	began := time.Now()
	end := func(messages []queue.Published, err error) {
		s.done(ctx, "PutMessages", began, &err)
		then(PutMessagesResponse{Messages: messages}, err)
	}
	q, err := s.findMain(ctx, r.QueueRef, mayProduce, "nothing can be published to it")
	if err != nil {
		end(nil, err)
		return
	}
	number := s.number(q.ID)
	if err := patiently(ctx, func() error { return s.rates.Request(number, "PutMessages", time.Now()) }); err != nil {
		end(nil, err)
		return
	}
	messages, bytes, err := s.newMessages(&r, &q)
	if err == nil {
		err = patiently(ctx, func() error { return s.rates.Ingress(number, bytes, time.Now()) })
	}
	if err == nil {
		put := broker.PublishRequest{Queue: q.ID, Messages: messages, RetryToken: given(r.RetryToken)}
		err = patiently(ctx, func() error { return s.broker.StartPublish(put, end) })
	}
	if err != nil {
		end(nil, err)
	}
}

// StartPutEach publishes messages to one queue that are requests of their own
// and only arrived together, as frames do: each is a PutMessages by itself, in
// their order. then is told of messages[from:to]: those before stored are
// durable, the others were refused, with the error of the first, since what
// stands behind a refused one is not stored either. It is called once, or for
// one part after the other if a rate holds some up, and what is held up still
// when one is refused is refused with it. Of those that are refused for their
// form it is told at once, also if others before them are under way; see
// StartPutMessages for by whom else, and for the order. The slice is the
// caller's again when StartPutEach returns.
func (s *Service) StartPutEach(ctx context.Context, ref string, messages []PutMessage, then func(from, stored, to int, err error)) {
	began := time.Now()
	var refusal atomic.Pointer[error] // the first
	end := func(from, stored, to int, err error) {
		if err != nil {
			refusal.CompareAndSwap(nil, &err)
		}
		var fine error
		for range stored - from {
			s.done(ctx, "PutMessages", began, &fine)
		}
		for range to - stored {
			s.done(ctx, "PutMessages", began, &err)
		}
		then(from, stored, to, err)
	}
	q, err := s.findMain(ctx, ref, mayProduce, "nothing can be published to it")
	number := s.number(q.ID)
	request := func() error { return s.rates.Request(number, "PutMessages", time.Now()) }
	for from, to := 0, 0; from < len(messages); from = to {
		if err == nil {
			err = patiently(ctx, func() error {
				if refusal.Load() != nil {
					return nil
				}
				return request()
			})
		}
		if first := refusal.Load(); first != nil {
			err = *first
		}
		if err != nil {
			end(from, from, len(messages), err)
			return
		}
		for to = from + 1; to < len(messages) && request() == nil; {
			to++
		}
		s.startPutEach(ctx, &q, messages[from:to], func(begin, stored, over int, err error) {
			end(from+begin, from+stored, from+over, err)
		})
	}
}

// startPutEach publishes what the rate of requests has let through.
func (s *Service) startPutEach(ctx context.Context, q *queue.Queue, put []PutMessage, then func(from, stored, to int, err error)) {
	r := broker.PublishRequest{Queue: q.ID, Messages: make([]queue.NewMessage, len(put))}
	bytes := int64(0)
	for i := range put {
		m := &r.Messages[i]
		wrong := s.newMessage(m, &put[i], 0, q, false)
		if wrong == nil {
			wrong = s.limits.CheckRequestBytes(m.Size(), q.Has(queue.LargeMessages))
		}
		if wrong != nil {
			r.Messages = r.Messages[:i]
			then(i, i, len(put), wrong)
			break
		}
		bytes += m.Size()
	}
	n := len(r.Messages)
	if n == 0 {
		return
	}
	err := patiently(ctx, func() error { return s.rates.Ingress(s.number(q.ID), bytes, time.Now()) })
	if err == nil {
		err = patiently(ctx, func() error {
			return s.broker.StartPublishEach(r, func(stored int, err error) { then(0, stored, n, err) })
		})
	}
	if err != nil {
		then(0, 0, n, err)
	}
}

// newMessages checks the form of a publish to q and gives its messages and
// their size together.
func (s *Service) newMessages(r *PutMessagesRequest, q *queue.Queue) ([]queue.NewMessage, int64, error) {
	if err := checkBatch(s.limits, "messages", r.Messages); err != nil {
		return nil, 0, err
	}
	if err := checkRetryToken(r.RetryToken); err != nil {
		return nil, 0, err
	}
	messages, bytes := make([]queue.NewMessage, len(r.Messages)), int64(0)
	for i := range r.Messages {
		m := &messages[i]
		if err := s.newMessage(m, &r.Messages[i], i, q, r.TextOnly); err != nil {
			return nil, 0, err
		}
		bytes += m.Size()
	}
	return messages, bytes, s.limits.CheckRequestBytes(bytes, q.Has(queue.LargeMessages))
}

// newMessage checks the form of p, which stands at place i, and makes m of it.
func (s *Service) newMessage(m *queue.NewMessage, p *PutMessage, i int, q *queue.Queue, textOnly bool) error {
	if err := p.read(m, i, q, textOnly); err != nil {
		return err
	}
	if err := s.limits.CheckMessage(m, q.Has(queue.LargeMessages)); err != nil {
		return within("messages", i, err)
	}
	return nil
}

// read turns p, the message at place i of a publish to q, into m. Sizes and
// names of properties are not looked at.
func (p *PutMessage) read(m *queue.NewMessage, i int, q *queue.Queue, textOnly bool) (err error) {
	at := func(name string) field { return field{list: "messages", at: i, name: name} }

	if p.Content == nil {
		return at("content").missing()
	}
	if m.Body, m.Properties, err = p.decode(textOnly); err != nil {
		return within("messages", i, err)
	}
	m.ContentType = p.ContentType
	m.Channel = given(p.ChannelID)
	if err := channels.Validate(m.Channel); err != nil {
		return within("messages", i, err)
	}
	if m.Retention, err = retention(at("retentionInSeconds"), p.RetentionInSeconds, q); err != nil {
		return err
	}
	if m.Delay, err = at("delayInSeconds").seconds(p.DelayInSeconds, 0, queue.MaxDelay, 0); err != nil {
		return err
	}
	if life := cmp.Or(m.Retention, q.Retention); m.Delay >= life {
		return at("delayInSeconds").invalid("is %d; it must be below the retention of the message, which is %d",
			*p.DelayInSeconds, life/time.Second)
	}
	m.Visibility, err = at("visibilityInSeconds").seconds(p.VisibilityInSeconds, queue.MinVisibility, queue.MaxVisibility, 0)
	return err
}

// retention is a message's own retention, at most its queue's; 0 if it names
// none.
func retention(f field, v *int32, q *queue.Queue) (time.Duration, error) {
	if v == nil {
		return 0, nil
	}
	d := time.Duration(*v) * time.Second
	if d < queue.MinRetention || d > q.Retention {
		return 0, f.invalid("is %d; it must be %d to the retentionInSeconds of the queue, which is %d",
			*v, queue.MinRetention/time.Second, q.Retention/time.Second)
	}
	return d, nil
}

// reservedProperty marks a body spelled in base64; see PutMessage.Properties.
const (
	reservedProperty = "content-encoding"
	base64Encoding   = "base64"
)

// decode gives the octets of the body and the properties in the order of their
// names, the reserved one taken out.
func (p *PutMessage) decode(textOnly bool) (body []byte, properties []queue.Property, err error) {
	body, properties = p.Content, p.Properties
	declared := strings.EqualFold(given(p.ContentEncoding), base64Encoding)
	switch {
	case declared:
		if body, err = decodeBase64(body); err != nil {
			return nil, nil, field{name: "content"}.invalid("is not base64, as contentEncoding says")
		}
	case given(p.ContentEncoding) != "":
		return nil, nil, field{name: "contentEncoding"}.invalid("must be %s, or absent for text", base64Encoding)
	}

	slices.SortFunc(properties, func(a, b queue.Property) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(properties); i++ {
		if name := properties[i].Name; name == properties[i-1].Name {
			return nil, nil, field{name: "customProperties"}.invalid("has %q more than once", name)
		}
	}
	at, found := slices.BinarySearchFunc(properties, reservedProperty, func(p queue.Property, name string) int {
		return cmp.Compare(p.Name, name)
	})
	if !found {
		return body, properties, nil
	}
	if properties[at].Value == base64Encoding {
		if declared {
			return body, slices.Delete(properties, at, at+1), nil
		}
		if octets, err := decodeBase64(body); err == nil && textOnly && !utf8.Valid(octets) {
			return octets, slices.Delete(properties, at, at+1), nil
		}
	}
	return nil, nil, field{name: "customProperties"}.invalid(
		"has %q, which is reserved: it marks content that is no text, in base64; use contentEncoding to send such", reservedProperty)
}

// decodeBase64 is standard base64 with padding and nothing else: one spelling
// for each row of octets.
func decodeBase64(text []byte) ([]byte, error) {
	octets, err := base64.StdEncoding.Strict().AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(text))), text)
	if err == nil && base64.StdEncoding.EncodedLen(len(octets)) != len(text) {
		err = base64.CorruptInputError(len(text)) // line breaks, which the decoder skips
	}
	return octets, err
}
