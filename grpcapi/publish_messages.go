package grpcapi

import (
	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// What a stream of publishes may have under way. Beyond it nothing is read, and
// HTTP/2's flow control holds the client up.
const (
	mostBatches       = 256     // received and not answered
	mostPublishOctets = 4 << 20 // received and not stored; the batch that reaches it is still taken
)

// PublishMessages publishes batches, many of them in flight.
func (d *data) PublishMessages(stream queuev1.QueueService_PublishMessagesServer) error {
	p := &publisher{service: d.service, stream: stream}
	defer p.open(stream.Context(), d.stopping)()
	go p.receive()
	for {
		b := p.next()
		if b == nil {
			return p.result()
		}
		if err := stream.Send(b.answer()); err != nil {
			return err
		}
		p.answered()
	}
}

// publisher is one stream of publishes.
type publisher struct {
	conversation
	service *service.Service
	stream  queuev1.QueueService_PublishMessagesServer
	queue   string // the queue_id last named; the receiver's own

	// Under the mutex of the conversation.
	batches []*batch // received and not answered, in order
	octets  int      // of those that are not stored
}

// batch is one request and, once it is done, what became of it.
type batch struct {
	number   uint64
	octets   int
	done     bool
	messages []queue.Published
	err      error
}

// receive reads batches and has them stored, without waiting for it.
func (p *publisher) receive() {
	for p.room() {
		r, err := p.stream.Recv()
		if !p.enter() {
			return
		}
		if err != nil {
			p.received(err)
		} else {
			p.start(r)
		}
		p.leave()
	}
}

// room waits until one more batch may be received; false means never.
func (p *publisher) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && (len(p.batches) >= mostBatches || p.octets >= mostPublishOctets) {
		p.changed.Wait()
	}
	return !p.ended
}

// start has a batch stored. It waits only where PutMessages would be refused
// for a rate or for want of room.
func (p *publisher) start(r *queuev1.PublishMessagesRequest) {
	if r.GetQueueId() != "" {
		p.queue = r.GetQueueId()
	} else if p.queue == "" {
		p.end(Status(queue.Errorf(queue.MissingParameter, "queueId is missing: the first batch must name its queue")))
		return
	}
	b := &batch{number: r.GetNumber(), octets: octetsOf(r.GetMessages())}
	p.mu.Lock()
	p.batches = append(p.batches, b)
	p.octets += b.octets
	p.mu.Unlock()

	err := checkText("queueId", p.queue, "retryToken", r.GetRetryToken())
	if err == nil {
		err = checkTextOf(r.GetMessages())
	}
	if err != nil {
		p.stored(b, nil, err)
		return
	}
	put := service.PutMessagesRequest{QueueRef: p.queue, Messages: putMessages(r.GetMessages(), false), RetryToken: r.RetryToken}
	p.service.StartPutMessages(p.ctx, put, func(resp service.PutMessagesResponse, err error) { p.stored(b, resp.Messages, err) })
}

// stored takes down what became of a batch, whichever goroutine knows it.
func (p *publisher) stored(b *batch, messages []queue.Published, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.done, b.messages, b.err = true, messages, err
	p.octets -= b.octets
	p.changed.Broadcast()
}

// next waits for the batch that is to be answered now; nil means that there
// will be none. Batches become done in any order, of several queues, and are
// answered in that in which they came.
func (p *publisher) next() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.lost:
			return nil
		case len(p.batches) > 0 && p.batches[0].done:
			return p.batches[0]
		case len(p.batches) == 0 && p.ended && !p.busy:
			return nil
		}
		p.changed.Wait()
	}
}

// answered forgets the first batch: its answer is on its way.
func (p *publisher) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batches[0] = nil
	p.batches = p.batches[1:]
	p.changed.Broadcast()
}

// answer is what became of b, for the wire.
func (b *batch) answer() *queuev1.PublishMessagesResponse {
	resp := &queuev1.PublishMessagesResponse{Number: b.number, Error: streamError(b.err)}
	if b.err == nil {
		resp.Messages = published(b.messages)
	}
	return resp
}

// octetsOf is about what a batch takes in memory: contents and properties.
func octetsOf(messages []*queuev1.PutMessagesDetailsEntry) int {
	n := 0
	for _, m := range messages {
		n += len(m.GetContent())
		for name, value := range m.GetMetadata().GetCustomProperties() {
			n += len(name) + len(value)
		}
	}
	return n
}
