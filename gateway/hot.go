package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// hotService is what the hot handlers call: *service.Service.
type hotService interface {
	PutMessages(context.Context, service.PutMessagesRequest) (service.PutMessagesResponse, error)
	GetMessages(context.Context, service.GetMessagesRequest) (service.GetMessagesResponse, error)
	UpdateMessage(context.Context, service.UpdateMessageRequest) (service.UpdateMessageResponse, error)
	UpdateMessages(context.Context, service.UpdateMessagesRequest) (service.UpdateMessagesResponse, error)
	DeleteMessage(context.Context, service.DeleteMessageRequest) (service.DeleteMessageResponse, error)
	DeleteMessages(context.Context, service.DeleteMessagesRequest) (service.DeleteMessagesResponse, error)
	Undeliver([]queue.Delivery)
	TakesLarge(ctx context.Context, ref string) bool
}

// hotHandler answers one operation from x and the parameters of the path.
type hotHandler func(g *gateway, x *exchange, path map[string]string) error

// hotHandlers are the operations that have one.
var hotHandlers = map[string]hotHandler{
	"PutMessages":    (*gateway).putMessages,
	"GetMessages":    (*gateway).getMessages,
	"UpdateMessage":  (*gateway).updateMessage,
	"UpdateMessages": (*gateway).updateMessages,
	"DeleteMessage":  (*gateway).deleteMessage,
	"DeleteMessages": (*gateway).deleteMessages,
}

// Parameters of the paths of the hot operations, as gateway.yaml names them.
const (
	queueParam   = "queue_id"
	receiptParam = "message_receipt"
)

// handleHot puts the hot handlers on the mux, in front of the generated ones.
func (g *gateway) handleHot() error {
	g.hot = map[string]bool{}
	for i := range routes {
		r := &routes[i]
		h := hotHandlers[r.operation]
		if h == nil {
			continue
		}
		err := g.mux.HandlePath(r.method, hotPattern(r.path), func(w http.ResponseWriter, _ *http.Request, path map[string]string) {
			x := w.(*exchange)
			if err := h(g, x, path); err != nil {
				x.refuse(err)
			}
		})
		if err != nil {
			return err
		}
		g.hot[r.operation] = true
	}
	return nil
}

// hotPattern names the parameters of a path of routes: the queue first, then
// the receipt.
func hotPattern(path string) string {
	names := []string{queueParam, receiptParam}
	b := []byte(basePath)
	for i := 0; i < len(path); i++ {
		b = append(b, path[i])
		if path[i] == '{' {
			b = append(b, names[0]...)
			names = names[1:]
		}
	}
	return string(b)
}

// optionalText is the value of a query parameter, nil if it is not given.
func optionalText(p *param) *string {
	if !p.given {
		return nil
	}
	s := p.value // not a pointer into x, which is used again
	return &s
}

// optionalInt is the value of a query parameter that must be a whole number.
func (x *exchange) optionalInt(i int) (*int32, error) {
	p := &x.query[i]
	if !p.given {
		return nil, nil
	}
	n, err := int32Param(x.route.query[i], p.value)
	return &n, err
}

func (g *gateway) putMessages(x *exchange, path map[string]string) error {
	messages, err := x.put.decode(&x.reader, x.in)
	if err != nil {
		return err
	}
	x.served = true
	resp, err := g.service.PutMessages(x.ctx, service.PutMessagesRequest{
		QueueRef: path[queueParam], Messages: messages, RetryToken: x.token, TextOnly: true,
	})
	if err != nil {
		return err
	}
	x.out = appendPublished(x.out, resp.Messages)
	return nil
}

func (g *gateway) getMessages(x *exchange, path map[string]string) (err error) {
	r := service.GetMessagesRequest{
		QueueRef:        path[queueParam],
		ChannelFilter:   optionalText(&x.query[getFilter]),
		ConsumerGroupID: optionalText(&x.query[getGroup]),
	}
	if r.VisibilityInSeconds, err = x.optionalInt(getVisibility); err != nil {
		return err
	}
	if r.TimeoutInSeconds, err = x.optionalInt(getTimeout); err != nil {
		return err
	}
	if r.Limit, err = x.optionalInt(getLimit); err != nil {
		return err
	}
	began := time.Now()
	x.served = true
	resp, err := g.service.GetMessages(x.ctx, r)
	if err != nil {
		return err
	}
	x.delivered, x.polled = resp.Messages, time.Since(began) > polled
	x.out = appendDeliveries(x.out, resp.Messages, x.query[getEncoding].given)
	return nil
}

func (g *gateway) updateMessage(x *exchange, path map[string]string) error {
	r := service.UpdateMessageRequest{
		QueueRef:        path[queueParam],
		Receipt:         queue.Receipt(path[receiptParam]),
		ConsumerGroupID: optionalText(&x.query[0]),
	}
	var err error
	if r.VisibilityInSeconds, err = decodeUpdate(&x.reader, x.in); err != nil {
		return err
	}
	x.served = true
	resp, err := g.service.UpdateMessage(x.ctx, r)
	if err != nil {
		return err
	}
	x.out = appendUpdated(x.out, resp.ID, resp.VisibleAfter)
	return nil
}

func (g *gateway) updateMessages(x *exchange, path map[string]string) error {
	entries, err := x.batch.updates(&x.reader, x.in)
	if err != nil {
		return err
	}
	x.served = true
	resp, err := g.service.UpdateMessages(x.ctx, service.UpdateMessagesRequest{
		QueueRef: path[queueParam], Entries: entries, ConsumerGroupID: optionalText(&x.query[0]),
	})
	if err != nil {
		return err
	}
	x.out = appendFailures(x.out, resp.ServerFailures, resp.ClientFailures)
	for i := range resp.Entries {
		if e := &resp.Entries[i]; e.Failed() {
			x.out = appendFailure(x.out, e.Failure)
		} else {
			x.out = appendUpdated(x.out, e.ID, e.VisibleAfter)
		}
		x.out = append(x.out, ',')
	}
	x.out = endList(x.out)
	return nil
}

func (g *gateway) deleteMessage(x *exchange, path map[string]string) error {
	x.served = true
	_, err := g.service.DeleteMessage(x.ctx, service.DeleteMessageRequest{
		QueueRef:        path[queueParam],
		Receipt:         queue.Receipt(path[receiptParam]),
		ConsumerGroupID: optionalText(&x.query[0]),
	})
	return err
}

func (g *gateway) deleteMessages(x *exchange, path map[string]string) error {
	receipts, err := x.batch.deletes(&x.reader, x.in)
	if err != nil {
		return err
	}
	x.served = true
	resp, err := g.service.DeleteMessages(x.ctx, service.DeleteMessagesRequest{
		QueueRef: path[queueParam], Receipts: receipts, ConsumerGroupID: optionalText(&x.query[0]),
	})
	if err != nil {
		return err
	}
	x.out = appendFailures(x.out, resp.ServerFailures, resp.ClientFailures)
	for _, f := range resp.Entries {
		x.out = append(appendFailure(x.out, f), ',')
	}
	x.out = endList(x.out)
	return nil
}

var _ hotService = (*service.Service)(nil)
